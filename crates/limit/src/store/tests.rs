//! Tests of the store as its callers see it. What takes a model, threads or a flood has a file of
//! its own.

mod algorithms;
mod amends;
mod any_rules;
mod backlog;
mod bans;
mod calendars;
mod concurrency;
mod flood;
mod model;
mod replica;
mod shares;
mod slow;
mod tiers;
mod waits;

use super::{Ask, Change, SHARD_COUNT, Store, StoreConfig};
use crate::{
    key::KeyHash,
    rule::{
        Algorithm, Alignment, Concurrency, FixedWindow, LeakyBucket, OldestSlice, Rule, SlidingLog,
        SlidingWindow, TokenBucket,
    },
    units::{Cost, Nanos, Window},
    verdict::{Mode, Outcome, Reason, Verdict},
};

pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const NOW: Nanos = Nanos::new(1000 * SECOND);
const MEBIBYTE: u64 = 1024 * 1024;

fn store(max_bytes: u64) -> Store {
    Store::new(&StoreConfig {
        max_bytes,
        ..StoreConfig::default()
    })
}

pub(super) fn rule(limit: u64, seconds: u64, slices: u8, oldest: OldestSlice) -> Rule {
    Rule::new(Algorithm::SlidingWindow(SlidingWindow {
        limit,
        window: window(seconds * 1000),
        slices,
        oldest,
    }))
}

pub(super) fn window(milliseconds: u64) -> Window {
    Window::new(Nanos::from_millis(milliseconds)).expect("a window in its bounds")
}

fn soft(limit: u64) -> Rule {
    rule(limit, 60, 10, OldestSlice::Weighted)
}

/// The key of a number, spread as hashed keys are.
fn key(number: u64) -> KeyHash {
    let mut state = number;
    KeyHash::from_halves(mix(&mut state), mix(&mut state))
}

/// The key of a number in that shard.
pub(super) fn key_in_shard(shard: u64, number: u64) -> KeyHash {
    let spread = key(number);
    KeyHash::from_halves((shard << 54) | (spread.high() >> 10), spread.low())
}

/// One step of `SplitMix64`.
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn ask(key: KeyHash, rule: Rule, cost: u64) -> Ask {
    let cost = Cost::new(cost).expect("a cost in its bounds");
    Ask { key, rule, cost }
}

/// A store whose clock began at that instant of Unix time.
fn store_since(unix_origin: Nanos) -> Store {
    Store::new(&StoreConfig {
        unix_origin,
        ..StoreConfig::default()
    })
}

/// A number by which every algorithm admits so many at once, and in so many milliseconds.
fn every_algorithm(limit: u64, milliseconds: u64) -> Vec<Algorithm> {
    let window = window(milliseconds);
    let sliding = |slices, oldest| {
        Algorithm::SlidingWindow(SlidingWindow {
            limit,
            window,
            slices,
            oldest,
        })
    };
    let alignment = Alignment::Epoch(window);
    vec![
        sliding(1, OldestSlice::Weighted),
        sliding(10, OldestSlice::Weighted),
        sliding(10, OldestSlice::Full),
        sliding(60, OldestSlice::Weighted),
        Algorithm::SlidingLog(SlidingLog { limit, window }),
        Algorithm::FixedWindow(FixedWindow { limit, alignment }),
        Algorithm::TokenBucket(TokenBucket {
            limit,
            window,
            burst: limit,
        }),
        Algorithm::LeakyBucket(LeakyBucket {
            limit,
            window,
            queue: limit.saturating_sub(1),
        }),
        Algorithm::Concurrency(Concurrency { limit, ttl: window }),
    ]
}

fn minutes(minutes: u64) -> Nanos {
    Nanos::new(minutes * 60 * SECOND)
}

fn later(seconds: u64) -> Nanos {
    NOW.saturating_add(Nanos::new(seconds * SECOND))
}

fn decide_all(store: &Store, asks: &[Ask], mode: Mode) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    store.decide_all(NOW, asks, mode, &mut verdicts);
    verdicts
}

fn used(store: &Store, ask: &Ask) -> u64 {
    store
        .read(NOW, ask.key, &ask.rule)
        .map_or(0, |verdict| verdict.used)
}

