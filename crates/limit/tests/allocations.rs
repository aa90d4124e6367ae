//! A check of a known key allocates nothing. A binary of its own, since it counts what the whole
//! process allocates.

#![allow(clippy::expect_used, reason = "a test may panic")]

use allocation_counter::measure;
use tollgate_limit::{
    Algorithm, Ask, Cost, KeyHash, Mode, Nanos, OldestSlice, Rule, SlidingWindow, Store,
    StoreConfig, Verdict, Window,
};

const MINUTE: Nanos = Nanos::from_millis(60_000);

fn ask(number: u64, slices: u8) -> Ask {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Ask {
        key: KeyHash::from_halves(spread, spread.rotate_left(32)),
        rule: Rule::new(Algorithm::SlidingWindow(SlidingWindow {
            limit: 5,
            window: Window::new(MINUTE).expect("a window in its bounds"),
            slices,
            oldest: OldestSlice::Weighted,
        })),
        cost: Cost::ONE,
    }
}

/// Admitted, refused, peeked at, alone and together, over three windows.
fn check_all(store: &Store, asks: &[Ask], verdicts: &mut Vec<Verdict>) {
    for second in 0..180 {
        let now = Nanos::from_millis(10_000_000_u64.saturating_add(second * 1000));
        verdicts.clear();
        for ask in asks {
            verdicts.push(store.decide(now, ask, Mode::Consume));
            verdicts.push(store.decide(now, ask, Mode::Peek));
        }
        store.decide_all(now, asks, Mode::Consume, verdicts);
    }
}

#[test]
fn a_known_key_allocates_nothing() {
    let store = Store::new(&StoreConfig::default());
    let asks = [ask(1, 10), ask(2, 1), ask(3, 60), ask(1, 10)];
    let mut verdicts = Vec::with_capacity(1000);
    let first = measure(|| check_all(&store, &asks, &mut verdicts));
    assert!(
        first.count_total > 0,
        "a new key does allocate, and it is seen"
    );
    let again = measure(|| check_all(&store, &asks, &mut verdicts));
    assert_eq!(again.count_total, 0);
    assert!(verdicts.iter().any(|verdict| !verdict.is_allowed()));
}
