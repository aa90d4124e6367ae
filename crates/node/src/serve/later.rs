//! Checks of peers that cannot be answered in their batch: their slots are on their way, or another node
//! decides.
//!
//! Each has a task of its own and a place in its stream's outbox. Invariants: it ends within the caller's
//! budget; a check is decided here at most once, whichever way it comes (INV-DECIDED-ONCE); what is relayed
//! is never relayed on; nothing is said where it is not known whether another node has counted.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_cluster::Failure;
use tollgate_limit::{Ask, DecidedBy, Mode, Nanos, NodeId, Verdict};
use tollgate_wire::peer::{Reply, Said, Way};

use super::{
    Owner,
    boots::{Boot, Caller},
    stand::Stand,
};
use crate::{
    clock::Clock as _,
    link::{Asked, Heard, Link},
    routes::Routes,
};

/// The verdicts of one check.
pub(super) type Verdicts = SmallVec<[Verdict; 1]>;

/// One check that is answered later.
#[derive(Debug)]
pub(super) struct Later {
    pub(super) owner: Arc<Owner>,
    pub(super) asks: SmallVec<[Ask; 2]>,
    pub(super) mode: Mode,
    pub(super) way: Way,
    /// What is remembered of the caller that the check is named by.
    pub(super) boot: Arc<Boot>,
    /// That caller, and the check's number with it.
    pub(super) name: (Caller, u64),
    /// When nobody waits for an answer any more.
    pub(super) deadline: Nanos,
}

/// What is said in the end.
#[derive(Debug)]
pub(super) enum Answer {
    Verdicts(Option<Said>, Verdicts),
    Other(Reply),
}

impl Later {
    /// The answer; `None` if there is none, or nobody waits for it any more.
    pub(super) async fn answer(self) -> Option<Answer> {
        loop {
            let now = self.owner.clock.now();
            if now >= self.deadline {
                return None;
            }
            match self.owner.stand(&self.asks) {
                Stand::Here => match self.decide(now, false) {
                    Some(answer) => return Some(answer),
                    None => self.owner.await_moved().await,
                },
                Stand::Overdue => match self.decide(now, true) {
                    Some(answer) => return Some(answer),
                    None => self.owner.await_moved().await,
                },
                Stand::Awaiting => self.owner.await_slots(&self.asks).await,
                Stand::Given(to) => return self.relay_to(now, &to).await,
                Stand::Elsewhere => return self.elsewhere(now).await,
            }
        }
    }

    /// Decides in slots that this node holds; `None` if one was closed meanwhile.
    fn decide(&self, now: Nanos, is_overdue: bool) -> Option<Answer> {
        let (_caller, number) = self.name;
        let mut decided = self.boot.decided.lock();
        if let Some(verdicts) = decided.verdicts(number) {
            self.owner.counters.repeated.raise();
            return Some(Answer::Verdicts(None, verdicts.into()));
        }
        if self.owner.pause.is_late(now) {
            self.owner.counters.too_late.raise();
            return Some(Answer::Other(Reply::TooLate));
        }
        let mut verdicts = Verdicts::new();
        let store = &self.owner.store;
        if !store.try_decide_all(now, &self.asks, self.mode, &mut verdicts) {
            return None;
        }
        decided.record(now, number, &verdicts);
        self.owner.counters.decided_for_peers.raise();
        let said = is_overdue.then(|| self.owner.said(DecidedBy::Owner, true));
        Some(Answer::Verdicts(said, verdicts))
    }

    async fn elsewhere(&self, now: Nanos) -> Option<Answer> {
        match self.way {
            Way::Standby { .. } => self.stand_by(now).await,
            Way::Owner | Way::Relayed { .. } => {
                self.owner.counters.not_owner.raise();
                Some(Answer::Other(self.owner.not_owner()))
            }
        }
    }

    /// These slots were handed over: who has them now decides.
    async fn relay_to(&self, now: Nanos, to: &NodeId) -> Option<Answer> {
        let routes = self.owner.routes.load_full();
        let link = routes.link_to(to);
        let (Some(link), Way::Owner | Way::Standby { .. }) = (link, self.way) else {
            return Some(Answer::Other(self.owner.not_owner()));
        };
        let Some(asked) = self.relay(now, self.deadline, link) else {
            // Nobody was asked, so nobody counts.
            return Some(Answer::Other(Reply::TooLate));
        };
        match self.hear(link, asked).await {
            Ok(answer) => Some(answer),
            Err(Failure::NotOwner) => Some(Answer::Other(self.owner.not_owner())),
            Err(Failure::TooLate) => Some(Answer::Other(Reply::TooLate)),
            // It may have been counted: the caller's own timeout says so.
            Err(Failure::Timeout | Failure::ConnectionLost | Failure::BreakerOpen) => None,
        }
    }

