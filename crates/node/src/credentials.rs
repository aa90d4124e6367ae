//! What a node proves itself with: its cluster's authority, its certificate and its key, checked.
//!
//! PEM text comes in; files are the program's affair. Invariant: whatever can be known to be wrong at
//! start is refused at start and names the part that is wrong: a [`Credentials`] that exists has a key that
//! belongs to its certificate, a chain to the authority, and the role of this node in this cluster.

use std::sync::Arc;

use ring::hmac;
use rustls::{
    CertificateError, RootCertStore,
    crypto::{CryptoProvider, ring as provider},
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject as _},
    sign::CertifiedKey,
};
use thiserror::Error;
use tollgate_cluster::{ClusterName, Role};
use tollgate_limit::NodeId;

use crate::tls::{self, RoleError};

#[cfg(test)]
mod tests;

/// The most certificates of a chain, and of a bundle of authorities.
pub const MAX_CERTIFICATES: usize = 16;

/// PEM text of the three files.
#[derive(Clone, Copy)]
pub struct CredentialPem<'a> {
    /// The authority's certificate; several while authorities change.
    pub authority: &'a str,
    /// The node's certificate, then those between it and the authority.
    pub certificate: &'a str,
    /// The node's private key.
    pub key: &'a str,
}

impl std::fmt::Debug for CredentialPem<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CredentialPem").finish_non_exhaustive()
    }
}

/// Who the credentials must be for, and when they must be valid.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// This node's cluster.
    pub cluster: &'a ClusterName,
    /// This node.
    pub node: &'a NodeId,
    /// The Unix time now, in seconds.
    pub unix_seconds: u64,
}

/// One of the three files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The authority's certificate.
    Authority,
    /// The node's certificate.
    Certificate,
    /// The node's key.
    Key,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Authority => "the authority's certificate",
            Self::Certificate => "the node's certificate",
            Self::Key => "the node's key",
        })
    }
}

/// Credentials that a node cannot run with: the operator's fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CredentialsError {
    /// The text is not PEM of what it should be.
    #[error("{part} cannot be read: {reason}")]
    Unreadable {
        /// Which file.
        part: Part,
        /// What the parser says.
        reason: String,
    },
    /// More certificates than any chain has.
    #[error("{part} holds more than {MAX_CERTIFICATES} certificates")]
    TooMany {
        /// Which file.
        part: Part,
    },
    /// The key is another certificate's.
    #[error("the node's key does not belong to the node's certificate")]
    KeyMismatch,
    /// The certificate's time is over: issue a new one.
    #[error("the node's certificate has expired")]
    Expired,
    /// The certificate's time has not come: the clock is wrong.
    #[error("the node's certificate is not valid yet (is the clock right?)")]
    NotValidYet,
    /// The authority did not issue the certificate.
    #[error("the node's certificate was not issued by this authority: {reason}")]
    NotIssued {
        /// What the verifier says.
        reason: String,
    },
    /// The certificate gives no role.
    #[error("the node's certificate is no node's: {0}")]
    Role(#[from] RoleError),
    /// The certificate is of another cluster.
    #[error("the node's certificate is of the cluster '{found}', this node's is '{expected}'")]
    OtherCluster {
        /// The certificate's.
        found: ClusterName,
        /// This node's.
        expected: ClusterName,
    },
    /// The certificate is a client's.
    #[error("the node's certificate is that of the client '{name}'")]
    Client {
        /// The client.
        name: String,
    },
    /// The certificate is another node's.
    #[error("the node's certificate is that of the node '{found}', this node is '{expected}'")]
    OtherNode {
        /// The certificate's.
        found: NodeId,
        /// This node.
        expected: NodeId,
    },
}

