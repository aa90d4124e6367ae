//! What a refusal says: its status, and for how long to wait.
//!
//! Reads the reasons by what they need here, so that a new one is a refusal like any other.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use tollgate_limit::{Nanos, Outcome, Reason};

use super::problem;
use crate::{Answer, Fault, LimitAnswer};

#[cfg(test)]
mod tests;

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
/// How long to wait where nobody could decide and nobody says; the contract's.
const UNDECIDED_WAIT: Nanos = Nanos::from_millis(1000);

/// Why a limit refuses, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    /// `None` where waiting does not help.
    pub(super) wait: Option<Nanos>,
}

impl Refusal {
    /// The refusal of one limit; `None` if it admits.
    pub(super) fn of(limit: &LimitAnswer) -> Option<Self> {
        let Outcome::Refuse(reason) = limit.verdict.outcome else {
            return None;
        };
        let unsaid = matches!(reason, Reason::Undecided).then_some(UNDECIDED_WAIT);
        let wait = limit.verdict.retry_after.or(unsaid);
        Some(Self { reason, wait })
    }

    /// 503 where nobody could decide, else 429.
    pub(super) const fn status(&self) -> StatusCode {
        if matches!(self.reason, Reason::Undecided) {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::TOO_MANY_REQUESTS
        }
    }

    /// The wait in whole seconds, rounded up, at least 1.
    pub(super) fn seconds(&self) -> Option<u64> {
        self.wait.map(|wait| wait.ceil_seconds().max(1))
    }
}

/// The limit whose numbers stand for the whole answer; `None` if none applies.
///
/// Of an allowed check the one with the least remaining, of several the one that is empty last. Of a
/// refused one the refusing one with the longest wait; waiting for ever is the longest.
pub(super) fn headline(answer: &Answer) -> Option<&LimitAnswer> {
    let limits = answer.limits.iter();
    let speaking = limits.filter(|limit| limit.verdict.is_allowed() == answer.allowed);
    speaking.reduce(|kept, one| {
        let before = if answer.allowed {
            is_tighter(one, kept)
        } else {
            is_longer(one, kept)
        };
        if before { one } else { kept }
    })
}

fn is_tighter(one: &LimitAnswer, kept: &LimitAnswer) -> bool {
    let (one, kept) = (&one.verdict, &kept.verdict);
    one.remaining < kept.remaining
        || (one.remaining == kept.remaining && one.reset_after > kept.reset_after)
}

fn is_longer(one: &LimitAnswer, kept: &LimitAnswer) -> bool {
    let wait = |limit| Refusal::of(limit).and_then(|refusal| refusal.wait);
    match (wait(one), wait(kept)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(one), Some(kept)) => one > kept,
    }
}

/// The answer to a request of which an attribute is wrong.
pub(super) fn faulty(fault: &Fault) -> Response<Bytes> {
    let mut response = Response::new(problem::write_faulty(fault));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
    response
}

/// The answer to a refused request, without the rate limit headers.
pub(super) fn respond(answer: &Answer) -> Response<Bytes> {
    let headline = headline(answer).and_then(|limit| Some((limit, Refusal::of(limit)?)));
    let status = headline.map_or(StatusCode::TOO_MANY_REQUESTS, |(_, it)| it.status());
    let mut response = Response::new(problem::write(answer, headline, status));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
    if let Some(seconds) = headline.and_then(|(_, refusal)| refusal.seconds()) {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
