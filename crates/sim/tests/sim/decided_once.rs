//! Decided once: a check whose answer is lost is sent again, and counted once.

use std::time::Duration;

use tollgate_limit::DecidedBy;
use tollgate_node::Timeouts;
use tollgate_sim::Simulation;

use crate::cluster::{Cluster, await_that, check};

const NODES: u8 = 3;
const ENTRY: usize = 0;
const OWNER: usize = 1;

/// A check that outlives a connection: it waits until nothing was heard for the idle timeout (3 s), and
/// is then sent again on the next connection.
const PATIENT: Timeouts = Timeouts {
    check_deadline: Duration::from_secs(20),
    forward: Duration::from_secs(15),
    standby: Duration::from_secs(15),
    join: Duration::from_secs(3),
};

#[test]
fn a_check_whose_reply_is_lost_is_sent_again_and_decided_once() {
    let run = Simulation::run(6, async |simulation| {
        let network = simulation.network();
        let cluster = Cluster::start(simulation, NODES, PATIENT).await;
        let key = cluster.key_of(OWNER).await;
        let owner = &cluster.nodes[OWNER];
        let before = owner.report();

        network.block(cluster.address(OWNER), cluster.address(ENTRY));
        let asked = tokio::spawn({
            let (entry, key) = (cluster.nodes[ENTRY].clone(), key.clone());
            async move { check(&entry, &key).await }
        });
        await_that("the owner decides", || {
            owner.report().decided_for_peers > before.decided_for_peers
        })
        .await;
        await_that("the entry node gives the connection up", || {
            let peers = cluster.nodes[ENTRY].report().peers;
            peers
                .iter()
                .any(|peer| peer.node == owner.config().node && !peer.is_usable)
        })
        .await;
        assert!(!asked.is_finished(), "the reply was not lost");
        network.heal_all();

        let decision = asked.await.unwrap();
        let [limit] = &*decision.limits else {
            panic!("{decision:?}")
        };
        assert!(decision.is_allowed());
        assert_eq!(
            (limit.decided_by, limit.degraded),
            (DecidedBy::Owner, false)
        );
        let after = owner.report();
        assert_eq!(after.repeated, before.repeated + 1, "it was sent again");
        assert_eq!(after.decided_for_peers, before.decided_for_peers + 1);
        assert_eq!(cluster.counter(OWNER, &key).await.verdict.used, 1);
    });
    run.unwrap();
}
