//! What a known denial says as time passes, and to a larger cost.
//!
//! P5: whoever comes back when told is admitted, if nothing else was counted. Waits count down from when
//! the refusal was heard, which is after the owner's clock was read: the error is the way back, towards
//! waiting. Of a larger cost than the refused one the owner's own words are not known: what is told is
//! never less than they would be.

use tollgate_limit::{Algorithm, Cost, Nanos, Outcome, Reason, Rule, Verdict};

use super::Denial;

impl Denial {
    pub(super) fn told(&self, now: Nanos, cost: Cost) -> Verdict {
        let passed = now.saturating_sub(self.heard_at);
        let mut verdict = self.verdict;
        if cost > self.cost {
            let extra = cost.units().saturating_sub(self.cost.units());
            widen(&mut verdict, &self.rule, (cost, extra));
        }
        verdict.retry_after = verdict.retry_after.map(|wait| wait.saturating_sub(passed));
        verdict.reset_after = verdict.reset_after.saturating_sub(passed);
        // When what was told has become free, the next that is known to is what was asked for.
        verdict.more_after = match verdict.more_after.saturating_sub(passed) {
            Nanos::ZERO => verdict.retry_after.unwrap_or(verdict.reset_after),
            more_after => more_after,
        };
        verdict
    }
}

/// Makes a refusal one of `extra` more units, which are `cost` then.
fn widen(verdict: &mut Verdict, rule: &Rule, (cost, extra): (Cost, u64)) {
    if cost.units() > rule.capacity() && rule.capacity() > 0 {
        let is_banned = verdict.outcome == Outcome::Refuse(Reason::Banned);
        if !is_banned {
            verdict.outcome = Outcome::Refuse(Reason::CostExceedsLimit);
        }
    }
    if cost.units() > rule.open_capacity() {
        verdict.retry_after = None;
        return;
    }
    let Some(wait) = verdict.retry_after else {
        return;
    };
    let longer = match rule.algorithm {
        // The window ends for all costs at once.
        Algorithm::FixedWindow(_) => wait,
        Algorithm::TokenBucket(bucket) => later(wait, extra, (bucket.limit, bucket.window.span())),
        Algorithm::LeakyBucket(bucket) => later(wait, extra, (bucket.limit, bucket.window.span())),
        // When nothing is used it fits for sure; what becomes free before is not known.
        Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_) | Algorithm::Concurrency(_) => {
            wait.max(verdict.reset_after)
        }
    };
    verdict.retry_after = Some(longer);
}

/// A wait and the time in which `extra` units flow out.
fn later(wait: Nanos, extra: u64, (limit, window): (u64, Nanos)) -> Nanos {
    let product = u128::from(window.as_nanos()).saturating_mul(u128::from(extra));
    let limit = u128::from(limit.max(1));
    let nanos = product.div_ceil(limit);
    wait.saturating_add(Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX)))
}
