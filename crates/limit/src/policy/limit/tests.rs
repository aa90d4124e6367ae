//! Tests of one limit: what its key depends on, and which specs are refused.

use super::Limit;
use crate::{
    key::KeyHash,
    policy::tests::{HASH_KEY, attributes, spec},
    question::CheckError,
    spec::{AlgorithmSpec, LimitNumber, LimitSpec, TierNumber},
    units::{MAX_UNITS, Nanos},
};

fn key_of(limit: &Limit) -> KeyHash {
    let attributes = attributes(&[("user", "7"), ("ip", "::1"), ("pi", "::1")]);
    let key = limit.key_of(&attributes).expect("no fault");
    key.expect("all attributes are there")
}

fn configured(policy: &str, spec: LimitSpec) -> KeyHash {
    key_of(&Limit::new(policy, spec, &HASH_KEY).expect("a right spec"))
}

fn inline(name: &str, key: &[&str]) -> Limit {
    Limit::inline(spec(name, key), &HASH_KEY).expect("a right spec")
}

fn with(change: impl FnOnce(&mut u64, &mut Nanos, &mut u64, &mut bool)) -> LimitSpec {
    let mut spec = spec("per-user", &["user", "ip"]);
    let AlgorithmSpec::SlidingWindow {
        window,
        slices,
        hard,
    } = &mut spec.algorithm
    else {
        panic!("{spec:?} is no sliding window");
    };
    let mut limit = 100;
    change(&mut limit, window, slices, hard);
    spec.limit = LimitNumber::One(limit);
    spec
}

/// Rule 6.
#[test]
fn a_changed_number_keeps_the_counter_and_a_changed_window_does_not() {
    let known = configured("api", with(|_, _, _, _| ()));
    for same in [
        with(|limit, _, _, _| *limit = 5),
        with(|_, _, _, hard| *hard = true),
    ] {
        assert_eq!(configured("api", same), known);
    }
    let named = |name, key: &[&str]| configured("api", spec(name, key));
    let longer = with(|_, window, _, _| *window = Nanos::from_millis(60_001));
    for other in [
        configured("api", longer),
        configured("api", with(|_, _, slices, _| *slices = 11)),
        configured("web", with(|_, _, _, _| ())),
        named("per-users", &["user", "ip"]),
        named("per-user", &["ip", "user"]),
        named("per-user", &["user", "pi"]),
        named("per-user", &["user"]),
        named("per-user", &[]),
        key_of(&inline("per-user", &["user", "ip"])),
    ] {
        assert_ne!(other, known);
    }
}

/// What an inline limit counts can never be a configured limit's, whatever its policy's name.
#[test]
fn an_inline_limit_has_counters_of_its_own() {
    let inline = inline("login", &["user"]);
    assert_eq!(inline.policy(), "");
    assert_ne!(key_of(&inline), configured("", spec("login", &["user"])));
    let error = inline.key_of(&attributes(&[])).expect_err("absent");
    let attribute = "user".to_owned();
    assert_eq!(error, CheckError::EmptyKey { attribute });
}

#[test]
fn a_wrong_spec_names_its_field() {
    let too_many: Vec<String> = (0..17).map(|number| format!("a{number}")).collect();
    let too_many: Vec<&str> = too_many.iter().map(String::as_str).collect();
    for (field, spec) in [
        ("name", spec("", &[])),
        ("name", spec("per user", &[])),
        ("name", spec(&"n".repeat(65), &[])),
        ("key", spec("n", &["user", "user"])),
        ("key", spec("n", &[""])),
        ("key", spec("n", &too_many)),
        ("limit", with(|limit, _, _, _| *limit = MAX_UNITS + 1)),
        (
            "window",
            with(|_, window, _, _| *window = Nanos::new(999_999)),
        ),
        ("window", with(|_, window, _, _| *window = Nanos::MAX)),
        ("slices", with(|_, _, slices, _| *slices = 0)),
        ("slices", with(|_, _, slices, _| *slices = 61)),
        ("slices", with(|_, _, slices, _| *slices = 257)),
        (
            "hard",
            with(|_, _, slices, hard| (*slices, *hard) = (1, true)),
        ),
    ] {
        let error = Limit::new("api", spec.clone(), &HASH_KEY).expect_err("a wrong spec");
        assert_eq!(error.field, field, "{spec:?}");
    }
    let hard = with(|_, _, slices, hard| (*slices, *hard) = (2, true));
    assert!(Limit::new("api", hard, &HASH_KEY).is_ok());
}

/// What tiers share is clamped to what the largest of them may hold, the unlimited aside.
#[test]
fn all_tiers_know_the_largest() {
    let number = |number| TierNumber::Units(number);
    let mut spec = spec("tiers", &["user"]);
    spec.algorithm = AlgorithmSpec::TokenBucket {
        window: Nanos::from_millis(60_000),
        burst: None,
    };
    spec.limit = LimitNumber::By {
        attribute: "plan".to_owned(),
        values: vec![
            ("pro".to_owned(), number(6000)),
            ("none".to_owned(), number(0)),
            ("root".to_owned(), TierNumber::Unlimited),
        ],
        default: number(60),
    };
    let tiers = super::compile::tiers_of(&spec).expect("a right spec");
    for (plan, capacity) in [("pro", 6000), ("none", 0), ("free", 60)] {
        let rules = tiers.rules(&attributes(&[("plan", plan)]));
        let rules = rules.expect("a limited tier");
        for rule in [rules.named, rules.others] {
            assert_eq!((rule.capacity(), rule.ceiling), (capacity, 6000), "{plan}");
        }
    }
}
