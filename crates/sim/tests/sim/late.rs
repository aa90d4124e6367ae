//! Replies that come after their check was answered without them: what they charged goes back, since what was
//! admitted without the owner is reported to it; but not if it is the very charge that the check was
//! answered by.

use std::time::Duration;

use tollgate_limit::{DecidedBy, Fallback};
use tollgate_node::Timeouts;
use tollgate_sim::{LinkConditions, Simulation};

use crate::cluster::{Cluster, LIMIT_UNITS, await_that, check};

const NODES: u8 = 3;
const ENTRY: usize = 0;
const OWNER: usize = 1;
const STANDBY: usize = 2;
/// A reply that comes long after the forward timeout, and before the connection is given up.
const LATE: Duration = Duration::from_millis(200);

/// To whom the owner's replies are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LateAt {
    /// The entry node.
    Entry,
    /// The standby, too.
    Standby,
    /// Both, and the standby cannot be asked.
    All,
}

/// Asks for a key that was used so often before, while replies are late; returns who decided, whether it was
/// admitted, and what the owner counts when all has come to rest.
fn ask_while_replies_are_late(
    late_at: LateAt,
    fallback: Fallback,
    used_before: u64,
) -> (DecidedBy, bool, u64) {
    let run = Simulation::run(9, async move |simulation| {
        let network = simulation.network();
        let timeouts = Timeouts::default();
        let cluster = Cluster::start_with(simulation, NODES, timeouts, fallback).await;
        let key = key_between(&cluster).await;
        let (entry, owner) = (&cluster.nodes[ENTRY], &cluster.nodes[OWNER]);
        for _ in 0..used_before {
            assert!(check(owner, &key).await.is_allowed());
        }
        // The standby has it all by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (here, there) = (cluster.address(ENTRY), cluster.address(STANDBY));
        let slow = LinkConditions {
            delay: LATE,
            ..LinkConditions::default()
        };
        network.set_link(cluster.address(OWNER), here, slow);
        if late_at != LateAt::Entry {
            network.set_link(cluster.address(OWNER), there, slow);
        }
        if late_at == LateAt::All {
            network.block_both(here, there);
        }

        let decided = owner.report().decided_for_peers;
        let given_back = owner.report().given_back;
        let decision = check(entry, &key).await;
        network.heal_all();
        await_that("the owner decides", || {
            owner.report().decided_for_peers > decided
        })
        .await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        let [limit] = &*decision.limits else {
            panic!("{decision:?}")
        };
        let given_back = owner.report().given_back - given_back;
        let has_charged = used_before < LIMIT_UNITS && limit.decided_by != DecidedBy::Owner;
        assert_eq!(given_back, u64::from(has_charged), "given back once");
        let used = cluster.counter(OWNER, &key).await.verdict.used;
        (limit.decided_by, decision.is_allowed(), used)
    });
    run.unwrap().output
}

/// A key whose standby is not the entry node.
async fn key_between(cluster: &Cluster) -> String {
    let of = |node: usize| &cluster.nodes[node].config().node;
    for number in 0.. {
        let key = format!("k{number}");
        let counter = cluster.counter(OWNER, &key).await;
        if counter.owner == *of(OWNER) && counter.standby.as_ref() == Some(of(STANDBY)) {
            return key;
        }
    }
    unreachable!("a sixth of all keys is so")
}

#[test]
fn what_the_standby_hears_of_the_owner_is_not_given_back_when_it_comes_late() {
    let said = ask_while_replies_are_late(LateAt::Entry, Fallback::Deny, 3);
    assert_eq!(said, (DecidedBy::Owner, true, 4));
}

#[test]
fn a_late_charge_of_a_check_that_the_standby_admitted_goes_back_and_that_one_counts() {
    let said = ask_while_replies_are_late(LateAt::Standby, Fallback::Deny, 3);
    assert_eq!(said, (DecidedBy::Standby, true, 4));
}

#[test]
fn a_late_charge_of_a_refused_check_goes_back() {
    let said = ask_while_replies_are_late(LateAt::All, Fallback::Deny, 3);
    assert_eq!(said, (DecidedBy::Fallback, false, 3));
}

#[test]
fn what_was_admitted_without_the_owner_counts_there_once() {
    for fallback in [Fallback::Allow, Fallback::LocalFull] {
        let said = ask_while_replies_are_late(LateAt::All, fallback, 3);
        assert_eq!(said, (DecidedBy::Fallback, true, 4), "{fallback:?}");
    }
}

#[test]
fn a_late_refusal_gives_nothing_back() {
    let said = ask_while_replies_are_late(LateAt::Standby, Fallback::LocalFull, LIMIT_UNITS);
    assert_eq!(said, (DecidedBy::Standby, false, LIMIT_UNITS));
}
