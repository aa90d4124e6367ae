//! Floods of keys (P7), and what a key takes in memory.

use super::{MEBIBYTE, NOW, ask, key, rule, soft, store};
use crate::{rule::OldestSlice, store::Store, units::Nanos, verdict::Mode};

const FLOOD: u64 = 1_000_000;

/// Sends a million keys once each, a microsecond apart, and asks for the held key in between.
fn flood(store: &Store, limit: u64) -> u64 {
    let held = ask(key(u64::MAX), soft(20), 1);
    let mut admitted = 0;
    for _ in 0..20 {
        admitted += u64::from(store.decide(NOW, &held, Mode::Consume).is_allowed());
    }
    for number in 0..FLOOD {
        let now = NOW.saturating_add(Nanos::new(number * 1000));
        store.decide(now, &ask(key(number), soft(limit), 1), Mode::Consume);
        if number % 1000 == 0 {
            admitted += u64::from(store.decide(now, &held, Mode::Consume).is_allowed());
            let stats = store.stats();
            assert!(stats.bytes <= stats.max_bytes, "{stats:?}");
        }
    }
    admitted
}

#[test]
fn a_flood_of_keys_cannot_reset_a_limit() {
    let store = store(16 * MEBIBYTE);
    assert_eq!(flood(&store, 20), 20, "the held key is refused to the end");
    let stats = store.stats();
    assert_eq!(stats.evicted_at_limit, 0);
    assert_eq!(stats.keys + stats.evicted, FLOOD + 1);
    assert!(stats.keys > 80_000, "memory is used: {stats:?}");
}

#[test]
fn a_flood_of_keys_at_their_limit_shows_what_had_to_go() {
    let store = store(16 * MEBIBYTE);
    for number in 0..FLOOD {
        let now = NOW.saturating_add(Nanos::new(number * 1000));
        store.decide(now, &ask(key(number), soft(1), 1), Mode::Consume);
    }
    let stats = store.stats();
    assert_eq!(stats.evicted, 0, "none was below its limit");
    assert_eq!(stats.keys + stats.evicted_at_limit, FLOOD);
    assert!(
        stats.keys > 80_000 && stats.bytes <= stats.max_bytes,
        "{stats:?}"
    );
}

#[test]
fn the_smallest_store_holds_some_keys_of_any_kind() {
    let store = store(0);
    for number in 0..60_000 {
        let slices = u8::try_from(number % 60 + 1).expect("at most 60");
        let rule = rule(20, 60, slices, OldestSlice::Weighted);
        let ask = ask(key(number), rule, 2);
        let verdict = store.decide(NOW, &ask, Mode::Consume);
        assert_eq!(verdict.used, 2);
        let counted = store
            .read(NOW, ask.key, &rule)
            .expect("its own insert spares it");
        assert_eq!(counted.used, 2);
    }
    let stats = store.stats();
    assert!(stats.bytes <= stats.max_bytes, "{stats:?}");
    assert!(stats.keys > 4 * 1024, "{stats:?}");
}

/// Bytes for each key, averaged over one doubling of the number of keys.
fn mean_bytes_per_key(slices: u8) -> f64 {
    let store = store(1024 * MEBIBYTE);
    let rule = rule(20, 60, slices, OldestSlice::Weighted);
    let (first, step) = (200_000_u64, 10_000);
    let (mut sum, mut samples) = (0.0, 0.0);
    for number in 0..2 * first {
        store.decide(NOW, &ask(key(number), rule, 1), Mode::Consume);
        if number >= first && number % step == 0 {
            let stats = store.stats();
            sum += stats.bytes as f64 / stats.keys as f64;
            samples += 1.0;
        }
    }
    sum / samples
}

#[test]
fn a_key_takes_little_memory() {
    let one = mean_bytes_per_key(1);
    assert!(one <= 88.0, "{one} bytes with one slice");
    let ten = mean_bytes_per_key(10);
    assert!(ten <= 168.0, "{ten} bytes with ten slices");
}
