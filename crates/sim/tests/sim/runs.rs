//! Whole runs of shipped nodes with faults by seed.

use tollgate_sim::shipped;

/// Calm ones, planned changes, crashes, bad networks, and all at once.
#[test]
fn ten_seeds_keep_every_promise() {
    for seed in 0..10 {
        keeps_every_promise(seed);
    }
}

/// Runs that have found something: a log handed on by one that had counted nothing itself (43), two streams of one
/// follower that came in the other order (97), charges of a standby that were given back at the owner (99, 261).
#[test]
fn seeds_that_have_found_something_keep_every_promise() {
    for seed in [43, 97, 99, 261] {
        keeps_every_promise(seed);
    }
}

#[track_caller]
fn keeps_every_promise(seed: u64) {
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
