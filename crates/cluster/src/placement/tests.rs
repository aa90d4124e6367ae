//! Tests of placement: the shares, what moves, and that only the set of members counts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tollgate_limit::{NodeId, SLOT_COUNT, SlotId};

use super::{
    MAX_MEMBERS, Member, MemberIndex, Placement, Ranks, first_two, insert, score::Weighted,
};

fn node(number: usize) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

fn equal_members(count: usize) -> Vec<(NodeId, u8)> {
    (0..count).map(|number| (node(number), 1)).collect()
}

fn slots() -> impl Iterator<Item = SlotId> {
    (0..=u16::MAX).map(SlotId::new)
}

fn owner_name(placement: &Placement, slot: SlotId) -> &NodeId {
    placement.member(placement.owner(slot).unwrap()).unwrap()
}

fn standby_name(placement: &Placement, slot: SlotId) -> &NodeId {
    placement.member(placement.standby(slot).unwrap()).unwrap()
}

#[track_caller]
fn assert_same(one: &Placement, other: &Placement) {
    assert_eq!(one.members(), other.members());
    assert_eq!(one.fingerprint(), other.fingerprint());
    assert!(one.ranks == other.ranks, "the tables differ");
    assert_eq!(one.slots_owned, other.slots_owned);
}

#[test]
fn nobody_owns_anything_in_an_empty_cluster() {
    let placement = Placement::new(&[]);
    assert_eq!(placement.owner(SlotId::new(0)), None);
    assert_eq!(placement.standby(SlotId::new(u16::MAX)), None);
    assert_same(
        &placement,
        &Placement::new(&equal_members(1)).without_member(&node(0)),
    );
}

#[test]
fn one_member_owns_all_and_has_no_standby() {
    let placement = Placement::new(&equal_members(1));
    let own = placement.index_of(&node(0)).unwrap();
    assert!(slots().all(|slot| placement.owner(slot) == Some(own)));
    assert!(slots().all(|slot| placement.standby(slot).is_none()));
    assert_eq!(placement.slots_owned(own), SLOT_COUNT);
}

#[test]
fn slots_are_shared_evenly_and_each_has_a_standby() {
    for count in [2, 3, 5, 10] {
        let placement = Placement::new(&equal_members(count));
        let mean = SLOT_COUNT / count;
        let mut standing_by = vec![0; count];
        for slot in slots() {
            let (owner, standby) = (placement.owner(slot), placement.standby(slot));
            assert_ne!(owner, standby);
            standing_by[standby.unwrap().index()] += 1;
        }
        for (place, standing_by) in standing_by.into_iter().enumerate() {
            for share in [placement.slots_owned(MemberIndex::at(place)), standing_by] {
                assert!(
                    share.abs_diff(mean) * 20 < mean,
                    "{share} of {mean} at {count}"
                );
            }
        }
    }
}

#[test]
fn a_share_is_proportional_to_its_weight() {
    let members = [(node(0), 1), (node(1), 2), (node(2), 5), (node(3), 200)];
    let placement = Placement::new(&members);
    for (name, weight) in members {
        let owned = placement.slots_owned(placement.index_of(&name).unwrap());
        let expected = SLOT_COUNT * usize::from(weight) / 208;
        let slack = 3 * expected.isqrt() + expected / 50;
        assert!(owned.abs_diff(expected) < slack, "{owned} of {expected}");
    }
}

#[test]
fn names_that_look_alike_are_spread_independently() {
    let names = ["a", "b", "a.a", "aa", "node-1", "node-10"];
    let members: Vec<_> = names
        .iter()
        .map(|name| (NodeId::new(name).unwrap(), 1))
        .collect();
    let placement = Placement::new(&members);
    let mut pairs = BTreeMap::new();
    for slot in slots() {
        let pair = (placement.owner(slot), placement.standby(slot));
        *pairs.entry(pair).or_insert(0_usize) += 1;
    }
    assert_eq!(pairs.len(), 30, "every pair of owner and standby occurs");
    let mean = SLOT_COUNT / 30;
    assert!(pairs.values().all(|count| count.abs_diff(mean) * 8 < mean));
}

