//! Whether a history keeps what the cluster promises (DESIGN 2).
//!
//! Each promise is one module: [`bound`] (P1, P2: never more than the formula says), [`fits`] (P9: nothing
//! is refused that fits), [`total`] (P6: what is counted at the end), [`owners`] (one owner at a time, and a
//! standby only where it must), and the deadline (P3) here. Knows nothing of how nodes work, and of the
//! cluster no more than the history says. Where that leaves something open, it takes the cluster's side: what
//! it reports is broken.

mod allowance;
mod bound;
mod fits;
mod of_key;
mod owners;
mod total;
mod violation;

use self::of_key::OfKey;
pub use self::{bound::Over, violation::Violation};
use crate::history::{Fault, History};

/// The most violations that are told of one history.
const MAX_VIOLATIONS: usize = 20;

/// All that a history breaks, at most 20 of them; none if it keeps every promise.
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let mut broken = Vec::new();
    deadline(history, &mut broken);
    for (name, rule) in &history.rules {
        let key = OfKey::of(history, name, *rule);
        bound::check(&key, &mut broken);
        fits::check(&key, &mut broken);
        total::check(&key, &mut broken);
        owners::check(&key, &mut broken);
    }
    broken.truncate(MAX_VIOLATIONS);
    broken
}

/// The window that held the most beyond what its algorithm allows; `None`: none did.
#[must_use]
pub fn worst(history: &History) -> Option<Over> {
    let rules = history.rules.iter();
    let worst = rules.filter_map(|(name, rule)| bound::worst(&OfKey::of(history, name, *rule)));
    worst.max_by_key(Over::units)
}

/// P3: every check is answered in time, unless the node that was asked died or did not run.
fn deadline(history: &History, broken: &mut Vec<Violation>) {
    let terms = &history.terms;
    for answer in &history.answers {
        let due = answer.asked.saturating_add(terms.deadline);
        let due = due.saturating_add(terms.slack);
        let in_time = answer.answered.is_some_and(|at| at <= due);
        let excused = || {
            history.faults.iter().any(|fault| match fault {
                Fault::Crash { node, at, .. } => {
                    *node == answer.entry && answer.asked <= *at && *at <= due
                }
                Fault::Pause { node, since, until } => {
                    *node == answer.entry && *since <= due && answer.asked <= *until
                }
                Fault::Cut { .. } | Fault::Accused { .. } => false,
            })
        };
        if !in_time && !excused() {
            broken.push(Violation::Late {
                check: answer.check,
                key: answer.key.clone(),
                asked: answer.asked,
                answered: answer.answered,
            });
        }
    }
}

#[cfg(test)]
mod tests;
