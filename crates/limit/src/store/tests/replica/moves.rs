//! Slots that open, close and go.

use super::*;

#[test]
fn nothing_is_decided_or_changed_in_a_closed_slot() {
    let store = store_of(1);
    let here = ask(key_in_shard(3, 1), soft(20), 1);
    let elsewhere = ask(key_in_shard(4, 2), soft(20), 1);
    assert!(store.try_decide(NOW, &here, Mode::Consume).is_some());
    store.close(&slot_of(&here));
    let before = exported(&store, NOW, &SlotSet::all());
    assert_eq!(store.try_decide(NOW, &here, Mode::Consume), None);
    for change in [Change::Charge, Change::Refund, Change::Reset] {
        assert!(!store.try_amend(NOW, &here, change));
    }
    let mut verdicts = Vec::new();
    let both = [elsewhere, here];
    assert!(!store.try_decide_all(NOW, &both, Mode::Consume, &mut verdicts));
    assert!(verdicts.is_empty());
    assert_eq!(exported(&store, NOW, &SlotSet::all()), before);
    store.open(&slot_of(&here));
    assert!(store.try_decide_all(NOW, &both, Mode::Consume, &mut verdicts));
    assert_eq!(verdicts.len(), 2);
    assert!(store.try_amend(NOW, &here, Change::Charge));
    assert_eq!((used(&store, &here), used(&store, &elsewhere)), (3, 1));
}

#[test]
fn a_sealed_slot_is_told_in_full_or_as_far_as_it_was_not() {
    for all in [false, true] {
        let store = store_of(1);
        let sent = ask(key_in_shard(3, 1), soft(20), 1);
        let unsent = Ask {
            key: KeyHash::from_halves(sent.key.high(), 77),
            ..sent
        };
        store.decide(NOW, &sent, Mode::Consume);
        assert_eq!(due(&store, NOW).len(), 1);
        store.decide(NOW, &unsent, Mode::Consume);
        let mut sealed = Vec::new();
        store.seal(NOW, &slot_of(&sent), all, &mut sealed);
        let keys: Vec<_> = sealed.iter().map(|series| series.key).collect();
        if all {
            assert!(keys.contains(&sent.key) && keys.len() == 2);
        } else {
            assert_eq!(keys, [unsent.key]);
        }
        assert_eq!(store.try_decide(NOW, &sent, Mode::Consume), None);
        assert!(due(&store, later(1)).is_empty(), "what is sealed is sent");
    }
}

#[test]
fn what_is_counted_after_a_slot_was_forgotten_is_of_another_writer() {
    let (store, copy) = (store_of(1), store_of(2));
    let one = ask(key(1), soft(20), 1);
    let other = ask(key(2), soft(20), 1);
    let slots = slot_of(&one);
    for ask in [one, one, other] {
        store.decide(NOW, &ask, Mode::Consume);
    }
    let first = exported(&store, NOW, &slots);
    merge_all(&copy, NOW, &first);
    assert_eq!(store.forget(&slots), 1);
    assert_eq!((used(&store, &one), used(&store, &other)), (0, 1));
    store.decide(NOW, &one, Mode::Consume);
    let second = exported(&store, NOW, &slots);
    assert_ne!(first[0].writer, second[0].writer);
    merge_all(&copy, NOW, &second);
    assert_eq!(used(&copy, &one), 3);
    // What it forgot comes back to it, once.
    let all = exported(&copy, NOW, &slots);
    for _ in 0..2 {
        merge_all(&store, NOW, &all);
        assert_eq!(used(&store, &one), 3);
    }
}

/// A counter that time or want of memory has removed goes on above all that was ever told of it.
#[test]
fn a_counter_that_comes_back_has_a_higher_version() {
    let (store, copy) = (store_of(1), store_of(2));
    let one = ask(key(1), soft(20), 1);
    let slots = slot_of(&one);
    // More writes than microseconds.
    for _ in 0..20 {
        store.decide(Nanos::new(1000), &one, Mode::Consume);
        store.amend(Nanos::new(1000), &one, Change::Refund);
    }
    let first = exported(&store, Nanos::new(1000), &slots);
    merge_all(&copy, Nanos::new(1000), &first);
    assert!(store.remove(one.key));
    store.decide(Nanos::new(2000), &one, Mode::Consume);
    let second = exported(&store, Nanos::new(2000), &slots);
    assert!(second[0].version > first[0].version);
    assert_eq!(merge_all(&copy, Nanos::new(2000), &second), [Merged::Taken]);
    store.clear();
    store.decide(Nanos::new(2000), &one, Mode::Consume);
    let third = exported(&store, Nanos::new(2000), &slots);
    assert_ne!(third[0].writer, second[0].writer);
}

/// A clock that shows years does not use the versions up: they go on upwards with the first write and when a
/// counter comes back.
#[test]
fn versions_go_upwards_whatever_the_clock_shows() {
    let years = Nanos::from_millis(11 * 365 * 24 * 3_600_000);
    let at = |millis| years.saturating_add(Nanos::from_millis(millis));
    for algorithm in every_algorithm(100, 60_000) {
        let (store, copy, before) = (store_of(1), store_of(2), store_of(3));
        let one = ask(key(1), algorithm.into(), 1);
        let slots = slot_of(&one);
        before.decide(at(0), &one, Mode::Consume);
        merge_all(&store, at(1), &exported(&before, at(1), &slots));
        // A total is made that has counted nothing itself yet.
        store.decide(at(2), &ask(key(1), algorithm.into(), 1_000), Mode::Consume);
        merge_all(&copy, at(3), &exported(&store, at(3), &slots));
        for charge in 1..4 {
            store.decide(at(3 + charge), &one, Mode::Consume);
            merge_all(
                &copy,
                at(3 + charge),
                &exported(&store, at(3 + charge), &slots),
            );
            assert_eq!(used_at(&copy, at(7), &one), 1 + charge, "{algorithm:?}");
        }
        let told = exported(&store, at(8), &slots);
        let own = |series: &[Series]| series.iter().map(|it| it.version).max();
        store.remove(one.key);
        store.decide(at(9), &one, Mode::Consume);
        let again = exported(&store, at(9), &slots);
        assert!(own(&again) > own(&told), "{algorithm:?}");
    }
}

#[test]
fn withdrawn_counts_are_gone_here_and_told_once() {
    let (share, owner) = (store_of(1), store_of(2));
    let asks: Vec<_> = (0..50)
        .map(|number| ask(key(number), soft(20), 1))
        .collect();
    let mut out = Vec::new();
    for round in 1..=3 {
        for ask in &asks {
            share.decide(NOW, ask, Mode::Consume);
        }
        out.clear();
        share.withdraw(NOW, &SlotSet::all(), &mut out);
        assert_eq!((out.len(), share.stats().keys), (50, 0));
        merge_all(&owner, NOW, &out);
        merge_all(&owner, NOW, &out);
        for ask in &asks {
            assert_eq!((used(&share, ask), used(&owner, ask)), (0, round));
        }
    }
    let none: SlotSet = [SlotId::new(9)].into_iter().collect();
    out.clear();
    owner.withdraw(NOW, &none, &mut out);
    assert!(out.is_empty());
}
