//! Tests of entries: figures worked out by hand, and any run of calls against a plain list.

use proptest::prelude::*;

use super::{FEWEST_WORDS, Reading, Which, charge, give_back, move_to, refund, words_for};
use crate::{
    judge::Reading as _,
    units::{Cost, Nanos, Window},
};

const WINDOW: u64 = 10_000_000;

fn window() -> Window {
    Window::new(Nanos::new(WINDOW)).expect("a window in its bounds")
}

fn cost(units: u64) -> Cost {
    Cost::new(units).expect("a cost in its bounds")
}

/// Entries in a ring that grows as the store makes it grow, or stays as it is.
#[derive(Clone, Debug)]
struct Log {
    words: Vec<u64>,
    latest: Nanos,
    most_words: usize,
}

impl Log {
    fn new(most_words: usize) -> Self {
        Self {
            words: vec![0; FEWEST_WORDS],
            latest: Nanos::ZERO,
            most_words,
        }
    }

    fn read(&self, now: u64) -> Reading<'_> {
        Reading::at(&self.words, window(), self.latest, Nanos::new(now))
    }

    fn used(&self, now: u64) -> u64 {
        self.read(now).used()
    }

    fn charge(&mut self, now: u64, units: u64, number: u64) -> u64 {
        let reading = self.read(now);
        let longer = words_for(reading.live() * 2);
        if reading.is_full() && longer <= self.most_words {
            let mut words = vec![7; longer];
            move_to(&self.words, &mut words);
            self.words = words;
        }
        let at = (Nanos::new(now), units);
        charge(&mut self.words, window(), &mut self.latest, at, number).as_nanos()
    }

    fn give_back(&mut self, which: Which, units: u64) -> bool {
        give_back(&mut self.words, which, cost(units))
    }

    fn refund(&mut self, now: u64, units: u64) -> bool {
        let at = (self.latest, Nanos::new(now));
        refund(&mut self.words, window(), at, cost(units))
    }
}

#[test]
fn an_entry_counts_until_just_before_its_window_is_over() {
    let mut log = Log::new(usize::MAX);
    log.charge(5, 3, 0);
    log.charge(7, 2, 0);
    assert_eq!((log.used(7), log.used(4 + WINDOW)), (5, 5));
    assert_eq!((log.used(5 + WINDOW), log.used(7 + WINDOW)), (2, 0));
    let reading = log.read(7);
    assert_eq!(reading.wait_until_within(5), Nanos::ZERO);
    for room in [2, 3, 4] {
        let wait = reading.wait_until_within(room);
        assert_eq!(wait, Nanos::new(WINDOW - 2), "the first of them goes");
    }
    assert_eq!(reading.wait_until_within(1), Nanos::new(WINDOW));
    assert_eq!(reading.wait_until_empty(), Nanos::new(WINDOW));
}

#[test]
fn charges_of_one_instant_are_one_entry_unless_they_are_numbered() {
    let mut log = Log::new(usize::MAX);
    for _ in 0..100 {
        log.charge(5, 1, 0);
    }
    assert_eq!((log.words.len(), log.used(5)), (FEWEST_WORDS, 100));
    log.charge(5, 1, 8);
    log.charge(5, 1, 9);
    assert_eq!(log.read(5).live(), 3);
    assert!(log.give_back(Which::Number(8), 1));
    assert!(!log.give_back(Which::Number(8), 1), "once");
    assert!(!log.give_back(Which::Number(0), 1), "no number is no name");
    assert_eq!(log.used(5), 101);
}

#[test]
fn what_was_given_back_takes_no_place() {
    let mut log = Log::new(usize::MAX);
    log.charge(1, 1, 1);
    for number in 2..10_000 {
        log.charge(number, 1, number);
        assert!(log.give_back(Which::Number(number), 1));
        assert_eq!((log.used(number), log.read(number).live()), (1, 1));
    }
    assert_eq!(log.words.len(), FEWEST_WORDS, "the ring never grew");
    let empty = log.read(10_000).wait_until_empty();
    assert_eq!(
        empty,
        Nanos::new(WINDOW + 1 - 10_000),
        "the first is left alone"
    );
}

/// P7: towards refusing.
#[test]
fn a_ring_that_cannot_grow_joins_the_two_oldest() {
    let mut log = Log::new(FEWEST_WORDS);
    for instant in 1..=5 {
        log.charge(instant, 1, instant);
    }
    assert_eq!(log.used(5), 5, "nothing is forgotten");
    // 1, 2 and 3 are one entry now, which ends with the third.
    assert_eq!(
        (log.used(2 + WINDOW), log.used(3 + WINDOW)),
        (5, 2),
        "later, never earlier"
    );
    assert!(!log.give_back(Which::Number(2), 1), "its name is lost");
    assert!(log.give_back(Which::Number(3), 1));
    assert_eq!(log.used(5), 4);
    assert!(log.refund(5, 3));
    assert_eq!(log.used(5), 1);
    assert_eq!(log.read(5).wait_until_empty(), Nanos::new(WINDOW));
}

#[test]
fn a_refund_takes_the_oldest_that_still_counts() {
    let mut log = Log::new(usize::MAX);
    for (instant, units) in [(1, 5), (100, 3), (200, 2)] {
        log.charge(instant, units, 0);
    }
    assert!(log.refund(1 + WINDOW, 4), "of the second and the third");
    assert_eq!(log.used(1 + WINDOW), 1);
    assert_eq!(log.used(100 + WINDOW), 1);
    assert_eq!(log.used(200 + WINDOW), 0);
    assert!(log.refund(1 + WINDOW, 100), "down to zero");
    assert!(!log.refund(1 + WINDOW, 1), "there is nothing");
    assert!(!log.refund(2 + WINDOW, 0));
    assert_eq!(log.used(1 + WINDOW), 0);
}

