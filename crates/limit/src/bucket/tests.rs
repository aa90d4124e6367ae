//! Tests of the bucket: figures worked out by hand, and any run of calls against exact fractions.

use proptest::prelude::*;

use super::{Numbers, Reading, WORDS, charge, give_back, refund};
use crate::{
    judge::Reading as _,
    units::{Cost, MAX_UNITS, Nanos, Window},
};

const SECOND: u64 = 1_000_000_000;

fn numbers(limit: u64, seconds: u64, capacity: u64) -> Numbers {
    Numbers {
        limit,
        window: Window::new(Nanos::new(seconds * SECOND)).expect("a window in its bounds"),
        capacity,
        ceiling: capacity,
    }
}

fn cost(units: u64) -> Cost {
    Cost::new(units).expect("a cost in its bounds")
}

#[derive(Clone, Debug)]
struct Bucket {
    numbers: Numbers,
    words: [u64; WORDS],
    seen: u64,
    latest: u64,
}

impl Bucket {
    fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            words: [0; WORDS],
            seen: numbers.capacity,
            latest: 0,
        }
    }

    fn read(&self, now: u64) -> Reading {
        let before = (self.seen, Nanos::new(self.latest));
        Reading::at(self.numbers, &self.words, before, Nanos::new(now))
    }

    fn used(&self, now: u64) -> u64 {
        self.read(now).used()
    }

    fn note(&mut self, now: u64) {
        self.seen = self.numbers.ceiling;
        self.latest = self.latest.max(now);
    }

    fn charge(&mut self, now: u64, units: u64) -> u64 {
        let reading = self.read(now);
        let at = Nanos::new(self.latest.max(now));
        let place = charge(&mut self.words, &reading, at, units);
        self.note(now);
        place
    }

    fn give_back(&mut self, now: u64, place: u64, units: u64) -> bool {
        let reading = self.read(now);
        let wrote = give_back(&mut self.words, &reading, place, cost(units));
        if wrote {
            self.note(now);
        }
        wrote
    }
}

#[test]
fn what_drains_is_exact_to_the_nanosecond() {
    // Three units in ten seconds: a unit in 3.33 s.
    let mut bucket = Bucket::new(numbers(3, 10, 5));
    bucket.charge(0, 5);
    let third = 10 * SECOND / 3;
    assert_eq!((bucket.used(0), bucket.used(third)), (5, 5));
    assert_eq!(bucket.used(third + 1), 4);
    let reading = bucket.read(0);
    assert_eq!(reading.wait_until_within(4), Nanos::new(third + 1));
    assert_eq!(reading.wait_until_within(2), Nanos::new(10 * SECOND));
    assert_eq!(reading.wait_until_empty(), Nanos::new(50 * SECOND / 3 + 1));
    assert_eq!(reading.backlog(Cost::ZERO), reading.wait_until_empty());
    assert_eq!(
        reading.backlog(Cost::ONE),
        Nanos::new(20 * SECOND),
        "behind one that comes first"
    );
}

#[test]
fn fractions_are_never_lost_however_often_it_is_charged() {
    let mut bucket = Bucket::new(numbers(7, 11, 1000));
    for step in 0..100_000 {
        bucket.charge(step * 1_571_429, 1);
    }
    // 100 000 units came, 7 · 99 999 · 1 571 429 / 11 · 10^9 went.
    let went = 7 * 99_999 * 1_571_429_u128;
    let left = 100_000 * 11 * u128::from(SECOND) - went;
    let left = left.div_ceil(11 * u128::from(SECOND));
    assert_eq!(u128::from(bucket.used(99_999 * 1_571_429)), left);
}

#[test]
fn a_lowered_capacity_clamps_the_level_and_a_debt_stays() {
    let mut bucket = Bucket::new(numbers(60, 60, 100));
    bucket.charge(0, 90);
    bucket.numbers.ceiling = 10;
    assert_eq!(bucket.used(0), 10);
    assert_eq!(bucket.used(SECOND), 9, "and drains from there");
    bucket.charge(SECOND, 1);
    assert_eq!(bucket.used(SECOND), 10);
    bucket.numbers.ceiling = 100;
    assert_eq!(bucket.used(SECOND), 10, "raised: all the rest is free");
    bucket.charge(SECOND, 120);
    assert_eq!(bucket.used(SECOND), 130);
    bucket.numbers.ceiling = 10;
    assert_eq!(bucket.used(SECOND), 40, "30 of debt on top of 10");
}

