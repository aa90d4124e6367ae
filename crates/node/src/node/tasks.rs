//! The tasks of the data plane. Each holds the node weakly or ends with what feeds it, so that a node
//! that is dropped stops.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{sync::mpsc, time::MissedTickBehavior};
use tollgate_cluster::HEARTBEAT;
use tollgate_limit::Nanos;
use tracing::{debug, warn};

use super::Node;
use crate::{
    clock::Clock as _,
    errands, replica,
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

/// How long pauses are counted before the log names them again at level warn.
const PAUSES_QUIET: Nanos = Nanos::from_millis(60_000);

/// Starts them all.
pub(super) fn start(node: &Arc<Node>, router: Router, peers: mpsc::Receiver<NodeConnection>) {
    tokio::spawn(router.run(node.control.changes()));
    tokio::spawn(accept_peers(Arc::clone(&node.owner), peers));
    tokio::spawn(errands::run(Arc::downgrade(node)));
    tokio::spawn(heartbeat(Arc::downgrade(node)));
    tokio::spawn(sweep(Arc::downgrade(node)));
    tokio::spawn(replica::pump(Arc::downgrade(node)));
    tokio::spawn(replica::motion_timer(Arc::downgrade(node)));
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
    let mut untold = UntoldPauses::default();
    loop {
        ticks.tick().await;
        let Some(node) = node.upgrade() else { return };
        if let Some(pause) = node.owner.pause.beat(node.clock.now()) {
            node.owner.counters.pauses.raise();
            untold.tell(node.clock.now(), pause.length);
        }
    }
}

/// Pauses since the log last named any at level warn: one line each [`PAUSES_QUIET`].
#[derive(Debug, Default)]
struct UntoldPauses {
    told: Option<Nanos>,
    number: u64,
    longest: Nanos,
}

impl UntoldPauses {
    fn tell(&mut self, now: Nanos, length: Nanos) {
        let length_ms = length.ceil_millis();
        match self.add(now, length) {
            Some((pauses, longest)) => warn!(
                pauses,
                longest_ms = longest.ceil_millis(),
                "this process was paused: what waited is answered as too late"
            ),
            None => debug!(length_ms, "this process was paused again"),
        }
    }

    /// The number of pauses and the longest, if they are due.
    fn add(&mut self, now: Nanos, length: Nanos) -> Option<(u64, Nanos)> {
        self.number = self.number.saturating_add(1);
        self.longest = self.longest.max(length);
        if self
            .told
            .is_some_and(|told| now.saturating_sub(told) < PAUSES_QUIET)
        {
            return None;
        }
        self.told = Some(now);
        let (number, longest) = (self.number, self.longest);
        (self.number, self.longest) = (0, Nanos::default());
        Some((number, longest))
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
            node.known.denials.sweep(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::UntoldPauses;

    #[test]
    fn pauses_are_told_at_once_and_then_together_once_a_minute() {
        let at = |second: u64| Nanos::from_millis(second * 1_000);
        let long = Nanos::from_millis;
        let mut untold = UntoldPauses::default();
        assert_eq!(untold.add(at(1), long(60)), Some((1, long(60))));
        assert_eq!(untold.add(at(2), long(400)), None);
        assert_eq!(untold.add(at(60), long(70)), None);
        assert_eq!(untold.add(at(61), long(80)), Some((3, long(400))));
        assert_eq!(untold.add(at(130), long(90)), Some((1, long(90))));
    }
}
