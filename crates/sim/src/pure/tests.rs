//! Runs of the pure world: that they are repeatable, that promises are kept, and that it is noticed if not.

use std::thread;

use tollgate_cluster::sabotage::{self, Sabotage};

use super::{Mode, Profile, Report, run, run_profile};
use crate::history::Amended;

const MODES: [Mode; 2] = [Mode::Safety, Mode::Liveness];

#[track_caller]
fn assert_good(report: &Report) {
    assert!(report.is_good(), "{report}");
}

/// The seeds below `until` of one profile, in both modes.
fn all_good(profile: Profile, until: u64) {
    let seeds = (0..until).filter(|seed| Profile::of(*seed) == profile);
    for seed in seeds {
        for mode in MODES {
            assert_good(&run(seed, mode));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for mode in MODES {
        for seed in 0..4 {
            let (one, other) = (run(seed, mode), run(seed, mode));
            assert_eq!((one.trace, one.events), (other.trace, other.events));
            assert_eq!(one.history.answers, other.history.answers);
            assert_ne!(one.trace, run(seed + 8, mode).trace);
        }
    }
}

#[test]
fn without_a_fault_all_is_exact() {
    all_good(Profile::Calm, 120);
}

#[test]
fn planned_changes_lose_nothing() {
    all_good(Profile::Planned, 80);
}

#[test]
fn crashes_lose_no_more_than_the_formula_says() {
    all_good(Profile::Crashes, 120);
}

#[test]
fn cuts_admit_no_more_than_the_formula_says() {
    all_good(Profile::Cuts, 120);
}

#[test]
fn pauses_admit_no_more_than_the_formula_says() {
    all_good(Profile::Pauses, 120);
}

#[test]
fn accusations_admit_no_more_than_the_formula_says() {
    all_good(Profile::Accusations, 120);
}

#[test]
fn all_faults_together_admit_no_more_than_the_formula_says() {
    all_good(Profile::Everything, 80);
}

/// P9: with more demand than a limit of an hour, what is admitted and kept is the limit.
#[test]
fn without_a_fault_a_limit_is_used_up_and_no_more() {
    let mut used_up = 0;
    for seed in 0..6 {
        let report = run_profile(seed, Mode::Liveness, Profile::Calm);
        assert_good(&report);
        for key in ["hot-hour", "hot-hour-log", "hour-fixed"] {
            let history = &report.history;
            let limit = history.rules[key].capacity();
            let answers = history.answers.iter().filter(|answer| answer.key == key);
            let admitted: u64 = answers.clone().map(|it| it.admitted()).sum();
            let back = history.amends.iter().filter(|amend| amend.key == key);
            let back: u64 = back
                .map(|amend| match amend.what {
                    Amended::Refund { units, .. } => units,
                    Amended::Reset => 0,
                })
                .sum();
            let kept = admitted - back;
            assert!(kept <= limit, "{key} of seed {seed}: {kept} of {limit}");
            let asked: u64 = answers.map(|it| it.cost).sum();
            // What was given back last may not have been asked for again.
            if asked >= 2 * limit && back == 0 {
                assert_eq!(kept, limit, "{key} of seed {seed}");
                used_up += 1;
            }
        }
    }
    assert!(used_up > 0, "no limit was used up in any run");
}

/// For each rule the first seed of a liveness run that shows that it is broken.
const FOUND_BY: [(Sabotage, u64); Sabotage::ALL.len()] = [
    (Sabotage::DeleteBeforeAck, 2),
    (Sabotage::NoReplication, 4),
    (Sabotage::MergeTwice, 1),
    (Sabotage::MergeUndoesRefund, 21),
    (Sabotage::StandbyNeverRelays, 3),
    (Sabotage::RepeatDecidedTwice, 1),
    (Sabotage::PausedNodeCounts, 12),
    (Sabotage::DenialsKeptAfterRefund, 0),
    (Sabotage::JoiningNodeOwns, 1),
    (Sabotage::FinalAfterRedirect, 9),
];

#[test]
fn a_broken_rule_is_noticed() {
    for (rule, seed) in FOUND_BY {
        assert_good(&run(seed, Mode::Liveness));
        // On a thread of its own: it remembers what it has seen.
        let broken = thread::spawn(move || {
            sabotage::set(Some(rule));
            run(seed, Mode::Liveness)
        });
        let report = broken.join().unwrap();
        assert!(!report.is_good(), "{rule:?} was not noticed: {report}");
    }
}
