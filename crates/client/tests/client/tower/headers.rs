//! The headers and the body of answers, to the letter.

use http::{HeaderMap, Response, StatusCode};
use http_body_util::Full;
use tollgate_client::tower::{HeaderFamilies, LayerConfig};
use tollgate_limit::{Enforcement, LimitDecision, Nanos, Outcome, Reason, Verdict};
use tower_layer::Layer as _;

use super::{Inner, call, json, layer, settings};
use crate::node::{Behaviour, decided};

const MINUTE: Nanos = Nanos::from_millis(60_000);

/// Admits, with half of the limit left and a wait for more.
fn admits(more_after: Nanos) -> Verdict {
    Verdict {
        outcome: Outcome::Allow,
        used: 50,
        remaining: 50,
        retry_after: Some(Nanos::ZERO),
        more_after,
        reset_after: Nanos::from_millis(59_500),
        delay: Nanos::ZERO,
        charged_slice: 0,
    }
}

fn refuses(reason: Reason, retry_after: Option<Nanos>) -> Verdict {
    Verdict {
        outcome: Outcome::Refuse(reason),
        used: 100,
        remaining: 0,
        retry_after,
        ..admits(Nanos::from_millis(1))
    }
}

/// The response where the limits said this.
async fn said(limits: Vec<LimitDecision>) -> Response<Full<bytes::Bytes>> {
    let layer = layer(Behaviour::Decide(limits), settings()).await;
    call(&mut layer.layer(Inner::default())).await.unwrap()
}

/// All headers but `content-type`, one a line, in alphabetical order.
fn lines(headers: &HeaderMap) -> String {
    let mut all: Vec<_> = headers
        .iter()
        .filter(|(name, _)| *name != "content-type")
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    all.sort_unstable();
    let all = all.iter().map(|(name, value)| format!("{name}: {value}\n"));
    all.collect()
}

#[tokio::test]
async fn admitted_by_two_limits() {
    let mut tighter = admits(Nanos::ZERO);
    tighter.remaining = 3;
    tighter.reset_after = Nanos::from_millis(900);
    let limits = vec![
        decided("per-ip", MINUTE, admits(Nanos::from_millis(1_001))),
        decided("burst", Nanos::from_millis(999), tighter),
    ];
    let response = said(limits).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    // The reset is at 1 800 000 000.25 + 0.9 s, rounded up.
    let expected = "ratelimit: \"per-ip\";r=50;t=2, \"burst\";r=3\n\
        ratelimit-policy: \"per-ip\";q=100;w=60, \"burst\";q=100\n\
        x-ratelimit-limit: 100\nx-ratelimit-remaining: 3\nx-ratelimit-reset: 1800000002\n";
    assert_eq!(lines(response.headers()), expected);
}

#[tokio::test]
async fn a_wait_below_a_second_is_a_second() {
    let verdict = refuses(Reason::LimitExceeded, Some(Nanos::new(1)));
    let response = said(vec![decided("per-ip", MINUTE, verdict)]).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let expected = "ratelimit: \"per-ip\";r=0;t=1\n\
        ratelimit-policy: \"per-ip\";q=100;w=60\nretry-after: 1\n\
        x-ratelimit-limit: 100\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1800000060\n";
    assert_eq!(lines(response.headers()), expected);
    let body = json(response).await;
    assert_eq!(body["retry_after_ms"], 1);
    assert_eq!(
        body["detail"],
        "Limit per-ip: limit_exceeded, retry in 1 second"
    );
}

#[tokio::test]
async fn a_refusal_that_waiting_cannot_cure_names_no_wait() {
    let limits = vec![
        decided(
            "per-ip",
            MINUTE,
            refuses(Reason::LimitExceeded, Some(MINUTE)),
        ),
        decided("size", MINUTE, refuses(Reason::CostExceedsLimit, None)),
    ];
    let response = said(limits).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let expected = "ratelimit: \"per-ip\";r=0;t=60, \"size\";r=0\n\
        ratelimit-policy: \"per-ip\";q=100;w=60, \"size\";q=100;w=60\n\
        x-ratelimit-limit: 100\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1800000060\n";
    assert_eq!(lines(response.headers()), expected);
    let body = json(response).await;
    assert!(body["retry_after_ms"].is_null());
    assert_eq!(body["reason"], "cost_exceeds_limit");
    let detail = "Limit size: cost_exceeds_limit, waiting does not help";
    assert_eq!(body["detail"], detail);
    assert_eq!(
        body["violated-policies"],
        serde_json::json!(["per-ip", "size"])
    );
}

