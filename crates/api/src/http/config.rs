//! Bounds of the HTTP interface.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::http::token::Token;

/// How the HTTP interface behaves. Each default is that of [`HttpConfig::default`].
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Opens the operators' calls. Without one they work on a loopback listener alone. Default none.
    pub token: Option<Token>,
    /// The proxies whose `X-Forwarded-*` and `X-Original-*` headers are believed; IPv4 is written as
    /// IPv4. Default the loopback addresses.
    pub trusted_proxies: Vec<IpNet>,
    /// The longest that a check with `?wait=true` is held back. Default 5 s.
    pub max_wait: Duration,
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
            trusted_proxies: vec![IpNet::V4(LOOPBACK_V4), IpNet::V6(LOOPBACK_V6)],
            max_wait: Duration::from_secs(5),
            max_connections: 16_384,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}

const LOOPBACK_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 8);
const LOOPBACK_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128);
