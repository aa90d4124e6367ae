//! Counts survive, over real processes: restarts, kills, joins, hot keys and switches.

#![allow(clippy::print_stdout, reason = "the figures of a run")]

mod hot_key;
mod join;
mod kill;
mod load;
mod rolling_restart;
mod switch;

use std::time::Duration;

use crate::harness::{Dev, DevOptions, until};

/// How long a cluster may take to agree after a change.
const AGREE: Duration = Duration::from_secs(30);

/// So many nodes with one limit for each client.
fn cluster(nodes: u16, limit: u64, window: &str) -> Dev {
    let policies = format!(
        "[[limit]]\nname = \"per-ip\"\nkey = [\"ip\"]\nlimit = {limit}\nwindow = \"{window}\"\nhard = true\n"
    );
    Dev::start(&DevOptions {
        nodes,
        policies: &policies,
        more: &[],
    })
}

/// Waits until these nodes go by one placement of just themselves, with no slot on its way.
fn until_settled(cluster: &Dev, numbers: &[usize]) {
    let mut nodes: Vec<_> = numbers.iter().map(|number| cluster.node(*number)).collect();
    until("one placement", AGREE, || {
        let seen: Option<Vec<_>> = nodes.iter_mut().map(|node| node.cluster()).collect();
        let seen = seen?;
        let all_active = seen.iter().all(|seen| seen.active().len() == numbers.len());
        let is_one = seen
            .windows(2)
            .all(|pair| pair[0].placement == pair[1].placement);
        (all_active && is_one).then_some(())
    });
}

/// The node that owns a client's key, as the node of that number tells.
fn owner_of(cluster: &Dev, asked: usize, ip: &str) -> Option<String> {
    let path = format!("/v1/keys?limit=per-ip&attr.ip={ip}");
    let answer = cluster.node(asked).get(&path).ok()?;
    Some(answer.body["owner"].as_str()?.to_owned())
}

/// What a client has used, as its owner tells.
fn used(cluster: &Dev, asked: usize, ip: &str) -> u64 {
    let path = format!("/v1/keys?limit=per-ip&attr.ip={ip}");
    let mut node = cluster.node(asked);
    until("the owner tells its count", AGREE, || {
        node.get(&path).ok()?.body["used"].as_u64()
    })
}
