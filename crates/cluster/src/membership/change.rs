//! What changes among the members: one value for each change of state, for one log line each.

use tollgate_limit::NodeId;
use tollgate_wire::identity::Identity;

/// A change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A member that was not known.
    MemberUp(Identity),
    /// A known member has another identity: a new boot, phase, weight or address. Ends a doubt.
    MemberChanged {
        /// What it was.
        was: Identity,
        /// What it is.
        is: Identity,
    },
    /// Gossip says down, and the member was not leaving; it keeps its slots for the grace.
    MemberDoubted(NodeId),
    /// The grace is over, but datagrams come from the member, which was not leaving: it keeps its slots.
    MemberVetoed(NodeId),
    /// A doubted or vetoed member is up again, as it was.
    MemberBack(NodeId),
    /// A member is forgotten.
    MemberGone {
        /// What it was.
        was: Identity,
        /// Why.
        why: Gone,
    },
    /// A member could not be taken in, since there are [`MAX_MEMBERS`](crate::MAX_MEMBERS). Told once
    /// until there is a free place.
    MembersFull(NodeId),
    /// Another set of active members, or another weight: a new placement is in force.
    PlacementChanged {
        /// Its fingerprint.
        fingerprint: u64,
    },
}

/// Why a member is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Gossip says that it is down, and nothing was heard of it.
    Down,
    /// It was leaving when gossip said down: a planned end.
    Left,
    /// Another node, newer or there, has its address.
    AddressTaken,
}
