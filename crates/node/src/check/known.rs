//! What this node answers from memory: known denials, and the kill switch.
//!
//! The rules are `cluster`'s; here are those who wait for a probe, and are woken when it has ended.

use std::{fmt, sync::Arc};

use tokio::{
    sync::{Notify, futures::Notified},
    time::timeout_at,
};
use tollgate_cluster::{Denials, Known, ProbeTicket, Step};
use tollgate_limit::{
    Applied, AppliedLimits, Ask, Cost, DecidedBy, Decision, KeyHash, LimitDecision, Mode, Nanos,
    Outcome, Verdict,
};

use super::{Asked, Checked, journey::Decider};
use crate::{clock::Clock as _, node::Node};

/// Where those that wait for a probe are woken: keys that share a place wake each other in vain.
const PLACES: usize = 64;

/// The denials that are known, and those that wait for their probes.
pub(crate) struct KnownDenials {
    pub(crate) denials: Denials,
    ended: [Notify; PLACES],
}

impl fmt::Debug for KnownDenials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.denials.fmt(f)
    }
}

impl Default for KnownDenials {
    fn default() -> Self {
        Self {
            denials: Denials::new(),
            ended: std::array::from_fn(|_| Notify::new()),
        }
    }
}

impl KnownDenials {
    /// Something was given back to the key, or it was reset.
    pub(crate) fn forget(&self, key: KeyHash) {
        self.denials.forget(key);
        self.place(key).notify_waiters();
    }

    fn ended(&self, key: KeyHash) -> Notified<'_> {
        self.place(key).notified()
    }

    fn place(&self, key: KeyHash) -> &Notify {
        let at = usize::try_from(key.low() % (PLACES as u64)).unwrap_or(0);
        &self.ended[at]
    }
}

/// The one check of a key that asks whether its denial is over. Ends when it is dropped.
pub(super) struct Probe {
    node: Arc<Node>,
    ticket: Option<ProbeTicket>,
}

impl Probe {
    pub(super) fn new(node: &Arc<Node>, ticket: ProbeTicket) -> Self {
        Self {
            node: Arc::clone(node),
            ticket: Some(ticket),
        }
    }

    /// It was answered, or will not be.
    pub(super) fn done(mut self) {
        if let Some(ticket) = self.ticket.take() {
            let known = &self.node.known;
            known.denials.handle_done(ticket);
            known.place(ticket.key).notify_waiters();
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let known = &self.node.known;
            known.denials.handle_gone(ticket);
            known.place(ticket.key).notify_waiters();
        }
    }
}

impl Node {
    /// What is known of a check that a peer would be asked for.
    pub(super) fn known_of(&self, ask: &Ask, asked: Asked) -> Known {
        self.known.denials.ask(asked.now, asked.deadline, ask)
    }

    /// Waits for the probe of a key, and decides then.
    pub(super) fn await_probe(
        self: &Arc<Self>,
        applied: AppliedLimits,
        (key, until): (KeyHash, Nanos),
        asked: Asked,
    ) -> Checked {
        let node = Arc::clone(self);
        Checked::Later(Box::pin(async move {
            let until = node.clock.instant(until.min(asked.deadline));
            let ended = timeout_at(until, node.known.ended(key)).await;
            // Ended or not: it is looked at again.
            drop(ended);
            let asked = Asked {
                now: node.clock.now(),
                ..asked
            };
            node.check_applied(applied, asked).decision().await
        }))
    }

    /// This node, as who remembers a denial.
    pub(super) fn as_memory(&self) -> Decider {
        Decider {
            by: DecidedBy::Cached,
            step: Step::Nowhere,
            ..self.as_decider()
        }
    }

    /// Everything is admitted, and nothing counted.
    pub(super) fn admit_all(&self, applied: &AppliedLimits, asked: Asked) -> Decision {
        let limits = applied.iter().map(|applied| {
            let verdict = admitted(applied);
            if asked.mode == Mode::Consume {
                let tally = self.tally_of(&applied.limit);
                tally.count(&verdict, DecidedBy::Switch);
            }
            LimitDecision {
                limit: Arc::clone(&applied.limit),
                key: applied.key,
                rule: applied.rule,
                charged: Cost::ZERO,
                verdict,
                decided_by: DecidedBy::Switch,
                node: self.config.node.clone(),
                boot: self.boot.0,
                degraded: false,
            }
        });
        Decision {
            id: asked.id,
            limits: limits.collect(),
        }
    }
}

fn admitted(applied: &Applied) -> Verdict {
    Verdict {
        outcome: Outcome::Allow,
        used: 0,
        remaining: applied.rule.open_capacity(),
        retry_after: Some(Nanos::ZERO),
        more_after: Nanos::ZERO,
        reset_after: Nanos::ZERO,
        delay: Nanos::ZERO,
        charged_slice: 0,
    }
}
