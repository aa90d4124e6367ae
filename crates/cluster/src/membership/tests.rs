//! Tests of the membership rules.

use std::net::SocketAddr;

use proptest::prelude::*;
use tollgate_limit::{Nanos, NodeId};
use tollgate_wire::identity::{BootId, Identity, Phase};

use super::{Change, Gone, MAX_PEERS, MemberState, Membership};
use crate::placement::Placement;

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn name(number: u16) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

/// Node `number` of generation 10 and boot 10, active, at an address of its own.
fn identity(number: u16) -> Identity {
    let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
    Identity {
        node: name(number),
        boot: BootId(10),
        generation: 10,
        peer: address(10_000 + number),
        api: address(20_000 + number),
        weight: 1,
        newest_version: 1,
        oldest_version: 1,
        phase: Phase::Active,
        tail: Vec::new(),
    }
}

fn with_phase(number: u16, phase: Phase) -> Identity {
    Identity {
        phase,
        ..identity(number)
    }
}

fn restarted(number: u16, phase: Phase) -> Identity {
    Identity {
        generation: 20,
        boot: BootId(3),
        phase,
        ..identity(number)
    }
}

/// All changes but the placement's, which must agree with the active members.
fn changes(membership: &mut Membership) -> Vec<Change> {
    let before = membership.placement().fingerprint();
    let mut changes = Vec::new();
    let mut told = None;
    while let Some(change) = membership.poll_change() {
        if let Change::PlacementChanged { fingerprint } = change {
            assert!(told.replace(fingerprint).is_none(), "told once for all");
        } else {
            changes.push(change);
        }
    }
    let after = membership.placement().fingerprint();
    assert_eq!(told, (after != before).then_some(after));
    let active = membership.members().map(|member| member.identity);
    let active: Vec<_> = active
        .filter(|identity| identity.phase == Phase::Active)
        .map(|identity| (identity.node.clone(), identity.weight))
        .collect();
    assert_eq!(after, Placement::new(&active).fingerprint());
    changes
}

fn owners(membership: &Membership) -> Vec<NodeId> {
    let placement = membership.placement();
    let members = placement.members().iter();
    members.map(|member| member.node.clone()).collect()
}

/// Node 1 with peers 2 and 3 up, all active.
fn three() -> Membership {
    let mut membership = Membership::new(identity(1));
    for peer in [2, 3] {
        membership.handle_up(at(0), identity(peer));
    }
    let up = [2, 3].map(|peer| Change::MemberUp(identity(peer)));
    assert_eq!(changes(&mut membership), up);
    assert_eq!(owners(&membership), [name(1), name(2), name(3)]);
    membership
}

#[test]
fn a_node_alone_owns_all_once_it_is_active() {
    let mut membership = Membership::new(with_phase(1, Phase::Joining));
    assert_eq!(owners(&membership), []);
    membership.handle_own(identity(1));
    assert_eq!(changes(&mut membership), []);
    assert_eq!(owners(&membership), [name(1)]);
    assert_eq!(owners(&Membership::new(identity(1))), [name(1)]);
}

#[test]
fn only_active_members_own_slots() {
    let mut membership = three();
    membership.handle_up(at(0), with_phase(4, Phase::Joining));
    membership.handle_up(at(0), with_phase(2, Phase::Leaving));
    let expected = [
        Change::MemberUp(with_phase(4, Phase::Joining)),
        Change::MemberChanged {
            was: identity(2),
            is: with_phase(2, Phase::Leaving),
        },
    ];
    assert_eq!(changes(&mut membership), expected);
    assert_eq!(owners(&membership), [name(1), name(3)]);
    assert_eq!(membership.members().count(), 4, "but they are known");
    membership.handle_up(at(0), identity(2));
    assert_eq!(changes(&mut membership), [], "an older phase is old news");
}

#[test]
fn down_moves_slots_after_the_grace() {
    let mut membership = three();
    membership.handle_down(at(100), &identity(2));
    membership.handle_down(at(200), &identity(2));
    assert_eq!(changes(&mut membership), [Change::MemberDoubted(name(2))]);
    assert_eq!(membership.poll_timeout(), Some(at(400)));
    assert_eq!(
        membership.member(&name(2)).unwrap().state,
        MemberState::DownPending
    );
    membership.handle_timeout(at(399));
    assert_eq!(changes(&mut membership), []);
    assert_eq!(owners(&membership).len(), 3);
    membership.handle_timeout(at(400));
    let was = identity(2);
    let gone = Change::MemberGone {
        was,
        why: Gone::Down,
    };
    assert_eq!(changes(&mut membership), [gone]);
    assert_eq!(owners(&membership), [name(1), name(3)]);
    assert_eq!(membership.poll_timeout(), None);
}

