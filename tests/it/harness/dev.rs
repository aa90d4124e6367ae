//! `tollgate dev`, started and ended.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde::Deserialize;
use tempfile::TempDir;

use super::{
    node::{ClusterSeen, Node},
    processes::{Signal, send_signal},
    tollgate,
    wait::{now, until},
};

/// How long a cluster may take to start: machines that test are busy.
const START_DEADLINE: Duration = Duration::from_secs(120);
/// How long a cluster may take to end: each node has ten seconds.
const END_DEADLINE: Duration = Duration::from_secs(20);

/// How a cluster is started.
#[derive(Debug)]
pub(crate) struct DevOptions<'a> {
    pub(crate) nodes: u16,
    pub(crate) policies: &'a str,
    pub(crate) more: &'a [&'a str],
}

/// Deadlines so long that no check of a busy machine misses them.
pub(crate) const PATIENT: [&str; 4] = ["--check-deadline", "5s", "--forward-timeout", "4s"];

/// A running development cluster.
#[derive(Debug)]
pub(crate) struct Dev {
    child: Child,
    pub(crate) folder: PathBuf,
    pub(crate) nodes: Vec<DevNode>,
    /// Nodes that a test has started again.
    restarted: Vec<Child>,
    _policies: TempDir,
}

/// A node, as `dev` tells of it; its name is `n1`, `n2` and so on.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DevNode {
    pub(crate) pid: u32,
    pub(crate) http: String,
    pub(crate) quic: String,
    pub(crate) config: PathBuf,
}

#[derive(Deserialize)]
struct Announcement {
    dir: PathBuf,
    nodes: Vec<DevNode>,
}

impl Dev {
    /// Starts a cluster and waits until it has settled.
    pub(crate) fn start(options: &DevOptions<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policies = folder.path().join("policies.toml");
        fs::write(&policies, options.policies).unwrap();
        let mut child = tollgate()
            .args([
                "dev",
                "--base-port",
                "0",
                "--json",
                "--nodes",
                &options.nodes.to_string(),
            ])
            .arg("--policies")
            .arg(&policies)
            .args(options.more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        let announced: Announcement = serde_json::from_str(&line).unwrap();
        assert!(announced.dir.is_dir());
        assert_eq!(announced.nodes.len(), usize::from(options.nodes));
        Self {
            child,
            folder: announced.dir,
            nodes: announced.nodes,
            restarted: Vec::new(),
            _policies: folder,
        }
    }

    /// The process id of `dev` itself.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// A connection to the node of that number, from 0.
    pub(crate) fn node(&self, number: usize) -> Node {
        Node::new(&self.nodes[number].http)
    }

    /// All nodes' addresses, as `--to` takes them.
    pub(crate) fn urls(&self) -> String {
        let urls: Vec<_> = self.nodes.iter().map(|node| node.http.as_str()).collect();
        urls.join(",")
    }

    /// Starts a node again that was killed.
    pub(crate) fn restart(&mut self, number: usize) {
        let config = &self.nodes[number].config;
        let child = tollgate()
            .arg("node")
            .arg("--config")
            .arg(config)
            .stderr(Stdio::null())
            .spawn();
        self.restarted.push(child.unwrap());
    }

    /// Waits until the node of that number sees the cluster so.
    pub(crate) fn until_seen(
        &self,
        number: usize,
        what: &str,
        within: Duration,
        is_so: impl Fn(&ClusterSeen) -> bool,
    ) {
        let mut node = self.node(number);
        until(what, within, || {
            node.cluster().filter(|seen| is_so(seen)).map(drop)
        });
    }

    /// Ends the cluster as Ctrl-C does, and tells the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        send_signal(self.child.id(), Signal::Terminate);
        let status = until("dev ends", END_DEADLINE, || self.child.try_wait().unwrap());
        status.code()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        for node in &mut self.restarted {
            drop(node.kill());
            drop(node.wait());
        }
        // A node that is suspended cannot leave.
        for node in self.nodes.iter().filter(|node| is_node(node)) {
            send_signal(node.pid, Signal::Continue);
        }
        let has_ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        if !has_ended(&mut self.child) {
            send_signal(self.child.id(), Signal::Terminate);
        }
        let start = now();
        while !has_ended(&mut self.child) && start.elapsed() < END_DEADLINE {
            thread::yield_now();
        }
        drop(self.child.kill());
        drop(self.child.wait());
        for node in self.nodes.iter().filter(|node| is_node(node)) {
            send_signal(node.pid, Signal::Kill);
        }
    }
}

/// Whether the process still is that node: process ids are used again.
pub(crate) fn is_node(node: &DevNode) -> bool {
    let line = fs::read(
        Path::new("/proc")
            .join(node.pid.to_string())
            .join("cmdline"),
    );
    let config = node.config.display().to_string();
    line.is_ok_and(|line| String::from_utf8_lossy(&line).contains(&config))
}

/// The first line of a child's output, read on a thread of its own so that the wait has an end.
fn first_line(child: &mut Child) -> String {
    let out = child.stdout.take().unwrap();
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        drop(BufReader::new(out).read_line(&mut line));
        drop(send.send(line));
    });
    lines.recv_timeout(START_DEADLINE).unwrap_or_else(|_late| {
        drop(child.kill());
        panic!("the cluster did not start within {START_DEADLINE:?}")
    })
}
