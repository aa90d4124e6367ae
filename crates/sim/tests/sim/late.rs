//! Replies that come after their check was answered without them: what a refused check was charged goes
//! back (P4), and nothing else does.

use std::time::Duration;

use tollgate_limit::{DecidedBy, Fallback};
use tollgate_node::Timeouts;
use tollgate_sim::{LinkConditions, Simulation};

use crate::cluster::{Cluster, LIMIT_UNITS, await_that, check};

const NODES: u8 = 3;
const ENTRY: usize = 0;
const OWNER: usize = 1;
/// A reply that comes long after the forward timeout, and before the connection is given up.
const LATE: Duration = Duration::from_millis(200);

/// Asks for a key that was used so often before, while replies are late; returns whether it was
/// admitted, and what the owner counts when all has come to rest.
fn ask_while_replies_are_late(fallback: Fallback, used_before: u64) -> (bool, u64) {
    let run = Simulation::run(9, async move |simulation| {
        let network = simulation.network();
        let timeouts = Timeouts::default();
        let cluster = Cluster::start_with(simulation, NODES, timeouts, fallback).await;
        let key = cluster.key_of(OWNER).await;
        let (entry, owner) = (&cluster.nodes[ENTRY], &cluster.nodes[OWNER]);
        for _ in 0..used_before {
            assert!(check(owner, &key).await.is_allowed());
        }
        let link = (cluster.address(OWNER), cluster.address(ENTRY));
        let slow = LinkConditions {
            delay: LATE,
            ..LinkConditions::default()
        };
        network.set_link(link.0, link.1, slow);

        let decided = owner.report().decided_for_peers;
        let decision = check(entry, &key).await;
        assert_eq!(decision.limits[0].decided_by, DecidedBy::Fallback);
        await_that("the owner decides", || {
            owner.report().decided_for_peers > decided
        })
        .await;
        let given_back = owner.report().given_back;
        tokio::time::sleep(5 * LATE).await;
        assert!(
            owner.report().given_back - given_back <= 1,
            "given back once"
        );
        let used = cluster.counter(OWNER, &key).await.verdict.used;
        (decision.is_allowed(), used)
    });
    run.unwrap().output
}

#[test]
fn a_late_charge_of_a_refused_check_goes_back() {
    assert_eq!(ask_while_replies_are_late(Fallback::Deny, 3), (false, 3));
}

#[test]
fn a_late_charge_of_an_admitted_check_stays() {
    assert_eq!(ask_while_replies_are_late(Fallback::Allow, 3), (true, 4));
}

#[test]
fn a_late_refusal_gives_nothing_back() {
    let full = ask_while_replies_are_late(Fallback::Deny, LIMIT_UNITS);
    assert_eq!(full, (false, LIMIT_UNITS));
}
