//! A run is a function of its seed: twice in one process, and in two processes.

use std::process::Command;

use tollgate_sim::{Fate, Trace};

use crate::mesh;

const SEED: u64 = 0x7011_6a7e;
const LOSSES_PER_MILLE: [u16; 2] = [0, 50];
/// What the child process prints before a hash.
const MARK: &str = "trace-hash=";

#[test]
fn one_seed_gives_one_trace() {
    for loss in LOSSES_PER_MILLE {
        let (one, two) = (mesh::run(SEED, loss), mesh::run(SEED, loss));
        assert_eq!(one.output, mesh::CALLS);
        assert_eq!(two.output, mesh::CALLS);
        assert!(
            one.trace.sent() > u64::from(mesh::CALLS),
            "too few datagrams to mean anything"
        );
        let lost = one
            .trace
            .records()
            .iter()
            .filter(|record| record.fate == Fate::Lost)
            .count();
        assert_eq!(lost > 0, loss > 0, "{lost} lost at {loss} per mille");
        assert_same(&one.trace, &two.trace);
    }
}

#[test]
fn another_process_gives_the_same_trace() {
    let here: Vec<String> = LOSSES_PER_MILLE
        .iter()
        .map(|loss| format!("{:016x}", mesh::run(SEED, *loss).trace.hash()))
        .collect();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "repeats::print_trace_hashes",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let stdout = String::from_utf8(child.stdout).unwrap();
    let there: Vec<&str> = stdout
        .split(MARK)
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    assert_eq!(here, there, "the child printed: {stdout}");
}

/// Not a test: what the child process of the test above runs.
#[test]
#[ignore = "run by another_process_gives_the_same_trace"]
#[expect(clippy::print_stdout, reason = "the parent process reads it")]
fn print_trace_hashes() {
    for loss in LOSSES_PER_MILLE {
        println!("{MARK}{:016x}", mesh::run(SEED, loss).trace.hash());
    }
}

#[test]
fn another_seed_gives_another_trace() {
    let hashes: Vec<u64> = (1..=3)
        .map(|seed| mesh::run(seed, 0).trace.hash())
        .collect();
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
}

/// Fails with the first datagram that differs.
pub(crate) fn assert_same(one: &Trace, two: &Trace) {
    assert_eq!(one.first_difference(two), None);
    assert_eq!((one.sent(), one.hash()), (two.sent(), two.hash()));
}
