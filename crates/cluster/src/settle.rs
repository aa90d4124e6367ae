//! The settlement of one check: from what each limit said to the answer, and what must go back.
//!
//! INV-REFUSAL-KEEPS-NOTHING (P4, rule 5): when a limit refuses, every charge that another step made
//! for the same check is listed to be given back, and no other. A step decides its limits together,
//! so a step with a refusal charged nothing. A limit in shadow refuses for itself alone: it charged
//! nothing, and the others go on (rule 10). Knows nothing of stores and messages.

use smallvec::SmallVec;
use tollgate_limit::{
    AppliedLimits, Charge, Cost, DecidedBy, LimitDecision, Mode, NodeId, Verdict,
};

/// What one limit said, and who decided it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What it said.
    pub verdict: Verdict,
    /// Who decided.
    pub decided_by: DecidedBy,
    /// The node that decided.
    pub node: NodeId,
    /// The boot of that node.
    pub boot: u64,
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
    answers: SmallVec<[Place; 2]>,
    refused: bool,
}

/// What is known of one limit.
#[derive(Clone, Debug)]
struct Place {
    enforced: bool,
    answer: Option<Answer>,
    step: Step,
    /// Whether its step admitted, it too, and so charged.
    charged: bool,
}

impl Settlement {
    /// Nothing is said yet by any of these limits.
    #[must_use]
    pub fn new(applied: &AppliedLimits) -> Self {
        let places = applied.iter().map(|applied| Place {
            enforced: applied.rule.is_enforced(),
            answer: None,
            step: Step::Nowhere,
            charged: false,
        });
        Self {
            answers: places.collect(),
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
            let allowed = answer.verdict.is_allowed();
            let Some(place) = self.answers.get_mut(*limit) else {
                continue;
            };
            debug_assert!(place.answer.is_none(), "a limit is decided once");
            admitted &= allowed || !place.enforced;
            place.charged = allowed;
            place.step = step;
            place.answer = Some(answer);
        }
        if !admitted {
            self.refused = true;
            for limit in limits {
                if let Some(place) = self.answers.get_mut(*limit) {
                    place.charged = false;
                }
            }
        }
    }

    /// Whether a limit has refused: then the limits that are not asked yet must not be.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refused
    }

    /// The answer, and what must go back. `applied` and `mode` are the check's.
    #[must_use]
    pub fn finish(self, mode: Mode, applied: &AppliedLimits) -> Settled {
        let mut settled = Settled {
            limits: Vec::with_capacity(self.answers.len()),
            give_back: SmallVec::new(),
        };
        for (applied, place) in applied.iter().zip(self.answers) {
            let Some(answer) = place.answer else { continue };
            let consumed = place.charged && mode == Mode::Consume && applied.cost > Cost::ZERO;
            if consumed && self.refused {
                let charge = Charge {
                    key: applied.key,
                    rule: applied.rule,
                    cost: applied.cost,
                    slice: answer.verdict.charged_slice,
                    boot: answer.boot,
                };
                match place.step {
                    Step::Owner => settled.give_back.push(GiveBackTo::Owner(charge)),
                    Step::Fallback => settled.give_back.push(GiveBackTo::Fallback(charge)),
                    Step::Peer => {
                        let peer = answer.node.clone();
                        settled.give_back.push(GiveBackTo::Peer(peer, charge));
                    }
                    Step::Nowhere => {}
                }
            }
            let stands = consumed && !self.refused && place.step != Step::Nowhere;
            settled.limits.push(LimitDecision {
                limit: applied.limit.clone(),
                key: applied.key,
                rule: applied.rule,
                charged: if stands { applied.cost } else { Cost::ZERO },
                verdict: answer.verdict,
                decided_by: answer.decided_by,
                node: answer.node,
                boot: answer.boot,
                degraded: answer.degraded,
            });
        }
        settled
    }
}

#[cfg(test)]
mod tests;
