//! Limits in shadow: told in the body, and nowhere else.

use serde_json::json;
use tollgate_limit::{DecidedBy, Nanos, Outcome, Reason, Verdict};

use super::Tester;
use crate::fakes::REFUSED;

const MIXED: &str = "{\"policy\":\"mixed\",\"attributes\":{\"ip\":\"a\"}}";

#[tokio::test]
async fn a_shadow_refusal_is_told_and_does_not_hold() {
    let tester = Tester::new();
    let delay = Nanos::from_millis(9);
    let refused = Verdict { delay, ..REFUSED };
    tester.checker.can("trial", refused, DecidedBy::Owner);
    let answer = tester.check(MIXED).await;
    assert_eq!(answer.status, 200);
    let said = answer.json();
    assert_eq!(said["limits"][0]["allowed"], false);
    assert_eq!(said["limits"][0]["shadow"], true);
    assert_eq!(said["limits"][0]["retry_after_ms"], 1234);
    assert_eq!(said["limits"][1]["shadow"], false);
    // The numbers are those of the enforced limit.
    assert_eq!(
        (&said["remaining"], &said["delay_ms"]),
        (&json!(99), &json!(0))
    );
    assert!(said.get("denied_by").is_none() && said.get("reason").is_none());
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"per-ip\";q=100;w=60")
    );
    assert_eq!(answer.header("ratelimit"), Some("\"per-ip\";r=99;t=7"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("99"));
    assert_eq!(answer.header("retry-after"), None);
}

#[tokio::test]
async fn of_a_refused_check_only_what_is_enforced_denies() {
    let tester = Tester::new();
    tester.checker.can("trial", REFUSED, DecidedBy::Owner);
    tester.checker.can("per-ip", REFUSED, DecidedBy::Owner);
    let answer = tester.check(MIXED).await;
    assert_eq!(answer.status, 429);
    let said = answer.json();
    assert_eq!(said["denied_by"], json!(["per-ip"]));
    assert_eq!(said["violated-policies"], json!(["per-ip"]));
    assert_eq!(
        said["detail"],
        "Limit per-ip: Too many requests, retry in 2 seconds"
    );
}

#[tokio::test]
async fn a_check_of_shadow_limits_alone_has_no_numbers_and_no_rate_headers() {
    let tester = Tester::new();
    for outcome in [Outcome::Allow, Outcome::Refuse(Reason::Undecided)] {
        let verdict = Verdict { outcome, ..REFUSED };
        tester.checker.can("trial", verdict, DecidedBy::Owner);
        let answer = tester
            .check("{\"policy\":\"trial\",\"attributes\":{\"ip\":\"a\"}}")
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let mut said = answer.without_id(&tester);
        let limits = said.as_object_mut().unwrap().remove("limits").unwrap();
        assert_eq!(limits[0]["shadow"], true);
        assert_eq!(said, json!({"allowed": true}));
        let mut names = answer.headers.keys().map(http::HeaderName::as_str);
        assert!(names.all(|name| !name.contains("ratelimit") && name != "retry-after"));
    }
}

#[tokio::test]
async fn an_inline_limit_can_be_in_shadow() {
    let tester = Tester::new();
    let limit = "{\"name\":\"l\",\"limit\":0,\"window\":\"1m\",\"shadow\":true}";
    let body = format!("{{\"limit\":{limit},\"key\":{{\"user\":1}}}}");
    let answer = tester.check(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["limits"][0]["allowed"], false);
}