#[test]
fn a_charge_goes_back_less_what_has_drained_since() {
    let mut bucket = Bucket::new(numbers(60, 60, 100));
    let instant = bucket.charge(5 * SECOND, 20);
    let mut late = bucket.clone();
    assert!(bucket.give_back(5 * SECOND, instant, 20));
    assert_eq!(bucket.used(5 * SECOND), 0);
    assert!(
        !bucket.give_back(5 * SECOND, instant, 20),
        "there is nothing"
    );
    late.charge(10 * SECOND, 10);
    assert_eq!(late.used(10 * SECOND), 25);
    assert!(
        late.give_back(10 * SECOND, instant, 20),
        "15 of it are left"
    );
    assert_eq!(late.used(10 * SECOND), 10);
    assert!(!late.give_back(30 * SECOND, instant, 20), "all has drained");
    let reading = late.read(10 * SECOND);
    assert!(refund(&mut late.words, &reading, cost(4)));
    assert_eq!(late.used(10 * SECOND), 6);
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let mut bucket = Bucket::new(numbers(60, 60, 10));
    bucket.charge(10 * SECOND, 4);
    assert_eq!(bucket.used(3 * SECOND), 4);
    let wait = bucket.read(3 * SECOND).wait_until_within(3);
    assert_eq!(wait, Nanos::new(8 * SECOND), "until 11 s");
    bucket.charge(3 * SECOND, 1);
    assert_eq!(bucket.latest, 10 * SECOND);
    assert_eq!(bucket.used(11 * SECOND), 4);
}

/// What the bucket holds in parts, the definition taken word for word: `a unit = window` parts.
struct Model {
    parts: i128,
    at: u64,
}

impl Model {
    fn drain(&mut self, numbers: Numbers, now: u64) {
        let passed = now.saturating_sub(self.at);
        self.parts = (self.parts - i128::from(numbers.limit) * i128::from(passed)).max(0);
        self.at = self.at.max(now);
    }

    fn used(&self, numbers: Numbers) -> u128 {
        let unit = u128::from(numbers.window.span().as_nanos());
        self.parts.unsigned_abs().div_ceil(unit)
    }
}

fn any_numbers() -> impl Strategy<Value = Numbers> {
    let limit = prop_oneof![1_u64..100, 1..=MAX_UNITS, Just(MAX_UNITS)];
    let (shortest, longest) = (Window::MIN.as_nanos(), Window::MAX.as_nanos());
    let window = prop_oneof![shortest..=longest, Just(shortest), Just(longest)];
    let capacity = prop_oneof![1_u64..100, 1..=MAX_UNITS, Just(MAX_UNITS)];
    (limit, window, capacity).prop_map(|(limit, window, capacity)| Numbers {
        limit,
        window: Window::new(Nanos::new(window)).expect("a window in its bounds"),
        capacity,
        ceiling: capacity,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn any_numbers_follow_the_model(
        numbers in any_numbers(),
        charges in prop::collection::vec((0_u64..3000, 0_u64..1200), 1..20),
    ) {
        let part = |whole: u64, thousandths: u64| {
            (u128::from(whole) * u128::from(thousandths) / 1000) as u64
        };
        let mut bucket = Bucket::new(numbers);
        let mut model = Model { parts: 0, at: 0 };
        let fill = u128::from(numbers.window.span().as_nanos()) * u128::from(numbers.capacity)
            / u128::from(numbers.limit);
        let fill = u64::try_from(fill).unwrap_or(u64::MAX).min(u64::MAX / 100);
        let mut now = 0_u64;
        for (step, share) in charges {
            now += part(fill, step);
            let units = part(numbers.capacity, share).max(1);
            model.drain(numbers, now);
            prop_assert_eq!(u128::from(bucket.used(now)), model.used(numbers));
            bucket.charge(now, units);
            model.parts += i128::from(units) * i128::from(numbers.window.span().as_nanos());
            prop_assert_eq!(u128::from(bucket.used(now)), model.used(numbers));
            for room in [0, numbers.capacity / 2, numbers.capacity - 1, numbers.capacity] {
                let wait = bucket.read(now).wait_until_within(room).as_nanos();
                if wait < u64::MAX / 2 {
                    prop_assert!(bucket.used(now + wait) <= room);
                    prop_assert!(wait == 0 || bucket.used(now + wait - 1) > room);
                }
            }
        }
    }

    /// A bucket with a charge taken back is never below one that never had it.
    #[test]
    fn a_give_back_never_gives_more_than_the_charge(
        charges in prop::collection::vec((0_u64..5, 1_u64..9), 1..30),
        which in any::<prop::sample::Index>(),
    ) {
        let numbers = numbers(1, 1, 1000);
        let (mut with, mut without) = (Bucket::new(numbers), Bucket::new(numbers));
        let which = which.index(charges.len());
        let mut now = 0;
        let mut given = None;
        for (at, (step, units)) in charges.into_iter().enumerate() {
            now += step * SECOND / 2;
            let instant = with.charge(now, units);
            if at == which {
                given = Some((instant, units));
            } else {
                without.charge(now, units);
            }
        }
        let (instant, units) = given.expect("one of them");
        let before = with.used(now);
        with.give_back(now, instant, units);
        prop_assert!(with.used(now) >= without.used(now));
        prop_assert!(before - with.used(now) <= units);
    }
}
