//! Deciding without the owner: the limit's fallback.
//!
//! Local shares count in a store of their own, apart from what this node owns, so that they can never
//! be taken for the owner's counts. It has a fixed budget; above it the least used go (P7).

use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;
use tollgate_cluster::{Amendment, Answer, LastAnswers, Step, Substitute, substitute_for};
use tollgate_limit::{
    Ask, Change, DecidedBy, Fallback, KeyHash, Mode, Nanos, Rule, Series, SlotSet, Store,
    StoreConfig, Verdict,
};

use super::Ongoing;
use crate::{node::Node, routes::Routes};

/// The memory of local shares, in bytes.
const SHARES_BYTES: u64 = 16 * 1024 * 1024;

/// What this node admitted without the owners, and the last answers that it had from them.
#[derive(Debug)]
pub(crate) struct LocalShares {
    counters: Store,
    last_answers: LastAnswers,
    in_use: AtomicBool,
}

impl LocalShares {
    /// No share yet; `config` but for the memory is that of the node's own store.
    pub(crate) fn new(config: StoreConfig) -> Self {
        Self {
            counters: Store::new(&StoreConfig {
                max_bytes: SHARES_BYTES,
                // Far from those of the node's own store.
                writer: config.writer.wrapping_add(u64::MAX / 2),
                ..config
            }),
            last_answers: LastAnswers::new(),
            in_use: AtomicBool::new(false),
        }
    }

    /// The owner answered: a share that starts later starts from this. One that there is stays until it is
    /// reported.
    pub(crate) fn handle_answer(&self, now: Nanos, key: KeyHash, rule: &Rule, used: u64) {
        // What the share has counted stays until it is reported: then it starts from this.
        self.last_answers.record(now, key, used, rule.window());
    }

    /// Forgets a share, and the last answer.
    pub(crate) fn reset(&self, key: KeyHash) {
        self.last_answers.forget(key);
        self.counters.remove(key);
    }

    /// Changes a counter of a share.
    pub(crate) fn amend(&self, now: Nanos, amendment: &Amendment) {
        self.counters.amend(now, &amendment.ask, amendment.change);
    }

    /// Takes out what was counted in these slots, a shard at a time, until there are that many series; the slots
    /// that were not come to are told.
    pub(crate) fn withdraw(
        &self,
        now: Nanos,
        (slots, most): (&SlotSet, usize),
        out: &mut Vec<Series>,
    ) -> SlotSet {
        let mut left = SlotSet::new();
        if !self.in_use.load(Ordering::Relaxed) {
            return left;
        }
        let end = out.len().saturating_add(most);
        for shard in slots.shards() {
            let mut part = SlotSet::new();
            part.set_shard(shard, slots.of_shard(shard));
            if out.len() < end {
                self.counters.withdraw(now, &part, out);
            } else {
                left.extend(&part);
            }
        }
        left
    }

    /// Forgets what has expired in the next `shards` shards.
    pub(crate) fn sweep(&self, now: Nanos, shards: usize) {
        if self.in_use.load(Ordering::Relaxed) {
            self.counters.sweep(now, shards);
        }
    }

    /// Forgets the answers that are older than their window.
    pub(crate) fn sweep_answers(&self, now: Nanos) {
        self.last_answers.sweep(now);
    }

    /// Keys whose last answer is known.
    #[cfg(test)]
    pub(crate) fn last_answers(&self) -> usize {
        self.last_answers.len()
    }

    /// Counters of local shares.
    pub(crate) fn keys(&self) -> u64 {
        if self.in_use.load(Ordering::Relaxed) {
            self.counters.stats().keys
        } else {
            0
        }
    }

    /// A full share starts from the last answer that this node had from the owner.
    fn start_from_last_answer(&self, now: Nanos, ask: &Ask) {
        if let Some(used) = self.last_answers.used(now, ask.key) {
            self.counters.seed(now, ask.key, &ask.rule, used);
        }
    }

    fn decide(&self, now: Nanos, asks: &[Ask], mode: Mode, verdicts: &mut SmallVec<[Verdict; 2]>) {
        self.in_use.store(true, Ordering::Relaxed);
        self.counters.decide_all(now, asks, mode, verdicts);
    }

    /// Counts what is admitted in any case; what the counter itself says.
    fn count(&self, now: Nanos, ask: &Ask, mode: Mode) -> Verdict {
        self.in_use.store(true, Ordering::Relaxed);
        let verdict = self.counters.decide(now, ask, mode);
        if mode == Mode::Consume && !verdict.is_allowed() {
            self.counters.amend(now, ask, Change::Charge);
        }
        verdict
    }
}

impl Node {
    /// Decides these limits by their fallbacks, in one step.
    pub(super) fn fall_back(
        &self,
        now: Nanos,
        routes: &Routes,
        check: &mut Ongoing,
        limits: &[usize],
    ) {
        let members = routes.view.placement.members().len();
        let substitutes: SmallVec<[Substitute; 2]> = limits
            .iter()
            .filter_map(|limit| check.applied.get(*limit))
            .map(|applied| substitute_for(&applied.rule, applied.limit.fallback(), members))
            .collect();
        let places = || {
            let applied = limits.iter().map(|limit| check.applied.get(*limit));
            applied.flatten().zip(&substitutes)
        };
        // A refusal consumes nothing, also where it is the fallback that refuses.
        let mode = match substitutes.iter().any(denies) {
            true => Mode::Peek,
            false => check.plan.mode(),
        };
        let mut asks = SmallVec::<[Ask; 2]>::new();
        for (applied, substitute) in places() {
            let Substitute::Decide(rule) = substitute else {
                continue;
            };
            let ask = Ask {
                rule: *rule,
                ..applied.ask()
            };
            if applied.limit.fallback() == Fallback::LocalFull {
                self.shares.start_from_last_answer(now, &ask);
            }
            asks.push(ask);
        }
        let mut decided = SmallVec::<[Verdict; 2]>::new();
        if !asks.is_empty() {
            self.shares.decide(now, &asks, mode, &mut decided);
        }
        let refuses =
            |(ask, verdict): (&Ask, &Verdict)| ask.rule.is_enforced() && !verdict.is_allowed();
        let mode = match asks.iter().zip(&decided).any(refuses) {
            true => Mode::Peek,
            false => mode,
        };
        let mut decided = decided.into_iter();
        let verdicts: SmallVec<[Verdict; 2]> = places()
            .filter_map(|(applied, substitute)| {
                let decided = match substitute {
                    Substitute::Decide(_) => decided.next(),
                    Substitute::Count(rule, _) => {
                        let ask = Ask {
                            rule: *rule,
                            ..applied.ask()
                        };
                        Some(self.shares.count(now, &ask, mode))
                    }
                    Substitute::Say(_) => None,
                };
                substitute.said(decided)
            })
            .collect();
        if mode == Mode::Consume {
            self.owner
                .mover
                .owe_shares(places().map(|(applied, _)| applied.key.slot()));
        }
        let answers = verdicts.into_iter().map(|verdict| Answer {
            verdict,
            decided_by: DecidedBy::Fallback,
            node: self.config.node.clone(),
            boot: self.boot.0,
            degraded: true,
        });
        check.settlement.record(Step::Fallback, limits, answers);
    }
}

fn denies(substitute: &Substitute) -> bool {
    match substitute {
        Substitute::Say(verdict) => !verdict.is_allowed(),
        Substitute::Decide(_) | Substitute::Count(..) => false,
    }
}
