//! What became of a limit's checks: counters that a check raises without looking anything up.
//!
//! Relaxed atomics: each is exact, two of them read together may be one check apart.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    decision::DecidedBy,
    verdict::{Outcome, Reason, Verdict},
};

/// The counters of one limit.
#[derive(Debug, Default)]
pub struct Tally {
    allowed: [AtomicU64; 5],
    refused: [AtomicU64; 5],
    reasons: [AtomicU64; Reason::ALL.len()],
    skipped: AtomicU64,
}

impl Tally {
    /// Counts one answer.
    pub fn count(&self, verdict: &Verdict, decided_by: DecidedBy) {
        match verdict.outcome {
            Outcome::Allow => raise(&self.allowed, decider_index(decided_by)),
            Outcome::Refuse(reason) => {
                raise(&self.refused, decider_index(decided_by));
                raise(&self.reasons, reason_index(reason));
            }
        }
    }

    /// Counts one check that the limit did not apply to, since a key attribute was absent.
    pub fn skip(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks that were admitted by that decider.
    #[must_use]
    pub fn allowed(&self, decided_by: DecidedBy) -> u64 {
        read(&self.allowed, decider_index(decided_by))
    }

    /// Checks that were refused by that decider.
    #[must_use]
    pub fn refused(&self, decided_by: DecidedBy) -> u64 {
        read(&self.refused, decider_index(decided_by))
    }

    /// Checks that were refused for that reason.
    #[must_use]
    pub fn refused_because(&self, reason: Reason) -> u64 {
        read(&self.reasons, reason_index(reason))
    }

    /// Checks that the limit did not apply to, since a key attribute was absent.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }
}

fn raise(counters: &[AtomicU64], index: usize) {
    if let Some(counter) = counters.get(index) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn read(counters: &[AtomicU64], index: usize) -> u64 {
    counters
        .get(index)
        .map_or(0, |counter| counter.load(Ordering::Relaxed))
}

const fn decider_index(decided_by: DecidedBy) -> usize {
    match decided_by {
        DecidedBy::Owner => 0,
        DecidedBy::Standby => 1,
        DecidedBy::Cached => 2,
        DecidedBy::Fallback => 3,
        DecidedBy::Switch => 4,
    }
}

const fn reason_index(reason: Reason) -> usize {
    match reason {
        Reason::LimitExceeded => 0,
        Reason::CostExceedsLimit => 1,
        Reason::LimitIsZero => 2,
        Reason::Undecided => 3,
        Reason::QueueFull => 4,
        Reason::SetAside => 5,
        Reason::Banned => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::{
        decision::DecidedBy,
        units::Nanos,
        verdict::{Outcome, Reason, Verdict},
    };

    fn verdict(outcome: Outcome) -> Verdict {
        Verdict {
            outcome,
            used: 0,
            remaining: 0,
            retry_after: None,
            more_after: Nanos::ZERO,
            reset_after: Nanos::ZERO,
            delay: Nanos::ZERO,
            charged_slice: 0,
        }
    }

    #[test]
    fn each_answer_is_counted_where_it_belongs() {
        let tally = Tally::default();
        let deciders = [
            DecidedBy::Owner,
            DecidedBy::Standby,
            DecidedBy::Cached,
            DecidedBy::Fallback,
            DecidedBy::Switch,
        ];
        let reasons = Reason::ALL;
        for (times, decided_by) in (1..).zip(deciders) {
            for _ in 0..times {
                tally.count(&verdict(Outcome::Allow), decided_by);
            }
        }
        for (times, reason) in (1..).zip(reasons) {
            for _ in 0..times {
                tally.count(&verdict(Outcome::Refuse(reason)), DecidedBy::Owner);
            }
        }
        tally.skip();
        assert_eq!(
            deciders.map(|decided_by| tally.allowed(decided_by)),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(
            deciders.map(|decided_by| tally.refused(decided_by)),
            [28, 0, 0, 0, 0]
        );
        assert_eq!(
            reasons.map(|reason| tally.refused_because(reason)),
            [1, 2, 3, 4, 5, 6, 7]
        );
        assert_eq!(tally.skipped(), 1);
    }
}
