//! P6: a node that joins takes its share of the keys with their counts.

use std::time::Duration;

use super::{
    cluster,
    load::{Load, faulty, quantile, tallies},
    owner_of, until_settled,
};
use crate::harness::{Dev, Signal, is_node, send_signal, until};

const NODES: usize = 6;
const LIMIT: u64 = 40;
/// Checks a second.
const RATE: u32 = 400;
const CLIENTS: u32 = 240;
/// The deadline of a check, and what a busy machine may add to it.
const MOST_WITHIN: Duration = Duration::from_millis(50 + 50);
/// No check takes longer.
const ALL_WITHIN: Duration = Duration::from_secs(1);

#[test]
fn a_node_that_joins_under_load_takes_keys_with_their_counts() {
    let (mut cluster, five) = five_of_six();
    let urls: Vec<_> = five
        .iter()
        .map(|number| cluster.nodes[*number].http.clone())
        .collect();
    let client = |number: u32| format!("192.0.2.{}", number % CLIENTS);
    let owners = |cluster: &_| -> Vec<String> {
        let clients = (0..CLIENTS).map(client);
        clients
            .map(|ip| {
                until("the owner is told", Duration::from_secs(10), || {
                    owner_of(cluster, 0, &ip)
                })
            })
            .collect()
    };
    let before = owners(&cluster);
    let load = Load::start(&urls, RATE, client);
    let sent_each = |load: &Load| {
        let tallies = tallies(&load.so_far());
        tallies.values().map(|tally| tally.sent).min().unwrap_or(0)
    };
    until(
        "half of the limits is used",
        Duration::from_secs(60),
        || (sent_each(&load) >= LIMIT / 2).then_some(()),
    );
    cluster.restart(NODES - 1);
    let all: Vec<_> = (0..NODES).collect();
    until_settled(&cluster, &all);
    until("all limits are used", Duration::from_secs(120), || {
        (sent_each(&load) >= LIMIT + 10).then_some(())
    });
    let sent = load.end();
    let after = owners(&cluster);
    let moved = before
        .iter()
        .zip(&after)
        .filter(|(was, is)| was != is)
        .count();
    let degraded = sent.iter().filter(|one| one.is_degraded()).count();
    println!(
        "join: {} checks, {degraded} degraded, {moved} of {CLIENTS} keys moved, p99 {:?}, slowest {:?}",
        sent.len(),
        quantile(&sent, 990),
        quantile(&sent, 1000),
    );
    let to_the_sixth = before.iter().zip(&after).filter(|(was, is)| was != is);
    assert!(to_the_sixth.clone().all(|(_, is)| is == "n6"));
    assert!((20..=64).contains(&moved), "{moved} of {CLIENTS} moved");
    let faulty = faulty(&sent);
    assert!(faulty.is_empty(), "{}: {:?}", faulty.len(), faulty[0]);
    for (client, tally) in tallies(&sent) {
        assert!(tally.admitted <= LIMIT, "{client}: {tally:?}");
        assert!(
            tally.admitted + tally.degraded >= LIMIT,
            "{client}: {tally:?}"
        );
    }
    assert!(
        quantile(&sent, 990) < MOST_WITHIN,
        "{:?}",
        quantile(&sent, 990)
    );
    assert!(quantile(&sent, 1000) < ALL_WITHIN);
}

/// A cluster of which the sixth node has left.
fn five_of_six() -> (Dev, Vec<usize>) {
    let cluster = cluster(u16::try_from(NODES).unwrap(), LIMIT, "1h");
    let sixth = cluster.nodes[NODES - 1].clone();
    send_signal(sixth.pid, Signal::Terminate);
    until("the sixth has left", Duration::from_secs(12), || {
        (!is_node(&sixth)).then_some(())
    });
    let five: Vec<_> = (0..NODES - 1).collect();
    until_settled(&cluster, &five);
    (cluster, five)
}
