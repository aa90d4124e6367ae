//! What is given back at one store of what another has charged, and told back and forth.

use super::*;
use crate::rule::Algorithm;

/// Milliseconds after the start.
fn after(millis: u64) -> Nanos {
    NOW.saturating_add(Nanos::from_millis(millis))
}

/// The way between two stores takes another time each time, so the instants of entries are never told alike.
#[test]
fn what_was_given_back_elsewhere_stays_given_back() {
    for algorithm in every_algorithm(100, 600_000) {
        // Of a bucket that was charged by both the level alone is told.
        if matches!(
            algorithm,
            Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) | Algorithm::Concurrency(_)
        ) {
            continue;
        }
        let (charging, owning) = (store_of(1), store_of(2));
        let ask = |cost| ask(key(1), algorithm.into(), cost);
        let slots = slot_of(&ask(1));
        for number in 0..3 {
            charging.decide(after(1_000 * number), &ask(1), Mode::Consume);
        }
        let mut now = 4_000;
        let mut tell = |from: &Store, to: &Store, way: u64| {
            let series = exported(from, after(now), &slots);
            merge_all(to, after(now + way), &series);
            now += 100;
            after(now)
        };
        let at = tell(&charging, &owning, 2);
        owning.amend(at, &ask(2), Change::Refund);
        let mut expected = 1;
        for round in 0..6 {
            let at = tell(&owning, &charging, 3 + round);
            charging.decide(at, &ask(1), Mode::Consume);
            expected += 1;
            let at = tell(&charging, &owning, 1 + 2 * round);
            assert_eq!(used_at(&owning, at, &ask(1)), expected, "{algorithm:?}");
            assert_eq!(used_at(&charging, at, &ask(1)), expected, "{algorithm:?}");
        }
    }
}
