//! Tests of the settlement.

use proptest::prelude::*;
use tollgate_limit::{
    Applied, AppliedLimits, Charge, Cost, DecidedBy, Enforcement, Mode, Nanos, NodeId, Outcome,
    Reason, Verdict,
};

use super::{Answer, GiveBackTo, Settled, Settlement, Step};
use crate::plan::{
    Plan,
    tests::{applied_in, node, placement, plan_at, plan_of, slot_of},
};

/// The boot of all nodes.
const BOOT: u64 = 9;

fn answer(outcome: Outcome, node: NodeId, slice: u64) -> Answer {
    let verdict = Verdict {
        outcome,
        used: 1,
        remaining: 9,
        retry_after: Some(Nanos::ZERO),
        more_after: Nanos::ZERO,
        reset_after: Nanos::ZERO,
        delay: Nanos::ZERO,
        charged_slice: slice,
    };
    Answer {
        verdict,
        decided_by: DecidedBy::Owner,
        node,
        boot: BOOT,
        degraded: false,
    }
}

fn allow(by: usize, slice: u64) -> Answer {
    answer(Outcome::Allow, node(by), slice)
}

fn refuse(by: usize) -> Answer {
    answer(Outcome::Refuse(Reason::LimitExceeded), node(by), 0)
}

fn charge(applied: &AppliedLimits, limit: usize, slice: u64) -> Charge {
    let Applied {
        key, rule, cost, ..
    } = applied[limit];
    Charge {
        key,
        rule,
        cost,
        slice,
        boot: BOOT,
    }
}

fn charged(settled: &Settled) -> Vec<u64> {
    let limits = settled.limits.iter();
    limits.map(|decision| decision.charged.units()).collect()
}

fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

fn names(settled: &Settled) -> Vec<&str> {
    let limits = settled.limits.iter();
    limits.map(|decision| decision.limit.name()).collect()
}

/// Five limits at node 0: two local, two at node 2, one at node 1, interleaved.
fn five() -> (AppliedLimits, Plan) {
    five_asked(Mode::Consume)
}

fn five_asked(mode: Mode) -> (AppliedLimits, Plan) {
    let placement = placement(3);
    let slot = |owner, from| slot_of(&placement, owner, from);
    let slots = [
        slot(2, 0),
        slot(0, 0),
        slot(1, 0),
        slot(2, 500),
        slot(0, 500),
    ];
    let applied = applied_in(&slots);
    let plan = plan_of(&applied, mode, &placement, 0);
    (applied, plan)
}

#[test]
fn one_limit_that_admits_is_listed_and_keeps_its_charge() {
    let placement = placement(1);
    let applied = applied_in(&[3]);
    let plan = plan_at(&applied, &placement, 0);
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Owner, plan.local(), [allow(0, 4)]);
    assert!(!settlement.is_refused());
    assert!(!settlement.answers.spilled());
    let settled = settlement.finish(Mode::Consume, &applied);
    assert_eq!(names(&settled), ["l0"]);
    assert_eq!(
        (&settled.limits[0].node, settled.limits[0].boot),
        (&node(0), BOOT)
    );
    assert_eq!(settled.limits[0].key, applied[0].key);
    assert_eq!(settled.limits[0].rule, applied[0].rule);
    assert_eq!(charged(&settled), [1]);
    assert_eq!(settled.give_back.len(), 0);
}

#[test]
fn after_a_local_refusal_the_others_are_neither_asked_nor_listed() {
    let (applied, plan) = five();
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Owner, plan.local(), [allow(0, 4), refuse(0)]);
    assert!(settlement.is_refused());
    let settled = settlement.finish(Mode::Consume, &applied);
    assert_eq!(names(&settled), ["l1", "l4"]);
    assert_eq!(charged(&settled), [0, 0]);
    assert_eq!(
        settled.give_back.len(),
        0,
        "a step that refuses charges nothing"
    );
}

#[test]
fn a_refusal_gives_back_what_the_other_steps_charged() {
    let (applied, plan) = five();
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Owner, plan.local(), [allow(0, 11), allow(0, 14)]);
    assert!(!settlement.is_refused());
    let [at_two, at_one] = plan.remote() else {
        panic!("two groups")
    };
    settlement.record(Step::Peer, &at_one.limits, [refuse(1)]);
    settlement.record(Step::Peer, &at_two.limits, [allow(2, 20), allow(2, 23)]);
    let settled = settlement.finish(Mode::Consume, &applied);
    assert_eq!(names(&settled), ["l0", "l1", "l2", "l3", "l4"]);
    assert_eq!(charged(&settled), [0; 5], "what goes back is not charged");
    let expected = [
        GiveBackTo::Peer(node(2), charge(&applied, 0, 20)),
        GiveBackTo::Owner(charge(&applied, 1, 11)),
        GiveBackTo::Peer(node(2), charge(&applied, 3, 23)),
        GiveBackTo::Owner(charge(&applied, 4, 14)),
    ];
    assert_eq!(settled.give_back.as_slice(), expected);
}

