//! The pump: sends what has changed to those who follow, and reports what was counted without an owner.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{MissedTickBehavior, sleep_until};
use tollgate_limit::{Nanos, Series};
use tollgate_wire::identity::Phase;

use crate::{clock::Clock as _, node::Node, serve::Owner, view::View};

/// How often the pump looks for what is due.
const PUMP: Duration = Duration::from_millis(5);
/// Counters that are taken at once.
const AT_ONCE: usize = 1_024;
/// Takes in one turn: what is left waits for the next.
const TAKES: usize = 16;
/// How often the motion is told what is still to be reported, and how long shares rest at least.
const OWED_INTERVAL: Nanos = Nanos::from_millis(1_000);
/// How long the motion's timer sleeps at most.
const LONGEST_WAIT: Nanos = Nanos::from_millis(1_000);

/// Runs until the node is gone.
pub(crate) async fn run(node: Weak<Node>) {
    let mut ticks = tokio::time::interval(PUMP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut series = Vec::new();
    let mut next_owed = Nanos::ZERO;
    loop {
        ticks.tick().await;
        let Some(node) = node.upgrade() else { return };
        node.owner.pump(&mut series);
        let now = node.clock.now();
        node.report_owed(now);
        if now >= next_owed {
            next_owed = now.saturating_add(OWED_INTERVAL);
            node.owner.mover.rest_shares();
            node.owner.mover.tell_owed(&node.owner.store, now);
        }
    }
}

/// Tells the motion of the time when it wants to be told, until the node is gone.
pub(crate) async fn motion_timer(node: Weak<Node>) {
    loop {
        let Some(strong) = node.upgrade() else { return };
        strong.tell_warm();
        let owner = Arc::clone(&strong.owner);
        drop(strong);
        // Looks up now and then whether the node is still there.
        let longest = owner.clock.now().saturating_add(LONGEST_WAIT);
        let due = owner.mover.poll_timeout();
        let wake = due.map_or(longest, |due| due.min(longest));
        tokio::select! {
            biased;
            () = sleep_until(owner.clock.instant(wake)) => {
                let now = owner.clock.now();
                if due.is_some_and(|due| due <= now) {
                    owner.mover.handle(&owner.store, now, |motion| motion.handle_timeout(now));
                }
            }
            () = owner.mover.timer_changed() => {}
        }
    }
}

impl Node {
    /// Tells control, while joining, that the counts of the slots to come are here.
    fn tell_warm(&self) {
        let view = self.control.view();
        if view.phase() == Phase::Joining && self.owner.mover.is_warm_for(&view) {
            self.control.warm(&view);
        }
    }
}

impl Owner {
    /// Takes a new view.
    pub(crate) fn handle_view(&self, view: &View) {
        let now = self.clock.now();
        self.mover.handle_view(&self.store, now, view);
    }

    fn pump(&self, series: &mut Vec<Series>) {
        for _ in 0..TAKES {
            let now = self.clock.now();
            series.clear();
            let has_more = self.mover.send_due(&self.store, now, (AT_ONCE, series));
            if !series.is_empty() {
                let slots = series.iter().map(|series| series.key.slot());
                // Counted here, since it was due, but decided by another: it must get to know.
                self.mover
                    .owe(slots.filter(|slot| !self.states.holds(*slot)));
            }
            if !has_more {
                return;
            }
        }
    }
}
