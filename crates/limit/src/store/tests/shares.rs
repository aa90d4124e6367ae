//! Shares set aside, and limits in shadow.

use super::{MEBIBYTE, NOW, ask, decide_all, every_algorithm, key, soft, store, used};
use crate::{
    rule::{Enforcement, Rule},
    store::{Ask, Change},
    verdict::{Mode, Outcome, Reason, Verdict},
};

/// A fifth of ten is kept for some: the others see eight.
#[test]
fn others_are_refused_what_is_set_aside_and_the_named_have_all() {
    for algorithm in every_algorithm(10, 60_000) {
        let store = store(16 * MEBIBYTE);
        let named = Rule::new(algorithm);
        let others = Rule {
            set_aside: 2,
            ..named
        };
        let of = |rule, cost| ask(key(1), rule, cost);
        let first = store.decide(NOW, &of(others, 5), Mode::Consume);
        assert_eq!((first.outcome, first.remaining), (Outcome::Allow, 3));
        let second = store.decide(NOW, &of(named, 2), Mode::Consume);
        assert_eq!((second.outcome, second.remaining), (Outcome::Allow, 3));
        // The whole use counts: seven of the eight that the others may fill.
        let two = store.decide(NOW, &of(others, 2), Mode::Consume);
        assert_eq!(
            two.outcome,
            Outcome::Refuse(Reason::SetAside),
            "{algorithm:?}"
        );
        assert_eq!((two.used, two.remaining), (7, 1));
        assert!(
            store
                .decide(NOW, &of(others, 1), Mode::Consume)
                .is_allowed()
        );
        let full = store.decide(NOW, &of(others, 1), Mode::Consume);
        assert_eq!(full.outcome, Outcome::Refuse(Reason::SetAside));
        assert_eq!((full.used, full.remaining), (8, 0));
        assert!(full.retry_after.is_some());
        let rest = store.decide(NOW, &of(named, 2), Mode::Consume);
        assert_eq!(
            (rest.outcome, rest.used, rest.remaining),
            (Outcome::Allow, 10, 0)
        );
        let none = store.decide(NOW, &of(named, 1), Mode::Consume);
        assert!(!none.is_allowed() && none.outcome != Outcome::Refuse(Reason::SetAside));
        // More than the others may ever fill: waiting does not help.
        let never = store.decide(NOW, &of(others, 9), Mode::Consume);
        assert_eq!(never.outcome, Outcome::Refuse(Reason::SetAside));
        assert_eq!(never.retry_after, None);
        let more = store.decide(NOW, &of(others, 11), Mode::Consume);
        assert_eq!(more.outcome, Outcome::Refuse(Reason::CostExceedsLimit));
    }
}

fn in_shadow(rule: Rule) -> Rule {
    let enforcement = Enforcement::Shadow;
    Rule {
        enforcement,
        ..rule
    }
}

/// Rule 10.
#[test]
fn a_shadow_refusal_blocks_nobody_and_consumes_nothing() {
    for algorithm in every_algorithm(2, 60_000) {
        let store = store(16 * MEBIBYTE);
        let shadow = ask(key(1), in_shadow(Rule::new(algorithm)), 1);
        let enforced = ask(key(2), soft(10), 1);
        for both in [[shadow, enforced], [enforced, shadow]]
            .iter()
            .cycle()
            .take(2)
        {
            let verdicts = decide_all(&store, both, Mode::Consume);
            assert!(verdicts.iter().all(Verdict::is_allowed));
        }
        for _ in 0..3 {
            let verdicts = decide_all(&store, &[shadow, enforced], Mode::Consume);
            assert!(!verdicts[0].is_allowed() && verdicts[1].is_allowed());
            assert_eq!(verdicts[0].used, 2, "{algorithm:?}");
        }
        assert_eq!((used(&store, &shadow), used(&store, &enforced)), (2, 5));
        let alone = store.decide(NOW, &shadow, Mode::Consume);
        assert!(!alone.is_allowed(), "it says what it would say");
        assert_eq!(used(&store, &shadow), 2);
    }
}

#[test]
fn an_enforced_refusal_charges_no_shadow_limit() {
    for algorithm in every_algorithm(5, 60_000) {
        let store = store(16 * MEBIBYTE);
        let shadow = ask(key(1), in_shadow(Rule::new(algorithm)), 1);
        let enforced = ask(key(2), soft(1), 1);
        for expected in [true, false, false] {
            let verdicts = decide_all(&store, &[shadow, enforced], Mode::Consume);
            assert!(verdicts[0].is_allowed());
            assert_eq!(verdicts[1].is_allowed(), expected);
        }
        assert_eq!((used(&store, &shadow), used(&store, &enforced)), (1, 1));
    }
}

#[test]
fn a_shadow_ban_bans_nobody() {
    let store = store(16 * MEBIBYTE);
    let hour = super::minutes(60);
    let ban = crate::rule::Ban {
        length: hour,
        escalation: 1000,
        longest: hour,
    };
    let failures = Rule {
        ban: Some(ban),
        ..in_shadow(soft(1))
    };
    let shadow = ask(key(1), failures, 1);
    let enforced = ask(key(2), soft(10), 1);
    let both: [Ask; 2] = [shadow, enforced];
    decide_all(&store, &both, Mode::Consume);
    store.amend(NOW, &shadow, Change::Failure);
    let verdicts = decide_all(&store, &both, Mode::Consume);
    assert_eq!(verdicts[0].outcome, Outcome::Refuse(Reason::Banned));
    assert!(verdicts[1].is_allowed());
    assert_eq!(used(&store, &enforced), 2);
}

/// An enforced ban refuses the whole check.
#[test]
fn a_ban_refuses_a_check_of_several_limits_and_charges_none() {
    let store = store(16 * MEBIBYTE);
    let hour = super::minutes(60);
    let ban = crate::rule::Ban {
        length: hour,
        escalation: 1000,
        longest: hour,
    };
    let banned = ask(
        key(1),
        Rule {
            ban: Some(ban),
            ..soft(1)
        },
        1,
    );
    let other = ask(key(2), soft(10), 1);
    store.amend(NOW, &banned, Change::Failure);
    for mode in [Mode::Consume, Mode::Peek] {
        let verdicts = decide_all(&store, &[other, banned], mode);
        assert!(verdicts[0].is_allowed());
        assert_eq!(verdicts[1].outcome, Outcome::Refuse(Reason::Banned));
    }
    assert_eq!(used(&store, &other), 0);
}
