//! Tests of slots in motion, over several nodes.

mod world;

use proptest::prelude::*;
use tollgate_limit::{Nanos, SlotId, SlotSet};
use tollgate_wire::identity::Phase;

use self::world::{World, name};

#[derive(Clone, Copy, Debug)]
enum Step {
    Hear(usize),
    Connect(usize),
    Deliver(usize),
    Disconnect(usize),
    Wait(u64),
    Check(usize),
    Join(usize),
    Activate(usize),
    Leave(usize),
    Depart(usize),
    Crash(usize),
    Accuse(usize),
}

/// The most nodes.
const NODES: usize = 5;

fn apply(world: &mut World, step: Step) {
    let active = world.nodes.values().filter(|n| n.phase == Phase::Active);
    let active = active.count();
    let in_phase = |world: &World, number: usize, phase| {
        let node = world.nodes.get(&name(number % NODES));
        node.filter(|node| node.phase == phase).is_some()
    };
    match step {
        Step::Hear(which) => drop(world.hear(which)),
        Step::Connect(which) => drop(world.connect(which)),
        Step::Deliver(which) => drop(world.deliver(which)),
        Step::Disconnect(which) => world.disconnect(which),
        Step::Wait(millis) => world.wait(millis),
        Step::Check(which) => world.check(which),
        Step::Join(which) => {
            let node = name(which % NODES);
            if !world.nodes.contains_key(&node) {
                world.join(&node);
            }
        }
        Step::Activate(which) => {
            let node = name(which % NODES);
            let is_warm = world.nodes.get(&node).is_some_and(|n| n.motion.is_warm());
            if in_phase(world, which, Phase::Joining) && is_warm {
                world.set_phase(&node, Phase::Active);
            }
        }
        Step::Leave(which) if active > 1 && in_phase(world, which, Phase::Active) => {
            world.set_phase(&name(which % NODES), Phase::Leaving);
        }
        Step::Depart(which) => {
            let node = name(which % NODES);
            let is_drained = world.nodes.get(&node);
            let is_drained = is_drained.is_some_and(|n| n.motion.is_drained());
            if in_phase(world, which, Phase::Leaving) && is_drained {
                world.depart(&node);
            }
        }
        Step::Crash(which) if world.nodes.len() > 1 => world.crash(&name(which % NODES)),
        Step::Accuse(which) if active > 1 && in_phase(world, which, Phase::Active) => {
            world.accuse(&name(which % NODES));
        }
        Step::Leave(_) | Step::Crash(_) | Step::Accuse(_) => {}
    }
}

fn planned() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any::<usize>().prop_map(Step::Hear),
        6 => any::<usize>().prop_map(Step::Connect),
        30 => any::<usize>().prop_map(Step::Deliver),
        1 => any::<usize>().prop_map(Step::Disconnect),
        4 => (1_u64..150).prop_map(Step::Wait),
        20 => any::<usize>().prop_map(Step::Check),
        3 => any::<usize>().prop_map(Step::Join),
        4 => any::<usize>().prop_map(Step::Activate),
        1 => any::<usize>().prop_map(Step::Leave),
        3 => any::<usize>().prop_map(Step::Depart),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => planned(),
        1 => any::<usize>().prop_map(Step::Crash),
        1 => any::<usize>().prop_map(Step::Accuse),
    ]
}

/// Lets all nodes come to rest in a phase that lasts.
fn end(world: &mut World) {
    for _phase in 0..2 {
        world.calm();
        for number in 0..NODES {
            apply(world, Step::Activate(number));
            apply(world, Step::Depart(number));
        }
    }
    // Whoever cannot become warm, since the owner is no more, does not wait for ever.
    let nodes: Vec<_> = world.nodes.keys().cloned().collect();
    for node in nodes {
        if world.nodes[&node].phase == Phase::Joining {
            world.set_phase(&node, Phase::Active);
        }
    }
    world.calm();
}