#[test]
fn a_key_is_counted_until_its_limit() {
    let store = store(16 * MEBIBYTE);
    let ask = ask(key(1), soft(3), 1);
    for left in [2, 1, 0] {
        let verdict = store.decide(NOW, &ask, Mode::Consume);
        assert_eq!((verdict.outcome, verdict.remaining), (Outcome::Allow, left));
    }
    let refused = store.decide(NOW, &ask, Mode::Consume);
    assert_eq!(refused.outcome, Outcome::Refuse(Reason::LimitExceeded));
    assert_eq!(used(&store, &ask), 3);
}

#[test]
fn what_is_not_charged_makes_no_counter() {
    let store = store(16 * MEBIBYTE);
    store.decide(NOW, &ask(key(1), soft(3), 1), Mode::Peek);
    store.decide(NOW, &ask(key(1), soft(3), 4), Mode::Consume);
    store.decide(NOW, &ask(key(1), soft(0), 1), Mode::Consume);
    store.decide(NOW, &ask(key(1), soft(3), 0), Mode::Consume);
    for change in [
        Change::GiveBack { slice: 0 },
        Change::Refund,
        Change::Failure,
        Change::Reset,
    ] {
        store.amend(NOW, &ask(key(1), soft(3), 1), change);
    }
    store.amend(NOW, &ask(key(1), soft(3), 0), Change::Charge);
    store.seed(NOW, key(1), &soft(3), 0);
    assert_eq!(store.stats().keys, 0);
    assert_eq!(store.read(NOW, key(1), &soft(3)), None);
}

#[test]
fn a_refusal_by_one_limit_charges_none() {
    let store = store(16 * MEBIBYTE);
    for (first, second) in [
        (key_in_shard(7, 1), key_in_shard(3, 2)),
        (key_in_shard(7, 3), key_in_shard(7, 4)),
    ] {
        let wide = ask(first, soft(10), 1);
        let narrow = ask(second, soft(1), 1);
        let both = [wide, narrow];
        let verdicts = decide_all(&store, &both, Mode::Consume);
        assert!(verdicts.iter().all(Verdict::is_allowed));
        let verdicts = decide_all(&store, &both, Mode::Consume);
        let [admits, refuses] = verdicts[..] else {
            panic!("one verdict for each ask, got {verdicts:?}");
        };
        assert_eq!(
            (admits.outcome, admits.used, admits.remaining),
            (Outcome::Allow, 1, 9)
        );
        assert_eq!(refuses.outcome, Outcome::Refuse(Reason::LimitExceeded));
        assert_eq!((used(&store, &wide), used(&store, &narrow)), (1, 1));
        let fresh = [ask(key(90), soft(5), 1), narrow];
        decide_all(&store, &fresh, Mode::Consume);
        assert_eq!(store.read(NOW, key(90), &soft(5)), None);
    }
}

#[test]
fn asks_of_one_key_count_on_top_of_each_other() {
    let store = store(16 * MEBIBYTE);
    let three = ask(key(1), soft(5), 3);
    let verdicts = decide_all(&store, &[three, three], Mode::Consume);
    assert!(verdicts[0].is_allowed());
    assert_eq!(
        verdicts[1].outcome,
        Outcome::Refuse(Reason::CostExceedsLimit)
    );
    assert_eq!(used(&store, &three), 0);
    let two = ask(key(1), soft(5), 2);
    let verdicts = decide_all(&store, &[two, two], Mode::Peek);
    assert!(verdicts.iter().all(Verdict::is_allowed));
    assert_eq!(used(&store, &two), 0);
    let verdicts = decide_all(&store, &[two, two], Mode::Consume);
    assert_eq!((verdicts[0].used, verdicts[1].used), (2, 4));
    let verdicts = decide_all(&store, &[ask(key(1), soft(5), 1), two], Mode::Consume);
    assert!(verdicts[0].is_allowed());
    let wait = verdicts[1].retry_after.expect("waiting helps");
    let later = NOW.saturating_add(wait);
    let fits = |now| {
        store
            .decide(now, &ask(key(1), soft(5), 3), Mode::Peek)
            .is_allowed()
    };
    assert!(fits(later) && !fits(later.saturating_sub(Nanos::new(1))));
}

