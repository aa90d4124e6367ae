//! When a counter is sent.

use super::*;
use crate::store::{SEND_AFTER, SHARD_COUNT};

fn just_before(instant: Nanos) -> Nanos {
    instant.saturating_sub(Nanos::new(1))
}

#[test]
fn a_small_part_of_a_limit_waits_and_a_large_one_does_not() {
    let store = store_of(1);
    let wide = ask(key(1), soft(320), 1);
    store.decide(NOW, &wide, Mode::Consume);
    assert!(!store.has_urgent());
    let then = NOW.saturating_add(SEND_AFTER);
    assert!(due(&store, just_before(then)).is_empty());
    for _ in 0..8 {
        store.decide(NOW, &wide, Mode::Consume);
    }
    assert!(!store.has_urgent(), "nine of ten");
    assert_eq!(due(&store, then).len(), 1);
    assert!(due(&store, then).is_empty(), "it is sent once");
    for _ in 0..9 {
        store.decide(then, &wide, Mode::Consume);
    }
    assert!(!store.has_urgent());
    store.decide(then, &wide, Mode::Consume);
    assert!(store.has_urgent());
    assert_eq!(due(&store, then).len(), 1);
    assert!(!store.has_urgent());
    // Of a small limit each charge is a large part; what is given back is sent as well.
    let narrow = ask(key(2), soft(10), 1);
    let slice = store.decide(then, &narrow, Mode::Consume).charged_slice;
    assert!(store.has_urgent());
    assert_eq!(due(&store, then).len(), 1);
    store.amend(then, &narrow, Change::GiveBack { slice });
    assert!(store.has_urgent());
    let standby = store_of(2);
    merge_all(&standby, then, &due(&store, then));
    assert_eq!(used_at(&standby, then, &narrow), 0);
}

#[test]
fn what_writes_nothing_is_not_sent() {
    let store = store_of(1);
    let one = ask(key(1), soft(1), 1);
    store.decide(NOW, &one, Mode::Peek);
    assert!(store.decide(NOW, &one, Mode::Consume).is_allowed());
    assert_eq!(due(&store, NOW).len(), 1);
    assert!(!store.decide(NOW, &one, Mode::Consume).is_allowed());
    store.decide(NOW, &one, Mode::Peek);
    assert!(due(&store, later(1)).is_empty());
}

#[test]
fn a_short_window_is_told_when_its_slot_goes_but_not_before() {
    let store = store_of(1);
    let short = ask(key(1), rule(10, 1, 10, OldestSlice::Weighted), 1);
    let long = ask(key(1), rule(10, 2, 10, OldestSlice::Weighted), 1);
    store.decide(NOW, &short, Mode::Consume);
    assert!(!store.has_urgent());
    store.decide(NOW, &long, Mode::Consume);
    assert_eq!(due(&store, NOW).len(), 1);
    let mut sealed = Vec::new();
    store.seal(NOW, &slot_of(&short), false, &mut sealed);
    assert_eq!(sealed.len(), 1, "the long one was sent");
    let standby = store_of(2);
    merge_all(&standby, NOW, &sealed);
    assert_eq!((used(&standby, &short), used(&standby, &long)), (1, 0));
}

#[test]
fn what_a_deciding_store_takes_over_it_passes_on() {
    let (owner, standby, other) = (store_of(1), store_of(2), store_of(3));
    let ask = ask(key(1), soft(20), 1);
    standby.decide(NOW, &ask, Mode::Consume);
    let series = due(&standby, NOW);
    merge_all(&owner, NOW, &series);
    merge_all(&other, NOW, &due(&owner, NOW.saturating_add(SEND_AFTER)));
    assert_eq!(used(&other, &ask), 1);
    // One that does not decide keeps it for itself.
    let copy = store_of(4);
    copy.close(&slot_of(&ask));
    merge_all(&copy, NOW, &series);
    assert!(due(&copy, later(1)).is_empty());
}

/// Far more than a list has room for, in one shard and in all.
#[test]
fn more_than_the_lists_have_room_for_is_sent_all_the_same() {
    for shards in [1, SHARD_COUNT as u64] {
        for limit in [10, 1000] {
            let (store, copy) = (store_of(1), store_of(2));
            let keys = 5000;
            let ask_of = |number| ask(key_in_shard(number % shards, number), soft(limit), 1);
            for number in 0..keys {
                store.decide(NOW, &ask_of(number), Mode::Consume);
            }
            assert_eq!(store.has_urgent(), limit == 10);
            let (mut out, mut calls) = (Vec::new(), 0);
            while store.take_due(later(1), 100, &mut out) {
                calls += 1;
                assert!(
                    out.len() <= 400,
                    "about as many as asked for: {}",
                    out.len()
                );
                merge_all(&copy, later(1), &out);
                out.clear();
            }
            merge_all(&copy, later(1), &out);
            assert!(calls > 10, "{calls} calls, {shards} shards, limit {limit}");
            assert!(!store.has_urgent());
            for number in 0..keys {
                assert_eq!(used(&copy, &ask_of(number)), 1, "key {number}");
            }
            assert!(due(&store, later(2)).is_empty(), "each was sent once");
            assert_eq!(store.stats().due, 0);
        }
    }
}
