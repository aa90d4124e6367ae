//! How a limit applies: addresses, long values, tiers, costs, shares, exemptions.

use std::collections::HashSet;

use super::{attributes, limit, spec};
use crate::{
    attributes::Attributes,
    key::KeyHash,
    policy::{Application, Limit, Policies},
    question::{Call, CheckError},
    spec::{AlgorithmSpec, CostSource, LimitNumber, LimitSpec, SetAsideSpec, TierNumber},
    units::{Cost, MAX_UNITS, Nanos},
};

fn key_of(limit: &Limit, attributes: &Attributes<'_>) -> KeyHash {
    let key = limit.key_of(attributes).expect("no fault");
    key.expect("all attributes are there")
}

fn apply(limit: &Limit, pairs: &[(&str, &str)]) -> Option<Application> {
    let applied = limit.apply(&attributes(pairs), Cost::ONE);
    applied.expect("no fault")
}

fn capacity(limit: &Limit, pairs: &[(&str, &str)]) -> Option<u64> {
    apply(limit, pairs).map(|applied| applied.rule.capacity())
}

#[test]
fn one_client_is_one_counter_whatever_its_port() {
    let per_ip = limit(spec("per-ip", &["ip"]));
    let of = |address: &str| key_of(&per_ip, &attributes(&[("ip", address)]));
    assert_eq!(of("203.0.113.7:1234"), of("203.0.113.7:1235"));
    assert_eq!(of("203.0.113.7:1234"), of("203.0.113.7"));
    assert_ne!(of("203.0.113.7"), of("203.0.113.8"));
    assert_eq!(of("[2001:db8::1]:443"), of("2001:db8::1"));
    let within = (0..1000_u32).map(|host| of(&format!("2001:db8:0:5:{host:x}::{host:x}")));
    assert_eq!(within.collect::<HashSet<_>>().len(), 1, "one /64");
    assert_ne!(of("2001:db8:0:5::1"), of("2001:db8:0:6::1"));
    let mut whole = spec("per-ip", &["ip"]);
    whole.ipv6_prefix = 128;
    let whole = limit(whole);
    let of = |address: &str| key_of(&whole, &attributes(&[("ip", address)]));
    assert_ne!(of("2001:db8::1"), of("2001:db8::2"));
    // Only the attribute of that name is an address.
    let per_host = limit(spec("per-host", &["host"]));
    let of = |host: &str| key_of(&per_host, &attributes(&[("host", host)]));
    assert_ne!(of("203.0.113.7:1234"), of("203.0.113.7:1235"));
}

/// `match` sees the real value, the counter has its hash: no path is too long for its limit.
#[test]
fn a_long_and_strange_value_of_a_proxied_request_is_counted() {
    let mut per_path = spec("per-path", &["path"]);
    per_path.matches = vec![("path".to_owned(), vec!["/admin/*".to_owned()])];
    let per_path = limit(per_path);
    let long = |end: &str| format!("/admin/\u{1}\u{7f}\n{}{end}", "x".repeat(2048));
    let proxied = |path: String| {
        let mut attributes = Attributes::new();
        attributes.insert_proxied("path", path);
        attributes
    };
    let mut refused = Attributes::new();
    assert!(
        refused.insert("path", long("")).is_err(),
        "else it is an error"
    );
    let one = proxied(long("1"));
    assert!(one.are_proxied() && per_path.matches(&one));
    assert!(!per_path.matches(&proxied(long("1").replace("/admin", "/public"))));
    assert_eq!(
        key_of(&per_path, &one),
        key_of(&per_path, &proxied(long("1")))
    );
    assert_ne!(
        key_of(&per_path, &one),
        key_of(&per_path, &proxied(long("2")))
    );
}

