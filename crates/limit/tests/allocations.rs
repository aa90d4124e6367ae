//! A check of a known key allocates nothing. A binary of its own, since it counts what the whole
//! process allocates.

#![allow(clippy::expect_used, reason = "a test may panic")]

use allocation_counter::measure;
use tollgate_limit::{
    Algorithm, Alignment, Ask, Ban, CalendarUnit, Change, Concurrency, Cost, FixedWindow, KeyHash,
    LeakyBucket, Mode, Nanos, OldestSlice, Rule, SlidingLog, SlidingWindow, Store, StoreConfig,
    TokenBucket, Verdict, Window, Zone,
};

const MINUTE: Nanos = Nanos::from_millis(60_000);

fn minute() -> Window {
    Window::new(MINUTE).expect("a window in its bounds")
}

fn sliding(slices: u8) -> Algorithm {
    Algorithm::SlidingWindow(SlidingWindow {
        limit: 5,
        window: minute(),
        slices,
        oldest: OldestSlice::Weighted,
    })
}

/// Every algorithm, some of them twice; those that keep entries have room for all that they admit after
/// the first rounds.
fn algorithms() -> Vec<Algorithm> {
    let (limit, window) = (5, minute());
    let berlin = Zone::named("Europe/Berlin").expect("a zone of the data");
    let fixed = |alignment| Algorithm::FixedWindow(FixedWindow { limit, alignment });
    vec![
        sliding(10),
        sliding(1),
        sliding(60),
        Algorithm::SlidingLog(SlidingLog { limit, window }),
        fixed(Alignment::Epoch(window)),
        fixed(Alignment::Calendar(CalendarUnit::Hour, berlin)),
        fixed(Alignment::Calendar(CalendarUnit::Month, berlin)),
        Algorithm::TokenBucket(TokenBucket {
            limit,
            window,
            burst: 3,
        }),
        Algorithm::LeakyBucket(LeakyBucket {
            limit,
            window,
            queue: 3,
        }),
        Algorithm::Concurrency(Concurrency { limit, ttl: window }),
    ]
}

fn ask(number: u64, rule: Rule) -> Ask {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Ask {
        key: KeyHash::from_halves(spread, spread.rotate_left(32)),
        rule,
        cost: Cost::ONE,
    }
}

/// Admitted, refused, peeked at, given back, alone and by fours, over three windows.
fn check_all(store: &Store, from: Nanos, asks: &[Ask], verdicts: &mut Vec<Verdict>) {
    for second in 0..180 {
        let now = from.saturating_add(Nanos::from_millis(second * 1000));
        verdicts.clear();
        for ask in asks {
            let verdict = store.decide(now, ask, Mode::Consume);
            let slice = verdict.charged_slice;
            if second % 7 == 0 && verdict.is_allowed() {
                store.amend(now, ask, Change::GiveBack { slice });
                store.amend(now, ask, Change::Refund);
            }
            verdicts.push(verdict);
            verdicts.push(store.decide(now, ask, Mode::Peek));
        }
        for four in asks.chunks(4) {
            store.decide_all(now, four, Mode::Consume, verdicts);
        }
    }
}

#[test]
fn a_known_key_allocates_nothing() {
    let store = Store::new(&StoreConfig::default());
    let ban = Ban {
        length: Nanos::from_millis(3_600_000),
        escalation: 1000,
        longest: Nanos::from_millis(3_600_000),
    };
    let banned = Rule {
        ban: Some(ban),
        ..Rule::new(sliding(10))
    };
    let mut asks: Vec<Ask> = (1..)
        .zip(algorithms())
        .map(|(number, algorithm)| ask(number, algorithm.into()))
        .collect();
    asks.extend([ask(1, sliding(10).into()), ask(99, banned)]);
    let mut verdicts = Vec::with_capacity(1000);
    let start = Nanos::from_millis(10_000_000);
    for _ in 0..5 {
        store.amend(start, &ask(99, banned), Change::Failure);
    }
    let first = measure(|| check_all(&store, start, &asks, &mut verdicts));
    assert!(
        first.count_total > 0,
        "a new key does allocate, and it is seen"
    );
    for round in 1..6 {
        let from = start.saturating_add(Nanos::from_millis(round * 181_000));
        let again = measure(|| check_all(&store, from, &asks, &mut verdicts));
        assert_eq!(again.count_total, 0, "round {round}");
    }
    assert!(verdicts.iter().any(|verdict| !verdict.is_allowed()));
}
