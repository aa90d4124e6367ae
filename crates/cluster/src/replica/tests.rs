//! Tests of what a follower gets.

use tollgate_limit::{
    Algorithm, Ask, Cost, KeyHash, Mode, Nanos, OldestSlice, Outcome, Rule, SlidingWindow, SlotId,
    SlotSet, Store, StoreConfig, Window,
};
use tollgate_wire::replica::{Delivery, MAX_BATCH};

use super::{MAX_QUEUED, Source, TakenIn, take_in};

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn store(writer: u64) -> Store {
    Store::new(&StoreConfig {
        writer,
        ..StoreConfig::default()
    })
}

/// A key of a slot.
fn key(slot: u16, number: u64) -> KeyHash {
    KeyHash::from_halves(u64::from(slot) << 48, number)
}

fn ask(key: KeyHash, cost: u64) -> Ask {
    let window = Window::new(at(60_000)).unwrap();
    Ask {
        key,
        rule: Rule::new(Algorithm::SlidingWindow(SlidingWindow {
            limit: 1_000,
            window,
            slices: 10,
            oldest: OldestSlice::Full,
        })),
        cost: Cost::new(cost).unwrap(),
    }
}

fn charge(store: &Store, now: Nanos, key: KeyHash, cost: u64) -> bool {
    let verdict = store.try_decide(now, &ask(key, cost), Mode::Consume);
    verdict.is_some_and(|verdict| verdict.outcome == Outcome::Allow)
}

/// What a store has counted of a key.
fn used(store: &Store, now: Nanos, key: KeyHash) -> u64 {
    let read = store.read(now, key, &ask(key, 1).rule);
    read.map_or(0, |verdict| verdict.used)
}

fn slots(numbers: &[u16]) -> SlotSet {
    numbers.iter().copied().map(SlotId::new).collect()
}

/// Sends all that is to be sent; what was said of slots, in order.
fn send(source: &mut Source, now: Nanos, from: &Store, to: &Store) -> Vec<Delivery> {
    let mut said = Vec::new();
    while let Some(delivery) = source.poll_delivery(now, from) {
        match delivery {
            Delivery::Batch(series) => {
                assert!(!series.is_empty() && series.len() <= MAX_BATCH);
                let taken = take_in(to, now, &series);
                assert_eq!(taken.refused, 0);
            }
            Delivery::Copied(_) | Delivery::Final(_) | Delivery::Reported(_) => said.push(delivery),
        }
    }
    said
}

fn pump(source: &mut Source, now: Nanos, store: &Store) {
    let mut series = Vec::new();
    while store.take_due(now, 1_024, &mut series) {}
    source.handle_changed(now, &series);
}

/// What is copied and what changes later is at the follower; what it does not want is not.
#[test]
fn a_follower_gets_a_copy_and_what_changes() {
    let (owner, standby) = (store(1), store(2));
    let mut source = Source::new();
    assert!(charge(&owner, at(0), key(1, 1), 10));
    assert!(charge(&owner, at(0), key(2, 1), 10));
    source.handle_subscribe(&slots(&[1, 3]));
    let said = send(&mut source, at(1), &owner, &standby);
    assert_eq!(said, [Delivery::Copied(slots(&[1, 3]))]);
    assert_eq!(used(&standby, at(1), key(1, 1)), 10);
    assert!(charge(&owner, at(2), key(1, 1), 5));
    assert!(charge(&owner, at(2), key(3, 7), 5));
    pump(&mut source, at(300), &owner);
    assert_eq!(send(&mut source, at(300), &owner, &standby), []);
    assert_eq!(used(&standby, at(300), key(1, 1)), 15);
    assert_eq!(used(&standby, at(300), key(3, 7)), 5);
    assert_eq!(used(&standby, at(300), key(2, 1)), 0, "it is not wanted");
    source.handle_subscribe(&slots(&[3]));
    assert!(charge(&owner, at(301), key(1, 1), 5));
    pump(&mut source, at(600), &owner);
    assert_eq!(send(&mut source, at(600), &owner, &standby), []);
    assert_eq!(used(&standby, at(600), key(1, 1)), 15);
}

/// Of slots that another holds this node has what it has; a copy of that is not complete until it holds them.
#[test]
fn what_another_holds_is_not_said_to_be_complete() {
    let (node, standby) = (store(1), store(2));
    let mut source = Source::new();
    assert!(charge(&node, at(0), key(1, 1), 10));
    node.close(&slots(&[1, 2]));
    source.handle_subscribe(&slots(&[1, 2, 3]));
    let said = send(&mut source, at(1), &node, &standby);
    assert_eq!(said, [Delivery::Copied(slots(&[3]))]);
    assert_eq!(
        used(&standby, at(1), key(1, 1)),
        10,
        "it is told all the same"
    );
    node.open(&slots(&[1]));
    assert!(charge(&node, at(2), key(1, 1), 5));
    let said = send(&mut source, at(3), &node, &standby);
    assert_eq!(said, [Delivery::Copied(slots(&[1]))]);
    assert_eq!(used(&standby, at(3), key(1, 1)), 15);
    source.handle_subscribe(&slots(&[3]));
    node.open(&slots(&[2]));
    assert_eq!(
        send(&mut source, at(4), &node, &standby),
        [],
        "not wanted any more"
    );
}

