//! A member that was cut off until the others gave it up, and comes back as the same process: what it
//! remembers of the time before answers nothing of the time after.

use tollgate_limit::DecidedBy;
use tollgate_node::Timeouts;
use tollgate_sim::Simulation;

use crate::cluster::{Cluster, await_that, check};

const NODES: u8 = 3;
const ENTRY: usize = 0;
const OWNER: usize = 1;
/// Checks before and after: the numbers of the later ones have all been used before.
const CHECKS: u64 = 200;

#[test]
fn fresh_checks_are_decided_afresh_by_an_owner_that_came_back() {
    let run = Simulation::run(8, async |simulation| {
        let network = simulation.network();
        let cluster = Cluster::start(simulation, NODES, Timeouts::default()).await;
        let hot = cluster.key_of(OWNER).await;
        let entry = &cluster.nodes[ENTRY];
        for asked in 1..=CHECKS {
            let decision = check(entry, &hot).await;
            assert_eq!(decision.limits[0].verdict.used, asked);
        }

        for other in [ENTRY, 2] {
            network.block_both(cluster.address(OWNER), cluster.address(other));
        }
        await_that("the others give it up", || {
            [ENTRY, 2]
                .iter()
                .all(|node| cluster.nodes[*node].report().members.len() == 2)
        })
        .await;
        network.heal_all();
        cluster.settle().await;

        let owner = cluster.nodes[OWNER].config().node.clone();
        let (mut fresh, mut number) = (0, 1_000_000);
        while fresh < CHECKS {
            let key = format!("k{number}");
            number += 1;
            if cluster.counter(OWNER, &key).await.owner != owner {
                continue;
            }
            let decision = check(entry, &key).await;
            let [limit] = &*decision.limits else {
                panic!("{decision:?}")
            };
            assert_eq!(limit.decided_by, DecidedBy::Owner, "{decision:?}");
            assert_eq!(limit.verdict.used, 1, "check {fresh} of {key}");
            assert_eq!(cluster.counter(OWNER, &key).await.verdict.used, 1);
            fresh += 1;
        }
    });
    run.unwrap();
}
