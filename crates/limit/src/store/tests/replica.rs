//! Series between stores: what is counted in one place is counted in the other, once.

mod bounds;
mod due;
mod hostile;
mod moves;
mod refunds;
mod states;
mod threads;
mod voids;

use super::{MEBIBYTE, NOW, ask, every_algorithm, key, key_in_shard, later, rule, soft, used};
use crate::{
    key::{KeyHash, SlotId},
    rule::{OldestSlice, Rule},
    series::{Merged, Series, Writer},
    slot_set::SlotSet,
    store::{Ask, Change, Store, StoreConfig},
    units::Nanos,
    verdict::Mode,
};

/// A store of that writer; those after it are its own too.
fn store_of(writer: u64) -> Store {
    Store::new(&StoreConfig {
        writer: writer << 32,
        first_permit: writer << 32,
        max_bytes: 1024 * MEBIBYTE,
        ..StoreConfig::default()
    })
}

fn slot_of(ask: &Ask) -> SlotSet {
    [ask.key.slot()].into_iter().collect()
}

fn exported(store: &Store, now: Nanos, slots: &SlotSet) -> Vec<Series> {
    let mut out = Vec::new();
    store.export(now, slots, &mut out);
    out
}

fn due(store: &Store, now: Nanos) -> Vec<Series> {
    let mut out = Vec::new();
    while store.take_due(now, 1000, &mut out) {}
    out
}

fn merge_all(store: &Store, now: Nanos, series: &[Series]) -> Vec<Merged> {
    series
        .iter()
        .map(|series| store.merge(now, series))
        .collect()
}

/// What stands at an instant.
fn used_at(store: &Store, now: Nanos, ask: &Ask) -> u64 {
    store
        .read(now, ask.key, &ask.rule)
        .map_or(0, |verdict| verdict.used)
}

#[test]
fn a_copy_counts_what_its_writer_counted() {
    for algorithm in every_algorithm(20, 60_000) {
        let (owner, standby) = (store_of(1), store_of(2));
        let ask = ask(key(1), algorithm.into(), 1);
        for _ in 0..7 {
            assert!(owner.decide(NOW, &ask, Mode::Consume).is_allowed());
        }
        let series = exported(&owner, NOW, &slot_of(&ask));
        assert_eq!(series.len(), 1, "{algorithm:?}");
        assert_eq!(series[0].writer, Writer::new(1 << 32));
        assert_eq!(merge_all(&standby, NOW, &series), [Merged::Taken]);
        assert_eq!(merge_all(&standby, NOW, &series), [Merged::Known]);
        assert_eq!(merge_all(&owner, NOW, &series), [Merged::Own]);
        assert_eq!(used(&standby, &ask), 7, "{algorithm:?}");
        let stats = standby.stats();
        assert_eq!((stats.keys, stats.foreign), (0, 1), "a look makes no total");
        let verdict = standby.decide(NOW, &ask, Mode::Consume);
        assert_eq!(
            (verdict.is_allowed(), verdict.used),
            (true, 8),
            "{algorithm:?}"
        );
        assert_eq!(standby.stats().keys, 1);
    }
}

#[test]
fn what_another_counts_later_takes_the_place_of_what_it_counted() {
    for algorithm in every_algorithm(20, 60_000) {
        let (owner, standby) = (store_of(1), store_of(2));
        let ask = ask(key(1), algorithm.into(), 1);
        let slots = slot_of(&ask);
        for round in 1..=4 {
            owner.decide(NOW, &ask, Mode::Consume);
            merge_all(&standby, NOW, &exported(&owner, NOW, &slots));
            standby.decide(NOW, &ask, Mode::Consume);
            assert_eq!(used(&standby, &ask), 2 * round, "{algorithm:?}");
        }
        // The owner knows nothing of the standby's until it is told.
        assert_eq!(used(&owner, &ask), 4);
        let mut own = Vec::new();
        standby.export_own(NOW, &slots, &mut own);
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].writer, Writer::new(2 << 32));
        merge_all(&owner, NOW, &own);
        assert_eq!(used(&owner, &ask), 8, "{algorithm:?}");
        // All series of the one are all series of the other.
        let third = store_of(3);
        merge_all(&third, NOW, &exported(&owner, NOW, &slots));
        assert_eq!(used(&third, &ask), 8, "{algorithm:?}");
    }
}

#[test]
fn a_seed_is_no_part_of_what_is_counted_here() {
    let (share, owner) = (store_of(1), store_of(2));
    let ask = ask(key(1), soft(20), 1);
    let slots = slot_of(&ask);
    share.seed(NOW, ask.key, &ask.rule, 12);
    for _ in 0..3 {
        share.decide(NOW, &ask, Mode::Consume);
    }
    assert_eq!(used(&share, &ask), 15);
    let mut own = Vec::new();
    share.withdraw(NOW, &slots, &mut own);
    assert_eq!(merge_all(&owner, NOW, &own), [Merged::Taken]);
    assert_eq!(used(&owner, &ask), 3);
    assert_eq!(used(&share, &ask), 0);
    share.seed(NOW, ask.key, &ask.rule, 12);
    share.decide(NOW, &ask, Mode::Consume);
    let all = exported(&share, NOW, &slots);
    assert_eq!(all.len(), 1, "a seed is sent to nobody");
    assert_ne!(all[0].writer, own[0].writer, "never a series from nothing");
    merge_all(&owner, NOW, &all);
    assert_eq!(used(&owner, &ask), 4);
}

#[test]
fn a_ban_holds_wherever_it_is_known() {
    let (owner, standby) = (store_of(1), store_of(2));
    let mut rule = soft(3);
    rule.ban = Some(crate::rule::Ban {
        length: Nanos::from_millis(60_000),
        escalation: 2000,
        longest: Nanos::from_millis(600_000),
    });
    let ask = ask(key(1), rule, 1);
    let slots = slot_of(&ask);
    for _ in 0..2 {
        owner.amend(NOW, &ask, Change::Failure);
    }
    merge_all(&standby, NOW, &exported(&owner, NOW, &slots));
    // The third failure reaches the limit, with the two that were counted elsewhere.
    standby.amend(NOW, &ask, Change::Failure);
    assert!(!standby.decide(NOW, &ask, Mode::Consume).is_allowed());
    assert!(owner.decide(NOW, &ask, Mode::Consume).is_allowed());
    merge_all(&owner, NOW, &exported(&standby, NOW, &slots));
    let refused = owner.decide(NOW, &ask, Mode::Consume);
    assert_eq!(refused.retry_after, Some(Nanos::from_millis(60_000)));
    // The next ban is longer, whoever counts it.
    let after = later(61);
    for _ in 0..3 {
        owner.amend(after, &ask, Change::Failure);
    }
    let refused = owner.decide(after, &ask, Mode::Consume);
    assert_eq!(refused.retry_after, Some(Nanos::from_millis(120_000)));
    // A reset lifts it everywhere.
    owner.amend(after, &ask, Change::Reset);
    assert!(owner.decide(after, &ask, Mode::Consume).is_allowed());
    merge_all(&standby, after, &exported(&owner, after, &slots));
    assert!(standby.decide(after, &ask, Mode::Consume).is_allowed());
}
