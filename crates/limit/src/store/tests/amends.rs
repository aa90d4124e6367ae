//! What goes back, and what is charged later.

use proptest::prelude::*;

use super::{
    MEBIBYTE, NOW, SECOND, ask, every_algorithm, key, later, slow::small_algorithm, store, used,
};
use crate::{
    rule::{Algorithm, Rule},
    store::{Ask, Change},
    units::{Cost, Nanos},
    verdict::{Mode, Verdict},
};

fn is_of_permits(algorithm: &Algorithm) -> bool {
    matches!(algorithm, Algorithm::Concurrency(_))
}

#[test]
fn a_charge_goes_back_to_where_it_went_and_only_it() {
    for algorithm in every_algorithm(10, 60_000) {
        let store = store(16 * MEBIBYTE);
        let of = |cost| ask(key(1), algorithm.into(), cost);
        let consume = |now, cost| store.decide(now, &of(cost), Mode::Consume).charged_slice;
        let slice = consume(NOW, 4);
        let other = consume(NOW.saturating_add(Nanos::new(1)), 3);
        let give_back = |now, slice, cost| store.amend(now, &of(cost), Change::GiveBack { slice });
        let now = NOW.saturating_add(Nanos::new(2));
        give_back(now, slice, 1);
        let read = || store.decide(now, &of(1), Mode::Peek).used;
        assert_eq!(read(), 6, "{algorithm:?}");
        give_back(now, slice.wrapping_add(1 << 60), 3);
        assert_eq!(read(), 6, "{algorithm:?}");
        give_back(now, other, 3);
        assert_eq!(read(), 3, "{algorithm:?}");
        give_back(now, slice, 100);
        assert_eq!(read(), 0, "down to zero");
        give_back(now, slice, 1);
        assert_eq!((read(), used(&store, &of(1))), (0, 0));
        assert_eq!(store.decide(now, &of(10), Mode::Consume).remaining, 0);
    }
}

fn is_of_bucket(algorithm: &Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_)
    )
}

#[test]
fn what_is_over_does_not_go_back() {
    for algorithm in every_algorithm(10, 60_000) {
        let store = store(16 * MEBIBYTE);
        let of = |cost| ask(key(1), algorithm.into(), cost);
        let slice = store.decide(NOW, &of(10), Mode::Consume).charged_slice;
        // Two windows later all that was charged has gone, and as much has come.
        let now = later(121);
        assert!(store.decide(now, &of(10), Mode::Consume).is_allowed());
        store.amend(now, &of(10), Change::GiveBack { slice });
        assert_eq!(
            store.decide(now, &of(1), Mode::Peek).used,
            10,
            "{algorithm:?}"
        );
    }
}

#[test]
fn a_refund_is_clamped_and_releases_no_permit() {
    for algorithm in every_algorithm(10, 60_000) {
        let store = store(16 * MEBIBYTE);
        let of = |cost| ask(key(1), algorithm.into(), cost);
        store.amend(NOW, &of(3), Change::Refund);
        assert_eq!(store.stats().keys, 0, "nothing is made by a refund");
        store.decide(NOW, &of(8), Mode::Consume);
        store.amend(NOW, &of(3), Change::Refund);
        let left = if is_of_permits(&algorithm) { 8 } else { 5 };
        assert_eq!(used(&store, &of(1)), left, "{algorithm:?}");
        store.amend(NOW, &of(100), Change::Refund);
        let left = if is_of_permits(&algorithm) { 8 } else { 0 };
        assert_eq!(used(&store, &of(1)), left, "{algorithm:?}");
        let room = 10 - left;
        assert!(store.decide(NOW, &of(room), Mode::Consume).is_allowed());
        assert!(!store.decide(NOW, &of(1), Mode::Consume).is_allowed());
    }
}

