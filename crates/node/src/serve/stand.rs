//! How this node stands to the slots of a check, and waiting for slots that are on their way.

use std::sync::Arc;

use tokio::time::timeout_at;
use tollgate_cluster::{HOLD, Hold};
use tollgate_limit::{
    Ask, DecidedBy, MIN_REPLICATED_WINDOW, Mode, Nanos, SlotId, SlotSet, Verdict,
};
use tollgate_wire::peer::{Reply, Said};

use super::Owner;
use crate::{clock::Clock as _, link::Link, routes::Routes};

impl Owner {
    /// How this node holds the slots of these asks together. One atomic read for each, if it does.
    pub(crate) fn hold(&self, asks: &[Ask]) -> Hold {
        if asks.iter().all(|ask| self.states.holds(ask.key.slot())) {
            return Hold::Yes;
        }
        Hold::of_all(asks.iter().map(|ask| self.states.hold(ask.key.slot())))
    }

    /// Waits until none of these slots is awaited any more, for [`HOLD`] at most: those that still are are
    /// overdue then.
    pub(crate) async fn await_slots(&self, asks: &[Ask]) {
        let until = self.clock.now().saturating_add(HOLD);
        let until = self.clock.instant(until);
        loop {
            let moved = self.mover.moved();
            if self.hold(asks) != Hold::Awaiting {
                return;
            }
            if timeout_at(until, moved).await.is_err() {
                break;
            }
        }
        let mut overdue = SlotSet::new();
        for slot in asks.iter().map(|ask| ask.key.slot()) {
            self.states.handle_overdue(slot);
            if self.states.hold(slot) == Hold::Overdue {
                overdue.insert(slot);
            }
        }
        // Where it was given away before.
        self.store.open(&overdue);
    }

    /// Waits until slots have moved, for [`HOLD`] at most: these were closed and nothing says yet why.
    pub(crate) async fn await_moved(&self) {
        let until = self.clock.now().saturating_add(HOLD);
        let moved = timeout_at(self.clock.instant(until), self.mover.moved());
        drop(moved.await);
    }
}

/// Who changes and tells the counters of a slot.
pub(crate) enum Keeper<'a> {
    /// This node.
    Here,
    /// A peer.
    Peer(&'a Arc<Link>),
    /// Nobody that is known, or this node in a moment.
    Nobody,
}

impl Owner {
    /// Who keeps the counters of a slot.
    pub(crate) fn keeper<'a>(&self, routes: &'a Routes, slot: SlotId) -> Keeper<'a> {
        let link = match self.states.hold(slot) {
            Hold::Yes | Hold::Overdue => return Keeper::Here,
            Hold::Awaiting => None,
            Hold::Given(to) => routes.link_given(slot, &to),
            Hold::No => {
                let owner = routes.owner(slot);
                owner.and_then(|owner| routes.link(owner))
            }
        };
        link.map_or(Keeper::Nobody, Keeper::Peer)
    }
}

/// What a node does that does not hold the slots.
impl Owner {
    /// Decides on this node's copy: as standby, or without anybody else. What it counts is owed to the owner.
    pub(crate) fn decide_on_copy(
        &self,
        now: Nanos,
        asks: &[Ask],
        mode: Mode,
        out: &mut impl Extend<Verdict>,
    ) {
        self.store.decide_all(now, asks, mode, out);
        self.counters.stood_by.raise();
        if mode == Mode::Consume {
            self.mover.owe(asks.iter().map(|ask| ask.key.slot()));
        }
    }

    /// Whether this node's copy of these counters is complete since the present boot of their owner. Of short
    /// windows there is none.
    pub(crate) fn has_copy(&self, routes: &Routes, asks: &[Ask]) -> bool {
        asks.iter().all(|ask| {
            if ask.rule.window().span() < MIN_REPLICATED_WINDOW {
                return false;
            }
            let slot = ask.key.slot();
            let owner = routes.owner(slot);
            let boot = owner.and_then(|owner| routes.view.boot_of(owner));
            boot.is_some_and(|boot| self.states.has_copy(slot, boot))
        })
    }

    /// That this node decided.
    pub(crate) fn said(&self, by: DecidedBy, degraded: bool) -> Said {
        Said {
            node: self.node.as_str().to_owned(),
            boot: self.boot,
            by,
            degraded,
        }
    }

    /// That this node does not decide.
    pub(super) fn not_owner(&self) -> Reply {
        Reply::NotOwner {
            placement: self.view.load().placement.fingerprint(),
        }
    }
}