#[test]
fn an_absent_attribute_passes_the_limit_by_or_is_an_error() {
    let per_user = limit(spec("per-user", &["tenant", "user"]));
    assert_eq!(apply(&per_user, &[("tenant", "a")]), None);
    assert_eq!(apply(&per_user, &[("tenant", "a"), ("user", "")]), None);
    assert_eq!(per_user.tally().skipped(), 2);
    let mut required = spec("per-user", &["user"]);
    required.required = true;
    let required = limit(required);
    let error = required
        .apply(&attributes(&[]), Cost::ONE)
        .expect_err("absent");
    let (limit, attribute) = ("per-user".to_owned(), "user".to_owned());
    assert_eq!(error, CheckError::Required { limit, attribute });
    assert_eq!(required.tally().skipped(), 0);
}

fn tiered(default: TierNumber) -> Limit {
    let values = vec![
        ("free".to_owned(), TierNumber::Units(60)),
        ("pro".to_owned(), TierNumber::Units(6000)),
        ("staff".to_owned(), TierNumber::Unlimited),
    ];
    limit(LimitSpec {
        limit: LimitNumber::By {
            attribute: "plan".to_owned(),
            values,
            default,
        },
        ..spec("tiers", &["user"])
    })
}

#[test]
fn a_tier_has_its_own_number_and_the_same_counter() {
    let tiers = tiered(TierNumber::Units(10));
    let user = ("user", "7");
    let of = |plan: &str| apply(&tiers, &[user, ("plan", plan)]);
    assert_eq!(of("free").map(|applied| applied.rule.capacity()), Some(60));
    assert_eq!(of("pro").map(|applied| applied.rule.capacity()), Some(6000));
    assert_eq!(of("staff"), None, "unlimited");
    assert_eq!(of("other").map(|applied| applied.rule.capacity()), Some(10));
    assert_eq!(capacity(&tiers, &[user]), Some(10), "absent is the default");
    assert_eq!(tiers.tally().skipped(), 0, "unlimited is not skipped");
    let key = |plan| of(plan).map(|applied| applied.key);
    assert_eq!(key("free"), key("pro"));
    let usual = tiers.usual_rule().map(|rule| rule.capacity());
    assert_eq!(usual, Some(10));
    let unlimited = tiered(TierNumber::Unlimited);
    assert_eq!(apply(&unlimited, &[user, ("plan", "other")]), None);
    assert!(unlimited.usual_rule().is_some());
}

fn exempting(name: &str, plan: &str) -> LimitSpec {
    LimitSpec {
        matches: vec![("plan".to_owned(), vec![plan.to_owned()])],
        limit: LimitNumber::Unlimited,
        ..spec(name, &[])
    }
}

/// Wherever the exempting limit stands.
#[test]
fn what_is_exempt_meets_no_limit_and_lacks_nothing() {
    for exempting_first in [true, false] {
        let mut required = spec("per-user", &["user"]);
        required.required = true;
        let mut specs = vec![required, exempting("staff", "staff")];
        if exempting_first {
            specs.reverse();
        }
        let mut policies = Policies::new();
        for spec in specs {
            policies.add("api", limit(spec)).expect("room for it");
        }
        let policy = policies.policy("api").expect("just made");
        let select =
            |pairs: &[(&str, &str)]| policy.select(&attributes(pairs), Cost::ONE, Call::Check);
        let staff = select(&[("plan", "staff")]).expect("nothing is asked of them");
        assert!(staff.is_empty());
        assert!(select(&[("plan", "free")]).is_err());
        let other = select(&[("plan", "free"), ("user", "7")]).expect("no fault");
        assert_eq!(other.len(), 1);
    }
}

