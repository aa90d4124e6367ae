//! P5 and P9 on every algorithm: what fits is admitted, and a refusal says to the nanosecond when.

use std::cell::Cell;

use proptest::{prelude::*, test_runner::TestRunner};

use super::{
    MEBIBYTE, NOW, key,
    slow::{Slow, small_algorithm},
    store,
};
use crate::{
    key::KeyHash,
    rule::{Algorithm, Ban, Rule},
    store::{Ask, Change, Store},
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Reason, Verdict},
};

/// A step of the clock and a cost.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    step: Nanos,
    cost: u64,
    fails: bool,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let step = prop_oneof![
        4 => Just(0),
        6 => 0_u64..100_000_000,
        2 => 0_u64..3_000_000_000,
        1 => (0_u64..20).prop_map(|seconds| seconds * 500_000_000),
        1 => 0_u64..5_000_000_000_000,
    ];
    let cost = prop_oneof![3 => Just(1_u64), 2 => 1_u64..12];
    let arrival = (step, cost, any::<bool>());
    let arrival = arrival.prop_map(|(step, cost, fails)| Arrival {
        step: Nanos::new(step),
        cost,
        fails,
    });
    prop::collection::vec(arrival, 1..60)
}

/// An algorithm on any terms.
fn rules() -> impl Strategy<Value = Rule> {
    let terms = (any::<prop::sample::Index>(), any::<bool>(), any::<bool>());
    (small_algorithm(), terms).prop_map(|(algorithm, (share, sets_aside, bans))| {
        let capacity = usize::try_from(algorithm.capacity()).expect("small");
        let ban = Ban {
            length: Nanos::from_millis(700),
            escalation: 1500,
            longest: Nanos::from_millis(3000),
        };
        let is_of_permits = matches!(algorithm, Algorithm::Concurrency(_));
        Rule {
            set_aside: if sets_aside {
                share.index(capacity) as u64
            } else {
                0
            },
            ban: (bans && !is_of_permits).then_some(ban),
            ..Rule::new(algorithm)
        }
    })
}

