//! Bounds of the HTTP interface.

use std::time::Duration;

use crate::http::token::Token;

/// How the HTTP interface behaves. Each default is that of [`HttpConfig::default`].
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Opens the operators' calls. Without one they work on a loopback listener alone. Default none.
    pub token: Option<Token>,
    /// The most connections at once, of all listeners; more wait to be accepted. Default 16 384.
    pub max_connections: usize,
    /// The longest that a request's head may take from its first byte. Default 10 s.
    pub header_timeout: Duration,
    /// The longest that a request's body may take. Default 10 s.
    pub body_timeout: Duration,
    /// The longest that a connection may lie idle, or leave an answer unread. Default 75 s.
    pub idle_timeout: Duration,
    /// The longest that requests in flight may take after a shutdown was asked for. Default 5 s.
    pub shutdown_timeout: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            token: None,
            max_connections: 16_384,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}
