//! P7, over a real process: a flood of keys cannot reset a limit, and memory is bounded.

use serde_json::{Value, json};

use crate::harness::{Dev, DevOptions, Node, PATIENT, resident_bytes};

/// Keys of the flood.
const KEYS: u32 = 1_000_000;
/// Checks of one request.
const BATCH: u32 = 1000;
/// The counters' memory, in MiB.
const MEMORY_MB: u64 = 16;
/// What a process may take beside its counters while it is flooded: buffers, allocator.
const SLACK_MB: u64 = 48;
/// The client whose limit is held.
const HELD: &str = "192.0.2.1";

#[test]
fn a_flood_of_keys_does_not_reset_a_limit_of_twenty() {
    let (cluster, mut node) = flooded(20);
    assert_eq!(
        evicted_at_limit(&mut node),
        0,
        "keys below their limit go first"
    );
    assert!(
        node.metric("tollgate_store_evictions_total") > 0.0,
        "the flood was none"
    );
    drop(cluster);
}

#[test]
fn a_flood_of_keys_at_their_limit_is_counted() {
    let (cluster, mut node) = flooded(1);
    assert!(evicted_at_limit(&mut node) > 0);
    drop(cluster);
}

/// A node after the flood, which had one key at its limit all along.
fn flooded(limit: u64) -> (Dev, Node) {
    let cluster = Dev::start(&DevOptions {
        nodes: 1,
        policies: &format!(
            "[[limit]]\nname = \"per-ip\"\nkey = [\"ip\"]\nlimit = {limit}\nwindow = \"1h\"\n"
        ),
        more: &[&["--max-memory-mb", "16"], &PATIENT[..]].concat(),
    });
    let mut node = cluster.node(0);
    for _ in 0..limit {
        assert!(node.check(HELD).unwrap().is_allowed());
    }
    let process_id = cluster.nodes[0].pid;
    let before = resident_bytes(process_id);
    for first in (0..KEYS).step_by(usize::try_from(BATCH).unwrap()) {
        flood(&mut node, first);
        let held = node.check(HELD).unwrap();
        assert!(
            !held.is_allowed(),
            "the limit was reset after {first} keys: {}",
            held.text
        );
    }
    if let (Some(before), Some(after)) = (before, resident_bytes(process_id)) {
        let most = before + ((MEMORY_MB + SLACK_MB) << 20);
        assert!(
            after < most,
            "{} MiB resident, {} before",
            after >> 20,
            before >> 20
        );
    }
    (cluster, node)
}

fn flood(node: &mut Node, first: u32) {
    let checks: Vec<Value> = (first..first + BATCH)
        .map(|number| json!({ "attributes": { "ip": format!("flood-{number}") } }))
        .collect();
    let answer = node
        .post("/v1/checks", json!({ "checks": checks }).to_string())
        .unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
}

fn evicted_at_limit(node: &mut Node) -> u64 {
    let metrics = node.get("/metrics").unwrap().text;
    let line = metrics.lines().find(|line| {
        line.starts_with("tollgate_store_evictions_total") && line.contains("at_limit")
    });
    let value: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    let count = value as u64;
    count
}