#[test]
fn a_member_that_says_goodbye_has_left_and_is_not_doubted_aloud() {
    let mut membership = Membership::new(identity(1));
    membership.handle_up(at(0), identity(2));
    membership.handle_up(at(0), with_phase(2, Phase::Leaving));
    changes(&mut membership);
    membership.handle_heard(at(10), &name(2));
    membership.handle_down(at(10), &with_phase(2, Phase::Leaving));
    membership.handle_timeout(at(310));
    assert_eq!(changes(&mut membership), []);
    membership.handle_timeout(at(1_010));
    let left = Change::MemberGone {
        was: with_phase(2, Phase::Leaving),
        why: Gone::Left,
    };
    assert_eq!(changes(&mut membership), [left]);
}

#[test]
fn a_member_that_comes_back_within_the_grace_keeps_its_slots() {
    let mut membership = three();
    membership.handle_down(at(100), &identity(2));
    membership.handle_up(at(150), identity(2));
    let expected = [Change::MemberDoubted(name(2)), Change::MemberBack(name(2))];
    assert_eq!(changes(&mut membership), expected);
    membership.handle_timeout(at(10_000));
    assert_eq!(changes(&mut membership), []);
    assert_eq!(membership.member(&name(2)).unwrap().state, MemberState::Up);
}

#[test]
fn datagrams_veto_a_down_until_they_stop() {
    let mut membership = three();
    membership.handle_heard(at(50), &name(2));
    membership.handle_down(at(100), &identity(2));
    membership.handle_timeout(at(400));
    let expected = [
        Change::MemberDoubted(name(2)),
        Change::MemberVetoed(name(2)),
    ];
    assert_eq!(changes(&mut membership), expected);
    assert_eq!(membership.poll_timeout(), Some(at(1_050)));
    membership.handle_heard(at(900), &name(2));
    membership.handle_heard(at(800), &name(2));
    membership.handle_timeout(at(1_050));
    assert_eq!(changes(&mut membership), [], "a veto is told once");
    assert_eq!(membership.poll_timeout(), Some(at(1_900)));
    membership.handle_timeout(at(1_899));
    assert_eq!(owners(&membership).len(), 3);
    membership.handle_timeout(at(1_900));
    assert_eq!(changes(&mut membership).len(), 1);
    assert_eq!(owners(&membership), [name(1), name(3)]);
}

#[test]
fn what_was_heard_of_others_vetoes_nothing() {
    let mut membership = three();
    membership.handle_heard(at(350), &name(3));
    membership.handle_heard(at(350), &name(99));
    membership.handle_down(at(100), &identity(2));
    membership.handle_timeout(at(400));
    assert_eq!(owners_after(&mut membership), [name(1), name(3)]);
}

fn owners_after(membership: &mut Membership) -> Vec<NodeId> {
    changes(membership);
    owners(membership)
}

#[test]
fn a_restarted_peer_replaces_its_old_self_at_once() {
    let mut membership = three();
    membership.handle_down(at(100), &identity(2));
    membership.handle_up(at(200), restarted(2, Phase::Joining));
    let expected = [
        Change::MemberDoubted(name(2)),
        Change::MemberChanged {
            was: identity(2),
            is: restarted(2, Phase::Joining),
        },
    ];
    assert_eq!(changes(&mut membership), expected);
    assert_eq!(membership.members().count(), 3);
    assert_eq!(owners(&membership), [name(1), name(3)]);
    membership.handle_down(at(300), &identity(2));
    membership.handle_up(at(300), identity(2));
    membership.handle_timeout(at(10_000));
    assert_eq!(
        changes(&mut membership),
        [],
        "its old self means nothing now"
    );
    membership.handle_up(at(10_000), restarted(2, Phase::Active));
    assert_eq!(owners_after(&mut membership), [name(1), name(2), name(3)]);
}

#[test]
fn down_holds_for_a_boot_in_any_phase() {
    let mut membership = three();
    membership.handle_down(at(0), &with_phase(2, Phase::Joining));
    assert_eq!(changes(&mut membership), [Change::MemberDoubted(name(2))]);
}

