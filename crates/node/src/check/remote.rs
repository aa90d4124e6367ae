//! Asking peers: one message for each owner, all at once, and what to do when one does not answer.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use smallvec::SmallVec;
use tollgate_cluster::{
    Answer, Attempts, Failure, Group, MemberIndex, NewestOwner, NextStep, Step, next_step,
};
use tollgate_limit::{Ask, DecidedBy, Decision, Mode, Nanos, NodeId, Verdict};

use super::{Checked, Ongoing, asks_of};
use crate::{
    clock::Clock as _,
    link::{Asked, Heard, Link},
    node::Node,
    routes::Routes,
};

type Asks = SmallVec<[Ask; 2]>;
type Verdicts = SmallVec<[Verdict; 1]>;

/// What became of one group of limits.
enum GroupEnd {
    /// A peer decided.
    Decided { node: NodeId, verdicts: Verdicts },
    /// This node turned out to be the owner.
    Own(Verdicts),
    /// Nobody did; what may have been charged all the same is told to the link.
    Unanswered(Option<Unknown>),
}

/// A question whose reply may still come.
struct Unknown {
    link: Arc<Link>,
    number: u64,
}

/// One group on its way.
struct Journey {
    node: Arc<Node>,
    asks: Asks,
    mode: Mode,
    deadline: Nanos,
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
        let is_reachable = |group: &Group| {
            routes
                .link(group.owner)
                .is_some_and(|link| link.is_usable())
        };
        if !groups.iter().any(is_reachable) {
            // Nothing to wait for (P3): breakers are open.
            for group in &groups {
                if !check.settlement.is_refused() {
                    self.fall_back(now, routes, &mut check, &group.limits);
                }
            }
            return Checked::Now(self.finish(now, check));
        }
        let node = Arc::clone(self);
        if groups.len() == 1 && check.plan.local().is_empty() {
            return Checked::Later(Box::pin(node.settle(check, groups)));
        }
        // Charges are in several places: they must be settled even if the asker goes away.
        let settled = tokio::spawn(node.settle(check, groups));
        let node = Arc::clone(self);
        Checked::Later(Box::pin(async move {
            match settled.await {
                Ok(decision) => decision,
                // The runtime is shutting down: nobody will read this.
                Err(_cancelled) => Decision {
                    id: node.next_check_id(),
                    limits: Vec::new(),
                },
            }
        }))
    }

    async fn settle(self: Arc<Self>, mut check: Ongoing, groups: SmallVec<[Group; 1]>) -> Decision {
        let deadline = check
            .started
            .saturating_add(self.config.timeouts.check_deadline.into());
        let journeys: SmallVec<[Journey; 1]> = groups
            .iter()
            .map(|group| Journey {
                node: Arc::clone(&self),
                asks: asks_of(&check, &group.limits),
                mode: check.plan.mode(),
                deadline,
            })
            .collect();
        let started = check.started;
        let ends = match (journeys.as_slice(), groups.as_slice()) {
            ([journey], [group]) => vec![journey.run(started, group.owner).await],
            _ => {
                let pairs = journeys.iter().zip(&groups);
                join_all(pairs.map(|(journey, group)| journey.run(started, group.owner))).await
            }
        };
        let now = self.clock.now();
        let routes = self.routes.load();
        let mut unknown = SmallVec::<[(Unknown, Asks); 1]>::new();
        for ((end, group), journey) in ends.into_iter().zip(&groups).zip(journeys) {
            match end {
                GroupEnd::Decided { node, verdicts } => {
                    self.remember(now, &journey.asks, &verdicts);
                    let answers = verdicts.into_iter().map(|verdict| Answer {
                        verdict,
                        decided_by: DecidedBy::Owner,
                        node: node.clone(),
                        degraded: false,
                    });
                    check.settlement.record(Step::Peer, &group.limits, answers);
                }
                GroupEnd::Own(verdicts) => {
                    let answers = verdicts.into_iter().map(|verdict| self.own_answer(verdict));
                    check.settlement.record(Step::Owner, &group.limits, answers);
                }
                GroupEnd::Unanswered(pending) => {
                    self.fall_back(now, &routes, &mut check, &group.limits);
                    unknown.extend(pending.map(|pending| (pending, journey.asks)));
                }
            }
        }
        if check.settlement.is_refused() && check.plan.mode() == Mode::Consume {
            for (Unknown { link, number }, asks) in unknown {
                link.handle_refused(number, asks);
            }
        }
        self.finish(now, check)
    }

    fn remember(&self, now: Nanos, asks: &[Ask], verdicts: &[Verdict]) {
        for (ask, verdict) in asks.iter().zip(verdicts) {
            self.shares
                .handle_answer(now, ask.key, &ask.rule, verdict.used);
        }
    }
}

