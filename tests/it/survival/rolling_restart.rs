//! P6: a rolling restart of every node keeps all counts.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    cluster,
    load::{End, Load, Sent, faulty, quantile, tallies},
    until_settled,
};
use crate::harness::{Signal, is_node, now, send_signal, until};

const NODES: usize = 5;
const LIMIT: u64 = 200;
/// Checks a second.
const RATE: u32 = 500;
/// Clients with more demand than their limit; others ask once in a while.
const BUSY: u32 = 20;
/// A node leaves within this.
const LEAVE: Duration = Duration::from_secs(12);

#[test]
fn a_rolling_restart_of_all_nodes_keeps_all_counts() {
    let mut cluster = cluster(u16::try_from(NODES).unwrap(), LIMIT, "1h");
    let urls: Vec<_> = cluster.nodes.iter().map(|node| node.http.clone()).collect();
    let load = Load::start(&urls, RATE, |number| match number % 5 {
        0 => format!("198.51.{}.{}", number / 250 % 8, number % 250),
        _ => format!("192.0.2.{}", number % BUSY),
    });
    let all: Vec<_> = (0..NODES).collect();
    let mut events = Vec::new();
    for number in 0..NODES {
        let node = cluster.nodes[number].clone();
        events.push((now(), "told to leave"));
        send_signal(node.pid, Signal::Terminate);
        until("the node has left", LEAVE, || {
            (!is_node(&node)).then_some(())
        });
        events.push((now(), "left, started"));
        cluster.restart(number);
        until_settled(&cluster, &all);
        events.push((now(), "settled"));
    }
    events.push((now() + LEAVE, "end"));
    let enough = |tallies: &[u64]| tallies.iter().all(|sent| *sent > 2 * LIMIT);
    until(
        "all busy clients asked for more",
        Duration::from_secs(120),
        || {
            let sent = load.so_far();
            let tallies = tallies(&sent);
            let busy = (0..BUSY).filter_map(|number| tallies.get(&format!("192.0.2.{number}")));
            let busy: Vec<_> = busy.map(|tally| tally.sent).collect();
            enough(&busy).then_some(())
        },
    );
    let sent = load.end();
    let degraded = sent.iter().filter(|one| one.is_degraded()).count();
    let share =
        f64::from(u32::try_from(degraded).unwrap()) / f64::from(u32::try_from(sent.len()).unwrap());
    println!(
        "rolling restart: {} checks, {degraded} degraded ({:.3} %), p99 {:?}, slowest {:?}",
        sent.len(),
        share * 100.0,
        quantile(&sent, 990),
        quantile(&sent, 1000),
    );
    tell(&sent, &events);
    let faulty = faulty(&sent);
    assert!(faulty.is_empty(), "{}: {:?}", faulty.len(), faulty[0]);
    for (client, tally) in tallies(&sent) {
        let most = LIMIT + tally.degraded;
        let least = tally.sent.min(LIMIT);
        assert!(
            (least..=most).contains(&tally.admitted),
            "{client}: {tally:?}, not within {least} and {most}"
        );
    }
    assert!(share < 0.01, "{degraded} of {} are degraded", sent.len());
}

/// Tells how many answers were degraded, when and by whom.
fn tell(sent: &[Sent], events: &[(Instant, &str)]) {
    for pair in events.windows(2) {
        let [(from, what), (until, _)] = pair else {
            continue;
        };
        let between: Vec<_> = sent
            .iter()
            .filter(|one| (*from..*until).contains(&one.at))
            .collect();
        let degraded: Vec<_> = between.iter().filter(|one| one.is_degraded()).collect();
        let first = degraded.first().map(|one| one.at - *from);
        let last = degraded.last().map(|one| one.at - *from);
        println!(
            "{what}: {:?}, {} checks, {} degraded from {first:?} to {last:?}",
            *until - *from,
            between.len(),
            degraded.len()
        );
    }
    let mut by = BTreeMap::<_, u64>::new();
    for one in sent.iter().filter(|one| one.is_degraded()) {
        if let End::Admitted(said) | End::Refused(said) = &one.end {
            let at = events.iter().rposition(|(at, _)| *at <= one.at);
            *by.entry((at, said.node.as_str(), said.by.as_str()))
                .or_default() += 1;
        }
    }
    println!("degraded, by event, node and who decided: {by:?}");
}