/// Fewer than usual: each case is a day in the life of five nodes.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 4,
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn planned_moves_lose_nothing(steps in prop::collection::vec(planned(), 0..250)) {
        let mut world = World::new();
        for step in steps {
            apply(&mut world, step);
        }
        // Planned moves are exact.
        prop_assert_eq!(world.doubles, 0);
        end(&mut world);
        world.assert_rest();
    }

    #[test]
    fn it_comes_to_rest_after_faults(steps in prop::collection::vec(any_step(), 0..250)) {
        let mut world = World::new();
        for step in steps {
            apply(&mut world, step);
        }
        end(&mut world);
        world.assert_rest();
        world.wait(20_000);
        world.assert_rest();
    }
}

#[test]
fn a_node_alone_holds_all() {
    let world = World::new();
    let node = &world.nodes[&name(0)];
    assert_eq!(node.held, SlotSet::all());
    assert!(node.motion.states().holds(SlotId::new(0)));
    assert_eq!(node.motion.poll_timeout(), None::<Nanos>);
}

/// A node joins and is to get its slots, but the stream breaks with the last word in it.
fn lose_the_last_word() -> World {
    let mut world = World::new();
    world.join(&name(1));
    world.calm();
    for which in 0..512 {
        world.check(which);
    }
    world.set_phase(&name(1), Phase::Active);
    // The order to hand over comes, and nothing after it.
    while world.nodes[&name(0)].held == SlotSet::all() {
        assert!(world.deliver(0));
    }
    assert!(world.nodes[&name(1)].held.is_empty());
    world.disconnect(0);
    world.disconnect(0);
    world.calm();
    world
}

#[test]
fn what_is_not_acknowledged_is_given_again() {
    lose_the_last_word().assert_rest();
}

#[cfg(feature = "sabotage")]
#[test]
fn a_source_that_forgets_too_early_is_noticed() {
    crate::sabotage::set(Some(crate::sabotage::Sabotage::DeleteBeforeAck));
    let lost = std::panic::catch_unwind(|| lose_the_last_word().assert_rest());
    crate::sabotage::set(None);
    lost.unwrap_err();
}

#[cfg(feature = "sabotage")]
#[test]
fn a_joining_node_that_decides_is_noticed() {
    let join = || {
        let mut world = World::new();
        world.join(&name(1));
        world.calm();
        world.doubles
    };
    assert_eq!(join(), 0);
    crate::sabotage::set(Some(crate::sabotage::Sabotage::JoiningNodeOwns));
    let doubles = join();
    crate::sabotage::set(None);
    assert!(doubles > 0);
}

/// The whole life of a slot, step by step: copied, ordered, given, opened, acknowledged, forgotten.
#[test]
fn counts_go_before_whoever_decides_by_them() {
    let mut world = World::new();
    world.join(&name(1));
    world.calm();
    let joiner = &world.nodes[&name(1)];
    assert!(joiner.motion.is_warm());
    assert!(joiner.held.is_empty(), "it owns nothing yet");
    world.set_phase(&name(1), Phase::Active);
    world.calm();
    world.assert_rest();
    assert_eq!(world.doubles, 0);
    world.set_phase(&name(0), Phase::Leaving);
    assert!(!world.nodes[&name(0)].motion.is_drained());
    world.calm();
    assert!(world.nodes[&name(0)].motion.is_drained());
    world.depart(&name(0));
    world.calm();
    world.assert_rest();
    assert_eq!(world.nodes[&name(1)].held, SlotSet::all());
    assert_eq!(world.doubles, 0);
}

/// With three nodes, who is neither owner nor standby forgets, and not before its time.
#[test]
fn slots_of_others_are_forgotten_after_a_while() {
    let mut world = World::new();
    for number in 1..4 {
        world.join(&name(number));
        world.calm();
        world.set_phase(&name(number), Phase::Active);
        world.calm();
    }
    let begun = world.now;
    world.assert_rest();
    let forgot = |world: &World| world.nodes[&name(0)].forgot;
    let before = forgot(&world);
    world.wait(12_000);
    assert!(world.now > begun);
    assert!(forgot(&world) > before.max(10_000));
    world.calm();
    world.assert_rest();
}
