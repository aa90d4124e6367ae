//! Which slots are of no use here any more, and since when.
//!
//! Knows nothing of stores. Invariant: a slot that is needed is not due.

use std::collections::VecDeque;

use tollgate_limit::{Nanos, SlotSet};

/// How long counters of slots are kept that this node has no part in any more.
pub const FORGET_AFTER: Nanos = Nanos::from_millis(10_000);

/// The most instants that slots wait for; beyond, they wait for the last.
const MAX_WAITING: usize = 64;

/// Slots that wait to be forgotten.
#[derive(Debug, Default)]
pub(super) struct Forgetting {
    /// The slots of which there may be counters.
    used: SlotSet,
    /// In the order of their instants; no slot is in two.
    waiting: VecDeque<(Nanos, SlotSet)>,
}

impl Forgetting {
    /// Just these slots are needed from now on.
    pub(super) fn handle_needed(&mut self, now: Nanos, needed: &SlotSet) {
        self.used.extend(needed);
        let mut idle = self.used.without(needed);
        for (_, slots) in &mut self.waiting {
            slots.subtract(needed);
            idle.subtract(slots);
        }
        self.waiting.retain(|(_, slots)| !slots.is_empty());
        if idle.is_empty() {
            return;
        }
        let due = now.saturating_add(FORGET_AFTER);
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((due, idle));
        } else if let Some((last, slots)) = self.waiting.back_mut() {
            *last = due;
            slots.extend(&idle);
        }
    }

    /// The slots that are due.
    pub(super) fn handle_timeout(&mut self, now: Nanos) -> SlotSet {
        let mut due = SlotSet::new();
        while let Some((_, slots)) = self.waiting.pop_front_if(|(at, _)| *at <= now) {
            due.extend(&slots);
        }
        self.used.subtract(&due);
        due
    }

    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        self.waiting.front().map(|(at, _)| *at)
    }
}
