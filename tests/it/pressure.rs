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
    let flood = flooded(20);
    assert_eq!(flood.readmitted, 0, "the limit was reset");
    assert_eq!(
        flood.dropped("at_limit"),
        0,
        "keys below their limit go first"
    );
    assert!(flood.dropped("live") > 0, "the flood was none");
}

/// With a limit of one all keys are at their limit, and the one that recovers first goes: the held one.
#[test]
fn what_has_to_go_of_a_flood_of_keys_at_their_limit_is_counted() {
    let flood = flooded(1);
    assert!(flood.dropped("at_limit") > 0);
    assert!(
        flood.readmitted <= flood.dropped("at_limit"),
        "a limit was reset and not counted"
    );
    let gone: u64 = ["expired", "live", "at_limit"]
        .map(|kind| flood.dropped(kind))
        .iter()
        .sum();
    let held = metric(&flood.metrics, "tollgate_store_keys ");
    assert_eq!(
        held + gone,
        u64::from(KEYS) + 1 + flood.readmitted,
        "a counter is lost"
    );
}

/// What a flood came to.
struct Flood {
    /// How often the held key was admitted again.
    readmitted: u64,
    metrics: String,
}

impl Flood {
    fn dropped(&self, kind: &str) -> u64 {
        metric(
            &self.metrics,
            &format!("tollgate_store_evictions_total{{kind=\"{kind}\"}} "),
        )
    }
}

/// Floods a node that has one key at its limit all along.
fn flooded(limit: u64) -> Flood {
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
    let mut readmitted = 0;
    for first in (0..KEYS).step_by(usize::try_from(BATCH).unwrap()) {
        flood(&mut node, first);
        let held = node.check(HELD).unwrap();
        assert!(!held.is_degraded(), "{}", held.text);
        readmitted += u64::from(held.is_allowed());
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
    let metrics = node.get("/metrics").unwrap().text;
    Flood {
        readmitted,
        metrics,
    }
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

/// The whole number of one series, named to the space before it.
fn metric(metrics: &str, series: &str) -> u64 {
    let value = metrics.lines().find_map(|line| line.strip_prefix(series));
    let value = value.unwrap_or_else(|| panic!("no {series} in\n{metrics}"));
    value.trim_end_matches(".0").parse().unwrap()
}
