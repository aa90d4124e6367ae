//! The body of a refusal: a problem of RFC 9457, with what each limit said.
//!
//! It goes to whoever sent the request, so it says nothing of nodes.

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use super::refusal::Refusal;
use crate::{Answer, Fault, LimitAnswer};

#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(rename = "violated-policies")]
    violated_policies: Vec<&'a str>,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    retry_after_ms: Option<u64>,
    limits: Vec<Member<'a>>,
}

#[derive(Serialize)]
struct Member<'a> {
    name: &'a str,
    algorithm: &'static str,
    limit: u64,
    window_ms: u64,
    used: u64,
    remaining: u64,
    allowed: bool,
    retry_after_ms: Option<u64>,
    reset_after_ms: u64,
}

/// The body; `headline` is the refusing limit that stands for all.
pub(super) fn write(
    answer: &Answer,
    headline: Option<(&LimitAnswer, Refusal)>,
    status: StatusCode,
) -> Bytes {
    let refusing = answer.limits.iter().filter(|it| !it.verdict.is_allowed());
    let (kind, title) = if status == StatusCode::SERVICE_UNAVAILABLE {
        (
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "Request cannot be decided at the moment",
        )
    } else {
        (
            "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "Quota exceeded",
        )
    };
    let problem = Problem {
        kind,
        title,
        status: status.as_u16(),
        detail: detail(headline),
        violated_policies: refusing.map(|limit| limit.name.as_str()).collect(),
        allowed: false,
        reason: headline.map(|(_, refusal)| refusal.reason.as_str()),
        retry_after_ms: headline.and_then(|(_, refusal)| wait_ms(refusal)),
        limits: answer.limits.iter().map(Member::from).collect(),
    };
    // Nothing here can fail to be written; if it did, the status alone would say enough.
    serde_json::to_vec(&problem).unwrap_or_default().into()
}

/// The body of a request of which an attribute is wrong.
pub(super) fn write_faulty(fault: &Fault) -> Bytes {
    let problem = serde_json::json!({
        "type": "about:blank",
        "title": "Bad Request",
        "status": StatusCode::BAD_REQUEST.as_u16(),
        "detail": fault.message,
    });
    problem.to_string().into()
}

fn detail(headline: Option<(&LimitAnswer, Refusal)>) -> String {
    let Some((limit, refusal)) = headline else {
        return "The request is refused".to_owned();
    };
    let (name, reason) = (&limit.name, refusal.reason.as_str());
    match refusal.seconds() {
        None => format!("Limit {name}: {reason}, waiting does not help"),
        Some(1) => format!("Limit {name}: {reason}, retry in 1 second"),
        Some(seconds) => format!("Limit {name}: {reason}, retry in {seconds} seconds"),
    }
}

fn wait_ms(refusal: Refusal) -> Option<u64> {
    refusal.wait.map(tollgate_limit::Nanos::ceil_millis)
}

impl<'a> From<&'a LimitAnswer> for Member<'a> {
    fn from(limit: &'a LimitAnswer) -> Self {
        let verdict = &limit.verdict;
        let wait = Refusal::of(limit).map_or(verdict.retry_after, |refusal| refusal.wait);
        Self {
            name: &limit.name,
            algorithm: limit.algorithm.as_str(),
            limit: limit.capacity,
            window_ms: limit.window.span().ceil_millis(),
            used: verdict.used,
            remaining: verdict.remaining,
            allowed: verdict.is_allowed(),
            retry_after_ms: wait.map(tollgate_limit::Nanos::ceil_millis),
            reset_after_ms: verdict.reset_after.ceil_millis(),
        }
    }
}
