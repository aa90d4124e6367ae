//! Configuration: the only place that reads its files and environment variables.
//!
//! Two layers: what is equal on every node of a cluster ([`ClusterFile`], [`PolicyFile`]) and what is
//! one node's own ([`NodeFile`]). Each file is a raw serde struct that is turned into a validated one;
//! a mistake is a [`ConfigError`] that shows file, line, column, field and the right form. Everything
//! is read before any port is bound. Must not know of commands or sockets.

mod cluster_file;
mod data_dir;
mod environment;
mod error;
mod log_filter;
mod node_file;
mod policy_file;
mod raw;
mod source;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use ipnet::IpNet;

pub use self::{
    cluster_file::ClusterFile,
    data_dir::{DataDir, DataDirError},
    environment::Environment,
    error::{ConfigError, Mistake},
    node_file::{HttpSettings, LogFormat, LogSettings, NodeFile, QuicSettings, Secret},
    policy_file::{Digest, PolicyFile, PolicySettings, PolicyText, Settings},
};

/// What holds where a file says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// Where HTTP listens.
    pub http_listen: &'static str,
    /// The proxies that are believed whom they speak for: loopback.
    pub trusted_proxies: [IpNet; 2],
    /// The longest that a check may wait for its turn.
    pub max_wait_ms: u64,
    /// Where QUIC listens.
    pub quic_listen: &'static str,
    /// Memory for counters, in MiB.
    pub max_memory_mb: u64,
    /// Share of slots relative to other members'.
    pub weight: u8,
    /// A check is answered within this.
    pub check_deadline_ms: u64,
    /// An owner that has not answered by then is passed by.
    pub forward_timeout_ms: u64,
    /// A standby that has not answered by then is passed by; the check's deadline if that is shorter.
    pub standby_timeout_ms: u64,
    /// How long a joining node looks for others.
    pub join_timeout: Duration,
    /// The folder that a node keeps its files in.
    pub data_dir: &'static str,
    /// The cluster's file.
    pub cluster_file: &'static str,
    /// The policies' file.
    pub policy_file: &'static str,
    /// What is logged.
    pub log_level: &'static str,
}

/// The defaults of every setting.
pub const DEFAULTS: Defaults = Defaults {
    http_listen: "127.0.0.1:7600",
    trusted_proxies: [
        IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
        IpNet::new_assert(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    ],
    max_wait_ms: 5000,
    quic_listen: "127.0.0.1:7601",
    max_memory_mb: 256,
    weight: 1,
    check_deadline_ms: 50,
    forward_timeout_ms: 20,
    standby_timeout_ms: 20,
    join_timeout: Duration::from_secs(3),
    data_dir: "data",
    cluster_file: "cluster.toml",
    policy_file: "policies.toml",
    log_level: "info",
};
