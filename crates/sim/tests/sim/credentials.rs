//! Mutual TLS for bare quinn endpoints: one CA, Ed25519, and certificates of one length.
//!
//! Invariant: what differs between two processes (keys, signatures) has the same length in both. ECDSA
//! signatures and hashed serial numbers would not.

use std::sync::Arc;

use quinn::{
    ClientConfig, ServerConfig, TransportConfig,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ED25519, SerialNumber,
};
use rustls::{RootCertStore, crypto::CryptoProvider, server::WebPkiClientVerifier, version::TLS13};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name in every certificate.
pub(crate) const SERVER_NAME: &str = "node.test";

/// A CA.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// What one endpoint needs to be both server and client.
pub(crate) struct Credentials {
    pub(crate) server: ServerConfig,
    pub(crate) client: ClientConfig,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = params(1);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { issuer }
    }

    pub(crate) fn issue(&self, transport: &Arc<TransportConfig>) -> Credentials {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let certificate = params(2).signed_by(&key, &self.issuer).unwrap();
        let chain = vec![certificate.der().clone()];
        let key = key.serialize_der();
        let mut server = self.server_config(chain.clone(), private(key.clone()));
        server.transport_config(Arc::clone(transport));
        let mut client = self.client_config(chain, private(key));
        client.transport_config(Arc::clone(transport));
        Credentials { server, client }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    fn server_config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> ServerConfig {
        let roots = Arc::new(self.roots());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .unwrap();
        let tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()))
    }

    fn client_config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> ClientConfig {
        let tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(self.roots())
            .with_client_auth_cert(chain, key)
            .unwrap();
        ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
    }
}

fn params(serial: u64) -> CertificateParams {
    let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(serial));
    params
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn private(key: Vec<u8>) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key))
}