#[test]
fn a_local_fallback_gives_back_here_and_a_word_gives_nothing() {
    let (applied, plan) = five();
    let [at_two, at_one] = plan.remote() else {
        panic!("two groups")
    };
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Nowhere, plan.local(), [allow(0, 0), allow(0, 0)]);
    settlement.record(Step::Peer, &at_one.limits, [refuse(1)]);
    settlement.record(Step::Fallback, &at_two.limits[..1], [allow(0, 5)]);
    settlement.record(Step::Nowhere, &at_two.limits[1..], [allow(0, 5)]);
    let settled = settlement.finish(Mode::Consume, &applied);
    let expected = [GiveBackTo::Fallback(charge(&applied, 0, 5))];
    assert_eq!(settled.give_back.as_slice(), expected);
}

#[test]
fn a_peek_charges_nothing_and_gives_nothing_back() {
    for refusal in [false, true] {
        let (applied, peek) = five_asked(Mode::Peek);
        assert_eq!(peek.mode(), Mode::Peek);
        let mut settlement = Settlement::new(&applied);
        settlement.record(Step::Owner, peek.local(), [allow(0, 1), allow(0, 1)]);
        let said = if refusal { refuse(1) } else { allow(1, 1) };
        settlement.record(Step::Peer, &peek.remote()[1].limits, [said]);
        let settled = settlement.finish(peek.mode(), &applied);
        assert_eq!(charged(&settled), [0; 3]);
        assert_eq!(settled.give_back.len(), 0);
    }
}

/// Rule 3: each limit has its own cost, and one of nothing charges nothing.
#[test]
fn each_limit_is_charged_its_own_cost() {
    let (mut applied, plan) = five();
    for (limit, units) in applied.iter_mut().zip([5, 0, 7, 1, 2]) {
        limit.cost = cost(units);
    }
    let [at_two, at_one] = plan.remote() else {
        panic!("two groups")
    };
    let settle = |said| {
        let mut settlement = Settlement::new(&applied);
        settlement.record(Step::Owner, plan.local(), [allow(0, 11), allow(0, 14)]);
        settlement.record(Step::Peer, &at_two.limits, [allow(2, 20), allow(2, 23)]);
        settlement.record(Step::Peer, &at_one.limits, [said]);
        settlement.finish(Mode::Consume, &applied)
    };
    let admitted = settle(allow(1, 30));
    assert_eq!(charged(&admitted), [5, 0, 7, 1, 2]);
    assert_eq!(admitted.give_back.len(), 0);
    let refused = settle(refuse(1));
    assert_eq!(charged(&refused), [0; 5]);
    let expected = [
        GiveBackTo::Peer(node(2), charge(&applied, 0, 20)),
        GiveBackTo::Peer(node(2), charge(&applied, 3, 23)),
        GiveBackTo::Owner(charge(&applied, 4, 14)),
    ];
    assert_eq!(refused.give_back.as_slice(), expected);
    assert_eq!(charge(&applied, 0, 20).cost, cost(5));
}

/// What is said by word or from memory is no charge that anything could be done with.
#[test]
fn what_no_counter_decided_is_not_charged() {
    let (applied, plan) = five();
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Nowhere, plan.local(), [allow(0, 0), allow(0, 0)]);
    let two = &plan.remote()[0].limits;
    settlement.record(Step::Fallback, two, [allow(0, 0), allow(0, 0)]);
    let settled = settlement.finish(Mode::Consume, &applied);
    assert_eq!(names(&settled), ["l0", "l1", "l3", "l4"]);
    assert_eq!(charged(&settled), [1, 0, 1, 0]);
}

fn in_shadow(applied: &mut AppliedLimits, limits: &[usize]) {
    for limit in limits {
        applied[*limit].rule.enforcement = Enforcement::Shadow;
    }
}

