//! A bare quinn server: answers each frame with one of fixed length. Quinn's own settings, one thread.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::Context;
use quinn::{
    ClientConfig, Endpoint, Incoming, ServerConfig,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::{RootCertStore, version::TLS13};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::runtime::Builder;
use tollgate_bench::load::put_frame;
use tollgate_wire::{
    ALPN_CLIENT,
    frame::{self, MAX_CLIENT_FRAME},
};

use super::Listening;
use crate::arguments::YardstickQuicOptions;

/// The name in the server's certificate.
pub(crate) const SERVER_NAME: &str = "yardstick.test";

const READ_BYTES: usize = 64 << 10;

/// Serves until it is ended.
pub(crate) fn run(options: YardstickQuicOptions) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(options.answer_bytes.into()))
}

async fn serve(answer_bytes: usize) -> anyhow::Result<()> {
    let (config, certificate) = server_config()?;
    let endpoint = Endpoint::server(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = endpoint.local_addr()?;
    Listening {
        address,
        certificate,
    }
    .announce()?;
    while let Some(incoming) = endpoint.accept().await {
        // A connection that fails ends; the load notices.
        tokio::spawn(serve_connection(incoming, answer_bytes));
    }
    Ok(())
}

async fn serve_connection(incoming: Incoming, answer_bytes: usize) -> anyhow::Result<()> {
    let connection = incoming.await?;
    let body = vec![0; answer_bytes];
    let (mut send, mut receive) = connection.accept_bi().await?;
    let (mut unread, mut unsent) = (Vec::new(), Vec::new());
    while let Some(chunk) = receive.read_chunk(READ_BYTES, true).await? {
        unread.extend_from_slice(&chunk.bytes);
        let mut consumed = 0;
        while let Some((frame, length)) = frame::split(&unread[consumed..], MAX_CLIENT_FRAME)? {
            put_frame(&mut unsent, frame.id, &body);
            consumed += length;
        }
        unread.drain(..consumed);
        send.write_all(&unsent).await?;
        unsent.clear();
    }
    Ok(send.finish()?)
}

/// What quinn needs to dial a yardstick with that certificate.
pub(crate) fn client_config(certificate: &[u8]) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.to_vec()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN_CLIENT.to_vec()];
    let crypto = QuicClientConfig::try_from(tls).context("TLS for QUIC")?;
    Ok(ClientConfig::new(Arc::new(crypto)))
}

fn server_config() -> anyhow::Result<(ServerConfig, Vec<u8>)> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let certificate = CertificateParams::new(vec![SERVER_NAME.to_owned()])?.self_signed(&key)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    tls.alpn_protocols = vec![ALPN_CLIENT.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).context("TLS for QUIC")?;
    Ok((
        ServerConfig::with_crypto(Arc::new(crypto)),
        certificate.der().to_vec(),
    ))
}