impl Journey {
    /// Asks until someone decides or there is nothing left to try.
    async fn run(&self, mut now: Nanos, mut owner: MemberIndex) -> GroupEnd {
        let mut attempts = Attempts::default();
        let mut number = None;
        let mut routes = self.node.routes.load_full();
        loop {
            let Some(link) = routes.link(owner).map(Arc::clone) else {
                return GroupEnd::Unanswered(None);
            };
            let timeout = now.saturating_add(self.node.config.timeouts.forward.into());
            let until = timeout.min(self.deadline);
            let asked = link.ask(now, until, (self.mode, &self.asks), number);
            let (failure, pending) = match asked {
                None => (Failure::BreakerOpen, number),
                Some(Asked { number, heard }) => match heard.await {
                    Ok(Heard::Verdicts(verdicts)) if verdicts.len() == self.asks.len() => {
                        return GroupEnd::Decided {
                            node: link.peer().clone(),
                            verdicts,
                        };
                    }
                    Ok(Heard::Verdicts(_) | Heard::Counter(_)) => (Failure::Timeout, None),
                    Ok(Heard::Failed(failure)) => (failure, Some(number)),
                    // The peer is no member any more. A new number might count twice.
                    Err(_link_is_gone) => return GroupEnd::Unanswered(None),
                },
            };
            now = self.node.clock.now();
            let left = self.deadline.saturating_sub(now);
            routes = self.node.routes.load_full();
            let (newest, place) = self.newest_owner(&routes, link.peer());
            match next_step(failure, attempts, left, newest) {
                NextStep::AskAgain => {
                    attempts.repeated = true;
                    number = pending;
                    if self.within(left, link.usable()).await.is_none() {
                        return GroupEnd::Unanswered(None);
                    }
                }
                NextStep::AskNewOwner => {
                    attempts.redirected = true;
                    number = None;
                    match place {
                        Some(NewestPlace::Here) => return self.decide_here(&routes, now),
                        Some(NewestPlace::At(index)) => owner = index,
                        None => return GroupEnd::Unanswered(None),
                    }
                }
                NextStep::PullMembers => {
                    attempts.pulled = true;
                    number = None;
                    let changed = self.node.routes_changed.notified();
                    self.node.control.pull(link.peer());
                    if self.within(left, changed).await.is_none() {
                        return GroupEnd::Unanswered(None);
                    }
                    routes = self.node.routes.load_full();
                    match self.newest_owner(&routes, link.peer()).1 {
                        Some(NewestPlace::Here) => return self.decide_here(&routes, now),
                        Some(NewestPlace::At(index)) => owner = index,
                        None => return GroupEnd::Unanswered(None),
                    }
                }
                NextStep::FallBack => {
                    let may_come = failure == Failure::Timeout;
                    let number = pending.filter(|_| may_come);
                    return GroupEnd::Unanswered(number.map(|number| Unknown { link, number }));
                }
            }
            now = self.node.clock.now();
        }
    }

    /// Who owns all of the asked keys by the newest view, against the peer that was asked.
    fn newest_owner(&self, routes: &Routes, asked: &NodeId) -> (NewestOwner, Option<NewestPlace>) {
        let mut owners = self.asks.iter().map(|ask| routes.owner(ask.key.slot()));
        let Some(Some(first)) = owners.next() else {
            return (NewestOwner::None, None);
        };
        if owners.any(|owner| owner != Some(first)) {
            return (NewestOwner::None, None);
        }
        if routes.view.own == Some(first) {
            return (NewestOwner::Other, Some(NewestPlace::Here));
        }
        let is_same = routes.view.placement.member(first) == Some(asked);
        let newest = if is_same {
            NewestOwner::Same
        } else {
            NewestOwner::Other
        };
        (newest, Some(NewestPlace::At(first)))
    }

    fn decide_here(&self, routes: &Routes, now: Nanos) -> GroupEnd {
        let is_own = self.asks.iter().all(|ask| routes.is_own(ask.key.slot()));
        if !is_own || self.node.owner.pause.is_late(now) {
            return GroupEnd::Unanswered(None);
        }
        let mut verdicts = Verdicts::new();
        self.node
            .owner
            .store
            .decide_all(now, &self.asks, self.mode, &mut verdicts);
        GroupEnd::Own(verdicts)
    }

    async fn within<T>(&self, left: Nanos, future: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(Duration::from(left), future)
            .await
            .ok()
    }
}

/// Where the newest owner is.
enum NewestPlace {
    Here,
    At(MemberIndex),
}
