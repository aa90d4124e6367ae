//! What goes to other stores and what comes from them: series of counters; and which slots are decided here.
//!
//! Knows nothing of links or of who owns what. Invariants: a `try_` call on a closed slot does nothing; what is
//! charged in an open one is in what is exported when it is closed; each shard is locked once at a time.

use std::sync::atomic::Ordering;

use super::{
    Ask, Change, SHARD_COUNT, Store,
    export::{Which, Whose},
    locked::Locked,
    shard_of,
};
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
        let number = self.number_for(&ask.rule);
        let mut shard = self.lock(shard_of(ask.key));
        shard
            .is_open(ask.key)
            .then(|| shard.decide(now, ask, mode, number))
    }

    /// As [`decide_all`](Self::decide_all), if the slots of all asks are open; else nothing is done.
    pub fn try_decide_all(
        &self,
        now: Nanos,
        asks: &[Ask],
        mode: Mode,
        out: &mut impl Extend<Verdict>,
    ) -> bool {
        let mut locked = Locked::new(self, asks);
        let is_open = |ask: &Ask| {
            let shard = locked.shard(ask.key);
            shard.is_some_and(|shard| shard.is_open(ask.key))
        };
        let are_open = asks.iter().all(is_open);
        if are_open {
            self.decide_locked(&mut locked, now, (asks, mode), out);
        }
        are_open
    }

    /// As [`amend`](Self::amend), in an open slot; false if it is closed: nothing was done.
    pub fn try_amend(&self, now: Nanos, ask: &Ask, change: Change) -> bool {
        let number = self.number_for(&ask.rule);
        let mut shard = self.lock(shard_of(ask.key));
        let is_open = shard.is_open(ask.key);
        if is_open {
            shard.amend(now, ask, change, number);
        }
        is_open
    }

    /// Lets the `try_` calls work on these slots; all slots are open at the start.
    pub fn open(&self, slots: &SlotSet) {
        for shard in slots.shards() {
            self.lock(shard).open |= slots.of_shard(shard);
        }
    }

    /// Those of some slots that are open.
    #[must_use]
    pub fn opened(&self, slots: &SlotSet) -> SlotSet {
        let mut opened = SlotSet::new();
        for shard in slots.shards() {
            let open = self.lock(shard).open;
            opened.set_shard(shard, slots.of_shard(shard) & open);
        }
        opened
    }

    /// Ends that. Once it returns no `try_` call on these slots is under way.
    pub fn close(&self, slots: &SlotSet) {
        for shard in slots.shards() {
            self.lock(shard).open &= !slots.of_shard(shard);
        }
    }

    /// Closes slots and exports, in one step for each shard, what was not sent since it was written; with
    /// `all` everything. What is exported is sent.
    pub fn seal(&self, now: Nanos, slots: &SlotSet, all: bool, out: &mut Vec<Series>) {
        let which = if all { Which::All } else { Which::Unsent };
        for number in slots.shards() {
            let bits = slots.of_shard(number);
            let mut shard = self.lock(number);
            shard.open &= !bits;
            shard.export(now, bits, (which, Whose::Everyones, true), out);
        }
    }

    /// All series of all counters of these slots. What was due to be sent still is.
    pub fn export(&self, now: Nanos, slots: &SlotSet, out: &mut Vec<Series>) {
        for shard in slots.shards() {
            let of = (Which::All, Whose::Everyones, false);
            self.lock(shard).export(now, slots.of_shard(shard), of, out);
        }
    }

    /// The series of these slots that this store writes itself. What was due to be sent still is.
    pub fn export_own(&self, now: Nanos, slots: &SlotSet, out: &mut Vec<Series>) {
        for shard in slots.shards() {
            let of = (Which::All, Whose::Own, false);
            self.lock(shard).export(now, slots.of_shard(shard), of, out);
        }
    }

    /// All series of counters that are due to be sent, of about `most` counters; they are sent then.
    /// Whether there may be more.
    pub fn take_due(&self, now: Nanos, most: usize, out: &mut Vec<Series>) -> bool {
        let was_urgent = self.signals.take_urgent();
        let first = self.next_due.load(Ordering::Relaxed);
        let mut left = most;
        for step in 0..SHARD_COUNT {
            let number = first.wrapping_add(step) % SHARD_COUNT;
            if left == 0 {
                // The next call begins where this one stopped.
                self.next_due.store(number, Ordering::Relaxed);
                break;
            }
            let is_urgent = self.signals.urgent.take(number);
            if self.signals.due.take(number) || is_urgent {
                let sent = self.lock(number).send_due(now, left, out);
                left = left.saturating_sub(sent);
            }
        }
        if left == 0 && was_urgent {
            self.signals.set_urgent();
        }
        left == 0
    }

    /// Whether a counter is due before [`SEND_AFTER`]: a look costs one atomic read.
    #[must_use]
    pub fn has_urgent(&self) -> bool {
        self.signals.has_urgent()
    }

    /// Takes a series over, if it is newer than what is held of its writer.
    pub fn merge(&self, now: Nanos, series: &Series) -> Merged {
        self.lock(shard_of(series.key)).merge(now, series)
    }

    /// Forgets all counters of these slots; what is counted there from now on is of another writer. How
    /// many cells were forgotten.
    pub fn forget(&self, slots: &SlotSet) -> usize {
        let forgotten = slots
            .shards()
            .map(|shard| self.lock(shard).forget(slots.of_shard(shard)));
        forgotten.fold(0, usize::saturating_add)
    }

    /// Exports what this store has counted itself and forgets the slots, in one step for each shard.
    pub fn withdraw(&self, now: Nanos, slots: &SlotSet, out: &mut Vec<Series>) {
        for number in slots.shards() {
            let bits = slots.of_shard(number);
            let mut shard = self.lock(number);
            shard.export(now, bits, (Which::All, Whose::Own, false), out);
            shard.forget(bits);
        }
    }
}
