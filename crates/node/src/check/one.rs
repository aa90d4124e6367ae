//! The short way of a check that one limit applies to: no plan, no settlement.
//!
//! Says the same as the long way; takes it when the owner does not decide.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_limit::{
    Applied, AppliedLimits, Cost, DecidedBy, Decision, LimitDecision, Mode, NodeId, Verdict,
};
use tollgate_wire::identity::BootId;

use super::{
    Asked, Checked, Ongoing,
    journey::{End, Journey},
};
use crate::{clock::Clock as _, node::Node, routes::Routes};

impl Node {
    /// Decides here, or asks the owner; `None` if neither can be done.
    pub(super) fn check_one(
        self: &Arc<Self>,
        routes: &Routes,
        applied: &Applied,
        asked: Asked,
    ) -> Option<Checked> {
        let now = asked.started;
        let owner = routes.owner(applied.key.slot())?;
        let ask = applied.ask();
        if routes.view.own == Some(owner) {
            if self.owner.pause.is_late(now) {
                return None;
            }
            let verdict = self.owner.store.decide(now, &ask, asked.mode);
            return Some(Checked::Now(self.told(applied, asked, verdict, self.own())));
        }
        let asks = SmallVec::from_slice(&[ask]);
        let journey = Journey::start(self, routes, owner, (now, asked.mode, asks))?;
        let node = Arc::clone(self);
        Some(Checked::Later(Box::pin(node.settle_one(
            applied.clone(),
            asked,
            journey,
        ))))
    }

    async fn settle_one(
        self: Arc<Self>,
        applied: Applied,
        asked: Asked,
        mut journey: Journey,
    ) -> Decision {
        let end = journey.end().await;
        match end {
            End::Decided { at, node, verdicts } => {
                // The ids of checks are many and each is asked for once: they must not take the places of
                // the keys whose fallback starts from the last answer.
                if !self.ids.contains(&applied.limit) {
                    self.remember(at, &journey.asks, &verdicts);
                }
                match verdicts.first() {
                    Some(verdict) => self.told(&applied, asked, *verdict, node),
                    None => self.undecided(applied, asked),
                }
            }
            End::Own(verdicts) => match verdicts.first() {
                Some(verdict) => self.told(&applied, asked, *verdict, self.own()),
                None => self.undecided(applied, asked),
            },
            End::Unanswered(unknown) => {
                let decision = self.undecided(applied, asked);
                if let Some(unknown) = unknown
                    && asked.mode == Mode::Consume
                    && !decision.is_allowed()
                {
                    unknown.refuse(journey.asks);
                }
                decision
            }
        }
    }

    /// This node, as who decided.
    fn own(&self) -> (NodeId, BootId) {
        (self.config.node.clone(), self.boot)
    }

    /// What the owner said.
    fn told(
        &self,
        applied: &Applied,
        asked: Asked,
        verdict: Verdict,
        (node, boot): (NodeId, BootId),
    ) -> Decision {
        let consumes = asked.mode == Mode::Consume;
        if consumes {
            let tally = self.tally_of(&applied.limit);
            tally.count(&verdict, DecidedBy::Owner);
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
                decided_by: DecidedBy::Owner,
                node,
                boot: boot.0,
                degraded: false,
            }],
        }
    }

    /// The owner did not say: the limit's fallback.
    fn undecided(&self, applied: Applied, asked: Asked) -> Decision {
        let now = self.clock.now();
        let routes = self.routes.load();
        let applied: AppliedLimits = [applied].into_iter().collect();
        let mut check = Ongoing::new(asked, applied, &routes);
        self.fall_back(now, &routes, &mut check, &[0]);
        self.finish(now, check)
    }
}
