//! What an engine says to single checks.

use tollgate_limit::{
    AlgorithmSpec, CheckError, Cost, CostSource, HashKey, Limit, LimitNumber, LimitSpec, Nanos,
    Policies, SetAsideSpec, TierNumber,
};

use super::{Engine, Plans, Said, plan::PlanError};

fn spec(name: &str, key: &str, limit: u64) -> LimitSpec {
    let algorithm = AlgorithmSpec::FixedWindow {
        window: Nanos::from_millis(60_000),
    };
    let mut spec = LimitSpec::new(name, LimitNumber::One(limit), algorithm);
    spec.matches = vec![("method".to_owned(), vec!["GET".to_owned()])];
    spec.key = vec![key.to_owned()];
    spec
}

fn engine(limits: impl IntoIterator<Item = (&'static str, LimitSpec)>) -> (Engine, Plans) {
    let mut policies = Policies::new();
    for (policy, spec) in limits {
        let limit = Limit::new(policy, spec, &HashKey::new([0; 16])).unwrap();
        policies.add(policy, limit).unwrap();
    }
    let plans = Plans::new(&policies, None).unwrap();
    (Engine::new(policies), plans)
}

/// The limits that were asked, and whether each admitted.
fn outcome(said: &[Said]) -> Vec<(usize, bool)> {
    said.iter()
        .map(|said| (said.limit, said.is_admitted))
        .collect()
}

#[test]
fn a_check_is_all_or_nothing_and_names_its_limits() {
    let limits = [
        ("p", spec("wide", "user", 3)),
        ("p", spec("narrow", "ip", 1)),
    ];
    let (engine, plans) = engine(limits);
    assert_eq!(plans.wanted, ["method", "user", "ip"]);
    let check = |user: &str, ip: &str| {
        let mut said = Vec::new();
        let values = ["GET", user, ip];
        let asked = (&values[..], Cost::ONE);
        engine
            .check(&plans.plans[0], Nanos::ZERO, asked, &mut said)
            .unwrap();
        outcome(&said)
    };
    assert_eq!(check("u", "a"), [(0, true), (1, true)]);
    for _ in 0..5 {
        assert_eq!(
            check("u", "a"),
            [(0, true), (1, false)],
            "wide is not charged"
        );
    }
    assert_eq!(
        check("u", ""),
        [(0, true)],
        "without an ip narrow does not apply"
    );
    assert_eq!(check("u", "b"), [(0, true), (1, true)]);
    assert_eq!(check("u", "c"), [(0, false), (1, true)]);
    assert_eq!(
        check("", "c"),
        [(1, true)],
        "the number is that of the limit"
    );
}

#[test]
fn what_does_not_match_is_asked_nothing_and_a_missing_attribute_is_told() {
    let mut required = spec("r", "ip", 1);
    required.required = true;
    let (engine, plans) = engine([("p", required)]);
    let mut said = Vec::new();
    let mut check = |values: [&str; 2]| {
        engine.check(
            &plans.plans[0],
            Nanos::ZERO,
            (&values, Cost::ONE),
            &mut said,
        )
    };
    assert_eq!(check(["PUT", "a"]), Ok(()));
    assert!(matches!(
        check(["GET", ""]),
        Err(CheckError::Required { .. })
    ));
    assert_eq!(check(["GET", "a"]), Ok(()));
    assert_eq!(outcome(&said), [(0, true)]);
}

#[test]
fn a_limit_in_shadow_is_told_and_refuses_nothing() {
    let mut shadow = spec("s", "ip", 1);
    shadow.shadow = true;
    let (engine, plans) = engine([("p", shadow), ("p", spec("l", "ip", 3))]);
    let mut said = Vec::new();
    for _ in 0..3 {
        let asked = (&["GET", "x"][..], Cost::ONE);
        engine
            .check(&plans.plans[0], Nanos::ZERO, asked, &mut said)
            .unwrap();
    }
    let all = [
        (0, true),
        (1, true),
        (0, false),
        (1, true),
        (0, false),
        (1, true),
    ];
    assert_eq!(outcome(&said), all);
    assert!(said.iter().all(|said| !said.refuses));
}

#[test]
fn a_limit_looks_at_every_attribute_that_it_needs() {
    let mut wide = spec("w", "ip", 1);
    wide.limit = LimitNumber::By {
        attribute: "plan".to_owned(),
        values: vec![("pro".to_owned(), TierNumber::Units(5))],
        default: TierNumber::Units(2),
    };
    wide.cost = CostSource::Attribute("tokens".to_owned());
    wide.set_aside = Some(SetAsideSpec {
        attribute: "priority".to_owned(),
        values: vec!["high".to_owned()],
        share: 0.5,
    });
    let (engine, plans) = engine([("p", wide)]);
    let mut wanted = plans.wanted.clone();
    wanted.sort_unstable();
    assert_eq!(wanted, ["ip", "method", "plan", "priority", "tokens"]);
    let check = |plan: &str, priority: &str| {
        let value = |name: &String| match name.as_str() {
            "method" => "GET",
            "plan" => plan,
            "priority" => priority,
            "tokens" => "2",
            _ => "x",
        };
        let values: Vec<&str> = plans.wanted.iter().map(value).collect();
        let mut said = Vec::new();
        engine
            .check(
                &plans.plans[0],
                Nanos::ZERO,
                (&values, Cost::ONE),
                &mut said,
            )
            .unwrap();
        (outcome(&said), said[0].cost.units())
    };
    assert_eq!(
        check("free", ""),
        (vec![(0, false)], 2),
        "half of 2 is set aside"
    );
    assert_eq!(check("free", "high"), (vec![(0, true)], 2));
    assert_eq!(check("pro", "high"), (vec![(0, true)], 2));
    assert_eq!(check("free", "high"), (vec![(0, false)], 2));
}

#[test]
fn policies_do_not_touch_each_other() {
    let (engine, plans) = engine([("a", spec("l", "ip", 1)), ("b", spec("l", "ip", 1))]);
    for plan in &plans.plans {
        let mut said = Vec::new();
        let asked = (&["GET", "x"][..], Cost::ONE);
        engine.check(plan, Nanos::ZERO, asked, &mut said).unwrap();
        assert_eq!(outcome(&said), [(0, true)], "{}", plan.policy());
    }
}

#[test]
fn plans_that_cannot_be_made_say_why() {
    let mut policies = Policies::new();
    assert_eq!(Plans::new(&policies, None).unwrap_err(), PlanError::NoLimit);
    let limit = Limit::new("p", spec("l", "ip", 1), &HashKey::new([0; 16])).unwrap();
    policies.add("p", limit).unwrap();
    assert!(Plans::new(&policies, Some("p")).is_ok());
    let unknown = PlanError::UnknownPolicy {
        name: "q".to_owned(),
        known: vec!["p".to_owned()],
    };
    assert_eq!(Plans::new(&policies, Some("q")).unwrap_err(), unknown);
    for number in 0..70 {
        let mut many = spec(&format!("l{number}"), "ip", 1);
        many.key = (0..16).map(|key| format!("k{number}-{key}")).collect();
        let limit = Limit::new(&format!("p{number}"), many, &HashKey::new([0; 16])).unwrap();
        policies.add(&format!("p{number}"), limit).unwrap();
    }
    let error = Plans::new(&policies, None).unwrap_err();
    assert_eq!(error, PlanError::TooManyAttributes);
    assert!(Plans::new(&policies, Some("p7")).is_ok());
}
