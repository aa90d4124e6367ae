//! One group of limits on its way to whoever decides: asked, asked again, or given up.
//!
//! Which step follows which failure is `cluster`'s to say. Invariants: the first ask is written when the
//! journey starts, before anything is awaited, so that checks of one key keep their order; when it ends,
//! each peer that did not answer in time knows whether what it says late goes back.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use tollgate_cluster::{Attempts, Failure, Hold, NewestOwner, NextStep, Step, next_step};
use tollgate_limit::{Ask, DecidedBy, Mode, Nanos, NodeId, Verdict};
use tollgate_wire::{
    identity::BootId,
    peer::{Said, Way},
};

use super::stand_in::StandIn;
use crate::{
    clock::Clock as _,
    link::{Asked, Heard, Link},
    node::Node,
    routes::Routes,
};

pub(super) type Asks = SmallVec<[Ask; 2]>;
pub(super) type Verdicts = SmallVec<[Verdict; 1]>;

/// One group on its way.
pub(super) struct Journey {
    node: Arc<Node>,
    link: Arc<Link>,
    pub(super) asks: Asks,
    mode: Mode,
    way: Way,
    deadline: Nanos,
    /// The first ask, until it is heard.
    first: Option<Asked>,
    /// Asks whose reply may still come.
    unknown: SmallVec<[(Arc<Link>, u64); 1]>,
}

/// What became of one group of limits.
pub(super) enum End {
    /// Somebody decided; heard at this instant.
    Decided {
        at: Nanos,
        by: Decider,
        verdicts: Verdicts,
    },
    /// Nobody did.
    Unanswered,
}

/// Who decided, and how.
#[derive(Clone, Debug)]
pub(super) struct Decider {
    pub(super) node: NodeId,
    pub(super) boot: BootId,
    pub(super) by: DecidedBy,
    pub(super) degraded: bool,
    /// Where its charges are.
    pub(super) step: Step,
}

/// Where to ask next.
enum Place {
    Here,
    At(Arc<Link>),
}

impl Journey {
    /// Asks a peer; `None` if the ask cannot be sent.
    pub(super) fn start(
        node: &Arc<Node>,
        (link, way): (&Arc<Link>, Way),
        checked: super::Asked,
        asks: Asks,
    ) -> Option<Self> {
        let super::Asked {
            now,
            deadline,
            mode,
            ..
        } = checked;
        let until = ask_until(node, way, now, deadline);
        let first = Some(link.ask((now, until), (mode, &asks), None, way)?);
        Some(Self {
            node: Arc::clone(node),
            link: Arc::clone(link),
            asks,
            mode,
            way,
            deadline,
            first,
            unknown: SmallVec::new(),
        })
    }

    /// Waits until someone has decided or there is nothing left to try.
    pub(super) async fn end(&mut self) -> End {
        let Some(asked) = self.first.take() else {
            return End::Unanswered;
        };
        let number = asked.number;
        match self.hear(asked).await {
            Ok((at, by, verdicts)) => End::Decided { at, by, verdicts },
            // Boxed: seldom needed, and larger than all the rest.
            Err(failure) => {
                let end = Box::pin(self.go_on(failure, number)).await;
                self.settle_unknown(&end);
                end
            }
        }
    }

    /// The verdicts, or why there are none.
    async fn hear(&self, asked: Asked) -> Result<(Nanos, Decider, Verdicts), Failure> {
        match asked.heard.await {
            Ok(Heard::Verdicts(at, said, verdicts)) if verdicts.len() == self.asks.len() => {
                Ok((at, self.decider(asked.boot, said), verdicts))
            }
            // An answer to another question: the peer is broken.
            Ok(Heard::Verdicts(..) | Heard::Counter(_)) => Err(Failure::Timeout),
            Ok(Heard::Failed(failure)) => Err(failure),
            // The peer is no member any more: it is not asked again.
            Err(_link_is_gone) => Err(Failure::BreakerOpen),
        }
    }

    fn decider(&self, boot: BootId, said: Option<Said>) -> Decider {
        let named = said.and_then(|said| Some((NodeId::new(&said.node)?, said)));
        match named {
            None => Decider {
                node: self.link.peer().clone(),
                boot,
                by: DecidedBy::Owner,
                degraded: false,
                step: Step::Peer,
            },
            Some((node, said)) => Decider {
                node,
                boot: said.boot,
                by: said.by,
                degraded: said.degraded,
                step: Step::Peer,
            },
        }
    }

    /// Takes the steps after a failure. `number` is that of the ask that failed.
    async fn go_on(&mut self, mut failure: Failure, mut number: u64) -> End {
        let mut attempts = Attempts {
            standby: matches!(self.way, Way::Standby { .. }),
            ..Attempts::default()
        };
        loop {
            if matches!(failure, Failure::Timeout | Failure::ConnectionLost) {
                self.note_unknown(number);
            }
            let left = self.deadline.saturating_sub(self.node.clock.now());
            let wait = left.min(self.node.config.timeouts.forward.into());
            let routes = self.node.routes.load_full();
            let (newest, place) = self.newest_owner(&routes);
            // The same check at the same owner keeps its number: it is counted once.
            let mut again = None;
            match next_step(failure, attempts, left, newest) {
                NextStep::AskAgain => {
                    attempts.repeated = true;
                    if within(wait, self.link.usable()).await.is_none() {
                        failure = Failure::BreakerOpen;
                        continue;
                    }
                    again = Some(number);
                }
                NextStep::AskNewOwner => {
                    attempts.redirected = true;
                    match place {
                        Some(Place::Here) => match self.decide_here() {
                            Some(end) => return end,
                            None => {
                                self.node.owner.await_moved().await;
                                continue;
                            }
                        },
                        Some(Place::At(link)) => self.link = link,
                        None => continue,
                    }
                }
                NextStep::PullMembers => {
                    attempts.pulled = true;
                    let changed = self.node.routes_changed.notified();
                    self.node.control.pull(self.link.peer());
                    // Also if it changes nothing: then nobody knows of another owner.
                    within(wait, changed).await.unwrap_or_default();
                    continue;
                }
                NextStep::AskStandby => {
                    attempts.standby = true;
                    if let Some(end) = self.turn_to_stand_in(&routes, failure) {
                        return end;
                    }
                }
                NextStep::FallBack => return End::Unanswered,
            }
            let now = self.node.clock.now();
            let until = ask_until(&self.node, self.way, now, self.deadline);
            let asks = (self.mode, self.asks.as_slice());
            failure = match self.link.ask((now, until), asks, again, self.way) {
                None => Failure::BreakerOpen,
                Some(asked) => {
                    number = asked.number;
                    match self.hear(asked).await {
                        Ok((at, by, verdicts)) => return End::Decided { at, by, verdicts },
                        Err(failure) => failure,
                    }
                }
            };
        }
    }

