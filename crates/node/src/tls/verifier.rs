//! Verifying a server: its chain leads to our authority, and its role is a node of our cluster.
//!
//! Which node exactly is the dialler's to check: only it knows whom it dialled. Names of hosts are not
//! looked at: members are reached by address, and an address proves nothing.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{WebPkiSupportedAlgorithms, ring as provider, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use thiserror::Error as ThisError;
use tollgate_cluster::{ClusterName, Role};

use super::role::{RoleError, role_of};

/// A chain that is ours, but of somebody whom we do not speak to as a server.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub(crate) enum NotAPeer {
    /// It gives no role.
    #[error("{0}")]
    Role(#[from] RoleError),
    /// It is of another cluster.
    #[error("the certificate is of the cluster '{0}'")]
    OtherCluster(ClusterName),
    /// It is a client's.
    #[error("the certificate is that of the client '{0}'")]
    Client(String),
}

/// Accepts any node of one cluster.
#[derive(Debug)]
pub(crate) struct NodeVerifier {
    roots: Arc<RootCertStore>,
    cluster: ClusterName,
}

impl NodeVerifier {
    pub(crate) const fn new(roots: Arc<RootCertStore>, cluster: ClusterName) -> Self {
        Self { roots, cluster }
    }

    fn check_role(&self, chain: &[CertificateDer<'_>]) -> Result<(), NotAPeer> {
        let (cluster, role) = role_of(chain)?;
        if cluster != self.cluster {
            return Err(NotAPeer::OtherCluster(cluster));
        }
        match role {
            Role::Node(_) => Ok(()),
            Role::Client(name) => Err(NotAPeer::Client(name)),
        }
    }
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify(&self.roots, end_entity, intermediates, now)?;
        self.check_role(std::slice::from_ref(end_entity))
            .map_err(|reason| {
                Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(reason))))
            })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // Never asked: version 1.3 is the only one that is switched on.
        Err(Error::General("TLS 1.2 is off".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().supported_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        None
    }
}

/// Whether the first certificate of `chain` is valid at `now` as a server's and leads to `roots`.
///
/// # Errors
/// What the library finds.
pub(crate) fn verify_chain(
    roots: &RootCertStore,
    chain: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), Error> {
    match chain.split_first() {
        Some((end_entity, intermediates)) => verify(roots, end_entity, intermediates, now),
        None => Err(Error::NoCertificatesPresented),
    }
}

fn verify(
    roots: &RootCertStore,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), Error> {
    let parsed = ParsedCertificate::try_from(end_entity)?;
    let algorithms = algorithms().all;
    verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, algorithms)
}

fn algorithms() -> WebPkiSupportedAlgorithms {
    provider::default_provider().signature_verification_algorithms
}