#[tokio::test]
async fn the_longest_wait_is_the_one_told() {
    let mut limits = vec![decided("admits", MINUTE, admits(Nanos::ZERO))];
    limits.extend([1_000, 5_000, 3_000].map(|millis| {
        let verdict = refuses(Reason::LimitExceeded, Some(Nanos::from_millis(millis)));
        decided(&format!("in-{millis}"), MINUTE, verdict)
    }));
    let response = said(limits).await;
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(response.headers()["x-ratelimit-remaining"], "0");
    assert_eq!(json(response).await["retry_after_ms"], 5_000);
}

#[tokio::test]
async fn where_nobody_could_decide_the_service_is_unavailable() {
    let verdict = refuses(Reason::Undecided, None);
    let response = said(vec![decided("per-ip", MINUTE, verdict)]).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(response.headers()["ratelimit"], "\"per-ip\";r=0;t=1");
    let body = json(response).await;
    let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    assert_eq!(body["type"], kind);
    assert_eq!(
        (&body["status"], &body["reason"]),
        (&503.into(), &"undecided".into())
    );
    assert_eq!(body["retry_after_ms"], 1_000);
}

#[tokio::test]
async fn without_a_limit_there_is_no_header() {
    let response = said(Vec::new()).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(lines(response.headers()), "");
}

#[tokio::test]
async fn a_limit_in_shadow_is_not_told() {
    let mut shadow = decided("trial", MINUTE, refuses(Reason::LimitExceeded, None));
    shadow.rule.enforcement = Enforcement::Shadow;
    let response = said(vec![shadow]).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(lines(response.headers()), "");
}

#[tokio::test]
async fn only_chosen_families_are_sent() {
    let names = |headers: &HeaderMap| -> Vec<_> {
        lines(headers)
            .lines()
            .map(|line| line.split_once(':').unwrap().0.to_owned())
            .collect()
    };
    let x = [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ];
    let draft = ["ratelimit", "ratelimit-policy"];
    let cases: [(HeaderFamilies, &[&str]); 3] = [
        (HeaderFamilies::X_RATE_LIMIT, &x),
        (HeaderFamilies::DRAFT_10, &draft),
        (HeaderFamilies::NONE, &[]),
    ];
    for (headers, expected) in cases {
        let limits = vec![
            decided(
                "per-ip",
                MINUTE,
                refuses(Reason::LimitExceeded, Some(MINUTE))
            );
            1
        ];
        let settings = LayerConfig {
            headers,
            ..settings()
        };
        let layer = layer(Behaviour::Decide(limits), settings).await;
        let response = call(&mut layer.layer(Inner::default())).await.unwrap();
        let mut told = names(response.headers());
        told.retain(|name| name != "retry-after");
        assert_eq!(told, expected);
        assert_eq!(
            response.headers()["retry-after"],
            "60",
            "whatever is chosen"
        );
    }
}

#[tokio::test]
async fn a_family_that_the_service_sends_is_its_own() {
    let limits = vec![decided("per-ip", MINUTE, admits(Nanos::ZERO))];
    let layer = layer(Behaviour::Decide(limits), settings()).await;
    let mut service = layer.layer(Inner::with_header("x-ratelimit-remaining", "9"));
    let response = call(&mut service).await.unwrap();
    let expected = "ratelimit: \"per-ip\";r=50\n\
        ratelimit-policy: \"per-ip\";q=100;w=60\nx-ratelimit-remaining: 9\n";
    assert_eq!(lines(response.headers()), expected);
}