/// Rule 10: it refuses for itself alone, in its own step too.
#[test]
fn a_refusal_in_shadow_blocks_nobody_and_gives_nothing_back() {
    let (mut applied, plan) = five();
    in_shadow(&mut applied, &[1, 2]);
    let [at_two, at_one] = plan.remote() else {
        panic!("two groups")
    };
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Owner, plan.local(), [refuse(0), allow(0, 14)]);
    assert!(!settlement.is_refused(), "the others must be asked");
    settlement.record(Step::Peer, &at_two.limits, [allow(2, 20), allow(2, 23)]);
    settlement.record(Step::Peer, &at_one.limits, [refuse(1)]);
    assert!(!settlement.is_refused());
    let settled = settlement.finish(Mode::Consume, &applied);
    assert_eq!(names(&settled), ["l0", "l1", "l2", "l3", "l4"]);
    assert_eq!(charged(&settled), [1, 0, 0, 1, 1]);
    assert_eq!(settled.give_back.len(), 0);
}

/// A limit in shadow that was charged gives back as all others when one refuses that is enforced; one
/// that refused has nothing to give.
#[test]
fn shadow_limits_give_back_what_they_charged() {
    let (mut applied, plan) = five();
    in_shadow(&mut applied, &[0, 1, 3, 4]);
    let [at_two, at_one] = plan.remote() else {
        panic!("two groups")
    };
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Owner, plan.local(), [refuse(0), allow(0, 14)]);
    settlement.record(Step::Peer, &at_two.limits, [allow(2, 20), refuse(2)]);
    settlement.record(Step::Peer, &at_one.limits, [refuse(1)]);
    assert!(settlement.is_refused());
    let settled = settlement.finish(Mode::Consume, &applied);
    let expected = [
        GiveBackTo::Peer(node(2), charge(&applied, 0, 20)),
        GiveBackTo::Owner(charge(&applied, 4, 14)),
    ];
    assert_eq!(settled.give_back.as_slice(), expected);
    assert_eq!(charged(&settled), [0; 5]);
}

/// A step with an enforced refusal charged nothing, its limits in shadow neither.
#[test]
fn a_step_that_refuses_charged_nothing_in_shadow_either() {
    let (mut applied, plan) = five();
    in_shadow(&mut applied, &[1]);
    let mut settlement = Settlement::new(&applied);
    settlement.record(Step::Owner, plan.local(), [allow(0, 4), refuse(0)]);
    assert!(settlement.is_refused());
    let settled = settlement.finish(Mode::Consume, &applied);
    assert_eq!(settled.give_back.len(), 0);
    assert_eq!(charged(&settled), [0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// INV-REFUSAL-KEEPS-NOTHING: what is charged after all give-backs is nothing if an enforced limit
    /// refused, else the cost of each limit that admitted.
    #[test]
    fn all_or_nothing(
        refusals in prop::collection::vec(any::<bool>(), 5),
        shadows in prop::collection::vec(any::<bool>(), 5),
        costs in prop::collection::vec(0_u64..4, 5),
    ) {
        let (mut applied, plan) = five();
        for (limit, applied) in applied.iter_mut().enumerate() {
            applied.cost = cost(costs[limit]);
            if shadows[limit] {
                applied.rule.enforcement = Enforcement::Shadow;
            }
        }
        let holds = |limit: &usize| refusals[*limit] && !shadows[*limit];
        let mut settlement = Settlement::new(&applied);
        // What the counters hold, by limit.
        let mut held = [0_u64; 5];
        let mut refused = false;
        let mut steps = vec![(Step::Owner, plan.local())];
        steps.extend(plan.remote().iter().map(|group| (Step::Peer, group.limits.as_slice())));
        for (step, limits) in steps {
            if step == Step::Peer && refused && limits.len() == 1 {
                continue;
            }
            let answers = limits.iter().map(|limit| match refusals[*limit] {
                true => refuse(1),
                false => allow(1, 0),
            });
            settlement.record(step, limits, answers);
            let step_refuses = limits.iter().any(holds);
            for limit in limits {
                if !step_refuses && !refusals[*limit] {
                    held[*limit] = costs[*limit];
                }
            }
            refused |= step_refuses;
        }
        prop_assert_eq!(settlement.is_refused(), refused);
        let settled = settlement.finish(Mode::Consume, &applied);
        for back in &settled.give_back {
            let (GiveBackTo::Owner(back) | GiveBackTo::Fallback(back) | GiveBackTo::Peer(_, back)) =
                back;
            let limit = applied.iter().position(|applied| applied.key == back.key).unwrap();
            prop_assert_eq!(held[limit], back.cost.units(), "it was charged, and goes back once");
            held[limit] = 0;
        }
        if refused {
            prop_assert_eq!(held, [0; 5]);
        }
        let told: u64 = charged(&settled).iter().sum();
        prop_assert_eq!(told, held.iter().sum::<u64>(), "the answer tells what is held");
    }
}
