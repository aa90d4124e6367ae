//! One check at its entry node: which limits apply, who owns them, what each said.
//!
//! What this node can decide by itself is decided at once, without a future; what is awaited is a peer, or
//! for a few milliseconds the counts of a slot that comes to this node. Invariants: every check is answered within its deadline (P3); a check that was refused leaves
//! no charge that is not on its way back (P4).

mod fallback;
mod journey;
mod known;
mod one;
mod remote;
mod stand_in;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use smallvec::SmallVec;
use tollgate_cluster::{
    Amendment, Answer, GiveBackTo, Hold, Place, Plan, Settled, Settlement, Step,
};
use tollgate_limit::{
    Application, Applied, AppliedLimits, Ask, Call, Change, Charge, CheckError, CheckId, Cost,
    Decision, Enforcement, Limit, Mode, Nanos, NodeId, Question, SlotId, Subject, Tally, Verdict,
};
use tollgate_wire::identity::BootId;

use self::journey::Decider;
pub(crate) use self::{fallback::LocalShares, known::KnownDenials};
use crate::{clock::Clock as _, link::Link, node::Node, routes::Routes};

/// What became of a question.
pub enum Checked {
    /// It is decided.
    Now(Decision),
    /// A peer must be asked. The future ends within the check's deadline.
    Later(Pin<Box<dyn Future<Output = Decision> + Send>>),
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(decision) => f.debug_tuple("Now").field(decision).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

impl Checked {
    /// The decision, whenever it comes.
    pub async fn decision(self) -> Decision {
        match self {
            Self::Now(decision) => decision,
            Self::Later(decision) => decision.await,
        }
    }
}

/// What was asked.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: CheckId,
    /// When it was asked, or taken up again.
    now: Nanos,
    /// When it must be answered.
    deadline: Nanos,
    mode: Mode,
    /// Whether it has waited for slots: it does not a second time.
    was_held: bool,
}

/// One check on its way: what was asked, and what is said so far.
struct Ongoing {
    id: CheckId,
    applied: AppliedLimits,
    plan: Plan,
    /// Members that slots were handed over to: peers by number, behind those of the placement.
    given: SmallVec<[NodeId; 1]>,
    settlement: Settlement,
}

impl Ongoing {
    fn new(asked: Asked, applied: AppliedLimits, (node, routes): (&Node, &Routes)) -> Self {
        let Asked { id, mode, .. } = asked;
        let mut given = SmallVec::new();
        let plan = Plan::new(&applied, mode, |slot| {
            node.place_of(routes, slot, &mut given)
        });
        let settlement = Settlement::new(&applied);
        Self {
            id,
            applied,
            plan,
            given,
            settlement,
        }
    }

    /// The link to a peer of the plan.
    fn link<'a>(&self, routes: &'a Routes, peer: usize) -> Option<&'a Arc<Link>> {
        match peer.checked_sub(routes.view.placement.members().len()) {
            None => routes.link_at(peer),
            Some(given) => routes.link_to(self.given.get(given)?),
        }
    }
}

impl Node {
    /// Decides a check. `now` is a reading of [`Node::now`], one for each batch.
    ///
    /// # Errors
    /// [`CheckError`]: the asker's fault, nothing was counted.
    pub fn check(
        self: &Arc<Self>,
        now: Nanos,
        question: &Question<'_>,
    ) -> Result<Checked, CheckError> {
        let (cost, mode) = match question.cost {
            Cost::ZERO => (Cost::ONE, Mode::Peek),
            cost => (cost, question.mode),
        };
        let applied = self.applied(question, cost)?;
        let asked = Asked {
            id: self.next_check_id(),
            now,
            deadline: now.saturating_add(self.config.timeouts.check_deadline.into()),
            mode,
            was_held: false,
        };
        if self.owner.switches.is_killed() {
            return Ok(Checked::Now(self.admit_all(&applied, asked)));
        }
        Ok(self.check_applied(applied, asked))
    }

