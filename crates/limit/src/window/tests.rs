//! Tests of the sliding window: rows of figures worked out by hand. The properties are in
//! `properties`.

mod properties;

use super::{Reading, charge, decide, give_back};
use crate::{
    judge::{Reading as _, Terms},
    rule::{Algorithm, OldestSlice, Rule, SlidingWindow},
    units::{Cost, Nanos, Window},
    verdict::{Mode, Outcome, Reason, Verdict},
};

const SECOND: u64 = 1_000_000_000;

fn rule(limit: u64, window_ns: u64, slices: u8, oldest: OldestSlice) -> SlidingWindow {
    SlidingWindow {
        limit,
        window: Window::new(Nanos::new(window_ns)).expect("a window in its bounds"),
        slices,
        oldest,
    }
}

/// A counter on its own, with the rule that it is asked by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counter {
    rule: SlidingWindow,
    words: Vec<u64>,
    latest: Nanos,
}

impl Counter {
    fn new(rule: SlidingWindow) -> Self {
        Self {
            rule,
            words: vec![0; usize::from(rule.slices) + 1],
            latest: Nanos::ZERO,
        }
    }

    fn ask(&mut self, now: u64, cost: u64, mode: Mode) -> Verdict {
        let cost = Cost::new(cost).expect("a cost in its bounds");
        let now = Nanos::new(now);
        let terms = Terms::of(&Rule::new(Algorithm::SlidingWindow(self.rule)));
        decide(
            (&self.rule, &terms),
            &mut self.words,
            &mut self.latest,
            now,
            (cost, mode),
        )
    }

    fn consume(&mut self, now: u64, cost: u64) -> Verdict {
        self.ask(now, cost, Mode::Consume)
    }

    fn peek(&self, now: u64, cost: u64) -> Verdict {
        self.clone().ask(now, cost, Mode::Peek)
    }

    fn used(&self, now: u64) -> u64 {
        Reading::at(&self.rule, &self.words, self.latest, Nanos::new(now)).used()
    }

    /// How many single units are admitted now.
    fn drain(&mut self, now: u64) -> usize {
        (0..10_000)
            .take_while(|_| self.consume(now, 1).is_allowed())
            .count()
    }
}

#[test]
fn a_full_slice_blocks_until_its_part_has_gone() {
    for (oldest, none_until, first_at) in [
        (OldestSlice::Weighted, 114_059_999_999, 114_060_000_000),
        (OldestSlice::Full, 119_999_999_999, 120_000_000_000),
    ] {
        let mut counter = Counter::new(rule(100, 60 * SECOND, 10, oldest));
        assert_eq!(counter.drain(59 * SECOND), 100);
        assert_eq!(counter.drain(60 * SECOND), 0, "{oldest:?} at 60 s");
        let refused = counter.consume(60 * SECOND, 1);
        assert_eq!(refused.outcome, Outcome::Refuse(Reason::LimitExceeded));
        assert_eq!(
            refused.retry_after,
            Some(Nanos::new(first_at - 60 * SECOND))
        );
        assert_eq!(counter.drain(none_until), 0, "{oldest:?} just before");
        assert_eq!(
            counter.clone().drain(120 * SECOND),
            100,
            "{oldest:?} at 120 s"
        );
        let admitted = counter.drain(first_at);
        match oldest {
            OldestSlice::Weighted => assert_eq!(admitted, 1, "one unit each 60 ms"),
            OldestSlice::Full => assert_eq!(admitted, 100),
        }
    }
}

#[test]
fn one_slice_is_the_two_counter_approximation() {
    let mut counter = Counter::new(rule(10, 10 * SECOND, 1, OldestSlice::Weighted));
    assert!(counter.consume(9 * SECOND, 10).is_allowed());
    assert_eq!(counter.used(10 * SECOND), 10);
    assert_eq!(counter.used(15 * SECOND), 5);
    assert_eq!(counter.used(15 * SECOND + 1), 5, "rounded up");
    assert_eq!(counter.used(19_999_999_999), 1);
    assert_eq!(counter.used(20 * SECOND), 0);
    assert_eq!(counter.drain(15 * SECOND), 5);
}

#[test]
fn what_can_never_fit_is_refused_for_ever_and_writes_nothing() {
    for (limit, cost, reason) in [
        (0, 1, Reason::LimitIsZero),
        (0, 1 << 53, Reason::LimitIsZero),
        (10, 11, Reason::CostExceedsLimit),
        (10, 1 << 53, Reason::CostExceedsLimit),
    ] {
        let fresh = Counter::new(rule(limit, SECOND, 10, OldestSlice::Full));
        let mut counter = fresh.clone();
        let verdict = counter.consume(5 * SECOND, cost);
        assert_eq!(verdict.outcome, Outcome::Refuse(reason));
        assert_eq!(verdict.retry_after, None);
        assert_eq!(counter, fresh);
    }
}

