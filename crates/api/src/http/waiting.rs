//! Answers that are held back for as long as the request should be: `?wait=true`.
//!
//! Only a `leaky-bucket` tells a delay. Invariants: at most [`MAX_WAITERS`] answers are held at once, none
//! longer than the bound of the config; who is not held, or not to the end, is told the rest.

use std::time::Duration;

use tokio::sync::Semaphore;
use tollgate_limit::{Decision, Nanos};

/// The most answers that are held back at once; what comes on top is answered at once, with its delay.
const MAX_WAITERS: usize = 10_000;

/// The answers that are held back.
#[derive(Debug)]
pub(super) struct Waiting(Semaphore);

impl Default for Waiting {
    fn default() -> Self {
        Self::at_most(MAX_WAITERS)
    }
}

impl Waiting {
    const fn at_most(waiters: usize) -> Self {
        Self(Semaphore::const_new(waiters))
    }

    /// Holds an admitted check back for its delay, at most `longest`. The decision is then that of after
    /// the wait. Dropped, it gives its place back.
    pub(super) async fn hold(&self, decision: &mut Decision, longest: Duration) {
        let longest = Nanos::new(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        let wait = decision.delay().min(longest);
        if wait == Nanos::ZERO || !decision.is_allowed() {
            return;
        }
        let Ok(_place) = self.0.try_acquire() else {
            return;
        };
        tokio::time::sleep(Duration::from_nanos(wait.as_nanos())).await;
        for limit in &mut decision.limits {
            let verdict = &mut limit.verdict;
            for time in [
                &mut verdict.delay,
                &mut verdict.more_after,
                &mut verdict.reset_after,
            ] {
                *time = time.saturating_sub(wait);
            }
        }
    }
}

#[cfg(test)]
mod tests;
