//! Rate limit headers: syntax, rounding, families.

use tollgate_limit::{DecidedBy, LimitSpec, Nanos, Verdict};

use super::Tester;
use crate::{
    fakes::{ALLOWED, FakeChecker, REFUSED, spec},
    families::{Family, HeaderFamilies},
    http::HttpConfig,
};

const API: &str = "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k1\"}}";
const BOTH: &str = "{\"policy\":\"both\",\"attributes\":{\"ip\":\"a\"}}";

fn saying(verdict: Verdict) -> Tester {
    let tester = Tester::new();
    tester.checker.can("per-key", verdict, DecidedBy::Owner);
    tester
}

#[tokio::test]
async fn an_admitted_check_tells_what_is_left() {
    let answer = saying(ALLOWED).check(API).await;
    assert_eq!(answer.header("x-ratelimit-limit"), Some("100"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("99"));
    // 1 700 000 000.5 at the origin, 10 s on the clock, 60 s to go: up to the next whole second.
    assert_eq!(answer.header("x-ratelimit-reset"), Some("1700000071"));
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"per-key\";q=100;w=60")
    );
    assert_eq!(answer.header("ratelimit"), Some("\"per-key\";r=99;t=7"));
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(answer.header("tollgate-degraded"), None);
}

#[tokio::test]
async fn waits_are_rounded_up_and_at_least_a_second() {
    for (nanos, seconds) in [
        (0, "1"),
        (1, "1"),
        (999_999_999, "1"),
        (1_000_000_000, "1"),
        (1_000_000_001, "2"),
        (1_234_000_000, "2"),
        (3_599_000_000_001, "3600"),
    ] {
        let retry_after = Some(Nanos::new(nanos));
        let answer = saying(Verdict {
            retry_after,
            ..REFUSED
        })
        .check(API)
        .await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.header("retry-after"), Some(seconds), "{nanos} ns");
        let rate = format!("\"per-key\";r=0;t={seconds}");
        assert_eq!(
            answer.header("ratelimit"),
            Some(rate.as_str()),
            "{nanos} ns"
        );
        assert_eq!(
            answer.json()["retry_after_ms"],
            nanos.div_ceil(1_000_000),
            "{nanos} ns"
        );
    }
}

#[tokio::test]
async fn each_limit_is_a_member() {
    let tester = Tester::new();
    tester.checker.can(
        "burst",
        Verdict {
            remaining: 9,
            ..ALLOWED
        },
        DecidedBy::Owner,
    );
    let full = Verdict {
        used: 0,
        remaining: 100,
        more_after: Nanos::ZERO,
        ..ALLOWED
    };
    tester.checker.can("daily", full, DecidedBy::Fallback);
    let answer = tester.check(BOTH).await;
    // A window below a second is not told, and of a full quota no more will come.
    let policy = "\"burst\";q=10, \"daily\";q=100;w=86400";
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    assert_eq!(
        answer.header("ratelimit"),
        Some("\"burst\";r=9;t=7, \"daily\";r=100")
    );
    assert_eq!(answer.header("x-ratelimit-limit"), Some("10"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("9"));
    assert_eq!(answer.header("tollgate-degraded"), Some("fallback"));
}

/// A client that paces itself by `q` and `w` has the rate of the limit.
#[tokio::test]
async fn a_bucket_tells_its_rate() {
    for (numbers, policy) in [
        (
            "\"algorithm\":\"token-bucket\",\"burst\":50",
            "\"l\";q=50;w=180",
        ),
        (
            "\"algorithm\":\"leaky-bucket\",\"queue\":99",
            "\"l\";q=100;w=360",
        ),
        ("\"algorithm\":\"sliding-log\"", "\"l\";q=1000;w=3600"),
        // So long that no number of nanoseconds tells it: never a shorter time, which were a higher rate.
        (
            "\"algorithm\":\"token-bucket\",\"burst\":9007199254740992",
            "\"l\";q=999999999999999;w=18446744074",
        ),
    ] {
        let limit = format!("{{\"name\":\"l\",\"limit\":1000,\"window\":\"1h\",{numbers}}}");
        let body = format!("{{\"limit\":{limit},\"key\":{{\"a\":1}}}}");
        let answer = Tester::new().check(&body).await;
        assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    }
}

#[tokio::test]
async fn numbers_stay_structured_fields_at_any_size() {
    let limit = "{\"name\":\"l\",\"limit\":9007199254740992,\"window\":\"1001ms\"}";
    let body = format!("{{\"limit\":{limit},\"key\":{{\"a\":1}}}}");
    let answer = Tester::new().check(&body).await;
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"l\";q=999999999999999;w=2")
    );
    assert_eq!(answer.header("x-ratelimit-limit"), Some("9007199254740992"));
    let rate = answer.header("ratelimit").unwrap();
    assert!(rate.starts_with("\"l\";r=999999999999999"), "{rate}");
}

