//! The short way of a check that one limit applies to: no plan, no settlement.
//!
//! Says the same as the long way; takes it when nobody decides.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_cluster::{Hold, Known, Step};
use tollgate_limit::{
    Applied, AppliedLimits, Cost, DecidedBy, Decision, LimitDecision, Mode, Verdict,
};
use tollgate_wire::peer::Way;

use super::{
    Asked, Checked, Ongoing,
    journey::{Decider, End, Journey},
    known::Probe,
    stand_in::{StandIn, member_for, stand_in_of},
};
use crate::{clock::Clock as _, link::Link, node::Node, routes::Routes};

impl Node {
    /// Decides here, or asks whoever decides; `None` if neither can be done.
    pub(super) fn check_one(
        self: &Arc<Self>,
        routes: &Routes,
        applied: &Applied,
        asked: Asked,
    ) -> Option<Checked> {
        let slot = applied.key.slot();
        let states = &self.owner.states;
        if states.holds(slot) {
            return self.check_here(applied, asked, false);
        }
        let link = match states.hold(slot) {
            Hold::Yes => return self.check_here(applied, asked, false),
            Hold::Overdue => return self.check_here(applied, asked, true),
            Hold::Awaiting => return self.hold_one(applied, asked),
            Hold::Given(to) => routes.link_given(slot, &to),
            Hold::No => routes.link(routes.owner(slot)?),
        };
        let link = link?;
        // It has waited for others long enough.
        if asked.now >= asked.deadline {
            return None;
        }
        let probe = match self.known_of(&applied.ask(), asked) {
            Known::Nothing => None,
            Known::Probe(ticket) => Some(Probe::new(self, ticket)),
            Known::Denied(verdict) => {
                let by = self.as_memory();
                return Some(Checked::Now(self.told(applied, asked, verdict, by)));
            }
            Known::Wait(until) => {
                let key = applied.key;
                let applied = [applied.clone()].into_iter().collect();
                return Some(self.await_probe(applied, (key, until), asked));
            }
        };
        if link.is_usable() {
            // If it takes no more nobody else is asked for it.
            self.ask_one((link, Way::Owner), applied, asked, probe)
        } else {
            self.stand_in_for_one(routes, link, (applied, asked), probe)
        }
    }

    /// Decides in a slot that this node holds.
    fn check_here(
        self: &Arc<Self>,
        applied: &Applied,
        asked: Asked,
        is_overdue: bool,
    ) -> Option<Checked> {
        if self.owner.pause.is_late(asked.now) {
            return None;
        }
        let ask = applied.ask();
        match self.owner.store.try_decide(asked.now, &ask, asked.mode) {
            Some(verdict) => {
                let by = Decider {
                    degraded: is_overdue,
                    ..self.as_decider()
                };
                Some(Checked::Now(self.told(applied, asked, verdict, by)))
            }
            // Closed this instant.
            None => self.hold_one(applied, asked),
        }
    }

    fn hold_one(self: &Arc<Self>, applied: &Applied, asked: Asked) -> Option<Checked> {
        if asked.was_held {
            return None;
        }
        let applied: AppliedLimits = [applied.clone()].into_iter().collect();
        Some(self.hold(applied, asked))
    }

    fn ask_one(
        self: &Arc<Self>,
        (link, way): (&Arc<Link>, Way),
        applied: &Applied,
        asked: Asked,
        probe: Option<Probe>,
    ) -> Option<Checked> {
        let asks = SmallVec::from_slice(&[applied.ask()]);
        let journey = Journey::start(self, (link, way), asked, asks)?;
        let node = Arc::clone(self);
        Some(Checked::Later(Box::pin(node.settle_one(
            applied.clone(),
            asked,
            journey,
            probe,
        ))))
    }

    /// The owner cannot be asked: its standby is, at once.
    fn stand_in_for_one(
        self: &Arc<Self>,
        routes: &Routes,
        failed: &Link,
        (applied, asked): (&Applied, Asked),
        probe: Option<Probe>,
    ) -> Option<Checked> {
        let failed = routes.view.placement.index_of(failed.peer());
        let member = member_for(routes, applied.key.slot(), failed)?;
        match stand_in_of(routes, member) {
            StandIn::Here => {
                if self.owner.pause.is_late(asked.now) {
                    return None;
                }
                let asks = [applied.ask()];
                let mut verdicts = SmallVec::<[Verdict; 1]>::new();
                let by = Decider {
                    by: DecidedBy::Standby,
                    degraded: !self.owner.has_copy(routes, &asks),
                    ..self.as_decider()
                };
                let owner = &self.owner;
                owner.decide_on_copy(asked.now, &asks, asked.mode, &mut verdicts);
                let verdict = *verdicts.first()?;
                Some(Checked::Now(self.told(applied, asked, verdict, by)))
            }
            StandIn::Peer(link) => {
                let way = Way::Standby { link: 0, number: 0 };
                self.ask_one((&link, way), applied, asked, probe)
            }
            StandIn::Nobody => None,
        }
    }

    async fn settle_one(
        self: Arc<Self>,
        applied: Applied,
        asked: Asked,
        mut journey: Journey,
        probe: Option<Probe>,
    ) -> Decision {
        let end = journey.end().await;
        match end {
            End::Decided { at, by, verdicts } => {
                // The ids of checks are many and each is asked for once: they must not take the places of
                // the keys whose fallback starts from the last answer.
                if !self.ids.contains(&applied.limit) {
                    self.remember((asked.now, at), &by, &journey.asks, &verdicts);
                }
                if let Some(probe) = probe {
                    probe.done();
                }
                match verdicts.first() {
                    Some(verdict) => self.told(&applied, asked, *verdict, by),
                    None => self.undecided(applied, asked),
                }
            }
            End::Unanswered => self.undecided(applied, asked),
        }
    }

    /// This node, as the owner that decided.
    pub(super) fn as_decider(&self) -> Decider {
        Decider {
            node: self.config.node.clone(),
            boot: self.boot,
            by: DecidedBy::Owner,
            degraded: false,
            step: Step::Owner,
        }
    }

    /// What was said.
    fn told(&self, applied: &Applied, asked: Asked, verdict: Verdict, by: Decider) -> Decision {
        let consumes = asked.mode == Mode::Consume;
        if consumes {
            let tally = self.tally_of(&applied.limit);
            tally.count(&verdict, by.by);
            if by.degraded && verdict.is_allowed() {
                self.owner.counters.degraded_admissions.raise();
            }
        }
        let charged = if consumes && verdict.is_allowed() {
            applied.cost
        } else {
            Cost::ZERO
        };
        Decision {
            id: asked.id,
            limits: vec![LimitDecision {
                limit: Arc::clone(&applied.limit),
                key: applied.key,
                rule: applied.rule,
                charged,
                verdict,
                decided_by: by.by,
                node: by.node,
                boot: by.boot.0,
                degraded: by.degraded,
            }],
        }
    }

    /// Nobody said: the limit's fallback.
    fn undecided(&self, applied: Applied, asked: Asked) -> Decision {
        let now = self.clock.now();
        let routes = self.routes.load();
        let applied: AppliedLimits = [applied].into_iter().collect();
        let mut check = Ongoing::new(asked, applied, (self, &routes));
        self.fall_back(now, &routes, &mut check, &[0]);
        self.finish(now, check)
    }
}
