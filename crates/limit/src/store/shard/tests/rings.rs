//! Rings of entries in a shard: how they grow, and what they do where they cannot.

use super::{BUDGET, check, one};
use crate::{
    key::KeyHash,
    rule::{Algorithm, Concurrency, OldestSlice, Rule, SlidingLog},
    store::{
        Change,
        cell::{self, Identity, Part},
        shard::Shard,
        tests::{NOW, key_in_shard, rule, window},
    },
    units::Nanos,
    verdict::Mode,
};

fn log(limit: u64) -> Rule {
    let window = window(60_000);
    Rule::new(Algorithm::SlidingLog(SlidingLog { limit, window }))
}

fn permits(limit: u64) -> Rule {
    let ttl = window(60_000);
    Rule::new(Algorithm::Concurrency(Concurrency { limit, ttl }))
}

/// Entries that the ring of a key has room for.
fn room(shard: &Shard, key: KeyHash, rule: &Rule) -> usize {
    let identity = Identity::of(&rule.algorithm, Part::Charges);
    let cell = shard.find(key, identity).expect("it was charged");
    (cell::held(cell).expect("a counter").words.len() - 2) / 3
}

fn after(nanos: u64) -> Nanos {
    NOW.saturating_add(Nanos::new(nanos))
}

#[test]
fn a_ring_doubles_when_it_is_full_and_only_for_what_is_admitted() {
    for rule in [log(100), permits(100)] {
        let mut shard = Shard::new(1024 * 1024, Nanos::ZERO);
        let key = key_in_shard(0, 1);
        let mut rooms = Vec::new();
        for number in 1..=100 {
            let ask = one(key, rule);
            let verdict = shard.decide(after(number), &ask, Mode::Consume, number);
            assert_eq!((verdict.is_allowed(), verdict.used), (true, number));
            rooms.push(room(&shard, key, &rule));
            check(&shard);
        }
        let first_with = |wanted| rooms.iter().position(|room| *room == wanted);
        let steps = [3, 6, 12, 24, 48, 96, 192].map(first_with);
        let expected = [0, 3, 6, 12, 24, 48, 96].map(Some);
        assert_eq!(steps, expected, "{rooms:?}");
    }
    for rule in [log(3), permits(6)] {
        let mut shard = Shard::new(1024 * 1024, Nanos::ZERO);
        let key = key_in_shard(0, 1);
        for number in 1..=100 {
            shard.decide(after(number), &one(key, rule), Mode::Consume, number);
            shard.decide(after(number), &one(key, rule), Mode::Peek, number);
        }
        let limit = usize::try_from(rule.capacity()).expect("small");
        assert_eq!(room(&shard, key, &rule), limit, "a refusal needs no room");
    }
}

#[test]
fn a_ring_that_the_budget_forbids_to_grow_forgets_nothing() {
    for rule in [log(10_000), permits(10_000)] {
        let mut shard = Shard::new(BUDGET, Nanos::ZERO);
        let key = key_in_shard(0, 1);
        for number in 1..=5000 {
            let now = after(number * 1_000_000);
            let verdict = shard.decide(now, &one(key, rule), Mode::Consume, number);
            assert_eq!((verdict.is_allowed(), verdict.used), (true, number));
            assert!(shard.bytes() <= BUDGET);
        }
        check(&shard);
        let room = room(&shard, key, &rule);
        assert_eq!(room, 384, "the next would have 768");
        // Those that were joined end with the youngest of them, which is one of the last.
        let read = |now| {
            shard
                .read(now, key, &rule)
                .map_or(0, |verdict| verdict.used)
        };
        let room = room as u64;
        let end_of = |number: u64| after(number * 1_000_000 + 60_000_000_000);
        assert_eq!(read(end_of(5000 - room)), 5000);
        assert_eq!(read(end_of(5001 - room)), room - 1);
        assert_eq!(read(end_of(5000)), 0);
    }
}

#[test]
fn the_longest_ring_fits_the_largest_limit() {
    let mut shard = Shard::new(256 * 1024, Nanos::ZERO);
    let (key, rule) = (key_in_shard(0, 1), log(10_000));
    for number in 1..=10_000 {
        shard.decide(after(number), &one(key, rule), Mode::Consume, 0);
    }
    assert_eq!(room(&shard, key, &rule), 10_000);
    assert!(
        shard.bytes() <= 256 * 1024,
        "in the part of a default store"
    );
    let refused = shard.decide(after(10_001), &one(key, rule), Mode::Consume, 0);
    assert_eq!((refused.is_allowed(), refused.used), (false, 10_000));
    // A debt has no room of its own: it joins the two oldest.
    shard.amend(after(10_002), &one(key, rule), Change::Charge, 0);
    let window = 60_000_000_000;
    let used = |now| {
        shard
            .read(now, key, &rule)
            .map_or(0, |verdict| verdict.used)
    };
    assert_eq!(used(after(10_002)), 10_001);
    assert_eq!(
        (used(after(1 + window)), used(after(2 + window))),
        (10_001, 9999)
    );
}