#[test]
fn no_ask_has_no_verdict_and_one_is_as_alone() {
    let store = store(16 * MEBIBYTE);
    assert_eq!(decide_all(&store, &[], Mode::Consume), []);
    let alone = ask(key(1), soft(5), 2);
    let verdicts = decide_all(&store, &[alone], Mode::Consume);
    assert_eq!(verdicts.len(), 1);
    assert_eq!(used(&store, &alone), 2);
}

#[test]
fn units_go_back_to_the_slice_that_they_came_from() {
    let store = store(16 * MEBIBYTE);
    let ask = ask(key(1), soft(5), 5);
    let slice = store.decide(NOW, &ask, Mode::Consume).charged_slice;
    let two = Ask {
        cost: Cost::new(2).expect("a cost in its bounds"),
        ..ask
    };
    store.amend(NOW, &two, Change::GiveBack { slice: slice + 1 });
    assert_eq!(used(&store, &ask), 5);
    store.amend(NOW, &two, Change::GiveBack { slice });
    assert_eq!(used(&store, &ask), 3);
    store.amend(NOW, &ask, Change::GiveBack { slice });
    assert_eq!(used(&store, &ask), 0);
}

#[test]
fn a_seed_sets_an_unknown_key_only() {
    let store = store(16 * MEBIBYTE);
    let ask = ask(key(1), soft(5), 1);
    store.seed(NOW, ask.key, &ask.rule, 4);
    assert_eq!(used(&store, &ask), 4);
    store.seed(NOW, ask.key, &ask.rule, 1);
    assert_eq!((used(&store, &ask), store.stats().keys), (4, 1));
    assert!(store.decide(NOW, &ask, Mode::Consume).is_allowed());
    assert!(!store.decide(NOW, &ask, Mode::Consume).is_allowed());
}

#[test]
fn another_window_of_a_key_is_another_counter() {
    let store = store(16 * MEBIBYTE);
    let minute = ask(key(1), soft(5), 5);
    let hour = ask(key(1), rule(5, 3600, 10, OldestSlice::Weighted), 5);
    let coarse = ask(key(1), rule(5, 60, 1, OldestSlice::Weighted), 5);
    for ask in [minute, hour, coarse] {
        assert!(store.decide(NOW, &ask, Mode::Consume).is_allowed());
    }
    assert_eq!(store.stats().keys, 3);
    assert!(store.remove(key(1)));
    assert_eq!(store.stats().keys, 0);
    assert!(!store.remove(key(1)));
}

#[test]
fn a_sweep_drops_what_is_empty_and_goes_round() {
    let store = store(16 * MEBIBYTE);
    let keys = 3000;
    for number in 0..keys {
        store.decide(NOW, &ask(key(number), soft(5), 1), Mode::Consume);
    }
    let held = ask(key(keys), rule(5, 3600, 10, OldestSlice::Weighted), 5);
    store.decide(NOW, &held, Mode::Consume);
    assert_eq!(store.sweep(NOW, SHARD_COUNT), 0);
    let before = store.stats().bytes;
    let later = NOW.saturating_add(Nanos::new(67 * SECOND));
    let dropped: usize = (0..8).map(|_| store.sweep(later, SHARD_COUNT / 8)).sum();
    assert_eq!(dropped, 3000);
    let stats = store.stats();
    assert_eq!((stats.keys, stats.expired), (1, keys));
    assert!(
        stats.bytes < before / 2,
        "{} of {before} bytes left",
        stats.bytes
    );
    assert_eq!(store.sweep(later, usize::MAX), 0);
    assert!(!store.decide(later, &held, Mode::Consume).is_allowed());
}

#[test]
fn clearing_forgets_everything() {
    let store = store(16 * MEBIBYTE);
    let empty = store.stats();
    for number in 0..3000 {
        store.decide(NOW, &ask(key(number), soft(5), 1), Mode::Consume);
    }
    store.clear();
    assert_eq!(store.stats(), empty);
}

#[test]
fn a_shard_is_the_top_of_the_slot() {
    for shard in [0, 1, 511, 1023] {
        let in_shard = key_in_shard(shard, 9);
        assert_eq!(super::shard_of(in_shard) as u64, shard);
    }
}