#[test]
fn a_cost_comes_from_an_attribute() {
    let mut tokens = spec("tokens", &["user"]);
    tokens.cost = CostSource::Attribute("tokens".to_owned());
    let tokens = limit(tokens);
    let user = ("user", "7");
    let cost = |value: &str| {
        let pairs = attributes(&[user, ("tokens", value)]);
        let applied = tokens.apply(&pairs, Cost::ONE);
        applied.map(|applied| applied.map(|applied| applied.cost.units()))
    };
    assert_eq!(cost("0"), Ok(Some(0)), "admitted and not counted");
    assert_eq!(cost("1234"), Ok(Some(1234)));
    assert_eq!(cost("9007199254740992"), Ok(Some(MAX_UNITS)));
    assert_eq!(cost(""), Ok(None), "absent");
    assert_eq!(tokens.tally().skipped(), 1);
    for wrong in [
        "-1",
        "1.5",
        "x",
        "9007199254740993",
        "99999999999999999999",
        " 1",
    ] {
        let error = cost(wrong).expect_err(wrong);
        assert!(matches!(error, CheckError::NoCost { .. }), "{error:?}");
    }
    let mut proxied = Attributes::new();
    proxied.insert_proxied("user", "7");
    proxied.insert_proxied("tokens", "many");
    assert_eq!(
        tokens.apply(&proxied, Cost::ONE),
        Ok(None),
        "nobody's fault"
    );
}

#[test]
fn a_share_is_set_aside_in_whole_units_rounded_up() {
    for (share, units, expected) in [
        (0.2, 10, 2),
        (0.25, 10, 3),
        (0.1, 1, 1),
        (1.0, 10, 10),
        (0.000_001, 10, 1),
        (1.0 / 3.0, 3, 1),
        (0.5, MAX_UNITS, MAX_UNITS / 2),
        (0.2, 0, 0),
    ] {
        let reserved = limit(LimitSpec {
            limit: LimitNumber::One(units),
            set_aside: Some(SetAsideSpec {
                attribute: "priority".to_owned(),
                values: vec!["critical".to_owned(), "high".to_owned()],
                share,
            }),
            ..spec("reserved", &[])
        });
        let aside = |pairs: &[(&str, &str)]| apply(&reserved, pairs).map(|one| one.rule.set_aside);
        for named in ["critical", "high"] {
            assert_eq!(aside(&[("priority", named)]), Some(0));
        }
        assert_eq!(
            aside(&[("priority", "low")]),
            Some(expected),
            "{share} of {units}"
        );
        assert_eq!(aside(&[]), Some(expected));
    }
}

#[test]
fn checks_pass_permits_by_and_acquires_do_not() {
    let mut permits = spec("permits", &["user"]);
    permits.algorithm = AlgorithmSpec::Concurrency {
        ttl: Nanos::from_millis(1000),
    };
    let mut policies = Policies::new();
    policies
        .add("api", limit(permits.clone()))
        .expect("room for it");
    policies
        .add("api", limit(spec("rate", &["user"])))
        .expect("room for it");
    policies
        .add("permits", limit(permits))
        .expect("room for it");
    let names = |policy: &str, call| {
        let policy = policies.policy(policy).expect("just made");
        let applied = policy.select(&attributes(&[("user", "7")]), Cost::ONE, call)?;
        let names = applied.iter().map(|one| one.limit.name().to_owned());
        Ok(names.collect::<Vec<_>>())
    };
    assert_eq!(names("api", Call::Check), Ok(vec!["rate".to_owned()]));
    let both = vec!["permits".to_owned(), "rate".to_owned()];
    assert_eq!(names("api", Call::Acquire), Ok(both));
    assert_eq!(
        names("permits", Call::Check),
        Err(CheckError::OnlyConcurrency)
    );
    // Without its key the other limit does not apply either: a fault of whoever asks, but not of a proxy.
    let select = |policy: &str, attributes: &Attributes<'_>| {
        let policy = policies.policy(policy).expect("just made");
        let applied = policy.select(attributes, Cost::ONE, Call::Check)?;
        Ok(applied.len())
    };
    let only = Err(CheckError::OnlyConcurrency);
    assert_eq!(select("api", &Attributes::new()), only);
    let mut proxied = Attributes::new();
    proxied.insert_proxied("path", "/");
    assert_eq!(select("api", &proxied), Ok(0));
    assert_eq!(select("permits", &proxied), only);
}
