//! What the answers say: bodies and statuses.

use std::{future::poll_fn, pin::pin, sync::atomic::Ordering, task::Poll};

use serde_json::json;
use tollgate_limit::{DecidedBy, Nanos, Outcome, Reason, Verdict};

use super::Tester;
use crate::fakes::{ALLOWED, REFUSED};

const CHECK: &str = "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k1\"},\"cost\":3}";

#[tokio::test]
async fn an_admitted_check_has_the_body_of_the_contract() {
    let tester = Tester::new();
    tester.checker.can("per-key", ALLOWED, DecidedBy::Owner);
    let answer = tester.check(CHECK).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let entry = json!({
        "name": "per-key", "algorithm": "sliding-window", "limit": 100, "window_ms": 60000, "used": 1,
        "remaining": 99, "allowed": true, "retry_after_ms": 0, "reset_after_ms": 60000,
        "decided_by": "owner", "node": "n2", "degraded": false, "shadow": false
    });
    let body = json!({
        "allowed": true, "limit": 100, "remaining": 99,
        "retry_after_ms": 0, "reset_after_ms": 60000, "delay_ms": 0, "limits": [entry]
    });
    assert_eq!(answer.without_id(&tester), body);
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_a_problem() {
    let tester = Tester::new();
    tester.checker.can("per-key", REFUSED, DecidedBy::Cached);
    let answer = tester.check(CHECK).await;
    assert_eq!(answer.status, 429);
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.header("retry-after"), Some("2"));
    let entry = json!({
        "name": "per-key", "algorithm": "sliding-window", "limit": 100, "window_ms": 60000, "used": 100,
        "remaining": 0, "allowed": false, "retry_after_ms": 1234, "reset_after_ms": 41234,
        "decided_by": "cached", "node": "n2", "degraded": false, "shadow": false
    });
    let message = "Too many requests, retry in 2 seconds";
    let body = json!({
        "allowed": false, "reason": "limit_exceeded",
        "denied_by": ["per-key"], "limit": 100, "remaining": 0, "retry_after_ms": 1234,
        "reset_after_ms": 41234, "delay_ms": 0, "limits": [entry],
        "error": "rate_limit_exceeded", "message": message,
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota exceeded", "status": 429, "detail": format!("Limit per-key: {message}"),
        "violated-policies": ["per-key"]
    });
    assert_eq!(answer.without_id(&tester), body);
}

#[tokio::test]
async fn a_refusal_that_waiting_cannot_cure_says_so() {
    let tester = Tester::new();
    for (body, reason) in [
        (
            "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k\"},\"cost\":101}",
            "cost_exceeds_limit",
        ),
        (
            "{\"limit\":{\"name\":\"l\",\"limit\":0,\"window\":\"1m\"},\"key\":{\"a\":1}}",
            "limit_is_zero",
        ),
    ] {
        let answer = tester.check(body).await;
        assert_eq!(answer.status, 429);
        let said = answer.json();
        assert_eq!(said["reason"], reason);
        assert!(said["retry_after_ms"].is_null());
        assert!(said["limits"][0]["retry_after_ms"].is_null());
        assert!(
            said["message"]
                .as_str()
                .unwrap()
                .contains("waiting does not help")
        );
        assert_eq!(answer.header("retry-after"), None);
        let rate = answer.header("ratelimit").unwrap();
        assert!(!rate.contains("t="), "{rate}");
    }
}

#[tokio::test]
async fn every_reason_has_its_problem() {
    let tester = Tester::new();
    for (reason, name, error, kind, message) in [
        (
            Reason::QueueFull,
            "queue_full",
            "rate_limit_exceeded",
            "quota-exceeded",
            "The queue is full, retry in 2 seconds",
        ),
        (
            Reason::SetAside,
            "set_aside",
            "rate_limit_exceeded",
            "quota-exceeded",
            "What is left is kept for other requests, retry in 2 seconds",
        ),
        (
            Reason::Banned,
            "banned",
            "banned",
            "abnormal-usage-detected",
            "Banned after too many failures, retry in 2 seconds",
        ),
    ] {
        let outcome = Outcome::Refuse(reason);
        let refused = Verdict { outcome, ..REFUSED };
        tester.checker.can("per-key", refused, DecidedBy::Owner);
        let answer = tester.check(CHECK).await;
        assert_eq!(answer.status, 429, "{name}");
        assert_eq!(answer.header("retry-after"), Some("2"), "{name}");
        let said = answer.json();
        assert_eq!(
            (&said["reason"], &said["error"]),
            (&json!(name), &json!(error))
        );
        let right = format!("https://iana.org/assignments/http-problem-types#{kind}");
        assert_eq!(said["type"], right, "{name}");
        assert_eq!(said["message"], message, "{name}");
        assert_eq!(said["violated-policies"], json!(["per-key"]), "{name}");
    }
}

