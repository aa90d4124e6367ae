//! This node's own life: joining, active, coming back, leaving.
//!
//! Invariant: a node that comes back is joining, and remembers nothing of who was down: what it believed
//! while it was cut off or asleep is worth less than what any member knows.

use std::{collections::BTreeSet, net::SocketAddr};

use tokio::sync::oneshot;
use tollgate_limit::Nanos;
use tollgate_wire::identity::{Identity, Phase};

use super::{Driver, library};
use crate::{
    gossip::{
        identity::{Gossiped, generation_after},
        timers::Timers,
        timing::{self, GOODBYE_PAUSE, GOODBYES},
    },
    transport::close::CloseCode,
};

/// Where this node is in its life, beside its phase.
#[derive(Debug)]
pub(super) enum Life {
    /// It takes part.
    Member,
    /// It is leaving, and still watches.
    Leaving,
    /// It says goodbye.
    Departing {
        /// Goodbyes to be said.
        left: u32,
        /// When to say the next.
        next: Nanos,
        /// Who waits for the end.
        done: Option<oneshot::Sender<()>>,
    },
    /// It is gone.
    Gone,
}

impl Life {
    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::Gone)
    }

    pub(super) const fn next_goodbye(&self) -> Option<Nanos> {
        match self {
            Self::Departing { next, .. } => Some(*next),
            Self::Member | Self::Leaving | Self::Gone => None,
        }
    }
}

impl Driver {
    /// Renews this node if the driver was not run for longer than the others wait for a suspect.
    pub(super) fn notice_sleep(&mut self, now: Nanos, deadline: Nanos) {
        let late = now.saturating_sub(deadline);
        if late > timing::suspicion(self.sized_for) {
            tracing::warn!(
                late_ms = late.ceil_millis(),
                "control did not run for a while"
            );
            self.renew(now, "slept");
            self.settle(now);
        }
    }

    /// Comes back under a new identity, knowing nobody but where to ask.
    pub(super) fn renew(&mut self, now: Nanos, why: &'static str) {
        let phase = match self.life {
            Life::Member => Phase::Joining,
            Life::Leaving => Phase::Leaving,
            Life::Departing { .. } | Life::Gone => return,
        };
        let own = self.membership.own();
        let generation = generation_after(own.generation, &self.clock);
        let renewed = Identity {
            generation,
            phase,
            ..own.clone()
        };
        tracing::warn!(node_id = %renewed.node, generation, why, "this node comes back under a new identity");
        let known = !self.known_addresses().is_empty();
        self.foca = library(renewed.clone(), &mut self.random);
        self.outbox = foca::AccumulatingRuntime::new();
        self.timers = Timers::default();
        self.sized_for = 1;
        self.joiner.restart(now, known);
        self.be(renewed);
    }

    /// Takes another phase, if it has another.
    pub(super) fn enter(&mut self, phase: Phase) {
        let own = self.membership.own();
        if own.phase == phase {
            return;
        }
        let generation = own.generation.saturating_add(1);
        let entered = Identity {
            generation,
            phase,
            ..own.clone()
        };
        tracing::info!(node_id = %entered.node, phase = phase.as_str(), "this node enters a phase");
        let gossiped = Gossiped(entered.clone());
        if let Err(error) = self.foca.change_identity(gossiped, &mut self.outbox) {
            tracing::warn!(%error, "the new phase was not told");
        }
        // The library forgets that it is connected when the identity changes.
        self.take_in(std::iter::empty(), true);
        self.be(entered);
    }

    pub(super) fn leave(&mut self, now: Nanos, done: oneshot::Sender<()>) {
        if matches!(self.life, Life::Member) {
            self.life = Life::Leaving;
            self.pool.leave();
            self.enter(Phase::Leaving);
        }
        self.settle(now);
        if done.send(()).is_err() {
            tracing::debug!("nobody waits for the leaving");
        }
    }

    pub(super) fn depart(&mut self, now: Nanos, done: oneshot::Sender<()>) {
        if let Err(error) = self.foca.leave_cluster(&mut self.outbox) {
            tracing::debug!(%error, "the goodbye was not told");
        }
        self.pool.leave();
        self.life = Life::Departing {
            left: GOODBYES,
            next: now.saturating_add(GOODBYE_PAUSE),
            done: Some(done),
        };
    }

    /// Tells of another process with this node's name. An earlier boot of this node has an earlier
    /// generation, or this node's address.
    pub(super) fn notice_twin(&mut self, now: Nanos, heard: &Identity) {
        let own = self.membership.own();
        let is_twin = heard.node == own.node
            && heard.boot != own.boot
            && heard.peer != own.peer
            && heard.generation > own.generation;
        if is_twin && self.told_twin.is_due(now) {
            tracing::warn!(
                node_id = %own.node,
                own = %own.peer,
                own_boot = format_args!("{:016x}", own.boot.0),
                other = %heard.peer,
                other_boot = format_args!("{:016x}", heard.boot.0),
                "another process uses this node's id"
            );
        }
    }

    /// Says the next goodbye when it is time; after the last the connections are closed.
    pub(super) fn say_goodbye(&mut self, now: Nanos) {
        let Life::Departing { left, next, done } = &mut self.life else {
            return;
        };
        if now < *next {
            return;
        }
        *next = now.saturating_add(GOODBYE_PAUSE);
        *left = left.saturating_sub(1);
        if *left > 0 {
            if let Err(error) = self.foca.gossip(&mut self.outbox) {
                tracing::debug!(%error, "the goodbye was not told again");
            }
            self.drain(now);
            return;
        }
        let done = done.take();
        self.pool.close_all(CloseCode::Leaving);
        self.life = Life::Gone;
        if done.is_some_and(|done| done.send(()).is_err()) {
            tracing::debug!("nobody waits for the end");
        }
    }

    /// Where members are or were.
    pub(super) fn known_addresses(&self) -> BTreeSet<SocketAddr> {
        let known = self
            .foca
            .iter_membership_state()
            .map(|member| &member.id().0);
        let peers = self.membership.peers().map(|member| member.identity);
        let own = self.membership.own();
        let others = known
            .chain(peers)
            .filter(|identity| identity.node != own.node);
        others.map(|identity| identity.peer).collect()
    }

    pub(super) fn be(&mut self, own: Identity) {
        self.membership.handle_own(own);
        self.unpublished = true;
    }
}
