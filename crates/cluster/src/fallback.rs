//! The fallback of a limit whose owner did not answer, and what it starts from.
//!
//! Knows nothing of peers or stores: it says what the entry node decides with.

use tollgate_limit::{
    Algorithm, Concurrency, Fallback, FixedWindow, KeyHash, LeakyBucket, Nanos, Outcome, Reason,
    Rule, SlidingLog, SlidingWindow, TokenBucket, Verdict, Window,
};

use crate::key_map::KeyMap;

/// When to ask again after a refusal by `fallback = "deny"`.
pub const UNDECIDED_RETRY_AFTER: Nanos = Nanos::from_millis(1_000);

/// What takes an owner's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Substitute {
    /// Decide on this node by this rule, under the limit's key.
    Decide(Rule),
    /// Say this, and count the cost on this node by this rule, under the limit's key, fit or not: what is
    /// admitted without the owner is reported to it. Decided by the rule first, and charged as a
    /// [`Change::Charge`](tollgate_limit::Change::Charge) where that refuses, the charge can be given back
    /// as long as the rule admits: [`Substitute::said`].
    Count(Rule, Verdict),
    /// Say this, and charge nothing.
    Say(Verdict),
}

impl Substitute {
    /// What is said in the end, given what this node's counters said; `None` if that is missing.
    #[must_use]
    pub fn said(&self, decided: Option<Verdict>) -> Option<Verdict> {
        match self {
            Self::Decide(_) => decided,
            Self::Count(_, verdict) => Some(Verdict {
                charged_slice: decided.map_or(0, |decided| decided.charged_slice),
                ..*verdict
            }),
            Self::Say(verdict) => Some(*verdict),
        }
    }
}

/// What decides for a limit of this rule without its owner, in a cluster of so many active members.
#[must_use]
pub fn substitute_for(rule: &Rule, fallback: Fallback, members: usize) -> Substitute {
    match fallback {
        Fallback::LocalFull => Substitute::Decide(*rule),
        Fallback::LocalFair => Substitute::Decide(fair_share(rule, members)),
        Fallback::Allow => {
            let verdict = Verdict {
                outcome: Outcome::Allow,
                used: 0,
                remaining: rule.open_capacity(),
                retry_after: Some(Nanos::ZERO),
                more_after: Nanos::ZERO,
                reset_after: Nanos::ZERO,
                delay: Nanos::ZERO,
                charged_slice: 0,
            };
            Substitute::Count(*rule, verdict)
        }
        Fallback::Deny => Substitute::Say(Verdict {
            outcome: Outcome::Refuse(Reason::Undecided),
            used: 0,
            remaining: 0,
            retry_after: Some(UNDECIDED_RETRY_AFTER),
            more_after: UNDECIDED_RETRY_AFTER,
            reset_after: UNDECIDED_RETRY_AFTER,
            delay: Nanos::ZERO,
            charged_slice: 0,
        }),
    }
}

/// The rule with its numbers divided by the members, at least 1 unless they are 0; so is what is open to
/// the asker, and the rest of the share is set aside: a division of what is set aside could leave
/// nothing open.
fn fair_share(rule: &Rule, members: usize) -> Rule {
    let members = u64::try_from(members).unwrap_or(u64::MAX).max(1);
    let part = |number: u64| {
        let part = number.checked_div(members).unwrap_or(0);
        part.max(number.min(1))
    };
    let algorithm = match rule.algorithm {
        Algorithm::SlidingWindow(rule) => Algorithm::SlidingWindow(SlidingWindow {
            limit: part(rule.limit),
            ..rule
        }),
        Algorithm::SlidingLog(rule) => Algorithm::SlidingLog(SlidingLog {
            limit: part(rule.limit),
            ..rule
        }),
        Algorithm::FixedWindow(rule) => Algorithm::FixedWindow(FixedWindow {
            limit: part(rule.limit),
            ..rule
        }),
        Algorithm::TokenBucket(rule) => Algorithm::TokenBucket(TokenBucket {
            limit: part(rule.limit),
            burst: part(rule.burst),
            ..rule
        }),
        Algorithm::LeakyBucket(rule) => Algorithm::LeakyBucket(LeakyBucket {
            limit: part(rule.limit),
            queue: part(rule.capacity()).saturating_sub(1),
            ..rule
        }),
        Algorithm::Concurrency(rule) => Algorithm::Concurrency(Concurrency {
            limit: part(rule.limit),
            ..rule
        }),
    };
    Rule {
        algorithm,
        set_aside: algorithm
            .capacity()
            .saturating_sub(part(rule.open_capacity())),
        ceiling: part(rule.ceiling),
        ..*rule
    }
}

/// The most keys that last answers are kept for. When full, answers for new keys are not kept: their
/// fallback starts from nothing.
pub const MAX_LAST_ANSWERS: usize = 65_536;

/// The use that owners told this node last, by key: what `fallback = "local"` starts from. Shared by
/// all threads.
#[derive(Debug)]
pub struct LastAnswers {
    answers: KeyMap<LastAnswer>,
}

#[derive(Clone, Copy, Debug)]
struct LastAnswer {
    used: u64,
    at: Nanos,
    expires: Nanos,
}

impl LastAnswers {
    /// No answer yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            answers: KeyMap::new(MAX_LAST_ANSWERS),
        }
    }

    /// An owner told what is used of a key. An older answer never replaces a newer one.
    pub fn record(&self, now: Nanos, key: KeyHash, used: u64, window: Window) {
        let answer = LastAnswer {
            used,
            at: now,
            expires: now.saturating_add(window.span()),
        };
        let is_older = |known: &LastAnswer, _: &mut LastAnswer| known.at <= now;
        self.answers.set(key, answer, is_older);
    }

    /// What was used of a key when its owner answered last; `None` once a whole window has passed
    /// since, or if it never did.
    #[must_use]
    pub fn used(&self, now: Nanos, key: KeyHash) -> Option<u64> {
        let answer = self.answers.read(key, |answer| *answer)?;
        (now < answer.expires).then_some(answer.used)
    }

    /// Forgets the answer for one key.
    pub fn forget(&self, key: KeyHash) {
        self.answers.remove_if(key, |_answer| true);
    }

    /// Forgets what has expired. One pass over all, a shard at a time.
    pub fn sweep(&self, now: Nanos) {
        self.answers.retain(|answer| now < answer.expires);
    }

    /// How many keys are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

impl Default for LastAnswers {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
