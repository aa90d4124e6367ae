//! What the local shares have counted, until it is owed.
//!
//! What a share has counted is taken out of it for the report, and then it starts anew: so not before it has
//! shown for a while whether the owner answers.

use tollgate_limit::SlotSet;

/// Slots in which the local shares have counted.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Since the last rest.
    pub(super) fresh: SlotSet,
    /// Before it.
    rested: SlotSet,
}

impl Shared {
    /// Another while is over; the slots that are owed now.
    pub(super) fn rest(&mut self) -> SlotSet {
        if self.fresh.is_empty() && self.rested.is_empty() {
            return SlotSet::new();
        }
        let fresh = std::mem::take(&mut self.fresh);
        std::mem::replace(&mut self.rested, fresh)
    }
}
