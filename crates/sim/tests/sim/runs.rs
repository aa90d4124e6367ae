//! Whole runs of shipped nodes with faults by seed.

use tollgate_sim::shipped;

/// Calm ones, planned changes, crashes, bad networks, and all at once.
#[test]
fn ten_seeds_keep_every_promise() {
    for seed in 0..10 {
        let report = shipped::run(seed);
        let (broken, trouble) = (&report.violations, &report.trouble);
        assert!(
            report.checks > 3_000,
            "seed {seed}: {} checks",
            report.checks
        );
        assert!(
            report.is_good(),
            "{}: {broken:#?} {trouble:#?}",
            report.command
        );
    }
}
