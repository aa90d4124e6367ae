//! The settlement of one check: from what each limit said to the answer, and what must go back.
//!
//! INV-REFUSAL-KEEPS-NOTHING (P4, rule 5): when a limit refuses, every charge that another step made
//! for the same check is listed to be given back, and no other. A step decides its limits together,
//! so a step with a refusal charged nothing. Knows nothing of stores and messages.

use smallvec::SmallVec;
use tollgate_limit::{
    AppliedLimits, Cost, DecidedBy, KeyHash, LimitDecision, Mode, NodeId, Rule, Verdict,
};

use crate::plan::Plan;

/// What one limit said, and who decided it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What it said.
    pub verdict: Verdict,
    /// Who decided.
    pub decided_by: DecidedBy,
    /// The node that decided.
    pub node: NodeId,
    /// Whether the answer may miss counts that the cluster has.
    pub degraded: bool,
}

/// Where a step decided, and so where its charges are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// In this node's counters, as owner.
    Owner,
    /// In this node's local shares, by fallback.
    Fallback,
    /// In the counters of the peer that the answers name.
    Peer,
    /// In no counter: admitted or refused by word, or from memory.
    Nowhere,
}

/// A charge, as its counter needs it to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The counter.
    pub key: KeyHash,
    /// Its rule.
    pub rule: Rule,
    /// What was charged.
    pub cost: Cost,
    /// The slice that it went to, on the clock of the node that charged.
    pub slice: u64,
}

/// A charge that must go back, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GiveBackTo {
    /// Into this node's counters.
    Owner(Charge),
    /// Into this node's local shares.
    Fallback(Charge),
    /// To this peer.
    Peer(NodeId, Charge),
}

/// A settled check.
#[derive(Debug)]
pub struct Settled {
    /// What each limit that was asked said, in the order of the limits.
    pub limits: Vec<LimitDecision>,
    /// What must go back; empty unless a limit refused.
    pub give_back: SmallVec<[GiveBackTo; 1]>,
}

/// Gathers the answers of one check. No allocation for up to two limits but the list of decisions.
#[derive(Clone, Debug)]
pub struct Settlement {
    answers: SmallVec<[Option<Recorded>; 2]>,
    refused: bool,
}

#[derive(Clone, Debug)]
struct Recorded {
    answer: Answer,
    step: Step,
    /// Whether the step admitted and so charged.
    charged: bool,
}

impl Settlement {
    /// Nothing is said yet by any of so many applied limits.
    #[must_use]
    pub fn new(limits: usize) -> Self {
        Self {
            answers: SmallVec::from_elem(None, limits),
            refused: false,
        }
    }

    /// One step has decided these limits together; answers are in the order of `limits`.
    pub fn record(
        &mut self,
        step: Step,
        limits: &[usize],
        answers: impl IntoIterator<Item = Answer>,
    ) {
        let mut admitted = true;
        for (limit, answer) in limits.iter().zip(answers) {
            admitted &= answer.verdict.is_allowed();
            if let Some(place) = self.answers.get_mut(*limit) {
                debug_assert!(place.is_none(), "a limit is decided once");
                *place = Some(Recorded {
                    answer,
                    step,
                    charged: false,
                });
            }
        }
        if !admitted {
            self.refused = true;
            return;
        }
        for limit in limits {
            if let Some(Some(recorded)) = self.answers.get_mut(*limit) {
                recorded.charged = true;
            }
        }
    }

    /// Whether a limit has refused: then the limits that are not asked yet must not be.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refused
    }

    /// The answer, and what must go back. `applied` and `plan` are the check's.
    #[must_use]
    pub fn finish(self, plan: &Plan, applied: &AppliedLimits) -> Settled {
        let consumes = plan.mode() == Mode::Consume && plan.cost() != Cost::ZERO;
        let gives_back = self.refused && consumes;
        let mut settled = Settled {
            limits: Vec::with_capacity(self.answers.len()),
            give_back: SmallVec::new(),
        };
        for (applied, recorded) in applied.iter().zip(self.answers) {
            let Some(recorded) = recorded else { continue };
            let answer = recorded.answer;
            if gives_back && recorded.charged {
                let charge = Charge {
                    key: applied.key,
                    rule: *applied.limit.rule(),
                    cost: plan.cost(),
                    slice: answer.verdict.charged_slice,
                };
                match recorded.step {
                    Step::Owner => settled.give_back.push(GiveBackTo::Owner(charge)),
                    Step::Fallback => settled.give_back.push(GiveBackTo::Fallback(charge)),
                    Step::Peer => {
                        let peer = answer.node.clone();
                        settled.give_back.push(GiveBackTo::Peer(peer, charge));
                    }
                    Step::Nowhere => {}
                }
            }
            settled.limits.push(LimitDecision {
                limit: applied.limit.clone(),
                verdict: answer.verdict,
                decided_by: answer.decided_by,
                node: answer.node,
                degraded: answer.degraded,
            });
        }
        settled
    }
}

#[cfg(test)]
mod tests;
