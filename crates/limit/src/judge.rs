//! What a counter admits, whatever its algorithm: from what is used to a verdict.
//!
//! Pure. Knows nothing of words, cells or keys. Invariants: `0 <= remaining <= capacity` (rule 8); a
//! request that fits is admitted (P9); the wait of a refusal is that of the same cost.

use crate::{
    rule::{Algorithm, Rule},
    units::{Cost, Nanos},
    verdict::{Outcome, Reason, Verdict},
};

/// A counter as it stands at an instant.
pub(crate) trait Reading {
    /// Units used, rounded up.
    fn used(&self) -> u64;

    /// Time until at most `room` units are used, if nothing is charged: exact, zero if it is so.
    fn wait_until_within(&self, room: u64) -> Nanos;

    /// Time until nothing is used.
    fn wait_until_empty(&self) -> Nanos;
}

/// The numbers that a rule is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    capacity: u64,
    /// What the asker may fill.
    open: u64,
    /// Why a full counter refuses.
    full: Reason,
}

impl Terms {
    /// The terms of a rule.
    pub(crate) const fn of(rule: &Rule) -> Self {
        let full = match (rule.set_aside, &rule.algorithm) {
            (0, Algorithm::LeakyBucket(_)) => Reason::QueueFull,
            (
                0,
                Algorithm::SlidingWindow(_)
                | Algorithm::SlidingLog(_)
                | Algorithm::FixedWindow(_)
                | Algorithm::TokenBucket(_)
                | Algorithm::Concurrency(_),
            ) => Reason::LimitExceeded,
            (1.., _) => Reason::SetAside,
        };
        Self {
            capacity: rule.capacity(),
            open: rule.open_capacity(),
            full,
        }
    }

    /// Whether `cost` fits on top of what is used and of `pending`, which is about to be charged.
    pub(crate) fn outcome(&self, reading: &impl Reading, cost: Cost, pending: Cost) -> Outcome {
        let wanted = cost.units().saturating_add(pending.units());
        if cost == Cost::ZERO {
            Outcome::Allow
        } else if self.capacity == 0 {
            Outcome::Refuse(Reason::LimitIsZero)
        } else if wanted > self.capacity {
            Outcome::Refuse(Reason::CostExceedsLimit)
        } else if reading.used().saturating_add(wanted) > self.open {
            Outcome::Refuse(self.full)
        } else {
            Outcome::Allow
        }
    }

    /// The verdict with the numbers as they stand.
    pub(crate) fn verdict(
        &self,
        reading: &impl Reading,
        outcome: Outcome,
        (cost, pending): (Cost, Cost),
    ) -> Verdict {
        let wanted = cost.units().saturating_add(pending.units());
        let retry_after = if cost == Cost::ZERO {
            Some(Nanos::ZERO)
        } else {
            let room = self.open.checked_sub(wanted);
            room.map(|room| reading.wait_until_within(room))
        };
        let used = reading.used();
        let one_less = used.min(self.open).saturating_sub(1);
        Verdict {
            outcome,
            used,
            remaining: self.open.saturating_sub(used),
            retry_after,
            more_after: reading.wait_until_within(one_less),
            reset_after: reading.wait_until_empty(),
            delay: Nanos::ZERO,
            charged_slice: 0,
        }
    }
}
