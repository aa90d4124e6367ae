//! What a run of one seed came to.

use std::{collections::BTreeMap, time::Duration};

use crate::Violation;

/// One run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
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
    /// A hash of all that happened.
    pub hash: u64,
}

impl Report {
    /// A run that came to no end.
    #[must_use]
    pub const fn failed(seed: u64, trouble: Vec<String>) -> Self {
        Self {
            seed,
            faults: BTreeMap::new(),
            checks: 0,
            degraded: 0,
            violations: Vec::new(),
            trouble,
            settled: None,
            hash: 0,
        }
    }

    /// Whether it kept all promises.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.trouble.is_empty()
    }
}
