//! Resets and bans: what they end does not come back with a late copy.

use super::*;
use crate::rule::{Algorithm, Ban};

#[test]
fn a_late_copy_of_what_was_reset_counts_nothing() {
    for algorithm in every_algorithm(20, 60_000) {
        let (owner, standby) = (store_of(1), store_of(2));
        let ask = ask(key(1), algorithm.into(), 1);
        let slots = slot_of(&ask);
        standby.decide(NOW, &ask, Mode::Consume);
        let reported = exported(&standby, NOW, &slots);
        merge_all(&owner, NOW, &reported);
        owner.decide(NOW, &ask, Mode::Consume);
        let copied = exported(&owner, NOW, &slots);
        owner.amend(NOW, &ask, Change::Reset);
        assert_eq!(used(&owner, &ask), 0);
        assert_eq!((owner.stats().keys, owner.stats().voids), (0, 2));
        assert!(owner.has_urgent(), "a reset is told at once");
        let told = due(&owner, NOW);
        assert_eq!(told.len(), 2);
        for late in [&reported, &copied] {
            merge_all(&owner, NOW, late);
            assert_eq!(used(&owner, &ask), 0, "{algorithm:?}");
        }
        // It ends what the standby has counted itself as well.
        merge_all(&standby, NOW, &copied);
        assert_eq!(used(&standby, &ask), 2);
        merge_all(&standby, NOW, &told);
        merge_all(&standby, NOW, &copied);
        assert_eq!(used(&standby, &ask), 0, "{algorithm:?}");
        // What is counted afterwards counts.
        owner.decide(NOW, &ask, Mode::Consume);
        standby.decide(NOW, &ask, Mode::Consume);
        let third = store_of(3);
        for series in [
            exported(&owner, NOW, &slots),
            exported(&standby, NOW, &slots),
        ] {
            merge_all(&third, NOW, &copied);
            merge_all(&third, NOW, &series);
        }
        // Levels that each drained at the whole rate are never summed.
        let is_bucket = matches!(
            algorithm,
            Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_)
        );
        let expected = if is_bucket { 1 } else { 2 };
        assert_eq!(used(&third, &ask), expected, "{algorithm:?}");
    }
}

/// Of what was counted after the copy that was reset nothing is lost: it cannot be told apart.
#[test]
fn a_reset_ends_what_it_knew_of() {
    let (owner, standby) = (store_of(1), store_of(2));
    let ask = ask(key(1), soft(20), 1);
    let slots = slot_of(&ask);
    standby.decide(NOW, &ask, Mode::Consume);
    merge_all(&owner, NOW, &exported(&standby, NOW, &slots));
    standby.decide(NOW, &ask, Mode::Consume);
    owner.amend(NOW, &ask, Change::Reset);
    assert_eq!(merge_all(&standby, NOW, &due(&owner, NOW)), [Merged::Own]);
    assert_eq!(used(&standby, &ask), 2);
    merge_all(&owner, NOW, &exported(&standby, NOW, &slots));
    assert_eq!(used(&owner, &ask), 2);
}

#[test]
fn a_ban_ends_the_charges_and_failures_that_led_to_it() {
    let (owner, standby) = (store_of(1), store_of(2));
    let rule = Rule {
        ban: Some(Ban {
            length: Nanos::from_millis(10_000),
            escalation: 1000,
            longest: Nanos::from_millis(10_000),
        }),
        ..soft(3)
    };
    let ask = ask(key(1), rule, 1);
    let slots = slot_of(&ask);
    owner.decide(NOW, &ask, Mode::Consume);
    owner.amend(NOW, &ask, Change::Failure);
    let copied = exported(&owner, NOW, &slots);
    merge_all(&standby, NOW, &copied);
    for _ in 0..2 {
        owner.amend(NOW, &ask, Change::Failure);
    }
    merge_all(&standby, NOW, &due(&owner, NOW));
    merge_all(&standby, NOW, &copied);
    assert!(!standby.decide(NOW, &ask, Mode::Consume).is_allowed());
    let after = later(11);
    assert!(standby.decide(after, &ask, Mode::Consume).is_allowed());
    assert_eq!(used_at(&standby, after, &ask), 1);
    for _ in 0..2 {
        standby.amend(after, &ask, Change::Failure);
    }
    assert!(standby.decide(after, &ask, Mode::Consume).is_allowed());
}

#[test]
fn a_void_is_forgotten_when_no_copy_counts_any_more() {
    let store = store_of(1);
    let ask = ask(key(1), soft(20), 1);
    store.decide(NOW, &ask, Mode::Consume);
    store.amend(NOW, &ask, Change::Reset);
    assert_eq!(store.sweep(later(66), crate::SHARD_COUNT), 0);
    assert_eq!(store.stats().voids, 1);
    assert_eq!(store.sweep(later(121), crate::SHARD_COUNT), 1);
    assert_eq!(store.stats().voids, 0);
}