#[tokio::test]
async fn a_delay_is_told_in_milliseconds_rounded_up() {
    let tester = Tester::new();
    let delay = Nanos::new(1_000_001);
    let delayed = Verdict { delay, ..ALLOWED };
    tester.checker.can("burst", delayed, DecidedBy::Owner);
    tester.checker.can("daily", ALLOWED, DecidedBy::Owner);
    let answer = tester
        .check("{\"policy\":\"both\",\"attributes\":{\"ip\":\"a\"}}")
        .await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["delay_ms"]),
        (200, &json!(2))
    );
}

#[tokio::test]
async fn what_nobody_could_decide_is_a_503_for_a_second() {
    let tester = Tester::new();
    for retry_after in [None, Some(Nanos::from_millis(1000))] {
        let outcome = Outcome::Refuse(Reason::Undecided);
        let undecided = Verdict {
            outcome,
            retry_after,
            ..REFUSED
        };
        tester
            .checker
            .can("per-key", undecided, DecidedBy::Fallback);
        let answer = tester.check(CHECK).await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("tollgate-degraded"), Some("fallback"));
        let said = answer.json();
        assert_eq!(said["reason"], "undecided");
        assert_eq!(said["retry_after_ms"], 1000);
        assert_eq!(said["status"], 503);
        let kind = said["type"].as_str().unwrap();
        assert!(kind.ends_with("#temporary-reduced-capacity"), "{kind}");
        assert_eq!(said["limits"][0]["degraded"], true);
    }
}

#[tokio::test]
async fn a_check_that_meets_no_limit_passes_without_numbers() {
    let tester = Tester::new();
    let answer = tester
        .check("{\"policy\":\"api\",\"attributes\":{\"other\":\"x\"}}")
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.without_id(&tester),
        json!({"allowed": true, "limits": []})
    );
    let mut names = answer.headers.keys().map(http::HeaderName::as_str);
    assert!(names.all(|name| !name.contains("ratelimit") && name != "retry-after"));
}

#[tokio::test]
async fn the_most_restrictive_limit_makes_the_headline() {
    let tester = Tester::new();
    let long = Verdict {
        retry_after: Some(Nanos::from_millis(90_001)),
        remaining: 4,
        ..REFUSED
    };
    tester.checker.can("burst", REFUSED, DecidedBy::Owner);
    tester.checker.can("daily", long, DecidedBy::Owner);
    let answer = tester
        .check("{\"policy\":\"both\",\"attributes\":{\"ip\":\"a\"}}")
        .await;
    let said = answer.json();
    assert_eq!(said["denied_by"], json!(["burst", "daily"]));
    assert_eq!(said["violated-policies"], json!(["burst", "daily"]));
    assert_eq!(
        (&said["limit"], &said["remaining"]),
        (&json!(100), &json!(4))
    );
    assert_eq!(answer.header("retry-after"), Some("91"));
}

#[tokio::test]
async fn peeks_and_costs_of_zero_consume_nothing() {
    let tester = Tester::new();
    for (fields, used) in [
        ("\"cost\":0", 0),
        ("\"peek\":true", 0),
        ("\"cost\":7,\"peek\":true", 0),
        ("\"cost\":7,\"peek\":false", 7),
        ("\"cost\":0,\"peek\":false", 7),
        ("\"policy\":\"default\"", 8),
        ("\"cost\":92", 100),
    ] {
        let answer = tester
            .check(&format!("{{\"attributes\":{{\"ip\":\"a\"}},{fields}}}"))
            .await;
        assert_eq!(answer.status, 200, "{fields}");
        assert_eq!(answer.json()["limits"][0]["used"], used, "{fields}");
    }
    // What is used up refuses a peek for one unit, and a cost of 0 is one.
    let answer = tester
        .check("{\"attributes\":{\"ip\":\"a\"},\"cost\":0}")
        .await;
    assert_eq!(answer.status, 429);
}