    /// Decides, or asks who does, for a first or a second time.
    fn check_applied(self: &Arc<Self>, applied: AppliedLimits, asked: Asked) -> Checked {
        let now = asked.now;
        let routes = self.routes.load();
        if let [only] = applied.as_slice()
            && let Some(checked) = self.check_one(&routes, only, asked)
        {
            return checked;
        }
        let is_awaited = |applied: &Applied| {
            let slot = applied.key.slot();
            let states = &self.owner.states;
            !states.holds(slot) && states.hold(slot) == Hold::Awaiting
        };
        if !asked.was_held && applied.iter().any(is_awaited) {
            return self.hold(applied, asked);
        }
        let mut check = Ongoing::new(asked, applied, (self, &routes));
        match self.decide_here(now, &routes, &mut check) {
            Here::Decided => {}
            Here::Closed if asked.was_held => {
                let own: SmallVec<[usize; 2]> = check.plan.local().into();
                self.fall_back(now, &routes, &mut check, &own);
            }
            Here::Closed => return self.hold(check.applied, asked),
        }
        self.decide_ownerless(now, &routes, &mut check);
        if check.settlement.is_refused() || check.plan.remote().is_empty() {
            return Checked::Now(self.finish(now, check));
        }
        self.ask_peers(&routes, check, asked)
    }

    /// Waits for slots that come to this node, or go from it this instant, and decides then.
    fn hold(self: &Arc<Self>, applied: AppliedLimits, asked: Asked) -> Checked {
        let node = Arc::clone(self);
        Checked::Later(Box::pin(async move {
            let asks: SmallVec<[Ask; 2]> = applied.iter().map(Applied::ask).collect();
            if node.owner.hold(&asks) == Hold::Awaiting {
                node.owner.await_slots(&asks).await;
            } else {
                node.owner.await_moved().await;
            }
            let asked = Asked {
                now: node.clock.now(),
                was_held: true,
                ..asked
            };
            node.check_applied(applied, asked).decision().await
        }))
    }

    /// Where a slot is decided, as this node sees it.
    fn place_of(&self, routes: &Routes, slot: SlotId, given: &mut SmallVec<[NodeId; 1]>) -> Place {
        let states = &self.owner.states;
        if states.holds(slot) {
            return Place::Here;
        }
        match states.hold(slot) {
            Hold::Yes | Hold::Overdue | Hold::Awaiting => Place::Here,
            Hold::Given(to) => {
                let placement = &routes.view.placement;
                let owner = routes.owner(slot);
                if let Some(owner) = owner.filter(|owner| routes.view.own != Some(*owner)) {
                    return Place::At(owner.index());
                }
                if let Some(member) = placement.index_of(&to) {
                    return Place::At(member.index());
                }
                let known = given.iter().position(|known| *known == to);
                let at = known.unwrap_or_else(|| {
                    given.push(to);
                    given.len() - 1
                });
                Place::At(placement.members().len() + at)
            }
            Hold::No => match routes.owner(slot) {
                None => Place::Nobody,
                owner if owner == routes.view.own => Place::Nobody,
                Some(owner) => Place::At(owner.index()),
            },
        }
    }

    /// The limits that apply to a question of that cost.
    pub(crate) fn applied(
        &self,
        question: &Question<'_>,
        cost: Cost,
    ) -> Result<AppliedLimits, CheckError> {
        let mut applied = self.enforced(question, cost)?;
        if self.owner.switches.is_shadow() {
            for applied in &mut applied {
                applied.rule.enforcement = Enforcement::Shadow;
            }
        }
        Ok(applied)
    }

    /// The same as if no switch were on.
    fn enforced(&self, question: &Question<'_>, cost: Cost) -> Result<AppliedLimits, CheckError> {
        match &question.subject {
            Subject::Policy { name, attributes } => {
                let policies = self.policies.load();
                let unknown = || CheckError::UnknownPolicy {
                    name: (*name).to_owned(),
                };
                policies
                    .policy(name)
                    .ok_or_else(unknown)?
                    .select(attributes, cost, question.call)
            }
            Subject::Inline { limit, key } => {
                if question.call == Call::Check && limit.is_concurrency() {
                    return Err(CheckError::OnlyConcurrency);
                }
                let applied = limit.apply(key, cost)?;
                let applied = applied.map(|Application { key, rule, cost }| Applied {
                    limit: Arc::clone(limit),
                    key,
                    rule,
                    cost,
                });
                Ok(applied.into_iter().collect())
            }
        }
    }

