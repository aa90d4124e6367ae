//! What a run of one seed came to.

use std::{collections::BTreeMap, time::Duration};

use tollgate_limit::Nanos;

use crate::{Over, Violation, history::History, pure, worst};

/// One run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// The command that does it again.
    pub command: String,
    /// Faults that struck and changes that were made, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Checks that were asked.
    pub checks: u64,
    /// Those that were answered degraded.
    pub degraded: u64,
    /// What it broke.
    pub violations: Vec<Violation>,
    /// What else is wrong, in words: it did not come to rest, or not to its end.
    pub trouble: Vec<String>,
    /// Virtual time from the last fault to one placement; `None`: there was none, or it never came.
    pub settled: Option<Duration>,
    /// The window that held the most beyond what its algorithm allows; `None`: none did.
    pub worst: Option<Over>,
    /// A hash of all that happened.
    pub hash: u64,
    /// All that its clients saw; `None`: it came to no end.
    pub history: Option<History>,
}

impl Report {
    /// A run that came to no end.
    #[must_use]
    pub fn failed((seed, command): (u64, String), trouble: Vec<String>) -> Self {
        Self {
            seed,
            command,
            faults: BTreeMap::new(),
            checks: 0,
            degraded: 0,
            violations: Vec::new(),
            trouble,
            settled: None,
            worst: None,
            hash: 0,
            history: None,
        }
    }

    /// What a run of the pure level came to.
    #[must_use]
    pub fn of_pure(run: pure::Report) -> Self {
        let mut faults = BTreeMap::new();
        let mut count = |kind, number| *faults.entry(kind).or_default() += number;
        for fault in &run.history.faults {
            count(fault.kind(), 1);
        }
        let changes = run.history.changes.iter();
        let changes = number(changes.filter(|at| **at > Nanos::ZERO).count());
        if changes > 0 {
            count("planned change", changes);
        }
        let degraded = run.history.answers.iter().filter(|it| it.degraded);
        Self {
            seed: run.seed,
            command: run.command(),
            faults,
            checks: number(run.history.answers.len()),
            degraded: number(degraded.count()),
            violations: run.violations,
            trouble: run.unsettled,
            settled: None,
            worst: worst(&run.history),
            hash: run.trace,
            history: Some(run.history),
        }
    }

    /// Whether it kept all promises.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.trouble.is_empty()
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
