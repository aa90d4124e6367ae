//! Answers that no right node sends today: they must do no harm.

use http::StatusCode;
use tollgate_limit::{CheckId, DecidedBy, Nanos, Outcome, Reason, Verdict, Window};

use super::{super::rates::RateHeaders, headline, respond};
use crate::{
    Algorithm, Answer, LimitAnswer,
    tower::{HeaderFamilies, WallClock},
};

fn limit(name: &str, outcome: Outcome) -> LimitAnswer {
    LimitAnswer {
        name: name.to_owned(),
        algorithm: Algorithm::SlidingWindow,
        capacity: u64::MAX,
        window: Window::new(Nanos::from_millis(1_000)).unwrap(),
        verdict: Verdict {
            outcome,
            used: 0,
            remaining: u64::MAX,
            retry_after: Some(Nanos::MAX),
            more_after: Nanos::MAX,
            reset_after: Nanos::MAX,
            delay: Nanos::ZERO,
            charged_slice: 0,
        },
        decided_by: DecidedBy::Owner,
        node: "n1".to_owned(),
        degraded: false,
        shadow: false,
    }
}

fn answer(allowed: bool, limits: Vec<LimitAnswer>) -> Answer {
    let id = CheckId { boot: 1, number: 1 };
    Answer {
        id,
        allowed,
        limits,
    }
}

const REFUSE: Outcome = Outcome::Refuse(Reason::LimitExceeded);

#[test]
fn a_limit_that_only_would_refuse_is_no_headline() {
    let mut real = limit("real", Outcome::Allow);
    real.verdict.remaining = 9;
    let mut would = limit("would", REFUSE);
    would.verdict.remaining = 0;
    let both = answer(true, vec![would.clone(), real.clone()]);
    assert_eq!(headline(&both), Some(&real));
    assert_eq!(headline(&answer(true, vec![would])), None);
}

#[test]
fn a_refusal_that_no_limit_explains_is_a_refusal() {
    let response = respond(&answer(false, vec![limit("per-ip", Outcome::Allow)]));
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(!response.headers().contains_key("retry-after"));
    let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!([]));
    assert_eq!(body.get("reason"), None);
}

#[test]
fn a_name_that_cannot_stand_in_a_header_stays_out() {
    for hostile in ["a\r\nset-cookie: b", "a\";r=9, \"b"] {
        let answer = answer(false, vec![limit("per-ip", REFUSE), limit(hostile, REFUSE)]);
        let headers = RateHeaders::new(&answer, HeaderFamilies::DRAFT_10, &WallClock::default());
        assert_eq!(headers, RateHeaders::default());
        let body: serde_json::Value = serde_json::from_slice(respond(&answer).body()).unwrap();
        assert_eq!(body["limits"][1]["name"], hostile);
    }
}

#[test]
fn the_largest_numbers_are_told_in_bounds() {
    let mut headers = http::HeaderMap::new();
    let answer = answer(false, vec![limit("per-ip", REFUSE)]);
    let families = HeaderFamilies::default();
    RateHeaders::new(&answer, families, &WallClock::default()).put(&mut headers);
    let expected = "\"per-ip\";r=999999999999999;t=18446744074";
    assert_eq!(headers["ratelimit"], expected);
    assert_eq!(headers["x-ratelimit-reset"], "18446744074");
    assert_eq!(respond(&answer).headers()["retry-after"], "18446744074");
}
