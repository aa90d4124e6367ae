//! Whatever is written: a spec is refused, or it can be computed with.

use proptest::{prelude::*, test_runner::TestRunner};

use super::{HASH_KEY, attributes};
use crate::{
    calendar::CalendarUnit,
    policy::Limit,
    spec::{
        AlgorithmSpec, BanSpec, CostSource, Counted, LimitNumber, LimitSpec, SetAsideSpec,
        TierNumber,
    },
    store::{Ask, Change, Store, StoreConfig},
    units::{Cost, MAX_UNITS, Nanos},
    verdict::Mode,
};

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0_u64..100,
        2 => 0..=MAX_UNITS,
        1 => any::<u64>(),
        1 => Just(MAX_UNITS),
    ]
}

fn spans() -> impl Strategy<Value = Nanos> {
    let seconds = (1_u64..100_000).prop_map(|seconds| seconds * 1_000_000_000);
    let span = prop_oneof![6 => seconds, 1 => any::<u64>(), 1 => Just(0)];
    span.prop_map(Nanos::new)
}

fn factors() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.0..2.0, 1 => 1.0..1000.0, 1 => any::<f64>(), 1 => Just(f64::NAN)]
}

fn algorithms() -> impl Strategy<Value = AlgorithmSpec> {
    let zone = prop::option::of(prop_oneof![
        Just("Europe/Berlin".to_owned()),
        Just("utc".to_owned()),
        "[a-z]{0,4}",
    ]);
    let slices = prop_oneof![5 => 0_u64..62, 1 => any::<u64>()];
    prop_oneof![
        (spans(), slices, any::<bool>()).prop_map(|(window, slices, hard)| {
            AlgorithmSpec::SlidingWindow {
                window,
                slices,
                hard,
            }
        }),
        spans().prop_map(|window| AlgorithmSpec::SlidingLog { window }),
        spans().prop_map(|window| AlgorithmSpec::FixedWindow { window }),
        (0_usize..5, zone).prop_map(|(unit, time_zone)| AlgorithmSpec::CalendarWindow {
            unit: CalendarUnit::ALL[unit],
            time_zone,
        }),
        (spans(), prop::option::of(numbers()))
            .prop_map(|(window, burst)| AlgorithmSpec::TokenBucket { window, burst }),
        (spans(), prop::option::of(numbers()))
            .prop_map(|(window, queue)| AlgorithmSpec::LeakyBucket { window, queue }),
        spans().prop_map(|ttl| AlgorithmSpec::Concurrency { ttl }),
    ]
}

fn limits() -> impl Strategy<Value = LimitNumber> {
    let tier =
        prop_oneof![5 => numbers().prop_map(TierNumber::Units), 1 => Just(TierNumber::Unlimited)];
    let values = prop::collection::vec(("[a-c]", tier.clone()), 0..3);
    prop_oneof![
        6 => numbers().prop_map(LimitNumber::One),
        2 => (values, tier).prop_map(|(values, default)| LimitNumber::By {
            attribute: "plan".to_owned(),
            values,
            default,
        }),
        1 => Just(LimitNumber::Unlimited),
    ]
}

fn specs() -> impl Strategy<Value = LimitSpec> {
    let ban = (spans(), factors(), prop::option::of(spans()));
    let ban = prop::option::weighted(0.3, ban);
    let share = prop::option::weighted(0.3, factors());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (limits(), algorithms(), ban, share, flags, 0_u8..140).prop_map(
        |(limit, algorithm, ban, share, (shadow, by_attribute, fails), prefix)| LimitSpec {
            key: vec!["ip".to_owned()],
            ipv6_prefix: prefix,
            cost: if by_attribute {
                CostSource::Attribute("tokens".to_owned())
            } else {
                CostSource::Request
            },
            count: if fails {
                Counted::Failures
            } else {
                Counted::Requests
            },
            ban: ban.map(|(length, escalate, longest)| BanSpec {
                length,
                escalate,
                longest,
            }),
            set_aside: share.map(|share| SetAsideSpec {
                attribute: "plan".to_owned(),
                values: vec!["a".to_owned()],
                share,
            }),
            shadow,
            ..LimitSpec::new("n", limit, algorithm)
        },
    )
}

#[test]
fn any_spec_is_refused_or_decides() {
    let store = Store::new(&StoreConfig::default());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(20_000)
    };
    let cases = (specs(), "[a-d]", 0_u64..200, 0_u64..1_000_000_000_000);
    let result = TestRunner::new(config).run(&cases, |(spec, plan, cost, now)| {
        let compiled = Limit::new("api", spec, &HASH_KEY);
        let limit = match compiled {
            Ok(limit) => limit,
            Err(error) => {
                prop_assert!(!error.field.is_empty() && !error.right.is_empty());
                return Ok(());
            }
        };
        let tokens = cost.to_string();
        let attributes = attributes(&[("ip", "::1"), ("plan", &plan), ("tokens", &tokens)]);
        let cost = Cost::new(cost).expect("small");
        let applied = limit.apply(&attributes, cost).expect("no fault");
        let Some(applied) = applied else {
            return Ok(());
        };
        let rule = applied.rule;
        prop_assert!(rule.set_aside <= rule.capacity() && rule.capacity() <= MAX_UNITS);
        let ask = Ask {
            key: applied.key,
            rule,
            cost: applied.cost,
        };
        let now = Nanos::new(now);
        for change in [Change::Failure, Change::Charge, Change::Refund] {
            let verdict = store.decide(now, &ask, Mode::Consume);
            prop_assert!(verdict.remaining <= rule.open_capacity());
            store.amend(now, &ask, change);
        }
        store.remove(ask.key);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
