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