/// What a node proves itself with. Checked.
#[derive(Clone)]
pub struct Credentials {
    cluster: ClusterName,
    node: NodeId,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Credentials");
        shown
            .field("cluster", &self.cluster)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads and checks the credentials of a node.
    ///
    /// # Errors
    /// [`CredentialsError`] with what is wrong, and in which file.
    pub fn from_pem(
        pem: &CredentialPem<'_>,
        holder: &Holder<'_>,
    ) -> Result<Self, CredentialsError> {
        let roots = roots(pem.authority)?;
        let chain = certificates(pem.certificate, Part::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(pem.key.as_bytes())
            .map_err(|error| unreadable(Part::Key, &error))?;
        let credentials = Self {
            cluster: holder.cluster.clone(),
            node: holder.node.clone(),
            roots: Arc::new(roots),
            chain,
            key: Arc::new(key),
        };
        credentials.check_key()?;
        // The role first: of a client's certificate it says more than that it is no server's.
        credentials.check_role()?;
        credentials.check_chain(holder.unix_seconds)?;
        Ok(credentials)
    }

    /// Credentials that nobody checked, for those who are not what they say.
    #[cfg(test)]
    pub(crate) fn unchecked(pem: &CredentialPem<'_>, cluster: &ClusterName, node: &NodeId) -> Self {
        Self {
            cluster: cluster.clone(),
            node: node.clone(),
            roots: Arc::new(roots(pem.authority).unwrap()),
            chain: certificates(pem.certificate, Part::Certificate).unwrap(),
            key: Arc::new(PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).unwrap()),
        }
    }

    /// The cluster.
    #[must_use]
    pub const fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// The node.
    #[must_use]
    pub const fn node(&self) -> &NodeId {
        &self.node
    }

    pub(crate) const fn roots(&self) -> &Arc<RootCertStore> {
        &self.roots
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    /// A secret for one purpose that stays the same over restarts: it depends on the private key alone.
    pub(crate) fn secret(&self, purpose: &[u8]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.secret_der());
        let mut secret = [0; 32];
        for (to, from) in secret.iter_mut().zip(hmac::sign(&key, purpose).as_ref()) {
            *to = *from;
        }
        secret
    }

    fn check_key(&self) -> Result<(), CredentialsError> {
        let provider: CryptoProvider = provider::default_provider();
        match CertifiedKey::from_der(self.chain(), self.key(), &provider) {
            Ok(_key) => Ok(()),
            Err(rustls::Error::InconsistentKeys(_)) => Err(CredentialsError::KeyMismatch),
            Err(error) => Err(unreadable(Part::Key, &error)),
        }
    }

    fn check_chain(&self, unix_seconds: u64) -> Result<(), CredentialsError> {
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(unix_seconds));
        match tls::verify_chain(&self.roots, &self.chain, now) {
            Ok(()) => Ok(()),
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            )) => Err(CredentialsError::Expired),
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => Err(CredentialsError::NotValidYet),
            Err(error) => Err(CredentialsError::NotIssued {
                reason: error.to_string(),
            }),
        }
    }

    fn check_role(&self) -> Result<(), CredentialsError> {
        let (cluster, role) = tls::role_of(&self.chain)?;
        if cluster != self.cluster {
            let expected = self.cluster.clone();
            return Err(CredentialsError::OtherCluster {
                found: cluster,
                expected,
            });
        }
        match role {
            Role::Client(name) => Err(CredentialsError::Client { name }),
            Role::Node(found) if found != self.node => Err(CredentialsError::OtherNode {
                found,
                expected: self.node.clone(),
            }),
            Role::Node(_) => Ok(()),
        }
    }
}

fn roots(pem: &str) -> Result<RootCertStore, CredentialsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, Part::Authority)? {
        roots
            .add(certificate)
            .map_err(|error| unreadable(Part::Authority, &error))?;
    }
    Ok(roots)
}

/// All certificates of a text, at least one and at most [`MAX_CERTIFICATES`].
fn certificates(pem: &str, part: Part) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        if found.len() == MAX_CERTIFICATES {
            return Err(CredentialsError::TooMany { part });
        }
        found.push(certificate.map_err(|error| unreadable(part, &error))?);
    }
    if found.is_empty() {
        let reason = "it holds no certificate".to_owned();
        return Err(CredentialsError::Unreadable { part, reason });
    }
    Ok(found)
}

fn unreadable(part: Part, error: &impl std::fmt::Display) -> CredentialsError {
    CredentialsError::Unreadable {
        part,
        reason: error.to_string(),
    }
}