/// Runs a case for each of so many values, each with a key of its own in one store.
fn each<T: std::fmt::Debug>(
    cases: u32,
    strategy: &impl Strategy<Value = T>,
    run: impl Fn(&Store, KeyHash, T) -> Result<(), TestCaseError>,
) {
    let store = store(64 * MEBIBYTE);
    let number = Cell::new(0_u64);
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let result = TestRunner::new(config).run(strategy, |value| {
        number.set(number.get() + 1);
        let key = key(number.get());
        let result = run(&store, key, value);
        store.remove(key);
        result
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert_eq!(store.stats().evicted + store.stats().evicted_at_limit, 0);
}

/// The refused client waits as it was told and asks again.
fn check_wait(
    store: &Store,
    now: Nanos,
    ask: &Ask,
    refused: &Verdict,
) -> Result<(), TestCaseError> {
    let Some(wait) = refused.retry_after else {
        prop_assert!(ask.cost.units() > ask.rule.open_capacity());
        return Ok(());
    };
    prop_assert!(wait > Nanos::ZERO);
    let admits = |after: Nanos| {
        let then = now.saturating_add(after);
        store.decide(then, ask, Mode::Peek).is_allowed()
    };
    prop_assert!(admits(wait), "after {wait:?}");
    prop_assert!(!admits(wait.saturating_sub(Nanos::new(1))));
    let told = Nanos::from_millis(wait.ceil_millis());
    prop_assert!(admits(told), "as it is told");
    prop_assert!(!admits(told.saturating_sub(Nanos::from_millis(1))));
    Ok(())
}

#[test]
fn whoever_waits_as_told_is_admitted_and_not_a_millisecond_before() {
    each(
        10_000,
        &(rules(), arrivals()),
        |store, key, (rule, arrivals)| {
            let mut now = NOW;
            let mut last = None;
            for Arrival { step, cost, fails } in arrivals {
                now = now.saturating_add(step);
                let cost = Cost::new(cost).expect("small");
                let ask = Ask { key, rule, cost };
                let verdict = store.decide(now, &ask, Mode::Consume);
                if verdict.is_allowed() {
                    if fails && rule.ban.is_some() {
                        store.amend(now, &ask, Change::Failure);
                    }
                    continue;
                }
                check_wait(store, now, &ask, &verdict)?;
                last = Some((ask, verdict));
            }
            // Not only by a peek.
            if let Some((ask, _)) = last {
                let again = store.decide(now, &ask, Mode::Consume);
                if let (false, Some(wait)) = (again.is_allowed(), again.retry_after) {
                    let then = now.saturating_add(wait);
                    prop_assert!(store.decide(then, &ask, Mode::Consume).is_allowed());
                }
            }
            Ok(())
        },
    );
}

/// P9, and the numbers of every answer, against the definition of each algorithm.
#[test]
fn verdicts_are_those_of_the_definition() {
    each(
        10_000,
        &(rules(), arrivals()),
        |store, key, (rule, arrivals)| {
            let rule = Rule { ban: None, ..rule };
            let mut slow = Slow::default();
            let mut now = NOW;
            for Arrival { step, cost, .. } in arrivals {
                now = now.saturating_add(step);
                let before = slow.used(&rule.algorithm, now, Nanos::ZERO);
                let fits = before + u128::from(cost) <= u128::from(rule.open_capacity());
                let ask = Ask {
                    key,
                    rule,
                    cost: Cost::new(cost).expect("small"),
                };
                let peek = store.decide(now, &ask, Mode::Peek);
                prop_assert_eq!((peek.is_allowed(), u128::from(peek.used)), (fits, before));
                let verdict = store.decide(now, &ask, Mode::Consume);
                prop_assert_eq!(verdict.is_allowed(), fits);
                if fits {
                    slow.charge(now, cost);
                }
                let used = slow.used(&rule.algorithm, now, Nanos::ZERO);
                prop_assert_eq!(u128::from(verdict.used), used);
                prop_assert_eq!(
                    verdict.remaining,
                    rule.open_capacity().saturating_sub(verdict.used)
                );
                prop_assert_eq!(verdict.outcome, expected(&rule, cost, fits));
                check_numbers(&slow, &rule, now, &verdict)?;
            }
            Ok(())
        },
    );
}

fn expected(rule: &Rule, cost: u64, fits: bool) -> Outcome {
    if fits {
        return Outcome::Allow;
    }
    Outcome::Refuse(if cost > rule.capacity() {
        Reason::CostExceedsLimit
    } else if rule.set_aside > 0 {
        Reason::SetAside
    } else if matches!(rule.algorithm, Algorithm::LeakyBucket(_)) {
        Reason::QueueFull
    } else {
        Reason::LimitExceeded
    })
}

fn check_numbers(
    slow: &Slow,
    rule: &Rule,
    now: Nanos,
    verdict: &Verdict,
) -> Result<(), TestCaseError> {
    let used = |after: Nanos| {
        let then = now.saturating_add(after);
        slow.used(&rule.algorithm, then, Nanos::ZERO)
    };
    let (more, reset) = (verdict.more_after, verdict.reset_after);
    prop_assert_eq!(used(reset), 0);
    if verdict.used == 0 {
        prop_assert_eq!((more, reset), (Nanos::ZERO, Nanos::ZERO));
        return Ok(());
    }
    let free = |after: Nanos| u128::from(rule.open_capacity()).saturating_sub(used(after));
    let just_before = |after: Nanos| after.saturating_sub(Nanos::new(1));
    prop_assert!(used(just_before(reset)) > 0);
    if rule.open_capacity() > 0 {
        prop_assert!(free(more) > u128::from(verdict.remaining));
        prop_assert_eq!(free(just_before(more)), u128::from(verdict.remaining));
    }
    Ok(())
}
