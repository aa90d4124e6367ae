//! Who is refused, why, and the one log line that says so.
//!
//! Invariant: the same address refused for the same reason is one line a minute, however often
//! it comes back; the rest is at debug level. What is remembered for that is bounded.

use std::{any::Any, collections::BTreeMap, net::IpAddr, net::SocketAddr};

use parking_lot::Mutex;
use quinn::{Connection, ConnectionError, TransportErrorCode, crypto::rustls::HandshakeData};
use rustls::{AlertDescription, pki_types::CertificateDer};
use tollgate_cluster::{ClusterName, Role};
use tollgate_limit::{Nanos, NodeId};

use crate::{
    clock::{Clock as _, TokioClock},
    tls::{self, RoleError},
};

/// How long a refusal is not told again.
const QUIET: Nanos = Nanos::from_millis(60_000);
/// The most refusals that are remembered; the table starts anew above it.
const MAX_REMEMBERED: usize = 1_024;

/// Why a connection was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its certificate does not come from our authority, or its time is over.
    Certificate(String),
    /// It found our certificate not to come from its authority.
    CertificateOfOurs(String),
    /// It speaks none of our protocols.
    UnknownProtocol,
    /// It did not keep to TLS or QUIC.
    Handshake(String),
    /// It has no certificate, or one without a role.
    NoRole(RoleError),
    /// It is of another cluster.
    OtherCluster(ClusterName),
    /// A client on a protocol of peers.
    ClientAsPeer(String),
    /// Clients are switched off.
    ClientsOff,
    /// It has this node's own name.
    OwnName(NodeId),
}

impl Refusal {
    /// What a failed handshake means; `None` if it means nothing but a network.
    pub(super) fn of_handshake(error: &ConnectionError) -> Option<Self> {
        let refusal = match error {
            ConnectionError::TransportError(ours) => {
                Some(Self::of_alert(ours.code, &ours.reason, Self::Certificate))
            }
            ConnectionError::ConnectionClosed(theirs) => {
                let reason = String::from_utf8_lossy(&theirs.reason);
                Some(Self::of_alert(
                    theirs.error_code,
                    &reason,
                    Self::CertificateOfOurs,
                ))
            }
            ConnectionError::VersionMismatch => Some(Self::Handshake(error.to_string())),
            ConnectionError::ApplicationClosed(_)
            | ConnectionError::Reset
            | ConnectionError::TimedOut
            | ConnectionError::LocallyClosed
            | ConnectionError::CidsExhausted => None,
        };
        // Without a word it is a healthy peer that gave up its dial, or ends.
        refusal.filter(|refusal| *refusal != Self::Handshake(String::new()))
    }

    fn of_alert(
        code: TransportErrorCode,
        reason: &str,
        about_certificate: fn(String) -> Self,
    ) -> Self {
        let alert = u64::from(code)
            .checked_sub(CRYPTO_ERRORS)
            .and_then(|alert| u8::try_from(alert).ok());
        let Some(alert) = alert.map(AlertDescription::from) else {
            return Self::Handshake(reason.to_owned());
        };
        if alert == AlertDescription::NoApplicationProtocol {
            return Self::UnknownProtocol;
        }
        if CERTIFICATE_ALERTS.contains(&alert) {
            return about_certificate(reason.to_owned());
        }
        Self::Handshake(reason.to_owned())
    }

    /// A constant name, for telling refusals apart.
    const fn name(&self) -> &'static str {
        match self {
            Self::Certificate(_) => "its certificate is not of our authority",
            Self::CertificateOfOurs(_) => "it does not accept our certificate",
            Self::UnknownProtocol => "it speaks none of our protocols",
            Self::Handshake(_) => "its handshake is broken",
            Self::NoRole(_) => "its certificate gives no role",
            Self::OtherCluster(_) => "it is of another cluster",
            Self::ClientAsPeer(_) => "it is a client, not a node",
            Self::ClientsOff => "clients are switched off",
            Self::OwnName(_) => "it has this node's name",
        }
    }

    /// What the other side is told: it needs no name of ours to act on it.
    pub(super) const fn words(&self) -> &'static str {
        match self {
            Self::Certificate(_) => "the certificate is not of our authority",
            Self::CertificateOfOurs(_) | Self::Handshake(_) => "refused",
            Self::UnknownProtocol => "unknown protocol",
            Self::NoRole(_) => "the certificate gives no role",
            Self::OtherCluster(_) => "the certificate is of another cluster",
            Self::ClientAsPeer(_) => "the certificate is a client's, not a node's",
            Self::ClientsOff => "clients are switched off",
            Self::OwnName(_) => "this node has the same name",
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Certificate(detail)
            | Self::CertificateOfOurs(detail)
            | Self::Handshake(detail) => detail.clone(),
            Self::NoRole(error) => error.to_string(),
            Self::OtherCluster(cluster) => cluster.to_string(),
            Self::ClientAsPeer(name) => name.clone(),
            Self::OwnName(node) => node.to_string(),
            Self::UnknownProtocol | Self::ClientsOff => String::new(),
        }
    }
}

/// Tells of refusals.
#[derive(Debug)]
pub(super) struct RefusalLog {
    clock: TokioClock,
    told: Mutex<BTreeMap<(IpAddr, &'static str), Nanos>>,
}

impl RefusalLog {
    pub(super) const fn new(clock: TokioClock) -> Self {
        Self {
            clock,
            told: Mutex::new(BTreeMap::new()),
        }
    }

    pub(super) fn tell(&self, remote: SocketAddr, refusal: &Refusal) {
        let reason = refusal.name();
        let detail = refusal.detail();
        if self.is_new(remote.ip(), reason) {
            tracing::warn!(%remote, reason, detail, "refused a connection");
        } else {
            tracing::debug!(%remote, reason, detail, "refused a connection again");
        }
    }

    fn is_new(&self, remote: IpAddr, reason: &'static str) -> bool {
        let now = self.clock.now();
        let mut told = self.told.lock();
        if let Some(last) = told.get(&(remote, reason))
            && now.saturating_sub(*last) < QUIET
        {
            return false;
        }
        if told.len() >= MAX_REMEMBERED {
            told.clear();
        }
        told.insert((remote, reason), now);
        true
    }
}

/// The protocol that was agreed on.
pub(super) fn protocol_of(connection: &Connection) -> Option<Vec<u8>> {
    let data: Box<dyn Any> = connection.handshake_data()?;
    data.downcast::<HandshakeData>().ok()?.protocol
}

/// Who is at the other end, by its certificate.
pub(super) fn role_of_connection(
    connection: &Connection,
) -> Result<(ClusterName, Role), RoleError> {
    let chain = connection.peer_identity().ok_or(RoleError::NoCertificate)?;
    let chain = chain.downcast::<Vec<CertificateDer<'static>>>();
    let chain = chain.map_err(|_other| RoleError::NoCertificate)?;
    tls::role_of(&chain)
}

/// Where QUIC's error codes hold TLS alerts.
const CRYPTO_ERRORS: u64 = 0x100;

const CERTIFICATE_ALERTS: [AlertDescription; 9] = [
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::DecryptError,
    AlertDescription::CertificateRequired,
];

#[cfg(test)]
mod tests;