#[test]
fn of_one_address_there_is_one_node() {
    let mut membership = three();
    let at_its_address = |generation| Identity {
        generation,
        peer: identity(2).peer,
        ..identity(7)
    };
    membership.handle_up(at(0), at_its_address(9));
    assert_eq!(changes(&mut membership), [], "the newer one stays");
    membership.handle_up(at(0), at_its_address(11));
    let expected = [
        Change::MemberGone {
            was: identity(2),
            why: Gone::AddressTaken,
        },
        Change::MemberUp(at_its_address(11)),
    ];
    assert_eq!(changes(&mut membership), expected);

    let mut membership = three();
    membership.handle_down(at(0), &identity(2));
    membership.handle_up(at(0), at_its_address(9));
    assert_eq!(
        owners_after(&mut membership),
        [name(1), name(3), name(7)],
        "who is up wins"
    );
}

#[test]
fn nobody_takes_this_nodes_name_or_address() {
    let mut membership = three();
    membership.handle_up(at(0), restarted(1, Phase::Leaving));
    membership.handle_down(at(0), &identity(1));
    let peer = identity(1).peer;
    let generation = 99;
    membership.handle_up(
        at(0),
        Identity {
            peer,
            generation,
            ..identity(8)
        },
    );
    membership.handle_timeout(at(10_000));
    assert_eq!(changes(&mut membership), []);
    assert_eq!(membership.own(), &identity(1));
}

#[test]
fn a_changed_weight_changes_the_placement() {
    let mut membership = three();
    let weight = 3;
    membership.handle_up(
        at(0),
        Identity {
            weight,
            ..restarted(2, Phase::Active)
        },
    );
    assert_eq!(changes(&mut membership).len(), 1);
    let placement = membership.placement();
    let [one, two] = [1, 2].map(|n| placement.slots_owned(placement.index_of(&name(n)).unwrap()));
    assert!(two > 2 * one);
}

#[test]
fn members_are_bounded() {
    let mut membership = Membership::new(with_phase(0, Phase::Joining));
    let most = u16::try_from(MAX_PEERS).unwrap();
    for number in 1..=most + 2 {
        membership.handle_up(at(0), with_phase(number, Phase::Joining));
    }
    let told = changes(&mut membership);
    assert_eq!(told.len(), MAX_PEERS + 1);
    assert_eq!(
        told.last(),
        Some(&Change::MembersFull(name(most + 1))),
        "once"
    );
    assert_eq!(membership.peers().count(), MAX_PEERS);
    membership.handle_down(at(0), &identity(5));
    membership.handle_timeout(at(300));
    membership.handle_up(at(300), with_phase(most + 2, Phase::Joining));
    assert_eq!(changes(&mut membership).len(), 3);
}

#[derive(Clone, Copy, Debug)]
struct Event {
    kind: u8,
    number: u16,
    generation: u64,
    phase: Phase,
    millis: u64,
}

fn event() -> impl Strategy<Value = Event> {
    let phase = prop::sample::select(vec![Phase::Joining, Phase::Active, Phase::Leaving]);
    (0_u8..4, 1_u16..6, 8_u64..12, phase, 0_u64..400).prop_map(
        |(kind, number, generation, phase, millis)| Event {
            kind,
            number,
            generation,
            phase,
            millis,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// INV-ONE-SELF, and the placement is that of the active members, whatever comes in what order
    /// (`changes` looks at the latter); identities never grow older; doubts always end.
    #[test]
    fn invariants_hold_under_any_events(events in prop::collection::vec(event(), 1..40)) {
        let mut membership = Membership::new(identity(1));
        let mut now = 0;
        for event in events {
            now += event.millis;
            let Event { generation, phase, .. } = event;
            let boot = BootId(generation);
            // Nodes 4 and 5 fight for one address.
            let peer = identity(event.number.min(4)).peer;
            let subject = Identity { generation, boot, phase, peer, ..identity(event.number) };
            let known = membership.member(&subject.node).map(|member| member.identity.generation);
            match event.kind {
                0 => membership.handle_down(at(now), &subject),
                1 => membership.handle_heard(at(now), &subject.node),
                _ => membership.handle_up(at(now), subject.clone()),
            }
            let newer = membership.member(&subject.node).map(|member| member.identity.generation);
            prop_assert!(newer >= known, "it never grows older");
            membership.handle_timeout(at(now));
            changes(&mut membership);
            let mut addresses: Vec<_> = membership.members().map(|m| m.identity.peer).collect();
            addresses.sort_unstable();
            addresses.dedup();
            prop_assert_eq!(addresses.len(), membership.members().count());
            prop_assert!(membership.poll_timeout().is_none_or(|due| due > at(now)));
        }
        membership.handle_timeout(at(now + 300));
        membership.handle_timeout(at(now + 1_400));
        changes(&mut membership);
        prop_assert!(membership.members().all(|member| member.state == MemberState::Up));
    }
}
