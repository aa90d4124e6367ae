//! The files of a development cluster: certificates, policies and one configuration for each node.

#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use tollgate_cluster::ClusterName;
use tollgate_limit::HashKey;

use super::ports::{self, Ports};
use crate::{
    arguments::DevArguments,
    command::{
        Failure, certs,
        files::{self, Readers},
    },
    config::{DEFAULTS, DataDir, PolicyFile},
};

/// The policies where none are named.
const SAMPLE_POLICIES: &str = include_str!("sample_policies.toml");
/// The client that certificates are made for too.
const CLIENT: &str = "client";
/// What the program's own errors start with.
const ERROR: &str = "tollgate:";

/// A development cluster's folder, removed when it is dropped, and its nodes.
#[derive(Debug)]
pub(super) struct Layout {
    folder: TempDir,
    pub(super) nodes: Vec<NodePlan>,
}

/// One node, as it is to be started.
#[derive(Clone, Debug)]
pub(super) struct NodePlan {
    pub(super) id: String,
    pub(super) ports: Ports,
    pub(super) config: PathBuf,
    pub(super) log: PathBuf,
}

impl Layout {
    /// Chooses ports and writes all files.
    pub(super) fn make(arguments: &DevArguments) -> Result<Self, Failure> {
        let cluster = ClusterName::new("dev").ok_or_else(|| Failure::Usage("dev".to_owned()))?;
        let folder = tempfile::Builder::new().prefix("tollgate-dev-").tempdir()?;
        let path = folder.path();
        let authority = certs::make_cluster(path, &cluster, None)?;
        certs::make_client(&authority, path, CLIENT)?;
        let policies = policies(arguments.policies.as_deref())?;
        files::write_new(&path.join("policies.toml"), &policies, Readers::Anyone)?;
        let ports = ports::choose(arguments.base_port, arguments.nodes)?;
        let mut nodes = Vec::new();
        for (number, ports) in (1..).zip(&ports) {
            let id = format!("n{number}");
            certs::make_node(&authority, path, &id)?;
            nodes.push(NodePlan {
                config: path.join(format!("{id}.toml")),
                log: path.join(format!("{id}.log")),
                ports: *ports,
                id,
            });
        }
        for node in &nodes {
            files::write_new(
                &node.config,
                &node_file(node, &nodes, arguments),
                Readers::Anyone,
            )?;
        }
        Ok(Self { folder, nodes })
    }

    /// The folder.
    pub(super) fn folder(&self) -> impl std::fmt::Display {
        self.folder.path().display()
    }

    /// What a node said last: its error with all of its lines, if there is one.
    pub(super) fn last_words(&self, id: &str) -> String {
        let log = fs::read_to_string(self.folder.path().join(format!("{id}.log")));
        last_words(&log.unwrap_or_default())
    }

    /// The nodes whose data folders are held by a process.
    pub(super) fn still_running(&self) -> Vec<&str> {
        let held = |node: &&NodePlan| DataDir::is_held(&self.folder.path().join(&node.id));
        let running = self.nodes.iter().filter(held);
        running.map(|node| node.id.as_str()).collect()
    }

    /// Leaves the folder where it is.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// The lines of a log from its last error on, else its last line.
fn last_words(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    let error = lines.iter().rposition(|line| line.starts_with(ERROR));
    let from = error.unwrap_or_else(|| lines.len().saturating_sub(1));
    let words = lines.get(from..).unwrap_or_default().join("\n");
    match words.strip_prefix(ERROR).unwrap_or(&words).trim() {
        "" => "nothing was logged".to_owned(),
        words => words.to_owned(),
    }
}

/// How long nodes wait for an owner: as told, and less than by default where the deadline is shorter.
fn forward_timeout(arguments: &DevArguments) -> Option<Duration> {
    let default = Duration::from_millis(DEFAULTS.forward_timeout_ms);
    let short = arguments
        .check_deadline
        .filter(|deadline| *deadline < default);
    // The other half is for what is decided without the owner.
    let fitting = short.map(|deadline| (deadline / 2).max(Duration::from_millis(1)));
    arguments.forward_timeout.or(fitting)
}

/// Checks the policies before any node is started.
fn policies(file: Option<&Path>) -> Result<String, Failure> {
    let Some(file) = file else {
        return Ok(SAMPLE_POLICIES.to_owned());
    };
    let text = files::read(file)?;
    PolicyFile::parse(file, &text, &HashKey::new([0; 16]))?;
    Ok(text)
}

fn node_file(node: &NodePlan, nodes: &[NodePlan], arguments: &DevArguments) -> String {
    let others = nodes.iter().filter(|other| other.id != node.id);
    let seeds: Vec<_> = others
        .map(|other| format!("\"{}\"", other.ports.quic))
        .collect();
    let mut text = format!(
        "# Start this node again: tollgate node --config {config}\n\
         node_id = \"{id}\"\n\
         data_dir = \"{id}\"\n\
         seeds = [{seeds}]\n",
        config = node.config.display(),
        id = node.id,
        seeds = seeds.join(", "),
    );
    let deadline = arguments.check_deadline.map(|span| span.as_millis());
    let forward = forward_timeout(arguments).map(|span| span.as_millis());
    let memory = arguments.max_memory_mb.map(u128::from);
    for (name, value) in [
        ("check_deadline_ms", deadline),
        ("forward_timeout_ms", forward),
        ("max_memory_mb", memory),
    ] {
        if let Some(value) = value {
            text.push_str(&format!("{name} = {value}\n"));
        }
    }
    text + &format!(
        "\n[http]\nlisten = \"{http}\"\n\
         \n[quic]\nlisten = \"{quic}\"\n\
         authority = \"{authority}\"\n\
         certificate = \"{id}.pem\"\n\
         key = \"{id}.key\"\n",
        http = node.ports.http,
        quic = node.ports.quic,
        authority = certs::AUTHORITY_CERTIFICATE,
        id = node.id,
    )
}
