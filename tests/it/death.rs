//! P3, over real processes: a node that dies or stands still is never the cause of an outage.

use std::time::Duration;

use crate::harness::{Asked, Dev, DevOptions, Signal, Traffic, now, send_signal, until};

const PER_IP: &str = r#"
[[limit]]
name = "per-ip"
key = ["ip"]
limit = 1000000
window = "1h"
"#;
/// The default deadline of a check, and what a busy machine may add to it.
const MOST_WITHIN: Duration = Duration::from_millis(50 + 50);
/// No check takes longer.
const ALL_WITHIN: Duration = Duration::from_secs(1);
/// Checks a second.
const RATE: u32 = 200;

fn cluster() -> Dev {
    Dev::start(&DevOptions {
        nodes: 3,
        policies: PER_IP,
        more: &[],
    })
}

#[test]
fn a_killed_node_costs_no_check_and_comes_back() {
    let mut cluster = cluster();
    let urls = [cluster.nodes[0].http.clone(), cluster.nodes[2].http.clone()];
    let traffic = Traffic::start(&urls, RATE);
    let start = now();
    until("n2 decides checks", Duration::from_secs(10), || {
        traffic
            .since(start)
            .iter()
            .any(|asked| asked.node == "n2")
            .then_some(())
    });
    send_signal(cluster.nodes[1].pid, Signal::Kill);
    let killed = now();
    for number in [0, 2] {
        cluster.until_seen(number, "n2 is gone", Duration::from_secs(8), |seen| {
            seen.active() == ["n1", "n3"]
        });
    }
    let settled = now();
    traffic.until_not_degraded(Duration::from_secs(5));
    cluster.restart(1);
    for number in 0..3 {
        cluster.until_seen(number, "n2 is back", Duration::from_secs(5), |seen| {
            seen.active() == ["n1", "n2", "n3"]
        });
    }
    traffic.until_not_degraded(Duration::from_secs(5));
    let asked = traffic.end();
    all_were_answered(&asked);
    let between = asked
        .iter()
        .filter(|asked| asked.at > killed && asked.at < settled);
    let wrong = between.filter(|asked| asked.node == "n2" && !asked.is_degraded);
    assert_eq!(wrong.count(), 0, "the dead node decided");
}

#[test]
fn a_suspended_node_costs_no_check_and_counts_nothing_late() {
    let cluster = cluster();
    let held = key_of(&cluster, "n3");
    let before = used(&cluster, &held);
    let urls = [cluster.nodes[0].http.clone(), cluster.nodes[1].http.clone()];
    let traffic = Traffic::start(&urls, RATE);
    send_signal(cluster.nodes[2].pid, Signal::Stop);
    let stopped = now();
    // Asked all along: what waits at n3 must not be counted when it wakes.
    let mut first = cluster.node(0);
    let mut asked = 0;
    until("five seconds have passed", Duration::from_secs(20), || {
        let answer = first.check(&held).unwrap();
        assert!(
            answer.status == 200 && answer.took < ALL_WITHIN,
            "{}",
            answer.text
        );
        asked += 1;
        (stopped.elapsed() >= Duration::from_secs(5)).then_some(())
    });
    send_signal(cluster.nodes[2].pid, Signal::Continue);
    let resumed = now();
    until("one placement of three", Duration::from_secs(10), || {
        let seen: Vec<_> = (0..3)
            .filter_map(|number| cluster.node(number).cluster())
            .collect();
        let all_active = seen.len() == 3 && seen.iter().all(|seen| seen.active().len() == 3);
        let one = seen
            .windows(2)
            .all(|pair| pair[0].placement == pair[1].placement);
        (all_active && one).then_some(())
    });
    assert!(resumed.elapsed() < Duration::from_secs(10));
    traffic.until_not_degraded(Duration::from_secs(5));
    all_were_answered(&traffic.end());
    // What was admitted without n3 is counted once it is back, once; and what it had read when it was stopped.
    let counted = used(&cluster, &held);
    assert!(
        (before + asked..=before + asked + 1).contains(&counted),
        "{before} before, {asked} admitted, {counted} counted"
    );
}

/// A client whose key that node owns.
fn key_of(cluster: &Dev, owner: &str) -> String {
    let mut node = cluster.node(0);
    let mut keys = (1..=250).map(|number| format!("192.0.2.{number}"));
    let found = keys.find(|ip| {
        let answer = node.check(ip).unwrap();
        answer.limit()["decided_by"] == "owner" && answer.limit()["node"] == owner
    });
    found.unwrap()
}

/// What a client has used, as the owner of its key tells.
fn used(cluster: &Dev, ip: &str) -> u64 {
    let mut node = cluster.node(0);
    let path = format!("/v1/keys?limit=per-ip&attr.ip={ip}");
    until("the owner tells its count", Duration::from_secs(5), || {
        node.get(&path).ok()?.body["used"].as_u64()
    })
}

fn all_were_answered(asked: &[Asked]) {
    let wrong: Vec<_> = asked
        .iter()
        .filter(|it| !matches!(it.status, Ok(200 | 429)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}: {:?}",
        wrong.len(),
        asked.len(),
        wrong[0]
    );
    let mut took: Vec<_> = asked.iter().map(|asked| asked.took).collect();
    took.sort_unstable();
    let slowest = took[took.len() - 1];
    assert!(slowest < ALL_WITHIN, "the slowest took {slowest:?}");
    let most = took[took.len() * 99 / 100];
    assert!(most < MOST_WITHIN, "99 % took {most:?}");
}
