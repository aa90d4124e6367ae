//! A cluster of real node processes, started by `tollgate dev`, and which of its nodes owns a key.

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use serde::Deserialize;
use tollgate_bench::load::{http_request, whole_answer};
use tollgate_client::{Check, Credentials, Pairs, Subject, Trust};

use crate::{children::Server, processor::Cores};

/// The policy that is checked, and the one limit in it. No load reaches it.
pub(crate) const POLICY: &str = "bench";
const LIMIT: &str = "per-key";
const POLICIES: &str = r#"[[limit]]
policy = "bench"
name = "per-key"
key = ["key"]
limit = 1000000000000
window = "1m"
"#;

/// The name of clusters that `tollgate dev` starts.
const CLUSTER_NAME: &str = "dev";
/// The most keys that are looked at to find enough of one owner, for each wanted.
const MAX_TRIES_PER_KEY: usize = 100;

/// A running cluster; ended when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    _server: Server,
    directory: PathBuf,
    /// Its nodes; the first one is asked.
    pub(crate) nodes: Vec<Node>,
}

/// A running node.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) pid: u32,
    http: String,
    pub(crate) quic: SocketAddr,
}

/// The line that `tollgate dev --json` prints.
#[derive(Debug, Deserialize)]
struct Started {
    dir: PathBuf,
    nodes: Vec<Node>,
}

impl Cluster {
    /// Starts so many nodes.
    pub(crate) fn start(
        cores: &Cores,
        program: &Path,
        nodes: usize,
        scratch: &Path,
    ) -> anyhow::Result<Self> {
        let policies = scratch.join("policies.toml");
        fs::write(&policies, POLICIES)?;
        let nodes_argument = nodes.to_string();
        let arguments = [
            "dev",
            "--nodes",
            &nodes_argument,
            "--base-port",
            "0",
            "--json",
        ];
        let mut arguments: Vec<OsString> = arguments.map(OsString::from).to_vec();
        arguments.extend(["--policies".into(), policies.into_os_string()]);
        let (server, line) = Server::start(cores, program, &arguments)?;
        let started: Started = serde_json::from_str(&line)
            .with_context(|| format!("`tollgate dev` printed {line:?}"))?;
        ensure!(
            started.nodes.len() == nodes,
            "`tollgate dev` printed {line:?}"
        );
        Ok(Self {
            _server: server,
            directory: started.dir,
            nodes: started.nodes,
        })
    }

    /// The processes of its nodes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.pid).collect()
    }

    /// What quinn needs to dial its nodes as a client.
    pub(crate) fn quic_config(&self) -> anyhow::Result<quinn::ClientConfig> {
        let read = |name: &str| {
            let path = self.directory.join(name);
            fs::read(&path).with_context(|| format!("reading {}", path.display()))
        };
        let trust = Trust::from_pem(&read("authority.pem")?)?;
        let mut config = tollgate_client::ClientConfig::new(CLUSTER_NAME, Vec::new(), trust);
        config.credentials = Some(Credentials::from_pem(
            &read("client.pem")?,
            &read("client.key")?,
        )?);
        Ok(config.quic()?)
    }

    /// So many keys that a node owns.
    pub(crate) async fn keys_of(&self, owner: &Node, wanted: usize) -> anyhow::Result<Vec<String>> {
        let entry = self.nodes.first().context("no nodes")?.http()?;
        let mut keys = Vec::with_capacity(wanted);
        for number in 0..wanted * MAX_TRIES_PER_KEY {
            let key = key(number);
            let target = format!("/v1/keys?policy={POLICY}&limit={LIMIT}&attr.key={key}");
            let (head, body) = whole_answer(entry, &http_request("GET", &target, "")).await?;
            let found: Owned = serde_json::from_slice(&body)
                .with_context(|| String::from_utf8_lossy(&head).into_owned())?;
            if found.owner == owner.id {
                keys.push(key);
            }
            if keys.len() == wanted {
                return Ok(keys);
            }
        }
        anyhow::bail!("node {} owns next to no keys", owner.id)
    }
}

impl Node {
    /// Where its HTTP interface listens.
    pub(crate) fn http(&self) -> anyhow::Result<SocketAddr> {
        let address = self.http.strip_prefix("http://").unwrap_or(&self.http);
        address
            .parse()
            .with_context(|| format!("node {} listens at {address:?}", self.id))
    }
}

/// The part of `GET /v1/keys` that is needed.
#[derive(Debug, Deserialize)]
struct Owned {
    owner: String,
}

/// Some key, by its number.
pub(crate) fn key(number: usize) -> String {
    format!("k{number:06}")
}

/// A check of a key over HTTP.
pub(crate) fn http_check(key: &str) -> bytes::Bytes {
    let body = format!(r#"{{"policy":"{POLICY}","attributes":{{"key":"{key}"}}}}"#);
    http_request("POST", "/v1/check", &body)
}

/// A check of a key over QUIC: the body of its frame.
pub(crate) fn quic_check(key: &str) -> anyhow::Result<Vec<u8>> {
    let check = Check {
        subject: Subject::Policy {
            name: POLICY.into(),
            attributes: Pairs::from_iter([("key", key)]),
        },
        cost: 1,
        peek: false,
    };
    let mut body = Vec::new();
    tollgate_wire::client::put_check(&mut body, &check)?;
    Ok(body)
}