#[test]
fn without_words_nothing_is_used() {
    let window = window();
    let reading = Reading::at(&[], window, Nanos::ZERO, Nanos::new(5));
    assert_eq!(
        (reading.used(), reading.wait_until_empty()),
        (0, Nanos::ZERO)
    );
    assert!(!give_back(&mut [], Which::Number(1), Cost::ONE));
    let mut latest = Nanos::ZERO;
    charge(&mut [], window, &mut latest, (Nanos::new(5), 1), 1);
}

/// Every charge with its number and what is left of it.
#[derive(Default)]
struct Model {
    entries: Vec<(u64, u64, u64)>,
    latest: u64,
}

impl Model {
    fn live(&self, now: u64) -> impl Iterator<Item = &(u64, u64, u64)> {
        let now = now.max(self.latest);
        let live = move |entry: &&(u64, u64, u64)| entry.0 + WINDOW > now;
        self.entries.iter().filter(live)
    }

    fn used(&self, now: u64) -> u64 {
        self.live(now).map(|(_, cost, _)| cost).sum()
    }

    fn charge(&mut self, now: u64, units: u64, number: u64) {
        self.latest = self.latest.max(now);
        self.entries.push((self.latest, units, number));
    }

    /// Takes units from the entries that are meant, the oldest first.
    fn take(&mut self, mut units: u64, meant: impl Fn(&(u64, u64, u64)) -> bool) {
        for entry in self.entries.iter_mut().filter(|entry| meant(entry)) {
            let taken = units.min(entry.1);
            entry.1 -= taken;
            units -= taken;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Charge { units: u64, numbered: bool },
    GiveBack { back: usize, units: u64 },
    Refund { units: u64 },
    Wait { nanos: u64 },
    GoBack { nanos: u64 },
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => (1_u64..5, any::<bool>())
            .prop_map(|(units, numbered)| Call::Charge { units, numbered }),
        3 => (1_usize..30, 1_u64..6).prop_map(|(back, units)| Call::GiveBack { back, units }),
        1 => (0_u64..9).prop_map(|units| Call::Refund { units }),
        6 => prop_oneof![Just(1), 0..WINDOW / 4].prop_map(|nanos| Call::Wait { nanos }),
        1 => (0..WINDOW / 8).prop_map(|nanos| Call::GoBack { nanos }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_calls_give_the_answers_of_a_plain_list(
        calls in prop::collection::vec(call(), 1..150),
    ) {
        let (mut log, mut model) = (Log::new(usize::MAX), Model::default());
        let mut now = 1;
        for (number, call) in (1..).zip(calls) {
            match call {
                Call::Charge { units, numbered } => {
                    let number = if numbered { number } else { 0 };
                    let instant = log.charge(now, units, number);
                    model.charge(now, units, number);
                    prop_assert_eq!(instant, model.latest);
                }
                Call::GiveBack { back, units } => {
                    let known = model.entries.len().checked_sub(back);
                    let Some((instant, _, number)) = known.map(|at| model.entries[at]) else {
                        continue;
                    };
                    // Without a number it is any of that instant: one of them is meant, in one place.
                    let is_alone = model.entries.iter().filter(|entry| entry.0 == instant).count() == 1;
                    if number > 0 {
                        log.give_back(Which::Number(number), units);
                        model.take(units, |entry| entry.2 == number);
                    } else if is_alone {
                        log.give_back(Which::Instant(instant), units);
                        model.take(units, |entry| entry.0 == instant);
                    }
                }
                Call::Refund { units } => {
                    let before = model.used(now);
                    let (latest, end) = (model.latest, WINDOW);
                    let live = |entry: &(u64, u64, u64)| entry.0 + end > now.max(latest);
                    model.take(units, live);
                    prop_assert_eq!(log.refund(now, units), model.used(now) < before);
                }
                Call::Wait { nanos } => now += nanos,
                Call::GoBack { nanos } => now = now.saturating_sub(nanos).max(1),
            }
            prop_assert_eq!(log.used(now), model.used(now));
            for room in 0..model.used(now) {
                let wait = log.read(now).wait_until_within(room).as_nanos();
                prop_assert!(model.used(now + wait) <= room);
                prop_assert!(model.used(now + wait - 1) > room);
            }
            let live = model.live(now).filter(|entry| entry.1 > 0).count();
            prop_assert!(log.read(now).live() <= live, "what is gone takes no place");
        }
    }

    /// A ring that is too small admits later, never earlier, and forgets nothing that counts.
    #[test]
    fn a_small_ring_errs_towards_refusing(
        charges in prop::collection::vec((1_u64..4, 0..WINDOW / 3), 1..100),
        entries in 3_usize..20,
    ) {
        let mut log = Log::new(words_for(entries));
        let mut model = Model::default();
        let mut now = 1;
        for (units, step) in charges {
            now += step;
            log.charge(now, units, 0);
            model.charge(now, units, 0);
            for later in [0, WINDOW / 2, WINDOW - 1] {
                prop_assert!(log.used(now + later) >= model.used(now + later));
            }
            prop_assert_eq!(log.used(now + WINDOW), 0);
            prop_assert!(log.words.len() <= words_for(entries));
        }
    }
}
