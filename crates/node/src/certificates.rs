//! Making certificates: a cluster's authority, and the certificates that it issues.
//!
//! Ed25519 throughout: signatures have one length, so handshakes have one size. Must not touch files or
//! the clock: PEM text and Unix time come in and go out. Invariants: a certificate's role stands in
//! exactly one URI name, `tollgate://<cluster>/node/<id>` or `/client/<name>`; a client's
//! certificate is not good for a server.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ED25519, SanType, SerialNumber,
};
use thiserror::Error;
use tollgate_cluster::{ClusterName, Role};
use tollgate_limit::NodeId;

#[cfg(test)]
mod tests;

/// How long an authority is valid unless told otherwise: ten years.
pub const AUTHORITY_SPAN: Duration = Duration::from_secs(3653 * DAY_SECONDS);
/// How long a node's or client's certificate is valid unless told otherwise: one year.
pub const LEAF_SPAN: Duration = Duration::from_secs(366 * DAY_SECONDS);

/// A certificate is valid from this long before it was made: clocks of nodes differ.
const BACKDATE: Duration = Duration::from_secs(300);
/// The last second that a certificate's time may name: the end of the year 9999.
const LAST_UNIX_SECOND: u64 = 253_402_300_799;
const DAY_SECONDS: u64 = 86_400;
/// The longest label of a DNS name, in bytes.
const MAX_DNS_LABEL: usize = 63;

/// A certificate and its private key, each as PEM text. The key is a secret: its owner alone may read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS #8.
    pub key: String,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Pem");
        shown
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// From when to when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    unix_seconds: u64,
    span: Duration,
}

impl Validity {
    /// Valid for `span` from the Unix time `unix_seconds` (and from five minutes before it: clocks
    /// differ). Ends with the year 9999 at the latest.
    #[must_use]
    pub const fn new(unix_seconds: u64, span: Duration) -> Self {
        Self { unix_seconds, span }
    }

    fn first_second(self) -> u64 {
        self.unix_seconds
            .saturating_sub(BACKDATE.as_secs())
            .min(LAST_UNIX_SECOND)
    }

    fn last_second(self) -> u64 {
        self.unix_seconds
            .saturating_add(self.span.as_secs())
            .min(LAST_UNIX_SECOND)
    }

    /// The only place that makes the certificate library's times.
    fn apply(self, parameters: &mut CertificateParams) {
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        parameters.not_before = epoch + Duration::from_secs(self.first_second());
        parameters.not_after = epoch + Duration::from_secs(self.last_second());
    }
}

/// A certificate that could not be made. Nothing was made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IssueError {
    /// The authority's key is not one: the operator's fault.
    #[error("the authority's key cannot be read: {0}")]
    AuthorityKey(rcgen::Error),
    /// The authority's certificate is not one, or not one of ours: the operator's fault.
    #[error("the authority's certificate cannot be read: {0}")]
    AuthorityCertificate(String),
    /// The key is not the certificate's: the operator's fault.
    #[error("the authority's key does not belong to its certificate")]
    AuthorityMismatch,
    /// The client's name cannot stand in a role: the caller's fault.
    #[error("a client's name must be 1 to 64 letters, digits, '.', '_' or '-'")]
    ClientName,
    /// The library failed: no randomness, or a bug.
    #[error("the certificate cannot be made: {0}")]
    Failed(#[from] rcgen::Error),
}

