//! Asking peers: one message for each owner, all at once, and settling what they say.

use std::sync::Arc;

use futures_util::future::join_all;
use smallvec::SmallVec;
use tollgate_cluster::{Answer, Group, Indices, Step};
use tollgate_limit::{DecidedBy, Decision, Mode, Nanos, Verdict};
use tracing::error;

use super::{
    Checked, Ongoing, asks_of,
    journey::{Asks, End, Journey},
};
use crate::{clock::Clock as _, node::Node, routes::Routes};

/// One group of limits and its way.
struct OnTheWay {
    limits: Indices,
    journey: Journey,
}

impl Node {
    /// Asks all remote owners of a check whose own limits have admitted it.
    pub(super) fn ask_peers(
        self: &Arc<Self>,
        now: Nanos,
        routes: &Routes,
        mut check: Ongoing,
    ) -> Checked {
        let groups: SmallVec<[Group; 1]> = check.plan.remote().into();
        let (reachable, unreachable): (SmallVec<[Group; 1]>, SmallVec<[Group; 1]>) =
            groups.into_iter().partition(|group| {
                let link = routes.link(group.owner);
                link.is_some_and(|link| link.is_usable())
            });
        for group in unreachable {
            // Decided here and at once: there is nothing to wait for (P3).
            self.fall_back(now, routes, &mut check, &group.limits);
            if check.settlement.is_refused() {
                return Checked::Now(self.finish(now, check));
            }
        }
        let mut asked = SmallVec::<[OnTheWay; 1]>::new();
        let mode = check.plan.mode();
        for Group { owner, limits } in reachable {
            let asks = asks_of(&check, &limits);
            match Journey::start(self, routes, owner, (now, mode, asks)) {
                Some(journey) => asked.push(OnTheWay { limits, journey }),
                None => self.fall_back(now, routes, &mut check, &limits),
            }
        }
        if asked.is_empty() {
            return Checked::Now(self.finish(now, check));
        }
        let node = Arc::clone(self);
        // Charges are in several places: they must be settled even if the asker goes away.
        let settled = tokio::spawn(node.settle(check, asked));
        let node = Arc::clone(self);
        Checked::Later(Box::pin(async move {
            match settled.await {
                Ok(decision) => decision,
                // The runtime is shutting down, or a bug: the check is not held up for it (P3).
                Err(error) => {
                    error!(%error, "a check was not settled");
                    Decision {
                        id: node.next_check_id(),
                        limits: Vec::new(),
                    }
                }
            }
        }))
    }

    async fn settle(
        self: Arc<Self>,
        mut check: Ongoing,
        asked: SmallVec<[OnTheWay; 1]>,
    ) -> Decision {
        let ends = join_all(asked.into_iter().map(async |mut asked| {
            let end = asked.journey.end().await;
            (end, asked)
        }))
        .await;
        let now = self.clock.now();
        let routes = self.routes.load();
        let mut unknown = SmallVec::<[_; 1]>::new();
        for (end, OnTheWay { limits, journey }) in ends {
            match end {
                End::Decided {
                    at,
                    node: (node, boot),
                    verdicts,
                } => {
                    self.remember(at, &journey.asks, &verdicts);
                    let answers = verdicts.into_iter().map(|verdict| Answer {
                        verdict,
                        decided_by: DecidedBy::Owner,
                        node: node.clone(),
                        boot: boot.0,
                        degraded: false,
                    });
                    check.settlement.record(Step::Peer, &limits, answers);
                }
                End::Own(verdicts) => {
                    let answers = verdicts.into_iter().map(|verdict| self.own_answer(verdict));
                    check.settlement.record(Step::Owner, &limits, answers);
                }
                End::Unanswered(pending) => {
                    self.fall_back(now, &routes, &mut check, &limits);
                    unknown.extend(pending.map(|pending| (pending, journey.asks)));
                }
            }
        }
        if check.settlement.is_refused() && check.plan.mode() == Mode::Consume {
            for (pending, asks) in unknown {
                pending.refuse(asks);
            }
        }
        self.finish(now, check)
    }

    /// What owners say is where a local share would start.
    pub(super) fn remember(&self, now: Nanos, asks: &Asks, verdicts: &[Verdict]) {
        for (ask, verdict) in asks.iter().zip(verdicts) {
            self.shares
                .handle_answer(now, ask.key, &ask.rule, verdict.used);
        }
    }
}
