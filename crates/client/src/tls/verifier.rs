//! Verifies that the other side is a node of the cluster.

use std::{fmt, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use thiserror::Error as ThisError;
use tollgate_limit::NodeId;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use crate::credentials::Trust;

/// What all role names begin with.
const SCHEME: &str = "tollgate://";

/// Chain, time and purpose as `WebPKI` has them; then the role instead of the name.
#[derive(Debug)]
pub(super) struct NodeVerifier {
    /// What the role name of a node begins with; its id follows.
    role: String,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

/// A certificate of the right authority that is not a node's of this cluster.
#[derive(Clone, Copy, ThisError, PartialEq, Eq)]
enum RoleError {
    #[error("the certificate cannot be parsed")]
    Unreadable,
    #[error("the certificate has no tollgate:// name, or more than one")]
    NotOneRole,
    #[error("the certificate is not of a node of this cluster")]
    NotANode,
}

impl fmt::Debug for RoleError {
    /// The text itself: it is this that rustls shows of another's error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl NodeVerifier {
    pub(super) fn new(
        cluster: &str,
        trust: &Trust,
        provider: &CryptoProvider,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for authority in &trust.authorities {
            roots.add(authority.clone())?;
        }
        if roots.is_empty() {
            return Err(Error::General("no authority is trusted".to_owned()));
        }
        Ok(Self {
            role: format!("{SCHEME}{cluster}/node/"),
            roots,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    /// Whether the certificate has one role name, and that is a node's of this cluster.
    fn verify_role(&self, certificate: &[u8]) -> Result<(), RoleError> {
        let parsed = X509Certificate::from_der(certificate);
        let (_, certificate) = parsed.map_err(|_error| RoleError::Unreadable)?;
        let names = certificate.subject_alternative_name();
        let names = names.map_err(|_error| RoleError::Unreadable)?;
        let names = names.ok_or(RoleError::NotOneRole)?;
        let mut roles = names.value.general_names.iter().filter_map(|name| {
            if let GeneralName::URI(uri) = name {
                uri.starts_with(SCHEME).then_some(*uri)
            } else {
                None
            }
        });
        let (Some(role), None) = (roles.next(), roles.next()) else {
            return Err(RoleError::NotOneRole);
        };
        let node = role.strip_prefix(&self.role).and_then(NodeId::new);
        node.map(|_| ()).ok_or(RoleError::NotANode)
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
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        self.verify_role(end_entity)
            .map_err(|error| CertificateError::Other(OtherError(Arc::new(error))))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
