//! The tasks of the data plane. Each holds the node weakly or ends with what feeds it, so that a node
//! that is dropped stops.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{sync::mpsc, time::MissedTickBehavior};
use tollgate_cluster::HEARTBEAT;
use tracing::warn;

use super::Node;
use crate::{
    clock::Clock as _,
    routes::Router,
    serve::{Owner, serve_peer},
    transport::NodeConnection,
};

/// How often expired counters are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);
/// Shards that are swept at once: a round takes ten seconds.
const SWEEP_SHARDS: usize = 11;
/// Sweeps between two looks at what is not in shards.
const SWEEPS_A_ROUND: u32 = 100;

/// Starts them all.
pub(super) fn start(node: &Arc<Node>, router: Router, peers: mpsc::Receiver<NodeConnection>) {
    tokio::spawn(router.run(node.control.changes()));
    tokio::spawn(accept_peers(Arc::clone(&node.owner), peers));
    tokio::spawn(heartbeat(Arc::downgrade(node)));
    tokio::spawn(sweep(Arc::downgrade(node)));
}

async fn accept_peers(owner: Arc<Owner>, mut peers: mpsc::Receiver<NodeConnection>) {
    while let Some(NodeConnection {
        connection,
        node: peer,
    }) = peers.recv().await
    {
        tokio::spawn(serve_peer(Arc::clone(&owner), connection, peer));
    }
}

/// Notices that this process did not run for a while.
async fn heartbeat(node: Weak<Node>) {
    let mut ticks = tokio::time::interval(HEARTBEAT.into());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(node) = node.upgrade() else { return };
        if let Some(pause) = node.owner.pause.beat(node.clock.now()) {
            node.owner.counters.pauses.raise();
            let length_ms = pause.length.ceil_millis();
            warn!(
                length_ms,
                "this process was paused: what waited is answered as too late"
            );
        }
    }
}

async fn sweep(node: Weak<Node>) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u32.. {
        ticks.tick().await;
        let Some(node) = node.upgrade() else { return };
        let now = node.clock.now();
        node.owner.store.sweep(now, SWEEP_SHARDS);
        node.shares.sweep(now, SWEEP_SHARDS);
        if round % SWEEPS_A_ROUND == 0 {
            node.owner.boots.sweep(now);
            node.shares.sweep_answers(now);
        }
    }
}
