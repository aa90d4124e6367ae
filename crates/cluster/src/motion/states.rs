//! How each slot is held, for those who read it with every check.

use tollgate_limit::{NodeId, SlotId};
use tollgate_wire::identity::BootId;

/// How this node holds a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It decides here.
    Yes,
    /// It does not.
    No,
    /// It is to decide, as soon as the counts have come: a check waits for [`HOLD`](super::HOLD) at most.
    Awaiting,
    /// The counts have not come in time: it decides on its copy, degraded.
    Overdue,
    /// It was handed over to a member, which checks are relayed to.
    Given(NodeId),
}

/// How each slot is held. Read by all threads, written by [`Motion`](super::Motion) alone.
#[derive(Debug, Default)]
pub struct SlotStates {}

impl SlotStates {
    /// Whether this node decides in a slot: one atomic read.
    #[must_use]
    pub fn holds(&self, slot: SlotId) -> bool {
        let _ = slot;
        false
    }

    /// How a slot is held.
    #[must_use]
    pub fn hold(&self, slot: SlotId) -> Hold {
        let _ = slot;
        Hold::No
    }

    /// A check has waited for a slot in vain.
    pub fn handle_overdue(&self, slot: SlotId) {
        let _ = slot;
    }

    /// Whether this node's copy of a slot is complete since that boot of its owner.
    #[must_use]
    pub fn has_copy(&self, slot: SlotId, owner: BootId) -> bool {
        let _ = (slot, owner);
        false
    }
}
