//! What goes to other stores and what comes from them: series of counters.
//!
//! TODO(limit-store): see the contract of the series.

use super::{Ask, Change, Store};
use crate::{
    series::{Merged, Series},
    slot_set::SlotSet,
    units::Nanos,
    verdict::{Mode, Verdict},
};

/// How long a charge waits at most until it is due to be sent.
pub const SEND_AFTER: Nanos = Nanos::from_millis(250);

impl Store {
    /// As [`decide`](Self::decide), in an open slot; `None` if it is closed: nothing was done.
    pub fn try_decide(&self, now: Nanos, ask: &Ask, mode: Mode) -> Option<Verdict> {
        Some(self.decide(now, ask, mode))
    }

    /// As [`decide_all`](Self::decide_all), if the slots of all asks are open; else nothing is done.
    pub fn try_decide_all(
        &self,
        now: Nanos,
        asks: &[Ask],
        mode: Mode,
        out: &mut impl Extend<Verdict>,
    ) -> bool {
        self.decide_all(now, asks, mode, out);
        true
    }

    /// As [`amend`](Self::amend), in an open slot; false if it is closed: nothing was done.
    pub fn try_amend(&self, now: Nanos, ask: &Ask, change: Change) -> bool {
        self.amend(now, ask, change);
        true
    }

    /// Lets the `try_` calls work on these slots; all slots are open at the start.
    pub fn open(&self, slots: &SlotSet) {
        let _ = slots;
    }

    /// Ends that. Once it returns no `try_` call on these slots is under way.
    pub fn close(&self, slots: &SlotSet) {
        let _ = slots;
    }

    /// Closes slots and exports, in one step for each shard, what was not sent since it was written; with
    /// `all` everything. What is exported is sent.
    pub fn seal(&self, now: Nanos, slots: &SlotSet, all: bool, out: &mut Vec<Series>) {
        let _ = (now, slots, all, out);
    }

    /// All series of all counters of these slots. What was due to be sent still is.
    pub fn export(&self, now: Nanos, slots: &SlotSet, out: &mut Vec<Series>) {
        let _ = (now, slots, out);
    }

    /// The series of these slots that this store writes itself. What was due to be sent still is.
    pub fn export_own(&self, now: Nanos, slots: &SlotSet, out: &mut Vec<Series>) {
        let _ = (now, slots, out);
    }

    /// All series of counters that are due to be sent, of about `most` counters; they are sent then.
    /// Whether there may be more.
    pub fn take_due(&self, now: Nanos, most: usize, out: &mut Vec<Series>) -> bool {
        let _ = (now, most, out);
        false
    }

    /// Whether a counter is due before [`SEND_AFTER`]: a look costs one atomic read.
    #[must_use]
    pub fn has_urgent(&self) -> bool {
        false
    }

    /// Takes a series over, if it is newer than what is held of its writer.
    pub fn merge(&self, now: Nanos, series: &Series) -> Merged {
        let _ = (now, series);
        Merged::Refused
    }

    /// Forgets all counters of these slots; what is counted there from now on is of another writer. How
    /// many were forgotten.
    pub fn forget(&self, slots: &SlotSet) -> usize {
        let _ = slots;
        0
    }

    /// Exports what this store has counted itself and forgets the slots, in one step for each shard.
    pub fn withdraw(&self, now: Nanos, slots: &SlotSet, out: &mut Vec<Series>) {
        let _ = (now, slots, out);
    }
}