#[test]
fn a_debt_shows_and_counts_against_what_comes() {
    for algorithm in every_algorithm(10, 60_000) {
        let store = store(16 * MEBIBYTE);
        let of = |cost| ask(key(1), algorithm.into(), cost);
        store.decide(NOW, &of(4), Mode::Consume);
        store.amend(NOW, &of(21), Change::Charge);
        let owing = store.decide(NOW, &of(1), Mode::Consume);
        assert!(!owing.is_allowed());
        assert_eq!((owing.used, owing.remaining), (25, 0), "{algorithm:?}");
        let wait = owing.retry_after.expect("waiting helps");
        let then = NOW.saturating_add(wait);
        let just_before = then.saturating_sub(Nanos::new(1));
        assert!(!store.decide(just_before, &of(1), Mode::Peek).is_allowed());
        assert!(store.decide(then, &of(1), Mode::Peek).is_allowed());
        if is_of_bucket(&algorithm) {
            assert_eq!(
                wait,
                Nanos::new(16 * 6 * SECOND),
                "15 of debt and one of room"
            );
        }
        store.amend(NOW, &of(25), Change::Refund);
        if !is_of_permits(&algorithm) {
            assert_eq!(used(&store, &of(1)), 0);
        }
    }
}

/// A charge that meets no counter makes one.
#[test]
fn a_charge_of_an_unknown_key_counts() {
    for algorithm in every_algorithm(10, 60_000) {
        let store = store(16 * MEBIBYTE);
        let of = |cost| ask(key(1), algorithm.into(), cost);
        store.amend(NOW, &of(7), Change::Charge);
        let verdict = store.decide(NOW, &of(3), Mode::Consume);
        assert_eq!((verdict.outcome, verdict.used), (super::Outcome::Allow, 10));
        assert!(!store.decide(NOW, &of(1), Mode::Consume).is_allowed());
    }
}

/// What was admitted and not given back, as the caller sees it.
#[derive(Debug)]
struct Admitted {
    now: Nanos,
    cost: u64,
    slice: u64,
}

/// What stands of what was admitted in so long a time before an instant.
fn within(standing: &[Admitted], now: Nanos, span: Nanos) -> u64 {
    let recent = |one: &&Admitted| now.saturating_sub(one.now) < span;
    standing.iter().filter(recent).map(|one| one.cost).sum()
}

/// Over which time a rule promises something, and the most that it lets stand in it.
fn promise(rule: &Rule) -> (Nanos, u64) {
    let (span, capacity) = (rule.window().span(), rule.capacity());
    match &rule.algorithm {
        Algorithm::SlidingLog(_) | Algorithm::Concurrency(_) => (span, capacity),
        Algorithm::SlidingWindow(window) => {
            let slice = span.as_nanos().div_ceil(u64::from(window.slices));
            (span.saturating_sub(Nanos::new(slice)), capacity)
        }
        Algorithm::TokenBucket(bucket) => (span, capacity + bucket.limit),
        Algorithm::LeakyBucket(bucket) => (span, capacity + bucket.limit),
        Algorithm::FixedWindow(_) => (span, 2 * capacity),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5000) })]

    /// Whatever goes back, each once and in any order: what stands never exceeds the promise.
    #[test]
    fn give_backs_never_break_the_promise(
        algorithm in small_algorithm(),
        steps in prop::collection::vec((0_u64..200, 1_u64..6, any::<Option<prop::sample::Index>>()), 1..120),
    ) {
        let store = store(16 * MEBIBYTE);
        let rule = Rule::new(algorithm);
        let mut standing: Vec<Admitted> = Vec::new();
        let mut now = NOW;
        for (step, cost, give_back) in steps {
            now = now.saturating_add(Nanos::from_millis(step));
            if let Some(which) = give_back && !standing.is_empty() {
                let gone = standing.remove(which.index(standing.len()));
                let ask = Ask { key: key(1), rule, cost: Cost::new(gone.cost).expect("small") };
                store.amend(now, &ask, Change::GiveBack { slice: gone.slice });
            }
            let ask = Ask { key: key(1), rule, cost: Cost::new(cost).expect("small") };
            let verdict: Verdict = store.decide(now, &ask, Mode::Consume);
            if verdict.is_allowed() {
                let slice = verdict.charged_slice;
                standing.push(Admitted { now, cost, slice });
            }
            let (span, most) = promise(&rule);
            let stands = within(&standing, now, span);
            prop_assert!(stands <= most, "{stands} of {most}");
        }
    }
}
