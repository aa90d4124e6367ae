//! Tests of *decided once*.

use proptest::prelude::*;
use tollgate_limit::{Nanos, Outcome, Verdict};

use super::{DecidedRing, MAX_RING, MIN_RING};

const KEEP: Nanos = Nanos::from_millis(100);

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

const fn verdict(used: u64) -> Verdict {
    Verdict {
        outcome: Outcome::Allow,
        used,
        remaining: 0,
        retry_after: None,
        more_after: Nanos::ZERO,
        reset_after: Nanos::ZERO,
        delay: Nanos::ZERO,
        charged_slice: 0,
    }
}

fn number(of: usize) -> u64 {
    u64::try_from(of).unwrap()
}

#[test]
fn a_repeated_number_finds_its_verdicts() {
    let mut ring = DecidedRing::new(KEEP);
    assert_eq!(ring.verdicts(0), None);
    ring.record(at(0), 0, &[verdict(1)]);
    ring.record(at(0), 1, &[verdict(2), verdict(3)]);
    assert_eq!(ring.verdicts(0), Some([verdict(1)].as_slice()));
    assert_eq!(ring.verdicts(1), Some([verdict(2), verdict(3)].as_slice()));
    assert_eq!(
        ring.verdicts(number(MIN_RING)),
        None,
        "same place, other number"
    );
}

#[test]
fn it_grows_rather_than_forget_the_young() {
    let mut ring = DecidedRing::new(KEEP);
    for decided in 0..5_000 {
        ring.record(at(decided / 100), decided, &[verdict(decided)]);
    }
    for decided in 0..5_000 {
        assert_eq!(ring.verdicts(decided), Some([verdict(decided)].as_slice()));
    }
    assert_eq!(ring.capacity(), 8_192);
    assert_eq!(ring.overwritten(), 0);
}

#[test]
fn it_does_not_grow_for_the_old() {
    let mut ring = DecidedRing::new(KEEP);
    for decided in 0..10_000 {
        ring.record(at(decided), decided, &[verdict(decided)]);
    }
    assert_eq!(ring.capacity(), MIN_RING);
}

#[test]
fn at_its_largest_it_loses_and_says_so() {
    let mut ring = DecidedRing::new(KEEP);
    for decided in 0..=number(MAX_RING) {
        ring.record(at(0), decided, &[verdict(decided)]);
    }
    assert_eq!(ring.capacity(), MAX_RING);
    assert_eq!(ring.overwritten(), 1);
    assert_eq!(ring.verdicts(0), None);
    assert!(ring.verdicts(1).is_some());
}

proptest! {
    /// INV-DECIDED-ONCE: nothing that is younger than `keep` is ever forgotten or mixed up.
    #[test]
    fn the_young_are_always_known(
        steps in prop::collection::vec((0_u64..12, 0_u64..40), 1..600),
    ) {
        let mut ring = DecidedRing::new(KEEP);
        let (mut now, mut next) = (0, 0);
        let mut all = Vec::new();
        for (millis, jump) in steps {
            now += millis;
            next += 1 + jump;
            ring.record(at(now), next, &[verdict(next)]);
            all.push((now, next));
        }
        for (then, decided) in all {
            if now - then <= 100 {
                let expected = [verdict(decided)];
                prop_assert_eq!(ring.verdicts(decided), Some(expected.as_slice()));
            }
        }
    }
}

#[cfg(feature = "sabotage")]
#[test]
fn it_can_be_made_to_forget() {
    use crate::sabotage::{Sabotage, set};
    let mut ring = DecidedRing::new(KEEP);
    set(Some(Sabotage::RepeatDecidedTwice));
    for used in 0..2 {
        assert_eq!(ring.verdicts(0), None);
        ring.record(at(0), 0, &[verdict(used)]);
    }
    set(None);
    assert_eq!(ring.verdicts(0), Some([verdict(1)].as_slice()));
}