#[test]
fn released_permits_make_room_for_others() {
    let mut shard = Shard::new(1024 * 1024, Nanos::ZERO);
    let (key, rule) = (key_in_shard(0, 1), permits(5));
    let ask = one(key, rule);
    for number in 1..=10_000 {
        let verdict = shard.decide(after(number), &ask, Mode::Consume, number);
        assert!(verdict.is_allowed());
        if let Some(slice) = number.checked_sub(4).filter(|slice| *slice > 0) {
            shard.amend(after(number), &ask, Change::GiveBack { slice }, 0);
        }
    }
    assert_eq!(room(&shard, key, &rule), 6);
}

/// `INV-BUDGET`: the list of arenas, which never shrinks, leaves less room for a ring.
#[test]
fn a_ring_in_a_shard_of_many_lengths_keeps_the_budget() {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    for slices in 1..=60 {
        let key = key_in_shard(0, u64::from(slices));
        let ask = one(key, rule(20, 3600, slices, OldestSlice::Weighted));
        shard.decide(NOW, &ask, Mode::Consume, 0);
        assert!(shard.bytes() <= BUDGET);
    }
    let (key, log) = (key_in_shard(0, 99), log(10_000));
    for number in 1..=2000 {
        let verdict = shard.decide(after(number), &one(key, log), Mode::Consume, 0);
        assert_eq!(verdict.used, number, "nothing is forgotten");
        assert!(shard.bytes() <= BUDGET, "{} bytes", shard.bytes());
    }
    check(&shard);
}

/// P7: a ring that grows makes its room as of now, not as of its last charge.
#[test]
fn what_has_emptied_meanwhile_goes_before_what_is_used() {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    let (growing, log) = (key_in_shard(0, 1), log(10_000));
    for number in 0..3 {
        shard.decide(after(number), &one(growing, log), Mode::Consume, 0);
    }
    let mut number = 2;
    while shard.bytes_with_one_more(27) <= BUDGET {
        // One in two is empty after ten seconds; the other is used less than it is then.
        let (limit, seconds) = if number % 2 == 0 { (2, 5) } else { (20, 3600) };
        let rule = rule(limit, seconds, 10, OldestSlice::Full);
        let ask = one(key_in_shard(0, number), rule);
        shard.decide(after(number), &ask, Mode::Consume, 0);
        number += 1;
    }
    let later = after(10_000_000_000);
    shard.decide(later, &one(growing, log), Mode::Consume, 0);
    assert!(shard.losses.expired > 0);
    assert_eq!(shard.losses.evicted, 0);
}

/// P7: a ring that grows forgets no limit, neither its own nor that of another.
#[test]
fn two_long_logs_in_a_shard_forget_no_limit() {
    let mut shard = Shard::new(256 * 1024, Nanos::ZERO);
    let log = Rule::new(Algorithm::SlidingLog(SlidingLog {
        limit: 10_000,
        window: window(3_600_000),
    }));
    let (a, b) = (one(key_in_shard(0, 1), log), one(key_in_shard(0, 2), log));
    let other = one(key_in_shard(0, 3), rule(1, 3600, 10, OldestSlice::Weighted));
    assert!(shard.decide(NOW, &other, Mode::Consume, 0).is_allowed());
    let mut admitted = [0_u64; 2];
    for (first, which) in [(0, 0), (20_000, 1), (40_000, 0), (60_000, 1)] {
        for number in 1..=15_000 {
            let ask = [&a, &b][which];
            let verdict = shard.decide(after(first + number), ask, Mode::Consume, 0);
            admitted[which] += u64::from(verdict.is_allowed());
        }
        assert!(shard.bytes() <= 256 * 1024);
    }
    assert_eq!(admitted, [10_000; 2]);
    let again = shard.decide(after(80_000), &other, Mode::Consume, 0);
    assert!(!again.is_allowed());
    assert_eq!(shard.losses.evicted_at_limit, 0);
    check(&shard);
}
