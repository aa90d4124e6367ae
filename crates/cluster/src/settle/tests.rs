//! Tests of the settlement.

use proptest::prelude::*;
use tollgate_limit::{
    AppliedLimits, Cost, DecidedBy, Mode, Nanos, NodeId, Outcome, Reason, Verdict,
};

use super::{Answer, Charge, GiveBackTo, Settled, Settlement, Step};
use crate::plan::{
    Plan,
    tests::{applied_in, node, placement, plan_at, slot_of},
};

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
    Charge {
        key: applied[limit].key,
        rule: *applied[limit].limit.rule(),
        cost: Cost::ONE,
        slice,
    }
}

fn names(settled: &Settled) -> Vec<&str> {
    let limits = settled.limits.iter();
    limits.map(|decision| decision.limit.name()).collect()
}

/// Five limits at node 0: two local, two at node 2, one at node 1, interleaved.
fn five() -> (AppliedLimits, Plan) {
    five_asked(Cost::ONE, Mode::Consume)
}

fn five_asked(cost: Cost, mode: Mode) -> (AppliedLimits, Plan) {
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
    let own = placement.index_of(&node(0));
    let plan = Plan::new(&applied, cost, mode, &placement, own);
    (applied, plan)
}

#[test]
fn one_limit_that_admits_is_listed_and_keeps_its_charge() {
    let placement = placement(1);
    let applied = applied_in(&[3]);
    let plan = plan_at(&applied, &placement, 0);
    let mut settlement = Settlement::new(1);
    settlement.record(Step::Owner, plan.local(), [allow(0, 4)]);
    assert!(!settlement.is_refused());
    assert!(!settlement.answers.spilled());
    let settled = settlement.finish(&plan, &applied);
    assert_eq!(names(&settled), ["l0"]);
    assert_eq!(settled.limits[0].node, node(0));
    assert_eq!(settled.give_back.len(), 0);
}

#[test]
fn after_a_local_refusal_the_others_are_neither_asked_nor_listed() {
    let (applied, plan) = five();
    let mut settlement = Settlement::new(applied.len());
    settlement.record(Step::Owner, plan.local(), [allow(0, 4), refuse(0)]);
    assert!(settlement.is_refused());
    let settled = settlement.finish(&plan, &applied);
    assert_eq!(names(&settled), ["l1", "l4"]);
    assert_eq!(
        settled.give_back.len(),
        0,
        "a step that refuses charges nothing"
    );
}

#[test]
fn a_refusal_gives_back_what_the_other_steps_charged() {
    let (applied, plan) = five();
    let mut settlement = Settlement::new(applied.len());
    settlement.record(Step::Owner, plan.local(), [allow(0, 11), allow(0, 14)]);
    assert!(!settlement.is_refused());
    let [at_two, at_one] = plan.remote() else {
        panic!("two groups")
    };
    settlement.record(Step::Peer, &at_one.limits, [refuse(1)]);
    settlement.record(Step::Peer, &at_two.limits, [allow(2, 20), allow(2, 23)]);
    let settled = settlement.finish(&plan, &applied);
    assert_eq!(names(&settled), ["l0", "l1", "l2", "l3", "l4"]);
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
    let mut settlement = Settlement::new(applied.len());
    settlement.record(Step::Nowhere, plan.local(), [allow(0, 0), allow(0, 0)]);
    settlement.record(Step::Peer, &at_one.limits, [refuse(1)]);
    settlement.record(Step::Fallback, &at_two.limits[..1], [allow(0, 5)]);
    settlement.record(Step::Nowhere, &at_two.limits[1..], [allow(0, 5)]);
    let settled = settlement.finish(&plan, &applied);
    let expected = [GiveBackTo::Fallback(charge(&applied, 0, 5))];
    assert_eq!(settled.give_back.as_slice(), expected);
}

#[test]
fn a_peek_gives_nothing_back() {
    for (cost, mode) in [(Cost::ONE, Mode::Peek), (Cost::ZERO, Mode::Consume)] {
        let (applied, peek) = five_asked(cost, mode);
        let mut settlement = Settlement::new(applied.len());
        settlement.record(Step::Owner, peek.local(), [allow(0, 1), allow(0, 1)]);
        settlement.record(Step::Peer, &peek.remote()[1].limits, [refuse(1)]);
        let settled = settlement.finish(&peek, &applied);
        assert_eq!(settled.limits.len(), 3);
        assert_eq!(settled.give_back.len(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// INV-REFUSAL-KEEPS-NOTHING: what is charged after all give-backs is nothing if a limit refused,
    /// everything otherwise.
    #[test]
    fn all_or_nothing(refusals in prop::collection::vec(any::<bool>(), 5)) {
        let (applied, plan) = five();
        let mut settlement = Settlement::new(applied.len());
        let mut charged = 0;
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
            let step_refuses = limits.iter().any(|limit| refusals[*limit]);
            charged += if step_refuses { 0 } else { limits.len() };
            refused |= step_refuses;
        }
        prop_assert_eq!(settlement.is_refused(), refused);
        let settled = settlement.finish(&plan, &applied);
        prop_assert_eq!(settled.give_back.len(), if refused { charged } else { 0 });
    }
}
