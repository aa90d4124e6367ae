//! What goes back into a counter: a charge to where it went, or units from the oldest on.
//!
//! Knows nothing of keys, tables, locks or clocks. Invariant: never more goes back than was charged and
//! still counts, so that nothing is admitted for it that the algorithm does not promise.

use super::{HeldMut, Moment, numbers_of_leaky_bucket, numbers_of_token_bucket};
use crate::{
    bucket::{self, Numbers},
    entries::{self, Which},
    fixed_window,
    rule::{Algorithm, Rule},
    units::{Cost, Nanos},
    window,
};

/// Takes units back from where a charge went, at most down to zero. Returns whether a word changed: not
/// if it is over or was never made.
pub(crate) fn give_back(
    rule: &Rule,
    held: HeldMut<'_>,
    at: Moment,
    (place, cost): (u64, Cost),
) -> bool {
    let HeldMut {
        seen,
        latest,
        words,
    } = held;
    match &rule.algorithm {
        Algorithm::SlidingWindow(rule) => {
            window::give_back(rule, words, *latest, at.now, (place, cost))
        }
        Algorithm::SlidingLog(_) => entries::give_back(words, Which::Instant(place), cost),
        Algorithm::Concurrency(_) => entries::give_back(words, Which::Number(place), cost),
        Algorithm::FixedWindow(rule) => {
            let (before, now) = (at.unix(*latest), at.unix(at.now));
            let reading = fixed_window::Reading::at(rule, words, before, now);
            fixed_window::give_back(words, &reading, place, cost)
        }
        Algorithm::TokenBucket(bucket) => {
            let numbers = numbers_of_token_bucket(bucket, rule.ceiling);
            take_from_bucket(numbers, (words, latest, seen), (Some(place), at.now), cost)
        }
        Algorithm::LeakyBucket(bucket) => {
            let numbers = numbers_of_leaky_bucket(bucket, rule.ceiling);
            take_from_bucket(numbers, (words, latest, seen), (Some(place), at.now), cost)
        }
    }
}

/// Takes units back, the oldest first, at most down to zero. Returns whether a word changed. Permits are
/// released, never refunded.
pub(crate) fn refund(rule: &Rule, held: HeldMut<'_>, at: Moment, cost: Cost) -> bool {
    let HeldMut {
        seen,
        latest,
        words,
    } = held;
    match &rule.algorithm {
        Algorithm::SlidingWindow(rule) => window::refund(rule, words, *latest, at.now, cost),
        Algorithm::SlidingLog(rule) => entries::refund(words, rule.window, (*latest, at.now), cost),
        Algorithm::Concurrency(_) => false,
        Algorithm::FixedWindow(rule) => {
            let (before, now) = (at.unix(*latest), at.unix(at.now));
            let reading = fixed_window::Reading::at(rule, words, before, now);
            fixed_window::refund(words, &reading, cost)
        }
        Algorithm::TokenBucket(bucket) => {
            let numbers = numbers_of_token_bucket(bucket, rule.ceiling);
            take_from_bucket(numbers, (words, latest, seen), (None, at.now), cost)
        }
        Algorithm::LeakyBucket(bucket) => {
            let numbers = numbers_of_leaky_bucket(bucket, rule.ceiling);
            take_from_bucket(numbers, (words, latest, seen), (None, at.now), cost)
        }
    }
}

fn take_from_bucket(
    numbers: Numbers,
    (words, latest, seen): (&mut [u64], &mut Nanos, u64),
    (place, now): (Option<u64>, Nanos),
    cost: Cost,
) -> bool {
    let numbers = numbers.as_seen(words, seen);
    let reading = bucket::Reading::at(numbers, words, (seen, *latest), now);
    let wrote = match place {
        Some(place) => bucket::give_back(words, &reading, place, cost),
        None => bucket::refund(words, &reading, cost),
    };
    if wrote {
        *latest = now.max(*latest);
    }
    wrote
}