/// A cluster's certificate authority: whoever holds its key decides who is a member.
#[derive(Debug)]
pub struct Authority {
    cluster: ClusterName,
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// A new authority for a cluster.
    ///
    /// # Errors
    /// [`IssueError::Failed`] if the system has no randomness.
    pub fn new(cluster: &ClusterName, validity: Validity) -> Result<Self, IssueError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut parameters = parameters(cluster, "authority", &key, validity);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = parameters.self_signed(&key)?.pem();
        let issuer = Issuer::new(parameters, key);
        Ok(Self {
            cluster: cluster.clone(),
            issuer,
            certificate,
        })
    }

    /// The authority of these files; the certificate names the cluster.
    ///
    /// # Errors
    /// [`IssueError`] with the file that is wrong.
    pub fn from_pem(pem: &Pem) -> Result<Self, IssueError> {
        let key = KeyPair::from_pem(&pem.key).map_err(IssueError::AuthorityKey)?;
        let unreadable = |what: &str| IssueError::AuthorityCertificate(what.to_owned());
        let (_rest, der) = x509_parser::pem::parse_x509_pem(pem.certificate.as_bytes())
            .map_err(|error| IssueError::AuthorityCertificate(error.to_string()))?;
        let parsed = der
            .parse_x509()
            .map_err(|error| IssueError::AuthorityCertificate(error.to_string()))?;
        if parsed.public_key().subject_public_key.data != key.public_key_raw() {
            return Err(IssueError::AuthorityMismatch);
        }
        if !parsed.is_ca() {
            return Err(unreadable("it is not an authority's"));
        }
        let organization = parsed.subject().iter_organization().next();
        let cluster = organization
            .and_then(|name| name.as_str().ok())
            .and_then(ClusterName::new)
            .ok_or_else(|| unreadable("it names no cluster"))?;
        let issuer = Issuer::from_ca_cert_pem(&pem.certificate, key)
            .map_err(|error| IssueError::AuthorityCertificate(error.to_string()))?;
        Ok(Self {
            cluster,
            issuer,
            certificate: pem.certificate.clone(),
        })
    }

    /// The cluster that it is the authority of.
    #[must_use]
    pub const fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// Its certificate and its key.
    #[must_use]
    pub fn pem(&self) -> Pem {
        Pem {
            certificate: self.certificate.clone(),
            key: self.issuer.key().serialize_pem(),
        }
    }

    /// The same authority, issuing for another cluster.
    #[cfg(test)]
    pub(crate) fn pretending(mut self, cluster: ClusterName) -> Self {
        self.cluster = cluster;
        self
    }

    /// A certificate for a node: as a server, and towards its peers.
    ///
    /// # Errors
    /// [`IssueError::Failed`] if the system has no randomness.
    pub fn issue_node(&self, node: &NodeId, validity: Validity) -> Result<Pem, IssueError> {
        let role = Role::Node(node.clone());
        let usages = [
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let names = [node.as_str(), self.cluster.as_str()];
        self.issue(&role, node.as_str(), &usages, &names, validity)
    }

    /// A certificate for a client of this name.
    ///
    /// # Errors
    /// [`IssueError::ClientName`] if the name is not `[A-Za-z0-9._-]{1,64}`, [`IssueError::Failed`]
    /// if the system has no randomness.
    pub fn issue_client(&self, name: &str, validity: Validity) -> Result<Pem, IssueError> {
        // A client's name has the form of a node's.
        NodeId::new(name).ok_or(IssueError::ClientName)?;
        let role = Role::Client(name.to_owned());
        self.issue(
            &role,
            name,
            &[ExtendedKeyUsagePurpose::ClientAuth],
            &[],
            validity,
        )
    }

    fn issue(
        &self,
        role: &Role,
        name: &str,
        usages: &[ExtendedKeyUsagePurpose],
        dns_names: &[&str],
        validity: Validity,
    ) -> Result<Pem, IssueError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut parameters = parameters(&self.cluster, name, &key, validity);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = usages.to_vec();
        parameters.use_authority_key_identifier_extension = true;
        parameters
            .subject_alt_names
            .push(SanType::URI(role.uri(&self.cluster).try_into()?));
        for dns_name in dns_names.iter().filter(|name| is_dns_name(name)) {
            let dns_name = SanType::DnsName((*dns_name).try_into()?);
            if !parameters.subject_alt_names.contains(&dns_name) {
                parameters.subject_alt_names.push(dns_name);
            }
        }
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        Ok(Pem {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// What all certificates share.
fn parameters(
    cluster: &ClusterName,
    name: &str,
    key: &KeyPair,
    validity: Validity,
) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    validity.apply(&mut parameters);
    parameters.serial_number = Some(serial_number(key));
    parameters.distinguished_name = DistinguishedName::new();
    parameters
        .distinguished_name
        .push(DnType::OrganizationName, cluster.as_str());
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters
}

/// A serial number from the key's digest; its first byte is neither zero nor negative, so that all have one
/// length.
fn serial_number(key: &KeyPair) -> SerialNumber {
    let digest = ring::digest::digest(&ring::digest::SHA256, key.public_key_raw());
    let mut bytes: Vec<u8> = digest.as_ref().iter().copied().take(16).collect();
    if let Some(first) = bytes.first_mut() {
        *first = (*first & 0x3f) | 0x40;
    }
    SerialNumber::from_slice(&bytes)
}

/// Whether the name is a legal DNS name: one that a stock TLS client accepts.
fn is_dns_name(name: &str) -> bool {
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    !is_address
        && name.split('.').all(|label| {
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            (1..=MAX_DNS_LABEL).contains(&label.len())
                && label.bytes().all(legal)
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}
