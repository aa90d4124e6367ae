//! When to try again: a pure state machine. Time and randomness come in as values.
//!
//! A refusal that waiting cures is waited for as long as it says; an error without an answer by
//! exponential backoff with full jitter. Invariants: attempts and total time are bounded, and a wait
//! that would end after the total time is never begun.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// How often and how long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts, the first included.
    pub max_attempts: u32,
    /// The most time from the first attempt to the start of the last.
    pub max_total: Duration,
    /// The longest wait after the first error; it doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait after any error.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    /// Four attempts within a second; waits from 10 ms to 250 ms.
    fn default() -> Self {
        Self {
            max_attempts: 4,
            max_total: Duration::from_secs(1),
            first_wait: Duration::from_millis(10),
            max_wait: Duration::from_millis(250),
        }
    }
}

/// What an attempt came to, if not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setback {
    /// Refused; the same will be admitted after this time.
    Refused {
        /// What the answer says.
        retry_after: Duration,
    },
    /// No answer.
    Failed,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try again after this time.
    Wait(Duration),
    /// Stop.
    GiveUp,
}

/// The attempts at one check.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: RetryPolicy,
    attempts: u32,
    steps: Steps,
}

impl Backoff {
    /// Before the first attempt.
    #[must_use]
    pub const fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            attempts: 0,
            steps: Steps::new(policy.first_wait, policy.max_wait),
        }
    }

    /// What to do after an attempt that ended `elapsed` after the first began. `random` is uniform
    /// over all values.
    pub fn after(&mut self, setback: Setback, elapsed: Duration, random: u64) -> Next {
        self.attempts = self.attempts.saturating_add(1);
        if self.attempts >= self.policy.max_attempts {
            return Next::GiveUp;
        }
        let wait = match setback {
            Setback::Failed => self.steps.next(random),
            // Never before its time; a little after it, so that not all come back at once.
            Setback::Refused { retry_after } => {
                retry_after.saturating_add(jitter(self.policy.first_wait, random))
            }
        };
        if elapsed.saturating_add(wait) > self.policy.max_total {
            return Next::GiveUp;
        }
        Next::Wait(wait)
    }
}

/// Exponential waits with full jitter: each uniform from zero to a bound that doubles.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    first: Duration,
    bound: Duration,
    max: Duration,
}

impl Steps {
    pub(crate) const fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            bound: first,
            max,
        }
    }

    pub(crate) fn next(&mut self, random: u64) -> Duration {
        let bound = self.bound.min(self.max);
        self.bound = bound.saturating_mul(2);
        jitter(bound, random)
    }

    pub(crate) const fn reset(&mut self) {
        self.bound = self.first;
    }
}

/// A part of `span`: uniform over it if `random` is uniform over all values.
fn jitter(span: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let part = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(part).unwrap_or(nanos))
}
