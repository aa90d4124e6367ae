//! Asking peers: one message for each owner, all at once, and settling what they say.

use std::sync::Arc;

use futures_util::future::join_all;
use smallvec::SmallVec;
use tollgate_cluster::{Group, Indices, Known, Step};
use tollgate_limit::{DecidedBy, Decision, Nanos, NodeId, Verdict};
use tollgate_wire::peer::Way;
use tracing::error;

use super::{
    Asked, Checked, Ongoing, answer_of, asks_of,
    journey::{Asks, Decider, End, Journey},
    stand_in::{StandIn, member_for, stand_in_of},
};
use crate::{clock::Clock as _, link::Link, node::Node, routes::Routes};

/// One group of limits, and who is asked for it.
struct ToAsk {
    link: Arc<Link>,
    way: Way,
    limits: Indices,
}

/// One group of limits and its way.
struct OnTheWay {
    limits: Indices,
    journey: Journey,
}

impl Node {
    /// Asks all remote owners of a check whose own limits have admitted it.
    pub(super) fn ask_peers(
        self: &Arc<Self>,
        routes: &Routes,
        mut check: Ongoing,
        checked: Asked,
    ) -> Checked {
        let now = checked.now;
        if self.is_denied(&mut check, checked) {
            return Checked::Now(self.finish(now, check));
        }
        let groups: SmallVec<[Group; 1]> = check.plan.remote().into();
        let mut to_ask = SmallVec::<[ToAsk; 1]>::new();
        for Group { owner, limits } in groups {
            match check.link(routes, owner) {
                Some(link) if link.is_usable() => to_ask.push(ToAsk {
                    link: Arc::clone(link),
                    way: Way::Owner,
                    limits,
                }),
                link => {
                    // Decided here and at once, or asked elsewhere: there is nothing to wait for (P3).
                    let failed = link.map(|link| link.peer().clone());
                    let stand_ins = self.stand_ins(now, routes, &mut check, (failed, &limits));
                    to_ask.extend(stand_ins);
                    if check.settlement.is_refused() {
                        return Checked::Now(self.finish(now, check));
                    }
                }
            }
        }
        let mut asked = SmallVec::<[OnTheWay; 1]>::new();
        for ToAsk { link, way, limits } in to_ask {
            let asks = asks_of(&check, &limits);
            match Journey::start(self, (&link, way), checked, asks) {
                Some(journey) => asked.push(OnTheWay { limits, journey }),
                None => self.fall_back(now, routes, &mut check, &limits),
            }
        }
        if asked.is_empty() {
            return Checked::Now(self.finish(now, check));
        }
        let node = Arc::clone(self);
        // Charges are in several places: they must be settled even if the asker goes away.
        let settled = tokio::spawn(node.settle(check, now, asked));
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
        sent_at: Nanos,
        asked: SmallVec<[OnTheWay; 1]>,
    ) -> Decision {
        let ends = join_all(asked.into_iter().map(async |mut asked| {
            let end = asked.journey.end().await;
            (end, asked)
        }))
        .await;
        let now = self.clock.now();
        let routes = self.routes.load();
        for (end, OnTheWay { limits, journey }) in ends {
            match end {
                End::Decided { at, by, verdicts } => {
                    self.remember((sent_at, at), &by, &journey.asks, &verdicts);
                    let answers = verdicts.into_iter().map(|verdict| answer_of(verdict, &by));
                    check.settlement.record(by.step, &limits, answers);
                }
                End::Unanswered => self.fall_back(now, &routes, &mut check, &limits),
            }
        }
        self.finish(now, check)
    }

    /// Limits of an owner that cannot be asked: decided on this node's copy where it stands in, by the
    /// fallback where nobody does; who else is to be asked for the others is told.
    fn stand_ins(
        &self,
        now: Nanos,
        routes: &Routes,
        check: &mut Ongoing,
        (failed, limits): (Option<NodeId>, &Indices),
    ) -> SmallVec<[ToAsk; 1]> {
        let failed = failed.and_then(|failed| routes.view.placement.index_of(&failed));
        let mut here = Indices::new();
        let mut nobody = Indices::new();
        let mut to_ask = SmallVec::<[ToAsk; 1]>::new();
        for limit in limits {
            let Some(applied) = check.applied.get(*limit) else {
                continue;
            };
            let member = member_for(routes, applied.key.slot(), failed);
            match member.map(|member| stand_in_of(routes, member)) {
                Some(StandIn::Here) => here.push(*limit),
                Some(StandIn::Nobody) | None => nobody.push(*limit),
                Some(StandIn::Peer(link)) => {
                    let known = to_ask.iter_mut().find(|ask| Arc::ptr_eq(&ask.link, &link));
                    match known {
                        Some(known) => known.limits.push(*limit),
                        None => to_ask.push(ToAsk {
                            link,
                            way: Way::Standby { link: 0, number: 0 },
                            limits: Indices::from_slice(&[*limit]),
                        }),
                    }
                }
            }
        }
        if !here.is_empty() && self.owner.pause.is_late(now) {
            nobody.append(&mut here);
        }
        if !here.is_empty() {
            let asks = asks_of(check, &here);
            let by = Decider {
                by: DecidedBy::Standby,
                degraded: !self.owner.has_copy(routes, &asks),
                ..self.as_decider()
            };
            let mut verdicts = SmallVec::<[Verdict; 2]>::new();
            let mode = check.plan.mode();
            self.owner.decide_on_copy(now, &asks, mode, &mut verdicts);
            let answers = verdicts.into_iter().map(|verdict| answer_of(verdict, &by));
            check.settlement.record(Step::Owner, &here, answers);
        }
        if !nobody.is_empty() && !check.settlement.is_refused() {
            self.fall_back(now, routes, check, &nobody);
        }
        to_ask
    }

    /// Whether a limit of a peer is known to refuse: then nobody is asked.
    fn is_denied(&self, check: &mut Ongoing, checked: Asked) -> bool {
        let limits = check.plan.remote().iter().flat_map(|group| &group.limits);
        let limits: Indices = limits.copied().collect();
        for limit in limits {
            let Some(applied) = check.applied.get(limit) else {
                continue;
            };
            match self.known_of(&applied.ask(), checked) {
                Known::Denied(verdict) => {
                    let answer = answer_of(verdict, &self.as_memory());
                    check.settlement.record(Step::Nowhere, &[limit], [answer]);
                    return true;
                }
                // With other limits beside it, it is asked as if nothing were known.
                Known::Probe(ticket) => self.known.denials.handle_gone(ticket),
                Known::Nothing | Known::Wait(_) => {}
            }
        }
        false
    }

    /// What owners say is where a local share would start, and what they refuse is refused from memory for
    /// a while.
    pub(super) fn remember(
        &self,
        (sent_at, now): (Nanos, Nanos),
        by: &Decider,
        asks: &Asks,
        verdicts: &[Verdict],
    ) {
        if by.step != Step::Peer {
            return;
        }
        if by.by == DecidedBy::Owner && !by.degraded {
            let answers = (asks.as_slice(), verdicts);
            self.known.denials.handle_answers(sent_at, now, answers);
        }
        for (ask, verdict) in asks.iter().zip(verdicts) {
            self.shares
                .handle_answer(now, ask.key, &ask.rule, verdict.used);
        }
    }
}
