//! TLS 1.3 by ring towards nodes: the chain must end in the given authority and the certificate
//! must be a node's of this cluster.
//!
//! Invariant: the server's name decides nothing. A node proves by its certificate what it is, so any
//! node of the cluster may be dialled by any address.

mod verifier;

use std::{sync::Arc, time::Duration};

use quinn::{IdleTimeout, TransportConfig, VarInt, crypto::rustls::QuicClientConfig};
use rustls::version::TLS13;
use tollgate_wire::ALPN_CLIENT;

use self::verifier::NodeVerifier;
use crate::config::{ClientConfig, ConfigError};

/// Nothing heard for so long: the connection is over.
const IDLE_TIMEOUT_MS: u32 = 3_000;
/// A sign of life each time nothing was said for so long.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// The round trip that is assumed before one is measured: nodes are near.
const INITIAL_ROUND_TRIP: Duration = Duration::from_millis(20);
/// Bytes of a stream that a node may send before they are read.
const STREAM_WINDOW: u32 = 256 << 10;
/// Bytes of a connection that either side may have on the way.
const CONNECTION_WINDOW: u32 = 2 << 20;

/// What quinn needs to dial a node.
///
/// # Errors
/// [`ConfigError::Tls`] if certificates or key cannot be used.
pub(crate) fn quic_config(config: &ClientConfig) -> Result<quinn::ClientConfig, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = NodeVerifier::new(&config.cluster, &config.trust, &provider)?;
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut tls = match config.credentials.clone() {
        Some(own) => builder.with_client_auth_cert(own.chain, own.key)?,
        None => builder.with_no_client_auth(),
    };
    tls.alpn_protocols = vec![ALPN_CLIENT.to_vec()];
    let crypto = QuicClientConfig::try_from(tls)
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut quic = quinn::ClientConfig::new(Arc::new(crypto));
    quic.transport_config(Arc::new(transport()));
    Ok(quic)
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_rtt(INITIAL_ROUND_TRIP)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(u64::from(CONNECTION_WINDOW))
        // A node opens no stream and sends no datagram.
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    transport
}
