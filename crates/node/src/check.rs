//! One check at its entry node: which limits apply, who owns them, what each said.
//!
//! What this node can decide by itself is decided at once, without a future; the only await is a
//! peer. Invariants: every check is answered within its deadline (P3); a check that was refused leaves
//! no charge that is not on its way back (P4).

mod fallback;
mod journey;
mod one;
mod remote;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use smallvec::SmallVec;
use tollgate_cluster::{Amendment, Answer, GiveBackTo, Plan, Settled, Settlement, Step};
use tollgate_limit::{
    Application, Applied, AppliedLimits, Ask, Call, Change, Charge, CheckError, CheckId, Cost,
    DecidedBy, Decision, Limit, Mode, Nanos, Question, Subject, Tally, Verdict,
};
use tollgate_wire::identity::BootId;

pub(crate) use self::fallback::LocalShares;
use crate::{node::Node, routes::Routes};

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
    started: Nanos,
    mode: Mode,
}

/// One check on its way: what was asked, and what is said so far.
struct Ongoing {
    id: CheckId,
    applied: AppliedLimits,
    plan: Plan,
    settlement: Settlement,
}

impl Ongoing {
    fn new(asked: Asked, applied: AppliedLimits, routes: &Routes) -> Self {
        let Asked { id, mode, .. } = asked;
        let placement = &routes.view.placement;
        let plan = Plan::new(&applied, mode, placement, routes.view.own);
        let settlement = Settlement::new(&applied);
        Self {
            id,
            applied,
            plan,
            settlement,
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
            started: now,
            mode,
        };
        let routes = self.routes.load();
        if let [only] = applied.as_slice()
            && let Some(checked) = self.check_one(&routes, only, asked)
        {
            return Ok(checked);
        }
        let mut check = Ongoing::new(asked, applied, &routes);
        self.decide_here(now, &routes, &mut check);
        if check.settlement.is_refused() || check.plan.remote().is_empty() {
            return Ok(Checked::Now(self.finish(now, check)));
        }
        Ok(self.ask_peers(now, &routes, check))
    }

    /// The limits that apply to a question of that cost.
    pub(crate) fn applied(
        &self,
        question: &Question<'_>,
        cost: Cost,
    ) -> Result<AppliedLimits, CheckError> {
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

    /// Decides what needs no peer: this node's own limits, then those that nobody owns.
    fn decide_here(&self, now: Nanos, routes: &Routes, check: &mut Ongoing) {
        let own: SmallVec<[usize; 2]> = check.plan.local().into();
        if !own.is_empty() {
            if self.owner.pause.is_late(now) {
                self.fall_back(now, routes, check, &own);
            } else {
                let asks = asks_of(check, &own);
                let mut verdicts = SmallVec::<[Verdict; 2]>::new();
                self.owner
                    .store
                    .decide_all(now, &asks, check.plan.mode(), &mut verdicts);
                let answers = verdicts.into_iter().map(|verdict| self.own_answer(verdict));
                check.settlement.record(Step::Owner, &own, answers);
            }
        }
        let ownerless: SmallVec<[usize; 2]> = check.plan.ownerless().into();
        if !ownerless.is_empty() && !check.settlement.is_refused() {
            self.fall_back(now, routes, check, &ownerless);
        }
    }

    fn own_answer(&self, verdict: Verdict) -> Answer {
        let node = self.config.node.clone();
        Answer {
            verdict,
            decided_by: DecidedBy::Owner,
            node,
            boot: self.boot.0,
            degraded: false,
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
                }
                GiveBackTo::Fallback(charge) => self.shares.amend(now, &give_back_of(&charge)),
                GiveBackTo::Peer(node, charge) => {
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
            }
        }
        Decision {
            id: check.id,
            limits,
        }
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