/// INV: the last word comes when all is there, whether the follower has a copy or not, and what was not due
/// yet goes with it; nothing is counted after the slot was given.
#[test]
fn the_last_word_comes_last() {
    for has_copy in [true, false] {
        let (owner, taker) = (store(1), store(2));
        let mut source = Source::new();
        assert!(charge(&owner, at(0), key(1, 1), 10));
        assert!(charge(&owner, at(0), key(1, 3), 4));
        if has_copy {
            source.handle_subscribe(&slots(&[1]));
            send(&mut source, at(0), &owner, &taker);
        }
        assert!(charge(&owner, at(1), key(1, 1), 7));
        pump(&mut source, at(400), &owner);
        assert!(charge(&owner, at(401), key(1, 1), 3));
        assert!(charge(&owner, at(401), key(1, 2), 1));
        source.give(at(402), &owner, &slots(&[1]));
        assert!(!charge(&owner, at(403), key(1, 1), 1), "it is closed");
        assert!(charge(&owner, at(403), key(2, 1), 1), "another is not");
        source.give(at(403), &owner, &slots(&[1]));
        let mut seen = 0;
        while let Some(delivery) = source.poll_delivery(at(410), &owner) {
            match delivery {
                Delivery::Batch(series) => {
                    take_in(&taker, at(410), &series);
                }
                Delivery::Final(given) => {
                    assert_eq!(given, slots(&[1]));
                    assert_eq!(used(&taker, at(410), key(1, 1)), 20, "all is there");
                    assert_eq!(used(&taker, at(410), key(1, 2)), 1);
                    assert_eq!(used(&taker, at(410), key(1, 3)), 4, "sent to others");
                    seen += 1;
                }
                Delivery::Copied(_) | Delivery::Reported(_) => {}
            }
        }
        assert_eq!(seen, 1, "said once");
    }
}

/// With a copy only what is new goes out at the end.
#[test]
fn who_has_a_copy_gets_the_rest_alone() {
    let (owner, taker) = (store(1), store(2));
    let mut source = Source::new();
    for number in 0..500 {
        assert!(charge(&owner, at(0), key(1, number), 1));
    }
    source.handle_subscribe(&slots(&[1]));
    send(&mut source, at(0), &owner, &taker);
    pump(&mut source, at(400), &owner);
    send(&mut source, at(400), &owner, &taker);
    assert!(charge(&owner, at(401), key(1, 77), 1));
    source.give(at(402), &owner, &slots(&[1]));
    let Some(Delivery::Batch(series)) = source.poll_delivery(at(402), &owner) else {
        panic!("the rest comes first");
    };
    assert_eq!(series.len(), 1);
}

/// A follower that is slow costs bounded memory, and gets all in the end.
#[test]
fn what_the_queue_has_no_room_for_is_copied_again() {
    let (owner, standby) = (store(1), store(2));
    let mut source = Source::new();
    source.handle_subscribe(&SlotSet::all());
    send(&mut source, at(0), &owner, &standby);
    let keys = u64::try_from(MAX_QUEUED).unwrap() + 1_000;
    let key_of = |number: u64| key(u16::try_from(number % 50_000).unwrap(), number);
    for number in 0..keys {
        assert!(charge(&owner, at(1), key_of(number), 1));
    }
    pump(&mut source, at(300), &owner);
    let (series, copies) = source.behind();
    assert_eq!(series, MAX_QUEUED);
    assert!((1..=1_000).contains(&copies));
    let said = send(&mut source, at(300), &owner, &standby);
    assert!(said.iter().all(|said| matches!(said, Delivery::Copied(_))));
    assert_eq!(source.behind(), (0, 0));
    for number in 0..keys {
        assert_eq!(used(&standby, at(300), key_of(number)), 1);
    }
}

/// Counts leave late by the time that they waited, not by more: the follower's clock is what is left.
#[test]
fn what_waited_is_as_old_as_it_is() {
    let (owner, standby) = (store(1), store(2));
    let mut source = Source::new();
    source.handle_subscribe(&slots(&[1]));
    send(&mut source, at(0), &owner, &standby);
    assert!(charge(&owner, at(1), key(1, 1), 10));
    let mut series = Vec::new();
    owner.take_due(at(300), 10, &mut series);
    source.handle_changed(at(300), &series);
    let exported = series[0].clock;
    let Some(Delivery::Batch(sent)) = source.poll_delivery(at(5_300), &owner) else {
        panic!("it waits");
    };
    assert_eq!(sent[0].clock - exported, at(5_000).as_nanos());
}

#[test]
fn what_comes_twice_counts_once() {
    let (owner, standby) = (store(1), store(2));
    assert!(charge(&owner, at(0), key(1, 1), 10));
    let mut series = Vec::new();
    owner.export(at(1), &slots(&[1]), &mut series);
    let taken = |store: &Store| take_in(store, at(1), &series);
    let (one, none) = ((1, 0, 0), (0, 1, 0));
    let tuple = |taken: TakenIn| (taken.taken, taken.known, taken.refused);
    assert_eq!(tuple(taken(&standby)), one);
    assert_eq!(tuple(taken(&standby)), none);
    assert_eq!(tuple(taken(&owner)), none, "its own");
    assert_eq!(used(&standby, at(1), key(1, 1)), 10);
}

#[test]
fn reports_are_answered_in_order() {
    let owner = store(1);
    let mut source = Source::new();
    source.handle_reported(7);
    source.give(at(0), &owner, &slots(&[1]));
    source.handle_reported(8);
    let said = send(&mut source, at(0), &owner, &store(2));
    let last = Delivery::Final(slots(&[1]));
    assert_eq!(said, [Delivery::Reported(7), last, Delivery::Reported(8)]);
}