    fn next_check_id(&self) -> CheckId {
        let number = self.next_check.fetch_add(1, Ordering::Relaxed);
        CheckId {
            boot: self.boot.0,
            number,
        }
    }

    /// Decides the limits whose slots this node holds.
    fn decide_here(&self, now: Nanos, routes: &Routes, check: &mut Ongoing) -> Here {
        let own: SmallVec<[usize; 2]> = check.plan.local().into();
        if own.is_empty() {
            return Here::Decided;
        }
        if self.owner.pause.is_late(now) {
            self.fall_back(now, routes, check, &own);
            return Here::Decided;
        }
        let asks = asks_of(check, &own);
        let mut verdicts = SmallVec::<[Verdict; 2]>::new();
        let store = &self.owner.store;
        if !store.try_decide_all(now, &asks, check.plan.mode(), &mut verdicts) {
            return Here::Closed;
        }
        let by = self.as_decider();
        let answers = verdicts.into_iter().zip(&asks).map(|(verdict, ask)| {
            let degraded = !self.owner.states.holds(ask.key.slot());
            answer_of(
                verdict,
                &Decider {
                    degraded,
                    ..by.clone()
                },
            )
        });
        check.settlement.record(Step::Owner, &own, answers);
        Here::Decided
    }

    /// Decides those that nobody owns.
    fn decide_ownerless(&self, now: Nanos, routes: &Routes, check: &mut Ongoing) {
        let ownerless: SmallVec<[usize; 2]> = check.plan.ownerless().into();
        if !ownerless.is_empty() && !check.settlement.is_refused() {
            self.fall_back(now, routes, check, &ownerless);
        }
    }

    /// Limits that come with checks share one tally: they are as many as clients like.
    fn tally_of<'a>(&'a self, limit: &'a Limit) -> &'a Tally {
        if limit.is_inline() {
            &self.inline_tally
        } else {
            limit.tally()
        }
    }

    /// Ends a check: what must go back is sent back, and all is tallied.
    fn finish(&self, now: Nanos, check: Ongoing) -> Decision {
        let Settled { limits, give_back } =
            check.settlement.finish(check.plan.mode(), &check.applied);
        for charge in give_back {
            match charge {
                GiveBackTo::Owner(charge) => {
                    let Amendment { ask, change } = give_back_of(&charge);
                    self.owner.store.amend(now, &ask, change);
                    // What it charged in another's stead may have been reported by now.
                    if !self.owner.states.holds(ask.key.slot()) {
                        self.owner.mover.owe([ask.key.slot()]);
                    }
                }
                GiveBackTo::Fallback(charge) => self.shares.amend(now, &give_back_of(&charge)),
                GiveBackTo::Peer(node, charge) => {
                    self.known.forget(charge.key);
                    if let Some(link) = self.routes.load().link_to(&node) {
                        link.give_back(now, give_back_of(&charge), Some(BootId(charge.boot)));
                    }
                }
            }
        }
        if check.plan.mode() == Mode::Consume {
            for limit in &limits {
                self.tally_of(&limit.limit)
                    .count(&limit.verdict, limit.decided_by);
                if limit.degraded && limit.verdict.is_allowed() {
                    self.owner.counters.degraded_admissions.raise();
                }
            }
        }
        Decision {
            id: check.id,
            limits,
        }
    }
}

/// Whether this node could decide its own part of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    Decided,
    /// A slot was closed this instant: nothing was done.
    Closed,
}

/// What a limit said, and who.
fn answer_of(verdict: Verdict, by: &Decider) -> Answer {
    Answer {
        verdict,
        decided_by: by.by,
        node: by.node.clone(),
        boot: by.boot.0,
        degraded: by.degraded,
    }
}

/// The amendment that takes a charge back.
pub(crate) const fn give_back_of(charge: &Charge) -> Amendment {
    Amendment {
        ask: Ask {
            key: charge.key,
            rule: charge.rule,
            cost: charge.cost,
        },
        change: Change::GiveBack {
            slice: charge.slice,
        },
    }
}

/// What the limits at these places ask for.
fn asks_of(check: &Ongoing, limits: &[usize]) -> SmallVec<[Ask; 2]> {
    let applied = limits.iter().filter_map(|limit| check.applied.get(*limit));
    applied.map(Applied::ask).collect()
}
