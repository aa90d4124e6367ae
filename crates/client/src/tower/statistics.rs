//! How requests ended, counted.
//!
//! Invariant: a request whose question ended is counted once, under one name. One whose caller went
//! away before that is not counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// How the requests of a layer ended so far. Each stands under one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The node admitted them.
    pub allowed: u64,
    /// The node refused them, so the layer answered.
    pub refused: u64,
    /// They passed because no answer came: not connected, connection lost, too late, or too many
    /// checks in flight.
    pub passed_unanswered: u64,
    /// They passed because the node called the check faulty, or because it could not be sent: the
    /// question or the policies are wrong. A value above 0 that grows wants an operator.
    pub faults: u64,
}

/// The counters behind [`Statistics`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) allowed: Counter,
    pub(super) refused: Counter,
    pub(super) passed_unanswered: Counter,
    pub(super) faults: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn read(&self) -> Statistics {
        Statistics {
            allowed: self.allowed.total(),
            refused: self.refused.total(),
            passed_unanswered: self.passed_unanswered.total(),
            faults: self.faults.total(),
        }
    }
}
