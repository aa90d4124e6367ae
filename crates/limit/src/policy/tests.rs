//! Tests of policies: which limits apply to a check.

mod any_specs;
mod applying;
mod wrong_specs;

use super::{Limit, MAX_LIMITS_PER_POLICY, Policies, PolicyError};
use crate::{
    attributes::Attributes,
    key::HashKey,
    question::{Call, CheckError},
    spec::{AlgorithmSpec, LimitNumber, LimitSpec},
    units::{Cost, Nanos},
};

pub(super) const HASH_KEY: HashKey = HashKey::new([7; 16]);

pub(super) fn spec(name: &str, key: &[&str]) -> LimitSpec {
    let algorithm = AlgorithmSpec::SlidingWindow {
        window: Nanos::from_millis(60_000),
        slices: 10,
        hard: false,
    };
    LimitSpec {
        key: key.iter().map(|&attribute| attribute.to_owned()).collect(),
        ..LimitSpec::new(name, LimitNumber::One(100), algorithm)
    }
}

pub(super) fn attributes<'a>(pairs: &[(&'a str, &'a str)]) -> Attributes<'a> {
    let mut attributes = Attributes::new();
    for (name, value) in pairs {
        attributes.insert(*name, *value).expect("legal attributes");
    }
    attributes
}

fn limit(spec: LimitSpec) -> Limit {
    Limit::new("api", spec, &HASH_KEY).expect("a right spec")
}

#[test]
fn the_matching_limits_apply_in_their_order() {
    let mut policies = Policies::new();
    let mut free = spec("free", &["user"]);
    let plans = ["free".to_owned(), "trial*".to_owned()];
    free.matches = vec![("plan".to_owned(), plans.to_vec())];
    for spec in [spec("all", &[]), free, spec("per-ip", &["ip"])] {
        policies.add("api", limit(spec)).expect("room for it");
    }
    let policy = policies.policy("api").expect("just made");
    let names = |pairs: &[(&str, &str)]| {
        let applied = policy
            .select(&attributes(pairs), Cost::ONE, Call::Check)
            .expect("nothing is required");
        let names = applied
            .iter()
            .map(|applied| applied.limit.name().to_owned());
        names.collect::<Vec<_>>()
    };
    let all = [("plan", "trial-2"), ("user", "7"), ("ip", "::1")];
    assert_eq!(names(&[]), ["all"]);
    assert_eq!(names(&all), ["all", "free", "per-ip"]);
    assert_eq!(names(&[("plan", "pro"), ("user", "7")]), ["all"]);
    assert_eq!(names(&[("plan", "free")]), ["all"], "its key is absent");
    let [_, free, per_ip] = policy.limits() else {
        panic!("three limits");
    };
    assert_eq!((free.tally().skipped(), per_ip.tally().skipped()), (1, 3));
    assert!(policies.policy("web").is_none());
    assert_eq!(policies.iter().count(), 1);
}

#[test]
fn a_required_attribute_must_be_there() {
    let mut policies = Policies::new();
    let mut per_user = spec("per-user", &["user"]);
    per_user.required = true;
    policies.add("api", limit(per_user)).expect("room for it");
    let policy = policies.policy("api").expect("just made");
    let error = policy
        .select(&attributes(&[("user", "")]), Cost::ONE, Call::Check)
        .expect_err("absent");
    let limit = "per-user".to_owned();
    let attribute = "user".to_owned();
    assert_eq!(error, CheckError::Required { limit, attribute });
}

#[test]
fn a_policy_is_bounded_and_its_names_differ() {
    let mut policies = Policies::new();
    for number in 0..MAX_LIMITS_PER_POLICY {
        let added = policies.add("api", limit(spec(&format!("n{number}"), &[])));
        assert_eq!(added, Ok(()));
    }
    let mut add = |policy, name| policies.add(policy, limit(spec(name, &[])));
    assert_eq!(add("api", "n0"), Err(PolicyError::NameTwice));
    assert_eq!(add("api", "more"), Err(PolicyError::TooManyLimits));
    assert_eq!(add("web", "n0"), Ok(()));
}