#[test]
fn a_leaver_hands_its_slots_to_the_standby_and_nothing_else_moves() {
    let before = Placement::new(&equal_members(5));
    let after = before.without_member(&node(2));
    for slot in slots() {
        let expected = match owner_name(&before, slot) {
            owner if *owner == node(2) => standby_name(&before, slot),
            owner => owner,
        };
        assert_eq!(owner_name(&after, slot), expected);
    }
}

#[test]
fn a_joiner_takes_its_share_and_nothing_else_moves() {
    let before = Placement::new(&equal_members(4));
    let after = before.with_member(&node(9), 1);
    let mut taken = 0;
    for slot in slots() {
        let owner = owner_name(&after, slot);
        if *owner == node(9) {
            taken += 1;
            assert_eq!(standby_name(&after, slot), owner_name(&before, slot));
        } else {
            assert_eq!(owner, owner_name(&before, slot));
        }
    }
    assert!(taken > SLOT_COUNT / 5 * 9 / 10 && taken < SLOT_COUNT / 5 * 11 / 10);
}

/// Two versions of a program that disagree here would both own a slot: the values must never change.
#[test]
fn the_placement_is_the_same_for_ever() {
    let placement = Placement::new(&[(node(1), 1), (node(2), 1), (node(3), 3)]);
    let owners: Vec<_> = [0, 1, 2, 1_000, 65_535]
        .map(|slot| placement.owner(SlotId::new(slot)).unwrap().index())
        .into();
    assert_eq!(owners, [2, 0, 2, 2, 1]);
    assert_eq!(placement.fingerprint(), 10_058_427_131_998_220_775);
}

#[test]
fn the_member_list_is_sorted_cleaned_and_bounded() {
    let twice = Placement::new(&[(node(2), 1), (node(1), 0), (node(2), 7)]);
    let members: Vec<_> = twice
        .members()
        .iter()
        .map(|member| (member.node.clone(), member.weight))
        .collect();
    assert_eq!(members, [(node(1), 1), (node(2), 1)]);

    let full = Placement::new(&equal_members(MAX_MEMBERS + 5));
    assert_eq!(full.members().len(), MAX_MEMBERS);
    assert_eq!(full.index_of(&node(99_999)), None);
    assert_same(&full.with_member(&node(99_999), 1), &full);
}

#[test]
fn the_fingerprint_tells_sets_apart() {
    let name = |text| NodeId::new(text).unwrap();
    let sets: [&[(NodeId, u8)]; 6] = [
        &[],
        &[(name("a"), 1)],
        &[(name("a"), 2)],
        &[(name("b"), 1)],
        &[(name("a"), 1), (name("b"), 1)],
        &[(name("ab"), 1)],
    ];
    let mut prints: Vec<_> = sets.map(|set| Placement::new(set).fingerprint()).into();
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), sets.len());
}

/// Ties never come up in practice; the rule must hold all the same, in builds and in changes.
#[test]
fn equal_scores_rank_by_node_id() {
    let member = Member {
        node: node(1),
        weight: 1,
    };
    let equals = [Weighted::from(&member); 3];
    let ranks = |owner, standby| Ranks {
        owner: MemberIndex(owner),
        standby: MemberIndex(standby),
    };
    assert_eq!(first_two(&equals, 7), ranks(0, 1));
    for (before, joiner) in [(ranks(1, 2), 0), (ranks(0, 2), 1), (ranks(0, 1), 2)] {
        assert_eq!(insert(&equals, 7, before, MemberIndex(joiner)), ranks(0, 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// INV-SAME-PLACEMENT: whatever comes and goes in whatever order, only the set counts.
    #[test]
    fn any_order_of_events_gives_the_placement_of_the_set(
        events in prop::collection::vec((0_usize..12, prop::option::of(1_u8..4)), 1..24),
    ) {
        let mut set = BTreeMap::new();
        let mut placement = Placement::new(&[]);
        for (number, weight) in events {
            let name = node(number);
            placement = match weight {
                Some(weight) => {
                    set.insert(name.clone(), weight);
                    placement.with_member(&name, weight)
                }
                None => {
                    set.remove(&name);
                    placement.without_member(&name)
                }
            };
        }
        let mut members: Vec<_> = set.into_iter().collect();
        assert_same(&placement, &Placement::new(&members));
        members.reverse();
        assert_same(&placement, &Placement::new(&members));
    }
}
