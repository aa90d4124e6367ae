//! `node.toml`: what is one node's own.

mod parts;
mod raw_node;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use ipnet::IpNet;
use tollgate_api::Token;
use tollgate_limit::NodeId;
use tollgate_node::{Clients, InlineLimits, Seed, Timeouts};

use self::raw_node::RawNode;
use super::{
    ClusterFile, DEFAULTS, Environment, PolicyFile,
    error::ConfigError,
    source::{Source, read_text},
};

/// The validated `node.toml`, and the files that it names.
#[derive(Debug)]
pub struct NodeFile {
    /// The node's name, unless it is to be made once and kept.
    pub node_id: Option<NodeId>,
    /// The folder that the node keeps its files in.
    pub data_dir: PathBuf,
    /// `cluster.toml`.
    pub cluster: ClusterFile,
    /// `policies.toml`.
    pub policies: PolicyFile,
    /// Where that was read from.
    pub policies_path: PathBuf,
    /// Where other members may be found.
    pub seeds: Vec<Seed>,
    /// Share of slots relative to other members'.
    pub weight: u8,
    /// Memory for counters, in bytes.
    pub max_memory_bytes: u64,
    /// Whether checks may bring their own limit.
    pub inline_limits: InlineLimits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// The HTTP interface.
    pub http: HttpSettings,
    /// The QUIC port.
    pub quic: QuicSettings,
    /// What is logged, and how.
    pub log: LogSettings,
}

/// The HTTP interface.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What other members are told of it.
    pub advertise: SocketAddr,
    /// Opens the operators' calls.
    pub token: Option<Token>,
    /// The networks of the proxies that are believed whom they speak for.
    pub trusted_proxies: Vec<IpNet>,
    /// The longest that a check may wait for its turn, `?wait=true`.
    pub max_wait: Duration,
}

/// The QUIC port, and what this node proves itself with.
#[derive(Clone, Debug)]
pub struct QuicSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where peers reach it.
    pub advertise: SocketAddr,
    /// The authority's certificate, PEM.
    pub authority: String,
    /// This node's certificate, PEM.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: Secret,
    /// Who may use the client protocol.
    pub clients: Clients,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The form.
    pub format: LogFormat,
    /// A level, or directives such as `info,tollgate_node=debug`.
    pub level: String,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

impl NodeFile {
    /// Reads the file and those that it names.
    ///
    /// # Errors
    /// [`ConfigError`]: the operator's fault.
    pub fn load(file: &Path, environment: &Environment) -> Result<Self, ConfigError> {
        let source = Source::read(file)?;
        let raw: RawNode = source.parse()?;
        let or = |path: Option<&String>, default: &str| {
            source.resolve(path.map_or(default, String::as_str))
        };
        let cluster = ClusterFile::load(&or(raw.cluster.as_ref(), DEFAULTS.cluster_file))?;
        let policies_path = or(raw.policies.as_ref(), DEFAULTS.policy_file);
        let policies = PolicyFile::load(&policies_path, &cluster.hash_key)?;
        let quic = quic_settings(&source, &raw)?;
        let http = parts::http_settings(&source, &raw, quic.advertise)?;
        let node_id = match &environment.node_id {
            Some(name) => Some(name.clone()),
            None => parts::node_id(&source, raw.node_id.as_ref())?,
        };
        let mut log = parts::log_settings(&source, raw.log.as_ref())?;
        if let Some(level) = &environment.log_level {
            log.level.clone_from(level);
        }
        Ok(Self {
            node_id,
            data_dir: or(raw.data_dir.as_ref(), DEFAULTS.data_dir),
            cluster,
            policies,
            policies_path,
            seeds: parts::seeds(&source, &raw.seeds)?,
            weight: parts::weight(&source, raw.weight.as_ref())?,
            max_memory_bytes: parts::max_memory_bytes(&source, raw.max_memory_mb.as_ref())?,
            inline_limits: match raw.inline_limits {
                Some(false) => InlineLimits::Refuse,
                Some(true) | None => InlineLimits::Allow,
            },
            timeouts: timeouts(&source, &raw)?,
            http,
            quic,
            log,
        })
    }
}

fn quic_settings(source: &Source, raw: &RawNode) -> Result<QuicSettings, ConfigError> {
    let table = raw.quic.get_ref();
    let listen = parts::address(
        source,
        table.listen.as_ref(),
        "quic.listen",
        DEFAULTS.quic_listen,
    )?;
    let advertise = parts::advertised(source, table.advertise.as_ref(), listen, raw.quic_span())?;
    let text = |path: &str| read_text(&source.resolve(path));
    Ok(QuicSettings {
        listen,
        advertise,
        authority: text(&table.authority)?,
        certificate: text(&table.certificate)?,
        key: Secret(text(&table.key)?),
        clients: parts::clients(source, table.clients.as_ref())?,
    })
}

fn timeouts(source: &Source, raw: &RawNode) -> Result<Timeouts, ConfigError> {
    let deadline = raw.check_deadline_ms.as_ref();
    let check_deadline = parts::millis(
        source,
        deadline,
        "check_deadline_ms",
        DEFAULTS.check_deadline_ms,
    )?;
    let within = |named: Option<&_>, name, default| {
        let timeout = parts::millis(source, named, name, default)?;
        if timeout <= check_deadline {
            return Ok(timeout);
        }
        let span = named.or(deadline).map_or(0..0, toml::Spanned::span);
        let wrong = format!(
            "{} ms is longer than check_deadline_ms",
            timeout.as_millis()
        );
        let right = format!("at most {}", check_deadline.as_millis());
        Err(source.mistake(&span, name, wrong, right))
    };
    let forward = raw.forward_timeout_ms.as_ref();
    let forward = within(forward, "forward_timeout_ms", DEFAULTS.forward_timeout_ms)?;
    let standby = match raw.standby_timeout_ms.as_ref() {
        None => check_deadline.min(Duration::from_millis(DEFAULTS.standby_timeout_ms)),
        named => within(named, "standby_timeout_ms", DEFAULTS.standby_timeout_ms)?,
    };
    let join = raw
        .join_timeout
        .map_or(DEFAULTS.join_timeout, |span| Duration::from(span.0));
    Ok(Timeouts {
        check_deadline,
        forward,
        standby,
        join,
    })
}
