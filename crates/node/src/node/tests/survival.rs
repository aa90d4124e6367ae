//! What survives: counts over joins and leaves, switches, refusals that are known.

use std::time::Duration;

use tollgate_cluster::Switch;
use tollgate_limit::{DecidedBy, Fallback};

use super::cluster::{Cluster, await_that, limit};
use crate::clock::Clock as _;

#[tokio::test]
async fn a_join_and_a_leave_keep_all_counts() {
    let mut cluster = Cluster::start(2, vec![limit("user", 10, Fallback::Deny)]).await;
    let keys: Vec<String> = (0..40).map(|number| format!("v{number}")).collect();
    for key in &keys {
        for _ in 0..3 {
            assert!(cluster.check(0, &[("user", key)]).await.is_allowed());
        }
    }
    cluster.join("n3");
    cluster.settle(3).await;
    let moved = keys.iter().filter(|key| cluster.is_at(2, "user", key));
    assert!(moved.count() > 5, "some are the third node's now");
    for key in &keys {
        for node in 0..3 {
            let decision = cluster.check(node, &[("user", key)]).await;
            assert!(decision.is_allowed() && !decision.is_degraded(), "{key}");
        }
    }
    let first = cluster.nodes.remove(0);
    first.leave().await;
    drop(first);
    cluster.settle(2).await;
    for key in &keys {
        let mut admitted = 0;
        for ask in 0..8 {
            let decision = cluster.check(ask % 2, &[("user", key)]).await;
            admitted += u32::from(decision.is_allowed());
            assert!(!decision.is_degraded(), "{key}");
        }
        assert_eq!(admitted, 4, "{key}: six were used before");
    }
}

#[tokio::test]
async fn what_the_shares_admitted_is_reported_when_the_owner_is_back() {
    let cluster = Cluster::start(2, vec![limit("user", 1_000, Fallback::Allow)]).await;
    let user = cluster.owned_by(1, "user", 0);
    let entry = &cluster.nodes[0];
    assert!(cluster.check(0, &[("user", &user)]).await.is_allowed());
    // As if this node had not run: what it decides is by fallback.
    let now = entry.clock().now();
    let later = now.saturating_add(tollgate_limit::Nanos::from_millis(10_000));
    let own = cluster.owned_by(0, "user", 0);
    entry.owner.pause.beat(later);
    for _ in 0..5 {
        let decision = cluster.check(0, &[("user", &own)]).await;
        assert_eq!(decision.limits[0].decided_by, DecidedBy::Fallback);
    }
    assert_eq!(cluster.used(0, "user", &own), 0);
    await_that("the holder takes in what its share counted", || {
        cluster.used(0, "user", &own) == 5
    })
    .await;
}

#[tokio::test]
async fn switches_hold_on_every_node_within_a_second() {
    let cluster = Cluster::start(3, vec![limit("user", 1, Fallback::Deny)]).await;
    let user = cluster.owned_by(1, "user", 0);
    assert!(cluster.check(0, &[("user", &user)]).await.is_allowed());
    cluster.nodes[2].set_switch(Switch::Kill, true);
    let all = |switch, on| {
        cluster
            .nodes
            .iter()
            .all(|node| node.is_switched(switch) == on)
    };
    await_that("the kill switch is on everywhere", || {
        all(Switch::Kill, true)
    })
    .await;
    for node in 0..3 {
        for _ in 0..3 {
            let decision = cluster.check(node, &[("user", &user)]).await;
            assert!(decision.is_allowed());
            assert_eq!(decision.limits[0].decided_by, DecidedBy::Switch);
            assert_eq!(decision.limits[0].charged.units(), 0);
        }
    }
    assert_eq!(cluster.used(1, "user", &user), 1, "nothing is counted");
    cluster.nodes[0].set_switch(Switch::Kill, false);
    cluster.nodes[1].set_switch(Switch::Shadow, true);
    await_that("the switches are changed everywhere", || {
        all(Switch::Kill, false) && all(Switch::Shadow, true)
    })
    .await;
    for node in 0..3 {
        let decision = cluster.check(node, &[("user", &user)]).await;
        assert!(decision.is_allowed(), "nothing is denied");
        assert!(!decision.limits[0].verdict.is_allowed(), "but it is told");
    }
    assert_eq!(cluster.used(1, "user", &user), 1);
}

#[tokio::test]
async fn a_flood_of_what_is_refused_does_not_reach_the_owner() {
    let cluster = Cluster::start(2, vec![limit("user", 2, Fallback::Deny)]).await;
    let user = cluster.owned_by(1, "user", 0);
    let before = cluster.nodes[1].report().decided_for_peers;
    let started = cluster.nodes[0].clock().now();
    let mut asked = 0_u64;
    let two_seconds = tollgate_limit::Nanos::from_millis(2_200);
    while cluster.nodes[0].clock().now().saturating_sub(started) < two_seconds {
        let values = [("user", &*user)];
        let together = (0..20).map(|_| cluster.check(0, &values));
        let decisions = futures_util::future::join_all(together).await;
        let admitted = decisions.iter().filter(|one| one.is_allowed()).count();
        assert!(admitted <= 2);
        asked += 20;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let reached = cluster.nodes[1].report().decided_for_peers - before;
    // The first twenty at once, and then a probe a second.
    assert!(asked > 1_000 && reached <= 20 + 3, "{reached} of {asked}");
}
