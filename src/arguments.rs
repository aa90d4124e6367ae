//! The command line.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Parser, Subcommand};
use tollgate_api::duration;

use crate::{access_log::Form, http_client::NodeUrl};

/// The command line of `tollgate`.
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    about = "A distributed, exact rate limiter with no central store"
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a cluster of node processes on this machine, to try things out
    Dev(DevArguments),
    /// Run one node
    Node(NodeArguments),
    /// Ask one check; exits with 0 if it is admitted, 1 if it is refused, 2 on an error
    Check(CheckArguments),
    /// Send a real access log to a running cluster and report what it refuses
    Replay(ReplayArguments),
    /// Test limits against a log in virtual time, on no cluster, and propose numbers; exits with 1 if a
    /// limit refuses more than it may
    Backtest(BacktestArguments),
    /// Show the cluster as one node sees it
    Status(StatusArguments),
    /// Exit with 0 if a node is ready, with 1 if it is not
    Health(HealthArguments),
    /// Put load on a running cluster and report latencies
    Bench(BenchArguments),
    /// Make a cluster's certificates
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Work on policies
    #[command(subcommand)]
    Policies(PoliciesCommand),
}

/// Arguments of `tollgate dev`.
#[derive(Debug, Args)]
pub struct DevArguments {
    /// How many nodes
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub nodes: u16,
    /// Policies to use instead of the sample
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// How long a check may take
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub check_deadline: Option<Duration>,
    /// How long a node waits for the owner of a key
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub forward_timeout: Option<Duration>,
    /// Memory for the counters of each node, in MiB
    #[arg(long, value_name = "MIB")]
    pub max_memory_mb: Option<u64>,
    /// HTTP port of the first node; 0 takes free ports
    #[arg(long, value_name = "PORT", default_value_t = 7600)]
    pub base_port: u16,
    /// Print one line of JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tollgate node`.
#[derive(Debug, Args)]
pub struct NodeArguments {
    /// The node's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Leave when standard input ends: `tollgate dev` holds the other end
    #[arg(long, hide = true)]
    pub until_stdin_ends: bool,
}

/// Arguments of `tollgate check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The node to ask
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7600")]
    pub to: NodeUrl,
    /// The policy to check
    #[arg(long, default_value = "default")]
    pub policy: String,
    /// What the check costs
    #[arg(long)]
    pub cost: Option<u64>,
    /// Ask without consuming
    #[arg(long)]
    pub peek: bool,
    /// Attributes of the request
    #[arg(value_name = "NAME=VALUE", value_parser = pair)]
    pub attributes: Vec<(String, String)>,
}

/// Arguments of `tollgate replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// The access log, in the common or combined form of Apache and nginx
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// The nodes to ask, in turn
    #[arg(
        long,
        value_name = "URL[,URL..]",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:7600"
    )]
    pub to: Vec<NodeUrl>,
    /// The policy to check
    #[arg(long, default_value = "default")]
    pub policy: String,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tollgate backtest`.
#[derive(Debug, Args)]
pub struct BacktestArguments {
    /// The log: an access log of Apache or nginx, JSON lines, or CSV with the names of its columns
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// The limits to test
    #[arg(long, value_name = "FILE")]
    pub policies: PathBuf,
    /// Test this policy alone
    #[arg(long)]
    pub policy: Option<String>,
    /// The log's form, where it is not found by its first lines
    #[arg(long)]
    pub format: Option<Form>,
    /// The column of the time, where it is not time, timestamp, ts or @timestamp
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// The columns whose sum a request costs; without them 1
    #[arg(long, value_name = "COLUMN[+COLUMN..]", value_delimiter = '+')]
    pub cost: Vec<String>,
    /// Write the report as a page, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Exit with 1 if a limit refuses a larger share of its requests, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_refused_share: Option<f64>,
    /// Print one line of JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tollgate bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// The node to load over HTTP
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7600")]
    pub to: NodeUrl,
    /// The node to load over QUIC instead
    #[arg(long, value_name = "ADDRESS", requires = "authority")]
    pub quic: Option<SocketAddr>,
    /// For QUIC: the authority's certificate
    #[arg(long, value_name = "FILE")]
    pub authority: Option<PathBuf>,
    /// For QUIC: a client's certificate
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// For QUIC: the client's key
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// For QUIC: the cluster's name
    #[arg(long, value_name = "NAME", default_value = "dev")]
    pub cluster: String,
    /// The policy to check; its limits count by `ip`
    #[arg(long, default_value = "default")]
    pub policy: String,
    /// How many clients ask in turn
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: u32,
    /// Connections; 32 over HTTP, 1 over QUIC
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub connections: Option<u16>,
    /// For QUIC: checks in flight on each connection
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub in_flight: u16,
    /// How long
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub seconds: u16,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tollgate status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The node to ask
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7600")]
    pub to: NodeUrl,
    /// The file with the operators' token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Print the node's JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tollgate health`.
#[derive(Debug, Args)]
pub struct HealthArguments {
    /// The node to ask
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7600")]
    pub to: NodeUrl,
}

/// What to make.
#[derive(Debug, Subcommand)]
pub enum CertsCommand {
    /// Make a cluster's certificate authority, its hash key and its cluster.toml
    Init(CertsInitArguments),
    /// Make the certificate of a node or of a client
    Issue(CertsIssueArguments),
}

/// Arguments of `tollgate certs init`.
#[derive(Debug, Args)]
pub struct CertsInitArguments {
    /// The cluster's name
    #[arg(long, value_name = "NAME")]
    pub cluster: String,
    /// The folder to write to
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// How long the authority is valid
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub valid_for: Option<Duration>,
}

/// Arguments of `tollgate certs issue`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("holder").required(true).args(["node", "client"]))]
pub struct CertsIssueArguments {
    /// The node's id
    #[arg(long, value_name = "ID")]
    pub node: Option<String>,
    /// The client's name
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// The folder with the authority, as `certs init` wrote it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub authority: PathBuf,
    /// The folder to write to
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// How long the certificate is valid
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub valid_for: Option<Duration>,
}

/// Work on policies.
#[derive(Debug, Subcommand)]
pub enum PoliciesCommand {
    /// Validate a file, and say which limits match the attributes
    Check(PoliciesCheckArguments),
}

/// Arguments of `tollgate policies check`.
#[derive(Debug, Args)]
pub struct PoliciesCheckArguments {
    /// The policies
    pub file: PathBuf,
    /// Attributes of a request
    #[arg(value_name = "NAME=VALUE", value_parser = pair)]
    pub attributes: Vec<(String, String)>,
}

fn span(text: &str) -> Result<Duration, String> {
    let span = duration::parse(text).map_err(|error| error.to_string())?;
    Ok(span.into())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write name=value")?;
    if name.is_empty() {
        return Err("write name=value".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
