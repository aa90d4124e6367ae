//! Membership skeleton.
use std::sync::Arc;

use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::Identity;

use crate::placement::Placement;

/// How long a member is down before it loses its slots.
pub const GRACE: Nanos = Nanos::from_millis(300);
/// A datagram this young keeps a member in its place, whatever gossip says.
pub const VETO: Nanos = Nanos::from_millis(1_000);

/// Why a member is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Gossip says that it is down, and nothing was heard of it.
    Down,
    /// A newer node has its address.
    AddressTaken,
}

/// A change of state, for one log line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A member that was not known.
    MemberUp(Identity),
    /// A known member has another identity: a new boot, phase, weight or address.
    MemberChanged {
        /// What it was.
        was: Identity,
        /// What it is.
        is: Identity,
    },
    /// Gossip says down; its slots stay for the grace.
    MemberDoubted(NodeId),
    /// The grace is over, but datagrams come from it: its slots stay.
    MemberVetoed(NodeId),
    /// A doubted or vetoed member is up again.
    MemberBack(NodeId),
    /// A member is forgotten.
    MemberGone {
        /// What it was.
        was: Identity,
        /// Why.
        why: Gone,
    },
    /// A member could not be taken in.
    MembersFull(NodeId),
    /// The set of active members has changed: a new placement is in force.
    PlacementChanged {
        /// Its fingerprint.
        fingerprint: u64,
    },
}

/// Whether a member is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It is there.
    Up,
    /// Gossip says down; it keeps its slots until grace and veto are over.
    DownPending,
}

/// A member as it is known.
#[derive(Clone, Copy, Debug)]
pub struct MemberView<'a> {
    /// Who it is.
    pub identity: &'a Identity,
    /// Whether it is there.
    pub state: MemberState,
}

/// The members of the cluster.
#[derive(Debug)]
pub struct Membership {}

impl Membership {
    /// This node alone.
    #[must_use]
    pub fn new(_own: Identity) -> Self {
        todo!()
    }
    /// Gossip or a member copy says that a member is there.
    pub fn handle_up(&mut self, _now: Nanos, _identity: Identity) {
        todo!()
    }
    /// Gossip says that a member is down.
    pub fn handle_down(&mut self, _now: Nanos, _identity: &Identity) {
        todo!()
    }
    /// A datagram came from a peer.
    pub fn handle_heard(&mut self, _now: Nanos, _node: &NodeId) {
        todo!()
    }
    /// The own identity has changed.
    pub fn handle_own(&mut self, _own: Identity) {
        todo!()
    }
    /// Time has passed.
    pub fn handle_timeout(&mut self, _now: Nanos) {
        todo!()
    }
    /// When to call `handle_timeout` next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        todo!()
    }
    /// The next change; call until `None` after every event: the placement is rebuilt here, once for
    /// all events before.
    pub fn poll_change(&mut self) -> Option<Change> {
        todo!()
    }
    /// This node.
    #[must_use]
    pub fn own(&self) -> &Identity {
        todo!()
    }
    /// All members, this node included, in the order of node ids.
    pub fn members(&self) -> impl Iterator<Item = MemberView<'_>> {
        self.peers()
    }
    /// The other members.
    pub fn peers(&self) -> impl Iterator<Item = MemberView<'_>> {
        std::iter::empty()
    }
    /// The member of this name, this node included.
    #[must_use]
    pub fn member(&self, _node: &NodeId) -> Option<MemberView<'_>> {
        todo!()
    }
    /// The placement in force.
    #[must_use]
    pub fn placement(&self) -> Arc<Placement> {
        todo!()
    }
}
