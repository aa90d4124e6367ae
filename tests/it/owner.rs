//! A check is decided by the owner of its key, whatever node was asked, and any node tells its count.

use crate::harness::{Answered, Dev, DevOptions, Node, PATIENT};

const PER_IP: &str = r#"
[[limit]]
name = "per-ip"
key = ["ip"]
limit = 20
window = "1h"
"#;

#[test]
fn the_owner_decides_and_every_node_tells_its_count() {
    let cluster = Dev::start(&DevOptions {
        nodes: 3,
        policies: PER_IP,
        more: &PATIENT,
    });
    let mut first = cluster.node(0);
    let (ip, answer) = owned_by(&mut first, "n2");
    assert_eq!(answer.limit()["decided_by"], "owner");
    assert_eq!(answer.limit()["used"], 1);
    for number in 0..3 {
        let mut node = cluster.node(number);
        let path = format!("/v1/keys?policy=default&limit=per-ip&attr.ip={ip}");
        let state = node.get(&path).unwrap();
        assert_eq!(state.status, 200, "{}", state.text);
        assert_eq!(state.body["used"], 1, "{}", state.text);
        assert_eq!(state.body["owner"], "n2", "{}", state.text);
        assert!(["n1", "n3"].contains(&state.body["standby"].as_str().unwrap()));
    }
    let again = cluster.node(2).check(&ip).unwrap();
    assert_eq!(
        (&again.limit()["used"], &again.limit()["node"]),
        (&2.into(), &"n2".into())
    );
}

/// The first client whose key that node owns, and the answer to its first check.
fn owned_by(node: &mut Node, owner: &str) -> (String, Answered) {
    let found = (1..200).find_map(|number| {
        let ip = format!("198.51.100.{number}");
        let answer = node.check(&ip).unwrap();
        (answer.limit()["node"] == owner).then_some((ip, answer))
    });
    found.unwrap_or_else(|| panic!("{owner} owns none of 200 keys"))
}
