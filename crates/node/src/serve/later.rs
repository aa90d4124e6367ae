//! Checks of peers that cannot be answered in their batch: their slots are on their way, or another node
//! decides.
//!
//! Each has a task of its own and a place in its stream's outbox. Invariants: it ends within the caller's
//! budget; a check is decided here at most once, whichever way it comes (INV-DECIDED-ONCE); what is relayed
//! is never relayed on; nothing is said where it is not known whether another node has counted.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_cluster::{AskedAs, Behind, Course, Failure, Hold};
use tollgate_limit::{Ask, DecidedBy, Mode, Nanos, NodeId, Verdict};
use tollgate_wire::peer::{Reply, Said, Way};

use super::{
    Owner,
    boots::{Boot, Caller},
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
            match self.course(now) {
                Course::Decide { degraded } => match self.decide(now, degraded) {
                    Some(answer) => return Some(answer),
                    // A slot was closed this instant.
                    None => self.owner.await_moved().await,
                },
                Course::Hold => self.owner.await_slots(&self.asks).await,
                Course::Relay(to, until) => return self.relay(now, until, &to).await,
                Course::DecideOnCopy { degraded } => return self.decide_on_copy(degraded),
                Course::NotOwner => return Some(self.not_owner()),
            }
        }
    }

    fn course(&self, now: Nanos) -> Course {
        let hold = self.owner.hold(&self.asks);
        let behind = self.behind();
        Course::of(
            self.asked_as(),
            &hold,
            (now, self.deadline),
            behind.as_ref(),
        )
    }

    const fn asked_as(&self) -> AskedAs {
        match self.way {
            Way::Owner => AskedAs::Owner,
            Way::Standby { .. } => AskedAs::Standby,
            Way::Relayed { .. } => AskedAs::Relayed,
        }
    }

    /// The owner of all keys, if it is another.
    fn behind(&self) -> Option<Behind> {
        let routes = self.owner.routes.load();
        let link = owner_of(&routes, &self.asks)?;
        Some(Behind {
            owner: link.peer().clone(),
            is_usable: link.is_usable(),
            has_copy: self.owner.has_copy(&routes, &self.asks),
        })
    }

    fn not_owner(&self) -> Answer {
        self.owner.counters.not_owner.raise();
        Answer::Other(self.owner.not_owner())
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

    /// Another node decides. What becomes of it is said, or nothing where it is not known.
    async fn relay(&self, now: Nanos, until: Nanos, to: &NodeId) -> Option<Answer> {
        if let Some(answer) = self.decided_before() {
            return Some(answer);
        }
        let routes = self.owner.routes.load_full();
        let link = routes.link_to(to);
        let asked = link.and_then(|link| Some((link, self.ask(now, until, link)?)));
        let Some((link, asked)) = asked else {
            // Nobody was asked, so nobody counts.
            return self.after_relay(Failure::BreakerOpen);
        };
        let asked_as = asked.number;
        match self.hear(link, asked).await {
            Ok(answer) => Some(answer),
            Err(failure) => {
                let answer = self.after_relay(failure);
                // Only if nobody but this node waits for what is said late: else the caller gives it back.
                if failure == Failure::Timeout
                    && matches!(self.way, Way::Standby { number: 0, .. })
                    && self.mode == Mode::Consume
                {
                    link.handle_unused(asked_as, self.asks.clone());
                }
                answer
            }
        }
    }

    /// What was said to this check when it came before.
    fn decided_before(&self) -> Option<Answer> {
        let (_caller, number) = self.name;
        let decided = self.boot.decided.lock();
        let verdicts = decided.verdicts(number)?;
        self.owner.counters.repeated.raise();
        let said = match self.asked_as() {
            AskedAs::Standby => Some(self.owner.said(DecidedBy::Standby, true)),
            AskedAs::Owner | AskedAs::Relayed => None,
        };
        Some(Answer::Verdicts(said, verdicts.into()))
    }

    fn after_relay(&self, failure: Failure) -> Option<Answer> {
        match Course::after_relay(self.asked_as(), self.behind().as_ref()) {
            // If who was asked does not decide, somebody else does.
            Course::DecideOnCopy { degraded } => {
                self.decide_on_copy(degraded || failure == Failure::NotOwner)
            }
            Course::Decide { .. } | Course::Hold | Course::Relay(..) | Course::NotOwner => {
                match failure {
                    Failure::NotOwner => Some(self.not_owner()),
                    Failure::TooLate | Failure::BreakerOpen => Some(Answer::Other(Reply::TooLate)),
                    // It may have been counted: the caller's own timeout says so.
                    Failure::Timeout | Failure::ConnectionLost => None,
                }
            }
        }
    }

    fn ask(&self, now: Nanos, until: Nanos, link: &Link) -> Option<Asked> {
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

    fn decide_on_copy(&self, is_degraded: bool) -> Option<Answer> {
        let now = self.owner.clock.now();
        if now >= self.deadline {
            return None;
        }
        // Meanwhile it may have become the holder.
        if self.owner.hold(&self.asks) == Hold::Yes
            && let Some(answer) = self.decide(now, false)
        {
            return Some(answer);
        }
        let (_caller, number) = self.name;
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
