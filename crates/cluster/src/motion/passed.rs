//! What was handed over to one member, and is remembered: checks of it are relayed there.
//!
//! Knows nothing of views. Slots stay in it until they come back or are forgotten.

use tollgate_limit::{Nanos, SlotSet};
use tollgate_wire::identity::BootId;

/// What one start of a member was given.
#[derive(Debug)]
pub(super) struct Passed {
    /// The start that it was given to.
    pub(super) boot: BootId,
    /// All of it.
    pub(super) slots: SlotSet,
    /// Of it, what is on its way and not acknowledged on this stream: it is not given again.
    pub(super) in_flight: SlotSet,
    /// Of it, what is shown as given.
    pub(super) relayed: SlotSet,
    /// When it was last given something, or acknowledged it.
    pub(super) since: Nanos,
}

impl Passed {
    pub(super) fn new(now: Nanos, boot: BootId) -> Self {
        Self {
            boot,
            slots: SlotSet::new(),
            in_flight: SlotSet::new(),
            relayed: SlotSet::new(),
            since: now,
        }
    }

    pub(super) fn give(&mut self, now: Nanos, slots: &SlotSet) {
        self.slots.extend(slots);
        self.in_flight.extend(slots);
        self.relayed.extend(slots);
        self.since = now;
    }

    /// Slots have come back, or went on to another.
    pub(super) fn take(&mut self, slots: &SlotSet) {
        self.slots.subtract(slots);
        self.in_flight.subtract(slots);
        self.relayed.subtract(slots);
    }

    /// Whether it had this long since it was given something.
    pub(super) fn had(&self, now: Nanos, time: Nanos) -> bool {
        now >= self.since.saturating_add(time)
    }
}
