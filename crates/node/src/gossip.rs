//! Control: finds, watches and joins the other members, and publishes what it knows as a [`View`].
//!
//! One task owns the gossip library, the membership and the joining; everything else talks to it
//! through [`Control`]. Its packets are datagrams on QUIC connections of their own, never in the clear.
//!
//! Invariants: a packet counts only if its sender is the node of the connection's certificate; a node
//! that was told that it is down, or that finds that it slept, owns nothing until it has copied a
//! member's state again; nothing here is on the path of a check.

mod codec;
mod copy;
mod driver;
mod events;
mod identity;
mod joiner;
mod log;
mod once_a_minute;
mod pool;
mod publisher;
mod timers;
mod timing;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arc_swap::ArcSwap;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tollgate_limit::{Nanos, NodeId};

use self::{
    driver::Driver,
    events::{Command, Warm},
};
pub use self::{identity::first_identity, timing::LEAVE_TIMEOUT};
use crate::{
    config::{ControlHost, NodeConfig},
    seeds::Resolve,
    transport::{NodeConnection, Transport},
    view::View,
};

/// Commands that wait for control; above it they are dropped, as they can be given again.
const COMMANDS: usize = 64;

/// When the data plane last had a datagram from a node: nodes that are heard keep their slots.
pub trait LastHeard: Send + Sync + 'static {
    /// The instant of the node's clock, or `None` if it never had one.
    fn last_heard(&self, node: &NodeId) -> Option<Nanos>;
}

impl<F: Fn(&NodeId) -> Option<Nanos> + Send + Sync + 'static> LastHeard for F {
    fn last_heard(&self, node: &NodeId) -> Option<Nanos> {
        self(node)
    }
}

/// What control is started with.
pub struct ControlStart {
    /// The node's settings.
    pub config: Arc<NodeConfig>,
    /// This node, from [`first_identity`].
    pub identity: tollgate_wire::identity::Identity,
    /// The way to the others.
    pub transport: Arc<Transport>,
    /// Accepted gossip connections.
    pub accepted: mpsc::Receiver<NodeConnection>,
    /// What time it is.
    pub clock: crate::clock::TokioClock,
    /// All of control's randomness comes from this.
    pub seed: u64,
    /// Where control runs.
    pub host: ControlHost,
    /// Looks up the names of seeds.
    pub resolver: Arc<dyn Resolve>,
    /// What the data plane hears.
    pub last_heard: Arc<dyn LastHeard>,
}

impl std::fmt::Debug for ControlStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlStart")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Control that cannot be started: the system has no threads or no timers to give.
#[derive(Debug, Error)]
#[error("control cannot be started")]
pub struct ControlError(#[from] std::io::Error);

/// The handle to control. When the last one is dropped, control ends without a word to the others.
#[derive(Clone, Debug)]
pub struct Control {
    views: Arc<ArcSwap<View>>,
    changes: watch::Receiver<Arc<View>>,
    commands: mpsc::Sender<Command>,
}

impl Control {
    /// Starts control: on a thread of its own, or on the current runtime.
    ///
    /// # Errors
    /// [`ControlError`]: nothing was started.
    pub fn start(start: ControlStart) -> Result<Self, ControlError> {
        let host = start.host;
        let (commands_in, commands) = mpsc::channel(COMMANDS);
        let (driver, published) = Driver::new(start, commands);
        match host {
            ControlHost::Shared => {
                tokio::spawn(driver.run());
            }
            ControlHost::OwnThread => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let run = move || runtime.block_on(driver.run());
                std::thread::Builder::new()
                    .name("tollgate-control".to_owned())
                    .spawn(run)?;
            }
        }
        Ok(Self {
            views: published.views,
            changes: published.changes,
            commands: commands_in,
        })
    }

    /// The cluster as this node sees it now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.views.load_full()
    }

    /// Where the view is published: for those who read it for every check.
    #[must_use]
    pub fn views(&self) -> Arc<ArcSwap<View>> {
        self.views.clone()
    }

    /// Tells of every new view. A slow reader misses views between, never the last.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<View>> {
        self.changes.clone()
    }

    /// Copies the member state of a node again: its view differs from ours. Copies under way are not
    /// doubled.
    pub fn pull(&self, from: &NodeId) {
        self.command(Command::Pull(from.clone()));
    }

    /// Comes back under a new identity: joining, then active when a member's state was copied. For a
    /// data plane that noticed that this process slept.
    pub fn renew(&self) {
        self.command(Command::Renew);
    }

    /// The data plane has the counts of the slots to come, by this view. Until it says so of the latest view a
    /// joining node is not active; it can be said again.
    pub fn warm(&self, view: &View) {
        self.command(Command::Warm(Warm {
            generation: view.identity.generation,
            placement: view.placement.fingerprint(),
        }));
    }

    /// Tells the others that this node is leaving; returns when the view says so. It keeps
    /// watching them until [`Control::depart`].
    pub async fn leave(&self) {
        let (done, told) = oneshot::channel();
        self.ask(Command::Leave(done), told).await;
    }

    /// Says goodbye and ends control; returns when it has ended, at most [`LEAVE_TIMEOUT`] later.
    pub async fn depart(&self) {
        let (done, told) = oneshot::channel();
        self.ask(Command::Depart(done), told).await;
    }

    fn command(&self, command: Command) {
        if let Err(error) = self.commands.try_send(command) {
            tracing::debug!(%error, "control takes no command");
        }
    }

    async fn ask(&self, command: Command, told: oneshot::Receiver<()>) {
        if self.commands.send(command).await.is_err() {
            return;
        }
        if tokio::time::timeout(LEAVE_TIMEOUT, told).await.is_err() {
            tracing::warn!("control did not answer in time");
        }
    }
}