    fn relay(&self, now: Nanos, until: Nanos, link: &Link) -> Option<Asked> {
        let ((boot, own_link), own_number) = self.name;
        let (link_number, number) = match self.way {
            // The owner knows it by that name.
            Way::Standby { link, number } if number != 0 => (link, number),
            Way::Standby { .. } | Way::Owner | Way::Relayed { .. } => (own_link, own_number),
        };
        let way = Way::Relayed {
            boot,
            link: link_number,
            number,
        };
        self.owner.counters.relayed.raise();
        link.ask((now, until), (self.mode, &self.asks), None, way)
    }

    async fn hear(&self, link: &Link, asked: Asked) -> Result<Answer, Failure> {
        match asked.heard.await {
            Ok(Heard::Verdicts(_, said, verdicts)) if verdicts.len() == self.asks.len() => {
                let said = said.unwrap_or_else(|| Said {
                    node: link.peer().as_str().to_owned(),
                    boot: asked.boot,
                    by: DecidedBy::Owner,
                    degraded: false,
                });
                Ok(Answer::Verdicts(Some(said), verdicts))
            }
            // An answer to another question: the peer is broken.
            Ok(Heard::Verdicts(..) | Heard::Counter(_)) => Err(Failure::Timeout),
            Ok(Heard::Failed(failure)) => Err(failure),
            Err(_link_is_gone) => Err(Failure::ConnectionLost),
        }
    }

    /// This node was asked as the standby: the owner decides if it can be reached in half of the time, else
    /// the copy.
    async fn stand_by(&self, now: Nanos) -> Option<Answer> {
        let (_caller, number) = self.name;
        if let Some(verdicts) = self.boot.decided.lock().verdicts(number) {
            self.owner.counters.repeated.raise();
            let said = self.owner.said(DecidedBy::Standby, self.is_degraded());
            return Some(Answer::Verdicts(Some(said), verdicts.into()));
        }
        let routes = self.owner.routes.load_full();
        let mut unknown = None;
        if let Some(link) = owner_of(&routes, &self.asks).filter(|link| link.is_usable()) {
            let half = Nanos::new(self.deadline.saturating_sub(now).as_nanos() / 2);
            if let Some(asked) = self.relay(now, now.saturating_add(half), link) {
                let asked_as = asked.number;
                match self.hear(link, asked).await {
                    Ok(answer) => return Some(answer),
                    Err(Failure::Timeout) => unknown = Some((link, asked_as)),
                    Err(_) => {}
                }
            }
        }
        let answer = self.decide_on_copy();
        // Only if nobody but this node waits for what the owner says: else the caller gives it back.
        if let Some((link, asked_as)) = unknown
            && matches!(self.way, Way::Standby { number: 0, .. })
            && self.mode == Mode::Consume
        {
            link.handle_unused(asked_as, self.asks.clone());
        }
        answer
    }

    fn decide_on_copy(&self) -> Option<Answer> {
        let now = self.owner.clock.now();
        if now >= self.deadline {
            return None;
        }
        // Meanwhile it may have become the holder.
        if matches!(self.owner.stand(&self.asks), Stand::Here)
            && let Some(answer) = self.decide(now, false)
        {
            return Some(answer);
        }
        let (_caller, number) = self.name;
        let is_degraded = self.is_degraded();
        let mut decided = self.boot.decided.lock();
        let verdicts = match decided.verdicts(number) {
            Some(verdicts) => verdicts.into(),
            None if self.owner.pause.is_late(now) => {
                self.owner.counters.too_late.raise();
                return Some(Answer::Other(Reply::TooLate));
            }
            None => {
                let mut verdicts = Verdicts::new();
                self.owner
                    .decide_on_copy(now, &self.asks, self.mode, &mut verdicts);
                decided.record(now, number, &verdicts);
                verdicts
            }
        };
        let said = self.owner.said(DecidedBy::Standby, is_degraded);
        Some(Answer::Verdicts(Some(said), verdicts))
    }

    fn is_degraded(&self) -> bool {
        !self.owner.has_copy(&self.owner.routes.load(), &self.asks)
    }
}

/// The link to the owner of all of these keys.
fn owner_of<'a>(routes: &'a Routes, asks: &[Ask]) -> Option<&'a Arc<Link>> {
    let mut owners = asks.iter().map(|ask| routes.owner(ask.key.slot()));
    let first = owners.next()??;
    if owners.all(|owner| owner == Some(first)) {
        routes.link(first)
    } else {
        None
    }
}
