//! TLS for QUIC: version 1.3 only, `ring` only, no early data, no resumption.
//!
//! One server configuration serves all protocols. Must not decide who may do what: it proves that a
//! certificate comes from the cluster's authority, [`role_of`] reads whose it is, and the transport
//! decides. Invariants: a server is a node of our own cluster or the handshake fails; names of hosts
//! prove nothing here; the time is the node's clock.

mod role;
mod time;
mod verifier;

use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::{
    ClientConfig, ServerConfig,
    client::Resumption,
    crypto::{CryptoProvider, ring as provider},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
};
use thiserror::Error;
use tollgate_wire::{ALPN_CLIENT, ALPN_GOSSIP, ALPN_PEER};

pub use self::role::RoleError;
pub(crate) use self::{
    role::role_of,
    time::ClockTime,
    verifier::{NodeVerifier, verify_chain},
};
use crate::{clock::TokioClock, config::Clients, credentials::Credentials};

/// A configuration that cannot be made from checked credentials: a bug, or a library's limits.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("TLS cannot be configured: {reason}")]
pub struct TlsError {
    /// What the library says.
    pub reason: String,
}

impl TlsError {
    fn new(error: &impl std::fmt::Display) -> Self {
        Self {
            reason: error.to_string(),
        }
    }
}

/// The server side of all protocols.
pub(crate) fn server(
    credentials: &Credentials,
    clients: Clients,
    clock: &TokioClock,
) -> Result<QuicServerConfig, TlsError> {
    let verifier =
        WebPkiClientVerifier::builder_with_provider(credentials.roots().clone(), ring_provider());
    // Peers without a certificate are turned away after the handshake, where the protocol is known.
    let verifier = match clients {
        Clients::Open => verifier.allow_unauthenticated(),
        Clients::Off | Clients::Certificate => verifier,
    };
    let verifier = verifier.build().map_err(|error| TlsError::new(&error))?;
    let mut config =
        ServerConfig::builder_with_details(ring_provider(), Arc::new(ClockTime::new(clock)))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| TlsError::new(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(credentials.chain(), credentials.key())
            .map_err(|error| TlsError::new(&error))?;
    config.alpn_protocols = [ALPN_PEER, ALPN_GOSSIP, ALPN_CLIENT]
        .map(<[u8]>::to_vec)
        .to_vec();
    config.max_early_data_size = 0;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    QuicServerConfig::try_from(config).map_err(|error| TlsError::new(&error))
}

/// The dialling side of one protocol between nodes.
pub(crate) fn client(
    credentials: &Credentials,
    protocol: &[u8],
    clock: &TokioClock,
) -> Result<QuicClientConfig, TlsError> {
    let verifier = NodeVerifier::new(credentials.roots().clone(), credentials.cluster().clone());
    let mut config =
        ClientConfig::builder_with_details(ring_provider(), Arc::new(ClockTime::new(clock)))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| TlsError::new(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(credentials.chain(), credentials.key())
            .map_err(|error| TlsError::new(&error))?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.enable_early_data = false;
    config.resumption = Resumption::disabled();
    QuicClientConfig::try_from(config).map_err(|error| TlsError::new(&error))
}

fn ring_provider() -> Arc<CryptoProvider> {
    Arc::new(provider::default_provider())
}
