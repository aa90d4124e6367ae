//! Changes of counters whose owner is lost: what the next owner is told of them, and what not.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::sleep};
use tollgate_limit::{Action, AlgorithmSpec};
use tollgate_node::Timeouts;
use tollgate_sim::Simulation;

use crate::{
    amends::{Cut, ENTRY, MOST_OUTSTANDING, NODES, OTHER, OWNER, run, settle_cut},
    asking::{Done, HOUR, act, ask, limit, receipt, settling, window},
    cluster::{Cluster, await_that},
};

async fn give_up_the_owner(simulation: &Simulation, cluster: &Cluster) {
    simulation.network().unplug(cluster.address(OWNER));
    let left = [&cluster.nodes[ENTRY], &cluster.nodes[OTHER]];
    await_that("the owner is given up", || {
        left.iter().all(|node| node.report().members.len() == 2)
    })
    .await;
    sleep(Duration::from_secs(2)).await;
}

/// The next owner has what the lost one charged, and gives back of it.
#[test]
fn an_old_receipt_is_good_at_the_next_owner() {
    let burst = None;
    for algorithm in [
        window(HOUR),
        AlgorithmSpec::FixedWindow { window: HOUR },
        AlgorithmSpec::TokenBucket {
            window: HOUR,
            burst,
        },
    ] {
        let limits = [limit("user", 40, algorithm.clone())];
        run(60, &limits, async |simulation, cluster| {
            let entry = &cluster.nodes[ENTRY];
            let user = cluster.value_at(OWNER, "user", 0);
            let values = &[("user", &*user)];
            let bought = receipt(entry, &ask(entry, values, 10).await);
            let reserved = receipt(entry, &ask(entry, values, 10).await);
            let waits = receipt(entry, &ask(entry, values, 10).await);
            // The standby has it all by then.
            sleep(Duration::from_secs(1)).await;
            simulation.network().unplug(cluster.address(OWNER));
            settle_cut(entry, &waits, 1).await;
            give_up_the_owner(simulation, cluster).await;
            let is_bucket = matches!(algorithm, AlgorithmSpec::TokenBucket { .. });
            // Of a bucket some has flowed off meanwhile.
            let is_about = |used: u64, expected: u64| {
                assert!(
                    used == expected || (is_bucket && used + 1 == expected),
                    "{used}"
                );
            };
            is_about(cluster.used(ENTRY, "user", &user).await, 21);
            assert!(!ask(entry, values, 21).await.is_allowed());
            let now_at = |done: Done| done.unwrap()[0].now.unwrap().used;
            is_about(now_at(act(entry, &bought, Action::Refund).await), 11);
            let other = &cluster.nodes[OTHER];
            is_about(now_at(act(other, &reserved, settling(1)).await), 2);
            // But what the next owner charged is its own to give back.
            let own = receipt(entry, &ask(entry, values, 4).await);
            let used = cluster.used(ENTRY, "user", &user).await;
            let left = now_at(act(&cluster.nodes[OTHER], &own, Action::Refund).await);
            assert_eq!(left + 4, used, "{algorithm:?}");
        });
    }
}

#[test]
fn as_many_changes_as_there_is_room_for_outlive_their_owner() {
    let many = limit("user", 100_000, window(HOUR));
    let longest = Duration::from_secs(7_200);
    let run = Simulation::run_for(61, longest, async |simulation| {
        let timeouts = Timeouts::default();
        let cluster = Cluster::start_limits(simulation, NODES, timeouts, &[many]).await;
        let entry = &cluster.nodes[ENTRY];
        let user = cluster.value_at(OWNER, "user", 0);
        let values = &[("user", &*user)];
        let mut receipts = Vec::new();
        for _ in 0..MOST_OUTSTANDING + 1_024 {
            receipts.push(receipt(entry, &ask(entry, values, 1).await));
        }
        // The standby has it all by then.
        sleep(Duration::from_secs(1)).await;
        Cut::Both.strike(simulation, &cluster);
        let mut done = 0;
        for batch in receipts.chunks(256) {
            let mut acting = JoinSet::new();
            for one in batch {
                let (entry, one) = (Arc::clone(entry), one.clone());
                acting.spawn(async move { act(&entry, &one, settling(2)).await.is_ok() });
            }
            let ends = acting.join_all().await;
            done += ends.into_iter().map(u64::from).sum::<u64>();
        }
        give_up_the_owner(simulation, &cluster).await;
        sleep(Duration::from_secs(20)).await;
        assert!(done > MOST_OUTSTANDING / 2, "{done}");
        // As many as were charged twice over, once each: what the lost owner had and what it was to get.
        let charged = MOST_OUTSTANDING + 1_024;
        assert_eq!(cluster.used(ENTRY, "user", &user).await, charged + done);
    });
    run.unwrap();
}
