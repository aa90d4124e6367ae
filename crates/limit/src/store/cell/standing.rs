//! How a cell stands: what memory it is worth (P7).
//!
//! Knows nothing of tables, budgets or locks.

use super::{Role, held, is_marked, kept, role, rule_of, unsent, void_end};
use crate::{
    counter::{
        Held, Moment, Reading,
        merge::{self, Kept},
    },
    judge::Reading as _,
    rule::{Algorithm, Rule},
    store::ban,
    units::Nanos,
};

/// How a cell stands at an instant, by the rule that it saw last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Standing {
    /// Nothing is used: it is as good as gone.
    Empty,
    /// Less than the limit is used.
    Below {
        used: u64,
        limit: u64,
        latest: Nanos,
    },
    /// The limit is used up, for so long.
    AtLimit { recovers_after: Nanos },
}

/// How a total stands.
pub(in crate::store) fn standing(cell: &[u64], at: Moment) -> Standing {
    let Some(held) = held(cell) else {
        return Standing::Empty;
    };
    let Some(rule) = rule_of(cell) else {
        return ban::standing(held.words, at.now);
    };
    let (limit, latest) = (rule.capacity(), held.latest);
    let reading = Reading::at(&rule, held, at);
    let used = reading.used();
    if used == 0 && !(is_awaited(cell) && at.now < end_of(&rule, at, held)) {
        return Standing::Empty;
    }
    of_reading(&reading, limit, latest)
}

/// How another writer's series or a void stands by itself.
pub(in crate::store) fn standing_of_foreign(cell: &[u64], at: Moment) -> Standing {
    if role(cell) == Role::Void {
        return standing_of_void(cell, at);
    }
    let Some(kept) = kept(cell) else {
        return Standing::Empty;
    };
    let there = Nanos::new(at.now.as_nanos().wrapping_sub(kept.offset));
    let Some(rule) = rule_of(cell) else {
        return ban::standing(kept.words, there);
    };
    if merge::ends_at(&rule, at, kept) <= at.now {
        return Standing::Empty;
    }
    let latest = Nanos::new(kept.latest.as_nanos().wrapping_add(kept.offset));
    // What was given back of others' charges is below nothing: worth as little.
    if is_negative(&rule, kept) {
        return Standing::Below {
            used: 0,
            limit: 1,
            latest,
        };
    }
    let held = Held {
        seen: rule.noted(),
        latest: kept.latest,
        words: kept.words,
    };
    match &rule.algorithm {
        // Its words are of Unix time.
        Algorithm::FixedWindow(_) => {
            let held = Held { latest, ..held };
            of_reading(&Reading::at(&rule, held, at), rule.capacity(), latest)
        }
        Algorithm::SlidingWindow(_)
        | Algorithm::SlidingLog(_)
        | Algorithm::TokenBucket(_)
        | Algorithm::LeakyBucket(_)
        | Algorithm::Concurrency(_) => {
            let at = Moment { now: there, ..at };
            of_reading(&Reading::at(&rule, held, at), rule.capacity(), latest)
        }
    }
}

fn standing_of_void(cell: &[u64], at: Moment) -> Standing {
    let end = void_end(cell);
    if end <= at.now {
        return Standing::Empty;
    }
    // It is the first to go for others.
    Standing::Below {
        used: 0,
        limit: 1,
        latest: Nanos::ZERO,
    }
}

fn of_reading(reading: &Reading<'_>, limit: u64, latest: Nanos) -> Standing {
    let used = reading.used();
    if used < limit {
        return Standing::Below {
            used,
            limit,
            latest,
        };
    }
    Standing::AtLimit {
        recovers_after: reading.wait_until_within(limit.saturating_sub(1)),
    }
}

/// Whether a total of nothing is not as good as none: others' series stand against it, or it has yet to tell
/// that all was given back.
fn is_awaited(cell: &[u64]) -> bool {
    is_marked(cell) || unsent(cell) > 0
}

/// When nothing counts any more that a total has held.
fn end_of(rule: &Rule, at: Moment, held: Held<'_>) -> Nanos {
    let Held { latest, words, .. } = held;
    let kept = Kept {
        latest,
        offset: 0,
        words,
    };
    merge::ends_at(rule, at, kept)
}

/// Whether a count is below zero.
fn is_negative(rule: &Rule, kept: Kept<'_>) -> bool {
    let counts: &[u64] = match &rule.algorithm {
        Algorithm::SlidingWindow(_) => kept.words,
        Algorithm::FixedWindow(_) => kept.words.get(2..).unwrap_or_default(),
        Algorithm::SlidingLog(_)
        | Algorithm::Concurrency(_)
        | Algorithm::TokenBucket(_)
        | Algorithm::LeakyBucket(_) => &[],
    };
    counts.iter().any(|count| i64::try_from(*count).is_err())
}