#[test]
fn a_cost_of_zero_is_admitted_and_charges_nothing() {
    for limit in [0, 10] {
        let mut counter = Counter::new(rule(limit, SECOND, 10, OldestSlice::Weighted));
        counter.consume(SECOND, 10);
        let before = counter.clone();
        let verdict = counter.consume(SECOND, 0);
        assert_eq!(verdict.outcome, Outcome::Allow);
        assert_eq!(verdict.retry_after, Some(Nanos::ZERO));
        assert_eq!(counter, before);
    }
}

#[test]
fn the_numbers_are_those_after_the_charge() {
    let mut counter = Counter::new(rule(10, 10 * SECOND, 10, OldestSlice::Full));
    let first = counter.consume(3 * SECOND, 4);
    assert_eq!((first.used, first.remaining), (4, 6));
    assert_eq!(first.charged_slice, 3);
    assert_eq!(first.retry_after, Some(Nanos::ZERO), "four more fit");
    assert_eq!(first.reset_after, Nanos::new(11 * SECOND));
    assert_eq!(first.more_after, Nanos::new(11 * SECOND));
    let second = counter.consume(5 * SECOND, 6);
    assert_eq!((second.used, second.remaining), (10, 0));
    assert_eq!(
        second.retry_after,
        Some(Nanos::new(11 * SECOND)),
        "six again: at 16 s"
    );
    assert_eq!(
        second.more_after,
        Nanos::new(9 * SECOND),
        "the first four: at 14 s"
    );
    assert_eq!(second.reset_after, Nanos::new(11 * SECOND));
    let peek = counter.peek(5 * SECOND, 4);
    assert_eq!((peek.used, peek.remaining), (10, 0));
    assert_eq!(peek.retry_after, Some(Nanos::new(9 * SECOND)));
}

#[test]
fn an_empty_counter_waits_for_nothing() {
    let counter = Counter::new(rule(10, SECOND, 10, OldestSlice::Weighted));
    let verdict = counter.peek(77, 10);
    assert_eq!(verdict.outcome, Outcome::Allow);
    assert_eq!((verdict.used, verdict.remaining), (0, 10));
    assert_eq!(verdict.retry_after, Some(Nanos::ZERO));
    assert_eq!(
        (verdict.more_after, verdict.reset_after),
        (Nanos::ZERO, Nanos::ZERO)
    );
}

#[test]
fn a_changed_limit_applies_to_the_next_check() {
    let mut counter = Counter::new(rule(100, 10 * SECOND, 10, OldestSlice::Full));
    counter.consume(SECOND, 60);
    counter.rule.limit = 20;
    let lowered = counter.consume(SECOND, 1);
    assert_eq!((lowered.used, lowered.remaining), (60, 0));
    assert_eq!(lowered.retry_after, Some(Nanos::new(11 * SECOND)));
    assert_eq!(
        lowered.more_after,
        Nanos::new(11 * SECOND),
        "59 used frees nothing"
    );
    counter.rule.limit = 61;
    assert_eq!(counter.drain(SECOND), 1);
}

#[test]
fn units_go_back_to_their_slice_and_no_further() {
    let mut counter = Counter::new(rule(10, 10 * SECOND, 10, OldestSlice::Full));
    counter.consume(SECOND, 3);
    counter.consume(2 * SECOND, 3);
    let back = |counter: &mut Counter, now: u64, slice, cost| {
        let cost = Cost::new(cost).expect("a cost in its bounds");
        let Counter {
            rule,
            words,
            latest,
        } = counter;
        give_back(rule, words, *latest, Nanos::new(now), (slice, cost))
    };
    assert!(back(&mut counter, 3 * SECOND, 1, 2));
    assert_eq!(counter.used(3 * SECOND), 4);
    assert!(back(&mut counter, 3 * SECOND, 1, 100), "down to zero");
    assert_eq!(counter.used(3 * SECOND), 3, "the other slice keeps its own");
    assert!(!back(&mut counter, 3 * SECOND, 3, 1), "never charged");
    assert!(!back(&mut counter, 3 * SECOND, 12, 1), "not yet");
    assert!(
        !back(&mut counter, 13 * SECOND, 2, 1),
        "no longer in the window"
    );
    assert!(!back(&mut counter, u64::MAX, 2, 1));
    assert_eq!(counter.used(3 * SECOND), 3);
}

#[test]
fn a_charge_clears_the_slices_that_were_passed_by() {
    for pause in 1..30 {
        let mut counter = Counter::new(rule(1000, 10 * SECOND, 10, OldestSlice::Full));
        for second in 0..11 {
            counter.consume(second * SECOND, 1);
        }
        let now = (10 + pause) * SECOND;
        charge(
            &counter.rule,
            &mut counter.words,
            &mut counter.latest,
            Nanos::new(now),
            5,
        );
        let kept = 11_u64.saturating_sub(pause);
        assert_eq!(counter.used(now), 5 + kept, "after {pause} s");
    }
}