const HEADERS: [(Family, &[&str]); 4] = [
    (
        Family::XRateLimit,
        &[
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ],
    ),
    (
        Family::Draft6,
        &[
            "ratelimit-policy",
            "ratelimit-limit",
            "ratelimit-remaining",
            "ratelimit-reset",
        ],
    ),
    (Family::Draft7, &["ratelimit-policy", "ratelimit"]),
    (Family::Draft10, &["ratelimit-policy", "ratelimit"]),
];

#[tokio::test]
async fn families_are_chosen_and_a_wait_is_always_told() {
    for families in HeaderFamilies::all() {
        let checker = FakeChecker::with_families(families);
        let tester = Tester::with(HttpConfig::default(), checker);
        tester.checker.can("per-key", REFUSED, DecidedBy::Owner);
        let answer = tester.check(API).await;
        let mut right = vec!["content-type", "retry-after"];
        for (family, names) in HEADERS {
            if families.contains(family) {
                right.extend(names);
            }
        }
        let mut told: Vec<_> = answer.headers.keys().map(|name| name.as_str()).collect();
        right.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, right, "{families:?}");
        assert!(answer.headers.values().all(|value| !value.is_empty()));
        assert_eq!(answer.header("retry-after"), Some("2"));
        assert_eq!(answer.json()["allowed"], false);
    }
}

fn with(family: Family) -> Tester {
    let families = HeaderFamilies::NONE.with(family).unwrap();
    Tester::with(
        HttpConfig::default(),
        FakeChecker::with_families(families).and("api", shadow()),
    )
}

fn shadow() -> LimitSpec {
    LimitSpec {
        shadow: true,
        ..spec("tried-out", 1, 3_600_000, &["api_key"])
    }
}

#[tokio::test]
async fn draft_6_has_a_header_for_each_number() {
    let tester = with(Family::Draft6);
    tester.checker.can("per-key", ALLOWED, DecidedBy::Owner);
    let answer = tester.check(API).await;
    assert_eq!(answer.header("ratelimit-policy"), Some("100;w=60"));
    assert_eq!(answer.header("ratelimit-limit"), Some("100"));
    assert_eq!(answer.header("ratelimit-remaining"), Some("99"));
    assert_eq!(answer.header("ratelimit-reset"), Some("60"));
    // Of a refusal the reset is no later than Retry-After.
    tester.checker.can("per-key", REFUSED, DecidedBy::Owner);
    let answer = tester.check(API).await;
    assert_eq!(answer.header("ratelimit-reset"), Some("2"));
    assert_eq!(answer.header("retry-after"), Some("2"));
    let answer = tester.check(BOTH).await;
    let policies = Some("10, 100;w=86400");
    assert_eq!(answer.header("ratelimit-policy"), policies);
    assert_eq!(answer.header("ratelimit-limit"), Some("10"));
}

#[tokio::test]
async fn draft_7_has_the_numbers_in_one_header() {
    let tester = with(Family::Draft7);
    tester.checker.can("per-key", ALLOWED, DecidedBy::Owner);
    let answer = tester.check(API).await;
    assert_eq!(answer.header("ratelimit-policy"), Some("100;w=60"));
    let numbers = Some("limit=100, remaining=99, reset=60");
    assert_eq!(answer.header("ratelimit"), numbers);
    tester.checker.can("per-key", REFUSED, DecidedBy::Owner);
    let answer = tester.check(API).await;
    let numbers = Some("limit=100, remaining=0, reset=2");
    assert_eq!(answer.header("ratelimit"), numbers);
    let answer = tester.check(BOTH).await;
    let policies = Some("10, 100;w=86400");
    assert_eq!(answer.header("ratelimit-policy"), policies);
}

/// Rule 10.
#[tokio::test]
async fn a_limit_in_shadow_is_in_no_header() {
    for family in Family::ALL {
        let tester = with(family);
        for _ in 0..2 {
            let answer = tester.check(API).await;
            let limits = &answer.json()["limits"];
            assert_eq!(limits.as_array().map(Vec::len), Some(2), "{limits}");
            let headers = format!("{:?}", answer.headers);
            assert!(!headers.contains("tried-out"), "{headers}");
            assert!(!headers.contains("3600"), "{headers}");
            assert_eq!(answer.status, 200);
        }
    }
    // Where no other limit applies there is no rate header at all.
    let checker = FakeChecker::new().and("shadowed", shadow());
    let tester = Tester::with(HttpConfig::default(), checker);
    let answer = tester.check("{\"policy\":\"shadowed\",\"attributes\":{\"api_key\":1}}");
    assert_eq!(answer.await.headers.len(), 1);
}