#[tokio::test]
async fn the_order_of_key_members_makes_no_key() {
    let tester = Tester::new();
    let limit = "{\"name\":\"l\",\"limit\":5,\"window\":\"1m\"}";
    for (place, key) in ["{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"]
        .into_iter()
        .enumerate()
    {
        let answer = tester
            .check(&format!("{{\"key\":{key},\"limit\":{limit}}}"))
            .await;
        assert_eq!(answer.json()["limits"][0]["used"], place as u64 + 1);
    }
    // Nor do escapes in names.
    let escaped = "{\"policy\":\"\\u0061pi\",\"attributes\":{\"api\\u005fkey\":\"k\"}}";
    assert_eq!(
        tester.check(escaped).await.json()["limits"][0]["name"],
        "per-key"
    );
}

#[tokio::test]
async fn a_check_that_waits_for_a_peer_is_answered_when_it_has_answered() {
    let tester = Tester::new();
    let body = "{\"policy\":\"later\",\"attributes\":{\"ip\":\"a\"}}";
    let mut asked = pin!(tester.check(body));
    let once = poll_fn(|context| Poll::Ready(asked.as_mut().poll(context).is_pending())).await;
    assert!(once, "nobody has answered");
    tester.checker.gate.add_permits(1);
    let answer = asked.await;
    assert_eq!(answer.json()["limits"][0]["name"], "far");
}

#[tokio::test]
async fn a_list_is_answered_in_its_order_and_faults_stay_alone() {
    let tester = Tester::new();
    tester.checker.gate.add_permits(9);
    let key = |policy: &str| {
        format!("{{\"policy\":\"{policy}\",\"attributes\":{{\"ip\":\"a\",\"api_key\":\"a\"}}}}")
    };
    let checks = [
        key("api"),
        "{\"cost\":-1}".to_owned(),
        key("later"),
        key("nope"),
        key("api"),
        "7".to_owned(),
        key("later"),
    ];
    let body = format!("{{\"checks\":[{}]}}", checks.join(","));
    let answer = tester.post("/v1/checks", body).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        tester.checker.readings.load(Ordering::Relaxed),
        1,
        "one reading for a list"
    );
    let said = answer.json();
    let results = said["results"].as_array().unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|result| match result.get("error") {
            Some(problem) => {
                assert!(result.get("allowed").is_none());
                format!(
                    "{} {}",
                    problem["status"],
                    problem["field"].as_str().unwrap()
                )
            }
            None => {
                let limit = &result["limits"][0];
                format!("{} {}", limit["name"].as_str().unwrap(), limit["used"])
            }
        })
        .collect();
    let right = [
        "per-key 1",
        "400 cost",
        "far 1",
        "404 policy",
        "per-key 2",
        "400 body",
        "far 2",
    ];
    assert_eq!(told, right);
}

#[tokio::test]
async fn a_refused_item_of_a_list_has_its_whole_body() {
    let tester = Tester::new();
    tester.checker.can("per-key", REFUSED, DecidedBy::Owner);
    let answer = tester
        .post("/v1/checks", format!("{{\"checks\":[{CHECK}]}}"))
        .await;
    let said = answer.json();
    assert_eq!(
        (answer.status.as_u16(), &said["results"][0]["status"]),
        (200, &json!(429))
    );
    assert_eq!(said["results"][0]["error"], "rate_limit_exceeded");
}

#[tokio::test]
async fn a_list_is_bounded() {
    let tester = Tester::new();
    let list = |count: usize| format!("{{\"checks\":[{}]}}", vec!["{}"; count].join(","));
    assert_eq!(
        tester.post("/v1/checks", list(0)).await.json(),
        json!({"results": []})
    );
    let whole = tester.post("/v1/checks", list(1000)).await.json();
    assert_eq!(whole["results"].as_array().unwrap().len(), 1000);
    for (body, field) in [
        (list(1001), "checks"),
        ("{}".to_owned(), "checks"),
        ("{\"checks\":[],\"check\":1}".to_owned(), "check"),
        ("{\"checks\":7}".to_owned(), "checks"),
        ("{\"checks\":{\"a\":1}}".to_owned(), "checks"),
        ("[]".to_owned(), "body"),
    ] {
        let answer = tester.post("/v1/checks", body.clone()).await;
        assert_eq!(answer.status, 400, "{body:.40}");
        assert_eq!(answer.json()["field"], field, "{body:.40}");
    }
}
