//! Many seeds at once, each on a thread of its own pool, and the sum of what they came to.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::{Over, Report};

/// What many runs came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Runs.
    pub seeds: u64,
    /// Faults that struck and changes that were made, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Checks that were asked.
    pub checks: u64,
    /// Those that were answered degraded.
    pub degraded: u64,
    /// Runs that broke something, by seed.
    pub failed: Vec<u64>,
    /// The longest time from the last fault to one placement.
    pub slowest: Duration,
    /// The window of all runs that held the most beyond what its algorithm allows; `None`: none did.
    pub worst: Option<Over>,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, report: &Report) {
        self.seeds += 1;
        for (kind, count) in &report.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        self.checks += report.checks;
        self.degraded += report.degraded;
        if !report.is_good() {
            self.failed.push(report.seed);
            self.failed.sort_unstable();
        }
        let worst = self.worst.take().into_iter().chain(report.worst.clone());
        self.worst = worst.max_by_key(Over::units);
        self.slowest = self.slowest.max(report.settled.unwrap_or_default());
    }
}

/// Runs seeds `first` and the `count − 1` after it on so many threads; tells each run as it ends.
pub fn run(
    (first, count): (u64, u64),
    threads: NonZeroUsize,
    run: impl Fn(u64) -> Report + Sync,
    mut tell: impl FnMut(&Report),
) -> Summary {
    let next = AtomicU64::new(0);
    let (sender, reports) = mpsc::channel();
    let mut summary = Summary::default();
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || sender.send(run(first.wrapping_add(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for report in reports {
            summary.add(&report);
            tell(&report);
        }
    });
    summary
}
