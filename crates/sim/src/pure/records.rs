//! The history of a run while it is written: checks that are not answered yet, and who holds what.

use std::collections::BTreeMap;

use tollgate_limit::{DecidedBy, Mode, Nanos, NodeId, Outcome};
use tollgate_wire::identity::BootId;

use super::node::{ClientCheck, LimitSaid};
use crate::history::{Answer, Held, History, Said};

/// A check that a client waits for.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) entry: NodeId,
    pub(super) boot: BootId,
    pub(super) asked: Nanos,
    pub(super) check: ClientCheck,
    /// The names of its keys.
    pub(super) keys: Vec<String>,
}

/// What is written down.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) history: History,
    waiting: BTreeMap<u64, Waiting>,
    /// By node and key.
    holding: BTreeMap<(usize, usize), Held>,
    next: u64,
}

impl Records {
    pub(super) const fn new(history: History) -> Self {
        Self {
            history,
            waiting: BTreeMap::new(),
            holding: BTreeMap::new(),
            next: 1,
        }
    }

    /// A number for a check or an amendment.
    pub(super) const fn number(&mut self) -> u64 {
        let number = self.next;
        self.next = number.saturating_add(1);
        number
    }

    pub(super) fn asked(&mut self, id: u64, waiting: Waiting) {
        self.waiting.insert(id, waiting);
    }

    /// A check is answered; what it was, if it was not before.
    pub(super) fn answered(
        &mut self,
        now: Nanos,
        id: u64,
        said: &[Option<LimitSaid>],
    ) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        let admitted = said
            .iter()
            .all(|said| said.as_ref().is_some_and(|it| it.verdict.is_allowed()));
        let limits = waiting.check.limits.iter().zip(&waiting.keys).zip(said);
        for ((limit, key), said) in limits {
            let Some(limit_said) = said else { continue };
            let word = match limit_said.verdict.outcome {
                Outcome::Refuse(reason) => Said::Refused(reason),
                Outcome::Allow if waiting.check.mode == Mode::Peek => Said::Peeked,
                Outcome::Allow if admitted => Said::Admitted,
                Outcome::Allow => Said::Given,
            };
            self.history.answers.push(Answer {
                check: id,
                key: key.clone(),
                cost: limit.ask.cost.units(),
                entry: waiting.entry.clone(),
                asked: waiting.asked,
                answered: Some(now),
                decided: Some(limit_said.decided),
                said: word,
                by: limit_said.by,
                node: limit_said.node.clone(),
                boot: limit_said.boot,
                degraded: limit_said.degraded,
            });
        }
        Some(waiting)
    }

    /// A node decides for a key since now.
    pub(super) fn holds(&mut self, (node, key): (usize, usize), held: impl FnOnce() -> Held) {
        self.holding.entry((node, key)).or_insert_with(held);
    }

    /// It does so no more.
    pub(super) fn holds_no_more(&mut self, now: Nanos, (node, key): (usize, usize)) {
        if let Some(held) = self.holding.remove(&(node, key)) {
            self.history.holds.push(Held { until: now, ..held });
        }
    }

    /// All that is still open, at the end.
    pub(super) fn close(mut self, now: Nanos) -> History {
        for (_, held) in std::mem::take(&mut self.holding) {
            self.history.holds.push(Held { until: now, ..held });
        }
        for (id, waiting) in std::mem::take(&mut self.waiting) {
            for (limit, key) in waiting.check.limits.iter().zip(&waiting.keys) {
                let said = match waiting.check.mode {
                    Mode::Peek => Said::Peeked,
                    Mode::Consume => Said::Nothing,
                };
                self.history.answers.push(Answer {
                    check: id,
                    key: key.clone(),
                    cost: limit.ask.cost.units(),
                    entry: waiting.entry.clone(),
                    asked: waiting.asked,
                    answered: None,
                    decided: None,
                    said,
                    by: DecidedBy::Fallback,
                    node: waiting.entry.clone(),
                    boot: waiting.boot,
                    degraded: true,
                });
            }
        }
        self.history
    }
}
