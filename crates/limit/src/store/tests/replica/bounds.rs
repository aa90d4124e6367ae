//! What series take: cells of one counter, and bytes of all.

use super::*;
use crate::store::gather::{MAX_COPIED, MAX_SERIES};

fn small(writer: u64) -> Store {
    Store::new(&StoreConfig {
        writer: writer << 32,
        max_bytes: StoreConfig::MIN_BYTES,
        ..StoreConfig::default()
    })
}

/// A counter that more have counted than it has room for.
#[test]
fn the_series_of_one_counter_are_bounded() {
    for algorithm in every_algorithm(100, 60_000) {
        let (deciding, copying) = (store_of(1), store_of(2));
        let ask = ask(key(1), algorithm.into(), 1);
        let slots = slot_of(&ask);
        copying.close(&slots);
        deciding.decide(NOW, &ask, Mode::Consume);
        for writer in 10..40 {
            let other = store_of(writer);
            other.decide(NOW, &ask, Mode::Consume);
            let series = exported(&other, NOW, &slots);
            let expected = 1 + writer - 9;
            assert_eq!(merge_all(&deciding, NOW, &series), [Merged::Taken]);
            assert_eq!(used(&deciding, &ask), expected, "{algorithm:?}");
            let copied = merge_all(&copying, NOW, &series);
            let has_room = writer < 10 + MAX_COPIED as u64;
            let expected = if has_room {
                Merged::Taken
            } else {
                Merged::Refused
            };
            assert_eq!(copied, [expected]);
        }
        let stats = deciding.stats();
        assert_eq!((stats.keys, stats.foreign, stats.voids), (1, 7, 8));
        assert_eq!((stats.absorbed, copying.stats().refused), (23, 6));
        // What was absorbed is told as its own, once.
        let third = store_of(3);
        let told = exported(&deciding, NOW, &slots);
        for _ in 0..2 {
            merge_all(&third, NOW, &told);
        }
        assert_eq!(used(&third, &ask), 31, "{algorithm:?}");
    }
}

/// A store that keeps copies and stands in for who decides takes nothing of others in: both would tell of it.
#[test]
fn who_only_stands_in_takes_in_nothing() {
    for algorithm in every_algorithm(100, 60_000) {
        let (deciding, copying) = (store_of(1), store_of(2));
        let ask = ask(key(1), algorithm.into(), 1);
        let slots = slot_of(&ask);
        copying.close(&slots);
        for store in [&deciding, &copying] {
            store.decide(NOW, &ask, Mode::Consume);
        }
        for writer in 10..20 {
            let other = store_of(writer);
            other.decide(NOW, &ask, Mode::Consume);
            merge_all(&deciding, NOW, &exported(&other, NOW, &slots));
            merge_all(&copying, NOW, &exported(&deciding, NOW, &slots));
        }
        assert_eq!(copying.stats().absorbed, 0, "{algorithm:?}");
        let mut own = Vec::new();
        copying.export_own(NOW, &slots, &mut own);
        merge_all(&deciding, NOW, &own);
        merge_all(&copying, NOW, &exported(&deciding, NOW, &slots));
        for store in [&deciding, &copying] {
            assert_eq!(used(store, &ask), 12, "{algorithm:?}");
        }
    }
}

/// One whose own counts were absorbed learns it: they count there no more beside what absorbed them.
#[test]
fn what_was_absorbed_is_not_counted_by_its_writer_again() {
    let ask = ask(key(1), soft(100), 1);
    let slots = slot_of(&ask);
    let (deciding, first) = (store_of(1), store_of(10));
    deciding.decide(NOW, &ask, Mode::Consume);
    first.decide(NOW, &ask, Mode::Consume);
    merge_all(&deciding, NOW, &exported(&first, NOW, &slots));
    for writer in 11..19 {
        let now = later(1);
        let other = store_of(writer);
        other.decide(now, &ask, Mode::Consume);
        merge_all(&deciding, now, &exported(&other, now, &slots));
    }
    assert_eq!(deciding.stats().absorbed, 2, "the oldest, and one more");
    merge_all(&first, later(1), &exported(&deciding, later(1), &slots));
    assert_eq!(used_at(&first, later(1), &ask), 10);
}

#[test]
fn series_of_others_that_are_over_make_room() {
    let copy = store_of(2);
    let ask = ask(key(1), soft(100), 1);
    for writer in 10..30 {
        let now = later(20 * writer);
        let other = store_of(writer);
        other.decide(now, &ask, Mode::Consume);
        let series = exported(&other, now, &slot_of(&ask));
        assert_eq!(merge_all(&copy, now, &series), [Merged::Taken]);
    }
    assert!(copy.stats().foreign <= MAX_SERIES as u64);
    let swept = copy.sweep(later(20 * 100), crate::SHARD_COUNT);
    assert!(swept > 0);
    assert_eq!(copy.stats().foreign, 0);
}

/// Copies, totals, voids and lists of a flood, all together, never take more than the budget.
#[test]
fn the_budget_holds_whatever_is_copied() {
    let (store, source) = (small(1), store_of(2));
    let algorithms = every_algorithm(3, 60_000);
    let mut told = Vec::new();
    for number in 0..200_000_u64 {
        let now = NOW.saturating_add(Nanos::new(number * 10_000));
        let algorithm = algorithms[number as usize % algorithms.len()];
        let ask = ask(key_in_shard(number % 7, number / 3), algorithm.into(), 1);
        if number % 3 != 0 {
            source.decide(now, &ask, Mode::Consume);
        }
        if number % 5 != 0 {
            store.decide(now, &ask, Mode::Consume);
        }
        if number % 97 == 0 {
            store.amend(now, &ask, Change::Reset);
        }
        if number % 500 == 0 {
            told.clear();
            source.take_due(now, 10_000, &mut told);
            merge_all(&store, now, &told);
            let stats = store.stats();
            assert!(stats.bytes <= stats.max_bytes);
            let in_seven = (stats.max_bytes / crate::SHARD_COUNT as u64) * 7;
            let others = stats.bytes - small(9).stats().bytes;
            assert!(others <= in_seven, "{others} of {in_seven}");
        }
        if number % 50_000 == 0 {
            store.sweep(now, crate::SHARD_COUNT);
        }
    }
    let stats = store.stats();
    assert!(stats.evicted > 1000 && stats.foreign > 0, "{stats:?}");
}

/// A total that goes for want of memory takes the series in it along: what is left of them would be counted
/// again when they come back.
#[test]
fn a_total_goes_with_the_series_in_it() {
    let (store, source) = (small(1), store_of(2));
    let shared = ask(key_in_shard(0, 0), soft(20), 1);
    source.decide(NOW, &shared, Mode::Consume);
    let copied = exported(&source, NOW, &slot_of(&shared));
    merge_all(&store, NOW, &copied);
    store.decide(NOW, &shared, Mode::Consume);
    assert_eq!((used(&store, &shared), store.stats().foreign), (2, 1));
    let mut number = 1;
    while store.stats().evicted == 0 {
        let fuller = ask(key_in_shard(0, number), soft(20), 15);
        store.decide(later(1), &fuller, Mode::Consume);
        number += 1;
    }
    assert_eq!((used(&store, &shared), store.stats().foreign), (0, 0));
    merge_all(&store, NOW, &copied);
    assert_eq!(used(&store, &shared), 1);
}
