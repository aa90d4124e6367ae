//! Whom the client trusts and who it is: certificates and keys, from PEM or as they are.

use std::fmt;

use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use thiserror::Error;

/// The authorities that a node's certificate must end in.
#[derive(Clone, Debug)]
pub struct Trust {
    /// Their certificates.
    pub authorities: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// The certificates in a PEM file; what else is in it is passed over.
    ///
    /// # Errors
    /// [`PemError`] if it has none or one of them is broken.
    pub fn from_pem(pem: &[u8]) -> Result<Self, PemError> {
        let authorities = certificates(pem)?;
        Ok(Self { authorities })
    }
}

/// Who the client is: its certificate, role client, and the key of it.
pub struct Credentials {
    /// The certificate, and those between it and the authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key.
    pub key: PrivateKeyDer<'static>,
}

impl Credentials {
    /// Certificate chain and key from PEM; both may be the same file.
    ///
    /// # Errors
    /// [`PemError`] if either is missing or broken.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, PemError> {
        Ok(Self {
            chain: certificates(chain)?,
            key: PrivateKeyDer::from_pem_slice(key).map_err(|_error| PemError::NoKey)?,
        })
    }
}

impl Clone for Credentials {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(secret)")
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok()
        .filter(|certificates| !certificates.is_empty())
        .ok_or(PemError::NoCertificate)
}

/// A PEM file without what is needed. The operator's fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PemError {
    /// No certificate, or a broken one.
    #[error("no certificate in the file, or a broken one")]
    NoCertificate,
    /// No private key, or a broken one.
    #[error("no private key in the file, or a broken one")]
    NoKey,
}