    /// Who stands in is asked next; or that was this node, or there is nobody.
    fn turn_to_stand_in(&mut self, routes: &Routes, failure: Failure) -> Option<End> {
        match self.node.stand_in(routes, &self.asks, self.link.peer()) {
            StandIn::Here => {
                // If who was asked does not decide, somebody else does.
                let is_behind = failure == Failure::NotOwner;
                Some(self.decide_on_copy(routes, is_behind))
            }
            StandIn::Nobody => Some(End::Unanswered),
            StandIn::Peer(link) => {
                let asked = self.unknown.last();
                let (link_number, number) =
                    asked.map_or((0, 0), |(link, number)| (link.number(), *number));
                self.link = link;
                self.way = Way::Standby {
                    link: link_number,
                    number,
                };
                None
            }
        }
    }

    fn note_unknown(&mut self, number: u64) {
        let known = &mut self.unknown;
        let is_it =
            |(link, known): &(Arc<Link>, u64)| *known == number && Arc::ptr_eq(link, &self.link);
        if !known.iter().any(is_it) {
            known.push((Arc::clone(&self.link), number));
        }
    }

    /// What comes late goes back, unless it tells of the charge that the check was answered by.
    fn settle_unknown(&mut self, end: &End) {
        if self.mode == Mode::Peek {
            return;
        }
        for (link, number) in self.unknown.drain(..) {
            let is_used = match end {
                End::Decided { by, .. } => by.by == DecidedBy::Owner && by.node == *link.peer(),
                End::Unanswered => false,
            };
            if is_used {
                link.handle_used(number);
            } else {
                link.handle_unused(number, self.asks.clone());
            }
        }
    }

    /// Who decides all of the keys by these routes, against the peer that was asked last.
    fn newest_owner(&self, routes: &Routes) -> (NewestOwner, Option<Place>) {
        let link = match self.node.owner.hold(&self.asks) {
            Hold::Yes | Hold::Overdue => return (NewestOwner::Other, Some(Place::Here)),
            Hold::Given(to) => {
                let slot = self.asks.first().map(|ask| ask.key.slot());
                slot.and_then(|slot| routes.link_given(slot, &to))
            }
            Hold::Awaiting | Hold::No => {
                let mut owners = self.asks.iter().map(|ask| routes.owner(ask.key.slot()));
                let first = owners.next().flatten();
                match first {
                    Some(first) if owners.all(|owner| owner == Some(first)) => routes.link(first),
                    Some(_) | None => None,
                }
            }
        };
        match link {
            None => (NewestOwner::None, None),
            Some(link) if link.peer() == self.link.peer() => (NewestOwner::Same, None),
            Some(link) => (NewestOwner::Other, Some(Place::At(Arc::clone(link)))),
        }
    }

    /// This node turned out to decide; `None` if a slot was closed this instant.
    fn decide_here(&self) -> Option<End> {
        let now = self.node.clock.now();
        if self.node.owner.pause.is_late(now) {
            return Some(End::Unanswered);
        }
        let degraded = self.node.owner.hold(&self.asks) == Hold::Overdue;
        let mut verdicts = Verdicts::new();
        let store = &self.node.owner.store;
        let decided = store.try_decide_all(now, &self.asks, self.mode, &mut verdicts);
        decided.then(|| self.decided_here(now, DecidedBy::Owner, degraded, verdicts))
    }

    /// This node stands in for the owner.
    fn decide_on_copy(&self, routes: &Routes, is_behind: bool) -> End {
        let now = self.node.clock.now();
        if self.node.owner.pause.is_late(now) {
            return End::Unanswered;
        }
        let mut verdicts = Verdicts::new();
        let degraded = is_behind || !self.node.owner.has_copy(routes, &self.asks);
        self.node
            .owner
            .decide_on_copy(now, &self.asks, self.mode, &mut verdicts);
        self.decided_here(now, DecidedBy::Standby, degraded, verdicts)
    }

    fn decided_here(&self, at: Nanos, by: DecidedBy, degraded: bool, verdicts: Verdicts) -> End {
        End::Decided {
            at,
            by: Decider {
                degraded,
                by,
                ..self.node.as_decider()
            },
            verdicts,
        }
    }
}

fn ask_until(node: &Node, way: Way, now: Nanos, deadline: Nanos) -> Nanos {
    let timeouts = &node.config.timeouts;
    let timeout = match way {
        Way::Owner | Way::Relayed { .. } => timeouts.forward,
        Way::Standby { .. } => timeouts.standby,
    };
    now.saturating_add(timeout.into()).min(deadline)
}

async fn within<T>(left: Nanos, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from(left), future)
        .await
        .ok()
}
