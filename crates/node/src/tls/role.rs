//! Whose certificate it is: the role in its URI names.
//!
//! Knows nothing of chains and signatures: what it reads is as true as the chain that was verified.

use rustls::pki_types::CertificateDer;
use thiserror::Error;
use tollgate_cluster::{ClusterName, Role};
use x509_parser::{certificate::X509Certificate, extensions::GeneralName, prelude::FromDer as _};

/// A certificate that gives no role: its issuer's fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RoleError {
    /// There is no certificate.
    #[error("there is no certificate")]
    NoCertificate,
    /// It is not one.
    #[error("the certificate cannot be parsed")]
    Unparsable,
    /// No URI name of ours is in it.
    #[error("no tollgate:// name is in the certificate")]
    NoRole,
    /// It says two things.
    #[error("more than one tollgate:// name is in the certificate")]
    SeveralRoles,
}

/// The cluster and role of the holder of a chain, whose certificate comes first.
///
/// # Errors
/// [`RoleError`]: the chain gives nobody a role.
pub(crate) fn role_of(chain: &[CertificateDer<'_>]) -> Result<(ClusterName, Role), RoleError> {
    let certificate = chain.first().ok_or(RoleError::NoCertificate)?;
    let (_rest, parsed) =
        X509Certificate::from_der(certificate).map_err(|_error| RoleError::Unparsable)?;
    let names = parsed
        .subject_alternative_name()
        .map_err(|_error| RoleError::Unparsable)?;
    let names = names.map(|extension| extension.value.general_names.as_slice());
    let mut roles = names.unwrap_or_default().iter().filter_map(|name| {
        let GeneralName::URI(uri) = name else {
            return None;
        };
        Role::parse_uri(uri)
    });
    let role = roles.next().ok_or(RoleError::NoRole)?;
    match roles.next() {
        Some(_second) => Err(RoleError::SeveralRoles),
        None => Ok(role),
    }
}
