//! Switches hold everywhere within a second, and for nodes that join later.

use std::time::Duration;

use http::Method;
use tollgate::http_client::Call;

use super::{cluster, until_settled};
use crate::harness::{Dev, Node, Signal, is_node, now, send_signal, until};

const CLIENT: &str = "192.0.2.9";
/// In force everywhere within this.
const WITHIN: Duration = Duration::from_secs(1);

fn throw(node: &mut Node, name: &str, on: bool) {
    let path = format!("/v1/switches/{name}");
    let answer = node.call(Call {
        method: Method::PUT,
        path: &path,
        token: None,
        body: format!("{{\"on\": {on}}}").into_bytes(),
    });
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// Waits until each node answers so.
fn until_all(cluster: &Dev, numbers: std::ops::Range<usize>, admits: bool, by: &str) {
    let thrown = now();
    for number in numbers {
        let mut node = cluster.node(number);
        until("the switch is in force", WITHIN * 10, || {
            let answer = node.check(CLIENT).ok()?;
            let is_so = answer.is_allowed() == admits && answer.limit()["decided_by"] == by;
            is_so.then_some(())
        });
    }
    println!("switch: in force everywhere after {:?}", thrown.elapsed());
    assert!(thrown.elapsed() < WITHIN, "{:?}", thrown.elapsed());
}

#[test]
fn a_kill_switch_at_one_node_holds_at_all_and_at_those_that_join() {
    let mut cluster = cluster(5, 1, "1h");
    let mut first = cluster.node(0);
    assert!(first.check(CLIENT).unwrap().is_allowed());
    assert!(!first.check(CLIENT).unwrap().is_allowed());
    throw(&mut first, "kill", true);
    until_all(&cluster, 0..5, true, "switch");
    let fifth = cluster.nodes[4].clone();
    send_signal(fifth.pid, Signal::Kill);
    until("the fifth is dead", Duration::from_secs(10), || {
        (!is_node(&fifth)).then_some(())
    });
    cluster.restart(4);
    until_settled(&cluster, &[0, 1, 2, 3, 4]);
    until_all(&cluster, 4..5, true, "switch");
    let seen = cluster.node(4).get("/v1/cluster").unwrap();
    assert_eq!(seen.body["switches"]["kill"], true, "{}", seen.text);
    // Off again, at the one that joined.
    throw(&mut cluster.node(4), "kill", false);
    let thrown = now();
    for number in 0..5 {
        let mut node = cluster.node(number);
        until("the limit holds again", WITHIN * 10, || {
            let answer = node.check(CLIENT).ok()?;
            (!answer.is_allowed()).then_some(())
        });
    }
    assert!(thrown.elapsed() < WITHIN, "{:?}", thrown.elapsed());
}

#[test]
fn a_shadow_switch_admits_what_it_would_refuse() {
    let cluster = cluster(3, 1, "1h");
    let mut first = cluster.node(0);
    assert!(first.check(CLIENT).unwrap().is_allowed());
    assert!(!first.check(CLIENT).unwrap().is_allowed());
    throw(&mut cluster.node(2), "shadow", true);
    let mut second = cluster.node(1);
    until("limits are shadow", WITHIN, || {
        let answer = second.check(CLIENT).ok()?;
        let is_shadow = answer.limit()["shadow"] == true && answer.limit()["allowed"] == false;
        (answer.is_allowed() && is_shadow).then_some(())
    });
    throw(&mut second, "shadow", false);
    until("limits hold again", WITHIN, || {
        (!first.check(CLIENT).ok()?.is_allowed()).then_some(())
    });
}
