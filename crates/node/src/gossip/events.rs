//! What the driver is told, by whom.
//!
//! Commands come from the handle, events from the tasks that the driver started.

use bytes::Bytes;
use quinn::{ConnectionError, SendStream};
use tokio::sync::oneshot;
use tollgate_limit::NodeId;

use super::copy::{Copied, CopyError};
use crate::transport::{DialError, NodeConnection};

/// What the handle asks for.
#[derive(Debug)]
pub(super) enum Command {
    /// Copy a member's state.
    Pull(NodeId),
    /// Come back under a new identity.
    Renew,
    /// The counts of the slots to come are here.
    Warm(Warm),
    /// Go to the phase leaving.
    Leave(oneshot::Sender<()>),
    /// Say goodbye and end.
    Depart(oneshot::Sender<()>),
    /// Stand still, as a stopped process does.
    #[cfg(test)]
    Stall(std::time::Duration),
}

/// By what view the counts of the slots to come are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Warm {
    /// The generation of this node.
    pub(super) generation: u64,
    /// Fingerprint of the placement.
    pub(super) placement: u64,
}

/// The number of a gossip connection in its pool; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineId(pub(super) u64);

/// A gossip connection as its events name it.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Its number.
    pub(super) id: LineId,
    /// Who is at its other end, by certificate.
    pub(super) node: NodeId,
}

/// A question for the member state.
#[derive(Debug)]
pub(super) struct StateAsked {
    /// Where.
    pub(super) line: Line,
    /// The asker's cluster fingerprint.
    pub(super) theirs: u64,
    /// Where the answer goes.
    pub(super) answer: SendStream,
}

/// What a task has to tell.
#[derive(Debug)]
pub(super) enum Event {
    /// A dial that the pool started has ended.
    Dialled {
        /// Who was dialled.
        node: NodeId,
        /// What became of it.
        result: Result<NodeConnection, DialError>,
    },
    /// A packet came.
    Packet {
        /// Where.
        line: Line,
        /// The packet.
        packet: Bytes,
    },
    /// A member asks for the member state.
    StateAsked(StateAsked),
    /// A connection has ended.
    Closed {
        /// Which.
        line: Line,
        /// Why.
        error: ConnectionError,
    },
    /// A copy that the driver started has ended.
    Copied {
        /// Whose state.
        node: NodeId,
        /// What became of it.
        result: Result<Copied, CopyError>,
    },
    /// One round of asking seeds has got somewhere.
    Sought(super::joiner::Sought),
}
