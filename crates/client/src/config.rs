//! What a client needs to know, its defaults and its bounds.

use std::{net::SocketAddr, time::Duration};

use thiserror::Error;

use crate::credentials::{Credentials, Trust};

/// The most servers of a client.
const MAX_SERVERS: usize = 256;
/// The largest [`ClientConfig::max_in_flight`].
const MAX_IN_FLIGHT: usize = 1 << 20;
/// The shortest and the longest [`ClientConfig::deadline`].
const DEADLINES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));

/// How a client reaches its cluster.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The cluster's name, as in the nodes' certificates.
    pub cluster: String,
    /// The nodes' QUIC addresses, 1 to 256. One is connected at a time, the next in the list when
    /// it is lost.
    pub servers: Vec<SocketAddr>,
    /// The authorities that a node's certificate must end in.
    pub trust: Trust,
    /// Who the client is; needed unless the nodes let clients in without certificates.
    pub credentials: Option<Credentials>,
    /// The name that is sent to the server; the cluster's unless told otherwise. It is not what the
    /// certificate is verified by: that is the authority and the role in it.
    pub server_name: Option<String>,
    /// The time that a check has for its answer: 1 ms to 60 s, default 100 ms.
    pub deadline: Duration,
    /// The most checks in flight, 1 to 1 048 576, default 65 536. More fail at once.
    pub max_in_flight: usize,
    /// Seeds the jitter of waits; from the system unless given.
    pub seed: Option<u64>,
}

impl ClientConfig {
    /// The defaults, without a certificate of the client's own.
    #[must_use]
    pub fn new(cluster: &str, servers: Vec<SocketAddr>, trust: Trust) -> Self {
        Self {
            cluster: cluster.to_owned(),
            servers,
            trust,
            credentials: None,
            server_name: None,
            deadline: Duration::from_millis(100),
            max_in_flight: 1 << 16,
            seed: None,
        }
    }

    /// What quinn needs to dial a node, for callers that speak frames themselves, such as load
    /// generators.
    ///
    /// # Errors
    /// [`ConfigError::Tls`] if certificates or key cannot be used.
    pub fn quic(&self) -> Result<quinn::ClientConfig, ConfigError> {
        crate::tls::quic_config(self)
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let (shortest, longest) = DEADLINES;
        if !(1..=MAX_SERVERS).contains(&self.servers.len()) {
            return Err(ConfigError::Servers);
        }
        if !(shortest..=longest).contains(&self.deadline) {
            return Err(ConfigError::Deadline);
        }
        if !(1..=MAX_IN_FLIGHT).contains(&self.max_in_flight) {
            return Err(ConfigError::InFlight);
        }
        Ok(())
    }
}

/// A client that cannot start. The caller's fault unless it says otherwise.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// No server, or too many.
    #[error("servers: give 1 to {MAX_SERVERS} addresses")]
    Servers,
    /// The deadline is out of range.
    #[error("deadline: give 1 ms to 60 s")]
    Deadline,
    /// The bound on checks in flight is out of range.
    #[error("max_in_flight: give 1 to {MAX_IN_FLIGHT}")]
    InFlight,
    /// The server name is no DNS name.
    #[error("server_name: {name:?} is not a DNS name")]
    ServerName {
        /// The name.
        name: String,
    },
    /// A certificate or key cannot be used.
    #[error("certificates: {0}")]
    Tls(#[from] rustls::Error),
    /// It was started outside a tokio runtime.
    #[error("a client must be started inside a tokio runtime")]
    NoRuntime,
    /// No UDP socket, or no randomness. The system's fault.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}
