//! What one follower has ordered to be handed over and did not get yet.
//!
//! A follower orders again while it waits, so what it does not order again is dropped: it wants it no more.
//! Knows nothing of what this node holds.

use tollgate_limit::{Nanos, SlotSet};

/// What is not ordered again for this long, or twice that, is dropped.
pub(super) const WANTED_FOR: Nanos = Nanos::from_millis(300);

/// What one follower wants.
#[derive(Debug)]
pub(super) struct Wanted {
    slots: SlotSet,
    /// Of them, those ordered since `turned`.
    fresh: SlotSet,
    turned: Nanos,
    /// When it last ordered what it had not ordered before.
    since: Nanos,
}

impl Wanted {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            slots: SlotSet::new(),
            fresh: SlotSet::new(),
            turned: now,
            since: now,
        }
    }

    pub(super) fn order(&mut self, now: Nanos, slots: &SlotSet) {
        self.turn(now);
        if !slots.without(&self.slots).is_empty() {
            self.since = now;
        }
        self.slots.extend(slots);
        self.fresh.extend(slots);
    }

    /// Drops what was not ordered again.
    pub(super) fn turn(&mut self, now: Nanos) {
        if now >= self.turned.saturating_add(WANTED_FOR) {
            self.slots = std::mem::take(&mut self.fresh);
            self.turned = now;
        }
    }

    pub(super) fn take(&mut self, slots: &SlotSet) {
        self.slots.subtract(slots);
        self.fresh.subtract(slots);
    }

    pub(super) const fn slots(&self) -> &SlotSet {
        &self.slots
    }

    /// Whether it has waited this long for all that it wants.
    pub(super) fn has_waited(&self, now: Nanos, time: Nanos) -> bool {
        now >= self.since.saturating_add(time)
    }
}
