//! Rule 9: whatever a rule, a clock and a cost may be, nothing overflows and the numbers keep their bounds.

use std::cell::Cell;

use proptest::{prelude::*, test_runner::TestRunner};

use super::{MEBIBYTE, key, store};
use crate::{
    calendar::{CalendarUnit, Zone},
    rule::{
        Algorithm, Alignment, Ban, Concurrency, Enforcement, FixedWindow, LeakyBucket,
        MAX_ESCALATION, MAX_LOG_LIMIT, OldestSlice, Rule, SlidingLog, SlidingWindow, TokenBucket,
    },
    store::{Ask, Change, Store},
    units::{Cost, MAX_UNITS, Nanos, Window},
    verdict::{Mode, Outcome, Reason},
};

fn units() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..20, 0..=MAX_UNITS, Just(MAX_UNITS), Just(0)]
}

fn windows() -> impl Strategy<Value = Window> {
    let (shortest, longest) = (Window::MIN.as_nanos(), Window::MAX.as_nanos());
    let span = prop_oneof![
        shortest..=longest,
        Just(shortest),
        Just(longest),
        Just(10_000_000_000)
    ];
    span.prop_map(|span| Window::new(Nanos::new(span)).expect("a window in its bounds"))
}

pub(super) fn algorithms() -> impl Strategy<Value = Algorithm> {
    let numbers = (units(), windows(), 1_u8..=60, units());
    (0_u8..8, numbers).prop_map(|(kind, (limit, window, slices, other))| {
        let sliding = |slices, oldest| {
            Algorithm::SlidingWindow(SlidingWindow {
                limit,
                window,
                slices,
                oldest,
            })
        };
        let fixed = |alignment| Algorithm::FixedWindow(FixedWindow { limit, alignment });
        let few = limit.min(MAX_LOG_LIMIT);
        match kind {
            0 => sliding(slices, OldestSlice::Weighted),
            1 => sliding(slices.max(2), OldestSlice::Full),
            2 => Algorithm::SlidingLog(SlidingLog { limit: few, window }),
            3 => fixed(Alignment::Epoch(window)),
            4 => {
                let unit = CalendarUnit::ALL[usize::from(slices) % CalendarUnit::ALL.len()];
                let zones = [
                    "UTC",
                    "Europe/Berlin",
                    "Australia/Lord_Howe",
                    "Asia/Kathmandu",
                ];
                let zone = Zone::named(zones[usize::from(slices) % zones.len()]);
                fixed(Alignment::Calendar(unit, zone.expect("a zone of the data")))
            }
            5 => Algorithm::TokenBucket(TokenBucket {
                limit,
                window,
                burst: if limit == 0 { 0 } else { other.max(1) },
            }),
            6 => Algorithm::LeakyBucket(LeakyBucket {
                limit,
                window,
                queue: other.min(MAX_UNITS - 1),
            }),
            _ => Algorithm::Concurrency(Concurrency {
                limit: few,
                ttl: window,
            }),
        }
    })
}

fn bans() -> impl Strategy<Value = Option<Ban>> {
    let ban = (windows(), 1000..=MAX_ESCALATION, windows());
    prop::option::of(ban.prop_map(|(length, escalation, longest)| Ban {
        length: length.span(),
        escalation,
        longest: longest.span().max(length.span()),
    }))
}

fn rules() -> impl Strategy<Value = Rule> {
    (algorithms(), units(), any::<bool>(), bans()).prop_map(|(algorithm, aside, is_shadow, ban)| {
        Rule {
            algorithm,
            set_aside: if aside % 3 == 0 {
                aside.min(algorithm.capacity())
            } else {
                0
            },
            enforcement: if is_shadow {
                Enforcement::Shadow
            } else {
                Enforcement::Enforced
            },
            ban,
            ceiling: algorithm.capacity().max(aside),
        }
    })
}

#[derive(Clone, Copy, Debug)]
struct Step {
    now: u64,
    cost: u64,
    what: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let now = prop_oneof![
        4 => 0_u64..40_000_000_000,
        2 => 0..=Window::MAX.as_nanos(),
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ];
    let step = (now, units(), 0_u8..12);
    let step = step.prop_map(|(now, cost, what)| Step { now, cost, what });
    prop::collection::vec(step, 1..7)
}

fn run(store: &Store, ask: &Ask, step: Step) -> Result<(), TestCaseError> {
    let now = Nanos::new(step.now);
    let rule = &ask.rule;
    let before = store.decide(
        now,
        &Ask {
            cost: Cost::ONE,
            ..*ask
        },
        Mode::Peek,
    );
    let mode = if step.what == 0 {
        Mode::Peek
    } else {
        Mode::Consume
    };
    let verdict = store.decide(now, ask, mode);
    prop_assert!(verdict.remaining <= rule.open_capacity());
    prop_assert!(rule.open_capacity() <= rule.capacity());
    let is_banned = before.outcome == Outcome::Refuse(Reason::Banned);
    let wanted = u128::from(before.used) + u128::from(step.cost);
    let fits = step.cost == 0 || wanted <= u128::from(rule.open_capacity());
    prop_assert_eq!(verdict.is_allowed(), fits && !is_banned);
    let never = step.cost > rule.open_capacity();
    prop_assert_eq!(
        verdict.retry_after.is_none(),
        never,
        "waiting helps unless it never fits"
    );
    if verdict.is_allowed() && mode == Mode::Consume {
        prop_assert_eq!(verdict.used, before.used + step.cost);
    } else if !is_banned {
        prop_assert_eq!(verdict.used, before.used, "P4");
    }
    let slice = verdict.charged_slice;
    let change = match step.what {
        2 => Change::GiveBack { slice },
        3 => Change::GiveBack { slice: step.cost },
        4 => Change::Refund,
        5 => Change::Charge,
        6 | 7 => Change::Failure,
        8 => Change::Reset,
        _ => return Ok(()),
    };
    store.amend(now, ask, change);
    if let Some(read) = store.read(now, ask.key, rule) {
        prop_assert!(read.remaining <= rule.capacity());
    }
    Ok(())
}

#[test]
fn any_rule_any_clock_and_any_cost_keep_the_bounds() {
    let store = store(64 * MEBIBYTE);
    let number = Cell::new(0_u64);
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(100_000)
    };
    let cases = (rules(), prop::option::of(units()), steps());
    let result = TestRunner::new(config).run(&cases, |(mut rule, limit_later, steps)| {
        number.set(number.get() + 1);
        let key = key(number.get());
        for step in steps {
            let cost = Cost::new(step.cost).expect("at most the largest");
            run(&store, &Ask { key, rule, cost }, step)?;
            if let Some(limit) = limit_later {
                rule = changed(rule, limit);
            }
        }
        store.remove(key);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// The rule with another number.
fn changed(mut rule: Rule, number: u64) -> Rule {
    let few = number.min(MAX_LOG_LIMIT);
    match &mut rule.algorithm {
        Algorithm::SlidingWindow(rule) => rule.limit = number,
        Algorithm::SlidingLog(rule) => rule.limit = few,
        Algorithm::FixedWindow(rule) => rule.limit = number,
        Algorithm::TokenBucket(rule) => (rule.limit, rule.burst) = (number, number),
        Algorithm::LeakyBucket(rule) => rule.limit = number,
        Algorithm::Concurrency(rule) => rule.limit = few,
    }
    rule.set_aside = rule.set_aside.min(rule.capacity());
    rule.ceiling = rule.ceiling.max(rule.capacity());
    rule
}
