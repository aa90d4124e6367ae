//! The node processes.
//!
//! Invariants: the write end of each one's standard input is held here and nowhere else; after
//! [`Children::end`] none of them runs.

use std::{
    fmt,
    fs::File,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    process::{Child, ChildStdin, Command},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

use super::layout::{Layout, NodePlan};
use crate::command::Failure;

/// How long a node may take to leave before it is killed.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The exit code of a node whose configuration is wrong.
const USAGE: i32 = 2;

/// All nodes that were started.
#[derive(Debug)]
pub(super) struct Children {
    waiting: JoinSet<Ended>,
    end: watch::Sender<bool>,
    process_ids: Vec<u32>,
}

/// A node that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) id: String,
    process_id: u32,
    status: Option<ExitStatus>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}) has ended", self.id, self.process_id)?;
        match self.status {
            Some(status) => write!(f, ": {status}"),
            None => Ok(()),
        }
    }
}

impl Ended {
    /// Whether what it was told is wrong: it would end so again.
    pub(super) fn was_misconfigured(&self) -> bool {
        self.status.and_then(|status| status.code()) == Some(USAGE)
    }
}

impl Children {
    /// Starts all nodes. If one cannot be started, those that were are killed.
    pub(super) fn start(layout: &Layout) -> Result<Self, Failure> {
        let mut children = Self {
            waiting: JoinSet::new(),
            end: watch::Sender::new(false),
            process_ids: Vec::new(),
        };
        for node in &layout.nodes {
            let (child, stdin) = start(node)?;
            let process_id = child.id().unwrap_or(0);
            children.process_ids.push(process_id);
            let mut one = One {
                id: node.id.clone(),
                process_id,
                child,
            };
            let end = children.end.subscribe();
            children
                .waiting
                .spawn(async move { one.run(stdin, end).await });
        }
        Ok(children)
    }

    /// The process ids, in the order of the nodes.
    pub(super) fn process_ids(&self) -> &[u32] {
        &self.process_ids
    }

    /// The next node that ends; `None` if none is left.
    pub(super) async fn next_ended(&mut self) -> Option<Ended> {
        // A task that waits for a child neither panics nor is aborted.
        self.waiting.join_next().await?.ok()
    }

    /// Lets all nodes leave, and kills those that take too long.
    pub(super) async fn end(mut self) {
        self.end.send_replace(true);
        while self.next_ended().await.is_some() {}
    }
}

/// One node process.
#[derive(Debug)]
struct One {
    id: String,
    process_id: u32,
    child: Child,
}

impl One {
    /// Waits for the process; ends its standard input, and then itself, when told to.
    async fn run(&mut self, stdin: ChildStdin, mut end: watch::Receiver<bool>) -> Ended {
        tokio::select! {
            status = self.child.wait() => return self.ended(status.ok()),
            _ = end.wait_for(|end| *end) => drop(stdin),
        }
        if let Ok(status) = timeout(LEAVE_TIMEOUT, self.child.wait()).await {
            return self.ended(status.ok());
        }
        // Fails only if the process has just ended.
        drop(self.child.kill().await);
        let status = self.child.wait().await;
        self.ended(status.ok())
    }

    fn ended(&self, status: Option<ExitStatus>) -> Ended {
        Ended {
            id: self.id.clone(),
            process_id: self.process_id,
            status,
        }
    }
}

fn start(node: &NodePlan) -> Result<(Child, ChildStdin), Failure> {
    let log = File::create(&node.log)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["node", "--until-stdin-ends", "--config"])
        .arg(&node.config)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take();
    let stdin = stdin.ok_or_else(|| Failure::Runtime("a node has no standard input".to_owned()))?;
    Ok((child, stdin))
}
