//! One group of limits on its way to their owner: asked, asked again, or given up.
//!
//! Which step follows which failure is `cluster`'s to say. Invariant: the first ask is written when
//! the journey starts, before anything is awaited, so that checks of one key keep their order.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use tollgate_cluster::{Attempts, Failure, MemberIndex, NewestOwner, NextStep, next_step};
use tollgate_limit::{Ask, Mode, Nanos, NodeId, Verdict};
use tollgate_wire::identity::BootId;

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
    deadline: Nanos,
    /// The first ask, until it is heard.
    first: Option<Asked>,
}

/// What became of one group of limits.
pub(super) enum End {
    /// This boot of a peer decided; heard at this instant.
    Decided {
        at: Nanos,
        node: (NodeId, BootId),
        verdicts: Verdicts,
    },
    /// This node turned out to be the owner.
    Own(Verdicts),
    /// Nobody did; what may have been charged all the same is told.
    Unanswered(Option<Unknown>),
}

/// A question whose reply may still come.
pub(super) struct Unknown {
    link: Arc<Link>,
    number: u64,
}

impl Unknown {
    /// The check was refused in the end: a late charge goes back.
    pub(super) fn refuse(&self, asks: Asks) {
        self.link.handle_refused(self.number, asks);
    }
}

/// Where the newest owner is.
enum Place {
    Here,
    At(MemberIndex),
}

impl Journey {
    /// Asks the owner; `None` if the ask cannot be sent.
    pub(super) fn start(
        node: &Arc<Node>,
        routes: &Routes,
        owner: MemberIndex,
        (started, mode, asks): (Nanos, Mode, Asks),
    ) -> Option<Self> {
        let link = Arc::clone(routes.link(owner)?);
        let deadline = started.saturating_add(node.config.timeouts.check_deadline.into());
        let until = ask_until(node, started, deadline);
        let first = Some(link.ask(started, until, (mode, &asks), None)?);
        let node = Arc::clone(node);
        Some(Self {
            node,
            link,
            asks,
            mode,
            deadline,
            first,
        })
    }

    /// Waits until someone has decided or there is nothing left to try.
    pub(super) async fn end(&mut self) -> End {
        let Some(asked) = self.first.take() else {
            return End::Unanswered(None);
        };
        let number = asked.number;
        match self.hear(asked).await {
            Ok(heard) => self.decided(heard),
            Err(None) => End::Unanswered(None),
            // Boxed: seldom needed, and larger than all the rest.
            Err(Some(failure)) => Box::pin(self.go_on(failure, Some(number))).await,
        }
    }

    fn decided(&self, (at, boot, verdicts): (Nanos, BootId, Verdicts)) -> End {
        End::Decided {
            at,
            node: (self.link.peer().clone(), boot),
            verdicts,
        }
    }

    /// The verdicts, or why there are none; `None` if the peer is no member any more.
    async fn hear(&self, asked: Asked) -> Result<(Nanos, BootId, Verdicts), Option<Failure>> {
        match asked.heard.await {
            Ok(Heard::Verdicts(at, verdicts)) if verdicts.len() == self.asks.len() => {
                Ok((at, asked.boot, verdicts))
            }
            // An answer to another question: the peer is broken.
            Ok(Heard::Verdicts(..) | Heard::Counter(_)) => Err(Some(Failure::Timeout)),
            Ok(Heard::Failed(failure)) => Err(Some(failure)),
            Err(_link_is_gone) => Err(None),
        }
    }

    /// Takes the steps after a failure. `number` is that of the ask that failed.
    async fn go_on(&mut self, mut failure: Failure, mut number: Option<u64>) -> End {
        let mut attempts = Attempts::default();
        loop {
            let left = self.deadline.saturating_sub(self.node.clock.now());
            let routes = self.node.routes.load_full();
            let (newest, place) = self.newest_owner(&routes);
            let place = match next_step(failure, attempts, left, newest) {
                NextStep::AskAgain => {
                    attempts.repeated = true;
                    if within(left, self.link.usable()).await.is_none() {
                        return End::Unanswered(None);
                    }
                    None
                }
                NextStep::AskNewOwner => {
                    attempts.redirected = true;
                    place
                }
                NextStep::PullMembers => {
                    attempts.pulled = true;
                    let changed = self.node.routes_changed.notified();
                    self.node.control.pull(self.link.peer());
                    if within(left, changed).await.is_none() {
                        return End::Unanswered(None);
                    }
                    attempts.redirected = true;
                    let routes = self.node.routes.load_full();
                    match self.newest_owner(&routes).1 {
                        Some(place) => Some(place),
                        None => return End::Unanswered(None),
                    }
                }
                NextStep::FallBack => return self.unanswered(failure, number),
            };
            match place {
                // The same check at the same owner keeps its number: it is counted once.
                None => {}
                Some(Place::Here) => return self.decide_here(),
                Some(Place::At(owner)) => {
                    let routes = self.node.routes.load();
                    let Some(link) = routes.link(owner) else {
                        return End::Unanswered(None);
                    };
                    self.link = Arc::clone(link);
                    number = None;
                }
            }
            let now = self.node.clock.now();
            let until = ask_until(&self.node, now, self.deadline);
            let asked = self.link.ask(now, until, (self.mode, &self.asks), number);
            failure = match asked {
                None => Failure::BreakerOpen,
                Some(asked) => {
                    number = Some(asked.number);
                    match self.hear(asked).await {
                        Ok(heard) => return self.decided(heard),
                        Err(None) => return End::Unanswered(None),
                        Err(Some(failure)) => failure,
                    }
                }
            };
        }
    }

    /// After a timeout the reply may still come.
    fn unanswered(&self, failure: Failure, number: Option<u64>) -> End {
        let number = number.filter(|_| failure == Failure::Timeout);
        End::Unanswered(number.map(|number| Unknown {
            link: Arc::clone(&self.link),
            number,
        }))
    }

    /// Who owns all of the keys by these routes, against the peer that was asked last.
    fn newest_owner(&self, routes: &Routes) -> (NewestOwner, Option<Place>) {
        let mut owners = self.asks.iter().map(|ask| routes.owner(ask.key.slot()));
        let Some(Some(first)) = owners.next() else {
            return (NewestOwner::None, None);
        };
        if owners.any(|owner| owner != Some(first)) {
            return (NewestOwner::None, None);
        }
        if routes.view.own == Some(first) {
            return (NewestOwner::Other, Some(Place::Here));
        }
        let is_same = routes.view.placement.member(first) == Some(self.link.peer());
        let newest = if is_same {
            NewestOwner::Same
        } else {
            NewestOwner::Other
        };
        (newest, Some(Place::At(first)))
    }

    fn decide_here(&self) -> End {
        let now = self.node.clock.now();
        let routes = self.node.routes.load();
        let is_own = self.asks.iter().all(|ask| routes.is_own(ask.key.slot()));
        if !is_own || self.node.owner.pause.is_late(now) {
            return End::Unanswered(None);
        }
        let mut verdicts = Verdicts::new();
        let store = &self.node.owner.store;
        store.decide_all(now, &self.asks, self.mode, &mut verdicts);
        End::Own(verdicts)
    }
}

fn ask_until(node: &Node, now: Nanos, deadline: Nanos) -> Nanos {
    let timeout = now.saturating_add(node.config.timeouts.forward.into());
    timeout.min(deadline)
}

async fn within<T>(left: Nanos, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from(left), future)
        .await
        .ok()
}
