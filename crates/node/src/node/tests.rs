//! Whole nodes, over real sockets: forwarding, all-or-nothing across owners, fallback.

mod act;
pub(crate) mod cluster;
mod survival;

use tollgate_limit::{DecidedBy, Fallback, Outcome, Reason};

use self::cluster::{Cluster, await_that, check, limit};

#[tokio::test]
async fn a_key_is_decided_by_its_owner_wherever_it_is_asked() {
    let cluster = Cluster::start(3, vec![limit("user", 5, Fallback::LocalFull)]).await;
    for owner in 0..3 {
        let key = cluster.owned_by(owner, "user", 0);
        let mut admitted = 0;
        for ask in 0..9 {
            let decision = cluster.check(ask % 3, &[("user", &key)]).await;
            let [limit] = &*decision.limits else {
                panic!("{decision:?}")
            };
            if limit.decided_by == DecidedBy::Cached {
                assert!(!decision.is_allowed(), "only refusals are known");
                assert_eq!(limit.node, cluster.nodes[ask % 3].config().node);
            } else {
                assert_eq!(limit.decided_by, DecidedBy::Owner);
                assert_eq!(limit.node, cluster.nodes[owner].config().node);
            }
            assert!(!limit.degraded);
            admitted += u32::from(decision.is_allowed());
        }
        assert_eq!(admitted, 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_from_all_nodes_at_once_admits_just_the_limit() {
    let cluster = Cluster::start(3, vec![limit("user", 500, Fallback::LocalFull)]).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..6 {
        let node = cluster.nodes[client % 3].clone();
        clients.spawn(async move {
            let mut admitted = 0;
            for _ in 0..200 {
                admitted += u32::from(check(&node, &[("user", "one")]).await.is_allowed());
            }
            admitted
        });
    }
    assert_eq!(clients.join_all().await.into_iter().sum::<u32>(), 500);
}

#[tokio::test]
async fn a_refusal_gives_back_what_another_owner_charged() {
    let limits = vec![
        limit("user", 5, Fallback::LocalFull),
        limit("tenant", 2, Fallback::LocalFull),
        limit("route", 9, Fallback::LocalFull),
    ];
    let cluster = Cluster::start(3, limits).await;
    // The tenant's owner refuses; the route is the entry node's own, the user a third node's.
    let user = cluster.owned_by(1, "user", 0);
    let tenant = cluster.owned_by(2, "tenant", 0);
    let route = cluster.owned_by(0, "route", 0);
    let keys: &[(&str, &str)] = &[("user", &user), ("tenant", &tenant), ("route", &route)];
    for _ in 0..2 {
        assert!(cluster.check(0, keys).await.is_allowed());
    }
    for time in 0..4 {
        let refused = cluster.check(0, keys).await;
        let said = refused.limits.iter();
        let said: Vec<_> = said
            .map(|said| (said.limit.name(), said.verdict.is_allowed()))
            .collect();
        match time {
            0 => assert_eq!(said, [("user", true), ("tenant", false), ("route", true)]),
            // The tenant's refusal is known: the user's owner is not asked.
            _ => assert_eq!(said, [("tenant", false), ("route", true)]),
        }
    }
    await_that("the charges are back", || {
        cluster.used(1, "user", &user) == 2 && cluster.used(0, "route", &route) == 2
    })
    .await;
    assert_eq!(cluster.used(2, "tenant", &tenant), 2);
}

#[tokio::test]
async fn an_own_limit_that_refuses_is_told_without_asking_anyone() {
    let limits = vec![
        limit("user", 5, Fallback::LocalFull),
        limit("tenant", 1, Fallback::LocalFull),
    ];
    let cluster = Cluster::start(2, limits).await;
    let user = cluster.owned_by(1, "user", 0);
    let tenant = cluster.owned_by(0, "tenant", 0);
    let keys: &[(&str, &str)] = &[("user", &user), ("tenant", &tenant)];
    assert!(cluster.check(0, keys).await.is_allowed());
    let refused = cluster.check(0, keys).await;
    let names: Vec<_> = refused
        .limits
        .iter()
        .map(|limit| limit.limit.name())
        .collect();
    assert_eq!(names, ["tenant"]);
    assert_eq!(cluster.used(1, "user", &user), 1);
}

/// Nodes end without a word to the others.
async fn lose(lost: Vec<std::sync::Arc<crate::Node>>) {
    for node in &lost {
        node.transport
            .close(crate::transport::close::CloseCode::Replaced)
            .await;
    }
    drop(lost);
}

#[tokio::test]
async fn a_lost_owner_is_replaced_by_its_standby_which_has_its_counts() {
    let mut cluster = Cluster::start(3, vec![limit("user", 9, Fallback::Deny)]).await;
    let here = cluster.kept_by((2, 0), "user", 0);
    let there = cluster.kept_by((2, 1), "user", 0);
    for key in [&here, &there] {
        for _ in 0..4 {
            assert!(cluster.check(0, &[("user", key)]).await.is_allowed());
        }
    }
    await_that("the standbys have the counts", || {
        cluster.used(0, "user", &here) == 4 && cluster.used(1, "user", &there) == 4
    })
    .await;
    lose(cluster.nodes.split_off(2)).await;
    await_that("the breakers open", || {
        cluster.nodes.iter().all(|node| {
            let routes = node.routes.load();
            routes.links().filter(|link| link.is_usable()).count() == 1
        })
    })
    .await;
    for (key, standby) in [(&here, 0), (&there, 1)] {
        let mut admitted = 4;
        for _ in 0..9 {
            let decision = cluster.check(0, &[("user", key)]).await;
            let [limit] = &*decision.limits else {
                panic!("{decision:?}")
            };
            assert_eq!(limit.decided_by, DecidedBy::Standby, "{key}");
            assert_eq!(limit.node, cluster.nodes[standby].config().node);
            assert!(!limit.degraded, "its copy is complete");
            admitted += u32::from(decision.is_allowed());
        }
        assert_eq!(admitted, 9, "{key}");
    }
}

#[tokio::test]
async fn a_lost_owner_and_standby_are_replaced_by_the_fallback_at_once() {
    let limits = vec![
        limit("full", 4, Fallback::LocalFull),
        limit("fair", 6, Fallback::LocalFair),
        limit("allow", 1, Fallback::Allow),
        limit("deny", 9, Fallback::Deny),
    ];
    let mut cluster = Cluster::start(3, limits).await;
    let keys: Vec<_> = ["full", "fair", "allow", "deny"]
        .map(|name| (name, cluster.kept_by((1, 2), name, 0)))
        .into();
    // Three of four are used, and this node was told.
    for _ in 0..3 {
        assert!(cluster.check(0, &[("full", &keys[0].1)]).await.is_allowed());
    }
    // A fair share knows nothing of what the others used.
    for _ in 0..3 {
        assert!(cluster.check(0, &[("fair", &keys[1].1)]).await.is_allowed());
    }
    let fresh = cluster.kept_by((1, 2), "full", 1000);
    let lost = cluster.nodes.split_off(1);
    lose(lost).await;
    await_that("the breaker opens", || {
        cluster.nodes[0]
            .routes
            .load()
            .links()
            .all(|link| !link.is_usable())
    })
    .await;
    let mut admitted = Vec::new();
    for (name, key) in &keys {
        let mut count = 0;
        for _ in 0..6 {
            let decision = cluster.check(0, &[(name, key)]).await;
            let [limit] = &*decision.limits else {
                panic!("{decision:?}")
            };
            assert_eq!(
                (limit.decided_by, limit.degraded),
                (DecidedBy::Fallback, true)
            );
            if *name == "deny" {
                assert_eq!(limit.verdict.outcome, Outcome::Refuse(Reason::Undecided));
            }
            count += u32::from(decision.is_allowed());
        }
        admitted.push((*name, count));
    }
    assert_eq!(
        admitted,
        [("full", 1), ("fair", 2), ("allow", 6), ("deny", 0)]
    );
    // A fallback that denies leaves the local shares beside it untouched (P4).
    let deny = &keys[3].1;
    for _ in 0..4 {
        let both = cluster.check(0, &[("full", &fresh), ("deny", deny)]).await;
        assert!(!both.is_allowed());
    }
    for _ in 0..4 {
        assert!(cluster.check(0, &[("full", &fresh)]).await.is_allowed());
    }
}
