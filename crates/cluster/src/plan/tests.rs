//! Tests of the plan.

use proptest::prelude::*;
use std::sync::Arc;

use tollgate_limit::{
    AlgorithmSpec, Applied, AppliedLimits, Cost, HashKey, KeyHash, Limit, LimitNumber, LimitSpec,
    Mode, Nanos, NodeId,
};

use super::{Place, Plan};
use crate::placement::{MemberIndex, Placement};

/// A limit of 10 per minute.
pub(crate) fn limit(name: &str) -> Arc<Limit> {
    let algorithm = AlgorithmSpec::SlidingWindow {
        window: Nanos::from_millis(60_000),
        slices: 10,
        hard: false,
    };
    let spec = LimitSpec::new(name, LimitNumber::One(10), algorithm);
    Arc::new(Limit::new("api", spec, &HashKey::new([0; 16])).unwrap())
}

/// Limits with keys in these slots, of a cost of one each.
pub(crate) fn applied_in(slots: &[u16]) -> AppliedLimits {
    let applied = slots.iter().enumerate().map(|(number, slot)| {
        let limit = limit(&format!("l{number}"));
        Applied {
            key: KeyHash::from_halves(u64::from(*slot) << 48, 0),
            rule: *limit.usual_rule().unwrap(),
            cost: Cost::ONE,
            limit,
        }
    });
    applied.collect()
}

pub(crate) fn node(number: usize) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

pub(crate) fn placement(nodes: usize) -> Placement {
    let members: Vec<_> = (0..nodes).map(|number| (node(number), 1)).collect();
    Placement::new(&members)
}

/// The first slot from `from` on that a node owns.
pub(crate) fn slot_of(placement: &Placement, owner: usize, from: u16) -> u16 {
    let index = placement.index_of(&node(owner));
    (from..)
        .find(|slot| placement.owner(tollgate_limit::SlotId::new(*slot)) == index)
        .unwrap()
}

pub(crate) fn plan_at(applied: &AppliedLimits, placement: &Placement, own: usize) -> Plan {
    plan_of(applied, Mode::Consume, placement, own)
}

/// By the placement alone; a peer's number is its place in it.
pub(crate) fn plan_of(
    applied: &AppliedLimits,
    mode: Mode,
    placement: &Placement,
    own: usize,
) -> Plan {
    let own = placement.index_of(&node(own));
    Plan::new(applied, mode, |slot| match placement.owner(slot) {
        None => Place::Nobody,
        owner if owner == own => Place::Here,
        Some(owner) => Place::At(owner.index()),
    })
}

#[test]
fn limits_are_grouped_by_owner_in_their_order() {
    let placement = placement(3);
    let slot = |owner, from| slot_of(&placement, owner, from);
    let applied = applied_in(&[
        slot(2, 0),
        slot(0, 0),
        slot(1, 0),
        slot(2, 500),
        slot(0, 500),
    ]);
    let plan = plan_at(&applied, &placement, 0);
    assert_eq!(plan.local(), [1, 4]);
    assert!(plan.ownerless().is_empty());
    let remote: Vec<_> = plan
        .remote()
        .iter()
        .map(|group| {
            (
                placement.members()[group.owner].node.clone(),
                group.limits.to_vec(),
            )
        })
        .collect();
    assert_eq!(remote, [(node(2), vec![0, 3]), (node(1), vec![2])]);
}

#[test]
fn without_an_active_member_every_limit_is_ownerless() {
    let placement = placement(0);
    let plan = plan_at(&applied_in(&[1, 2]), &placement, 0);
    assert_eq!(plan.ownerless(), [0, 1]);
    assert!(plan.local().is_empty() && plan.remote().is_empty());
}

#[test]
fn a_joining_node_asks_the_owners_for_all() {
    let placement = placement(2);
    let plan = plan_at(&applied_in(&[1, 2, 3, 4]), &placement, 9);
    assert!(plan.local().is_empty() && plan.ownerless().is_empty());
    let asked: usize = plan.remote().iter().map(|group| group.limits.len()).sum();
    assert_eq!(asked, 4);
}

#[test]
fn one_limit_needs_no_allocation() {
    let placement = placement(2);
    for own in [0, 1] {
        let plan = plan_at(&applied_in(&[7]), &placement, own);
        assert!(!plan.local.spilled() && !plan.remote.spilled());
        assert!(plan.remote.iter().all(|group| !group.limits.spilled()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Every limit is in exactly one place, that of its owner, in order.
    #[test]
    fn every_limit_has_one_place(
        slots in prop::collection::vec(any::<u16>(), 0..64),
        nodes in 0_usize..5,
        own in 0_usize..6,
    ) {
        let placement = placement(nodes);
        let applied = applied_in(&slots);
        let plan = plan_at(&applied, &placement, own);
        let own = placement.index_of(&node(own));
        let owner = |limit: &usize| placement.owner(applied[*limit].key.slot());
        prop_assert!(plan.local().iter().all(|limit| owner(limit) == own && own.is_some()));
        prop_assert!(plan.ownerless().iter().all(|limit| owner(limit).is_none()));
        let mut all = [plan.local(), plan.ownerless()].concat();
        for group in plan.remote() {
            prop_assert!(Some(group.owner) != own.map(MemberIndex::index));
            prop_assert!(group.limits.iter().all(|limit| owner(limit).map(MemberIndex::index) == Some(group.owner)));
            prop_assert!(group.limits.is_sorted());
            all.extend_from_slice(&group.limits);
        }
        all.sort_unstable();
        prop_assert_eq!(all, (0..slots.len()).collect::<Vec<_>>());
    }
}
