//! A run is a function of its seed: twice in one process, and in two processes; bare quinn's and a
//! cluster's.

use std::{process::Command, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{task::JoinSet, time::sleep};
use tollgate_node::Timeouts;
use tollgate_sim::{Fate, Finished, LinkConditions, Simulation, Trace, shipped};

use crate::{
    cluster::{Cluster, check},
    mesh,
};

const SEED: u64 = 0x7011_6a7e;
const LOSSES_PER_MILLE: [u16; 2] = [0, 50];
/// Runs with a planned change and with a crash.
const FAULTY_SEEDS: [u64; 2] = [1, 2];
/// What the child process prints before a hash.
const MARK: &str = "trace-hash=";

const NODES: u8 = 3;
const CHECKS_PER_NODE: u32 = 500;
const KEYS: u32 = 40;

#[test]
fn one_seed_gives_one_trace_of_bare_quinn() {
    for loss in LOSSES_PER_MILLE {
        let (one, two) = (mesh::run(SEED, loss), mesh::run(SEED, loss));
        assert_eq!((one.output, two.output), (mesh::CALLS, mesh::CALLS));
        assert_has_traffic(&one.trace, loss);
        assert_same(&one.trace, &two.trace);
    }
}

#[test]
fn one_seed_gives_one_trace_of_three_nodes() {
    for loss in LOSSES_PER_MILLE {
        let (one, two) = (run_cluster(SEED, loss), run_cluster(SEED, loss));
        assert_eq!(one.output, two.output, "answers admitted and degraded");
        assert_has_traffic(&one.trace, loss);
        assert_same(&one.trace, &two.trace);
    }
}

#[test]
fn another_process_gives_the_same_traces() {
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
    assert_eq!(trace_hashes(), there, "the child printed: {stdout}");
}

/// Not a test: what the child process of the test above runs.
#[test]
#[ignore = "run by another_process_gives_the_same_traces"]
#[expect(clippy::print_stdout, reason = "the parent process reads it")]
fn print_trace_hashes() {
    for hash in trace_hashes() {
        println!("{MARK}{hash}");
    }
}

#[test]
fn another_seed_gives_another_trace() {
    let quinn: Vec<u64> = (1..=3)
        .map(|seed| mesh::run(seed, 0).trace.hash())
        .collect();
    let nodes: Vec<u64> = (1..=3)
        .map(|seed| run_cluster(seed, 0).trace.hash())
        .collect();
    for hashes in [quinn, nodes] {
        let [one, two, three] = *hashes else {
            panic!("three runs")
        };
        assert!(one != two && two != three && one != three);
    }
}

/// The hashes of all runs that two processes are compared by.
fn trace_hashes() -> Vec<String> {
    let quinn = LOSSES_PER_MILLE.map(|loss| mesh::run(SEED, loss).trace.hash());
    let nodes = LOSSES_PER_MILLE.map(|loss| run_cluster(SEED, loss).trace.hash());
    let runs = FAULTY_SEEDS.map(|seed| shipped::run(seed).hash);
    quinn
        .iter()
        .chain(&nodes)
        .chain(&runs)
        .map(|hash| format!("{hash:016x}"))
        .collect()
}

/// Three nodes that find each other and are asked, at random times, for a few keys: answers that
/// admitted, and answers that were degraded.
fn run_cluster(seed: u64, loss_per_mille: u16) -> Finished<(u32, u32)> {
    let finished = Simulation::run(seed, async |simulation| {
        let conditions = LinkConditions::default().with_loss_per_mille(loss_per_mille);
        simulation.network().set_conditions(conditions);
        let cluster = Cluster::start(simulation, NODES, Timeouts::default()).await;
        let mut clients = JoinSet::new();
        for (part, node) in (1000..).zip(&cluster.nodes) {
            let (node, seed) = (node.clone(), simulation.seed_of_part(part));
            clients.spawn(async move {
                let mut random = StdRng::seed_from_u64(seed);
                let (mut admitted, mut degraded) = (0, 0);
                for _ in 0..CHECKS_PER_NODE {
                    sleep(Duration::from_millis(random.random_range(0..5))).await;
                    let key = format!("k{}", random.random_range(0..KEYS));
                    let decision = check(&node, &key).await;
                    admitted += u32::from(decision.is_allowed());
                    degraded += u32::from(decision.limits.iter().any(|limit| limit.degraded));
                }
                (admitted, degraded)
            });
        }
        let counts = clients.join_all().await.into_iter();
        counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    finished.unwrap()
}

/// Fails unless a trace is long enough to mean anything, and has losses just where there should be some.
fn assert_has_traffic(trace: &Trace, loss_per_mille: u16) {
    assert!(trace.sent() > 1000, "{} datagrams", trace.sent());
    let lost = trace
        .records()
        .iter()
        .filter(|record| record.fate == Fate::Lost)
        .count();
    assert_eq!(lost > 0, loss_per_mille > 0, "{lost} lost");
}

/// Fails with the first datagram that differs.
fn assert_same(one: &Trace, two: &Trace) {
    assert_eq!(one.first_difference(two), None);
    assert_eq!((one.sent(), one.hash()), (two.sent(), two.hash()));
}
