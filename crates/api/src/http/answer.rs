//! The answer to a check: status, body and headers.
//!
//! Nothing of a decision needs escaping: names of limits and nodes are `[A-Za-z0-9._-]{1,64}`, ids are
//! `[A-Za-z0-9_-]`. Knows nothing of requests.

mod body;
mod cuts;
mod ids;
mod rates;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use tollgate_limit::{Call, Decision, LimitDecision, Nanos, Outcome, Reason};

pub(super) use self::{
    body::{number, text, write_decision, write_limit_members},
    ids::Sealing,
};
use crate::{
    checker::Checker,
    families::{Family, HeaderFamilies},
    http::{problem::PROBLEM_JSON, whole::Whole},
};

/// The media type of answers.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

const DEGRADED: HeaderName = HeaderName::from_static("tollgate-degraded");

/// Why a decision refuses, and for how long.
#[derive(Clone, Copy)]
struct Refusal<'a> {
    headline: &'a LimitDecision,
    reason: Reason,
    /// `None` where waiting does not help.
    wait: Option<Nanos>,
}

impl<'a> Refusal<'a> {
    /// The refusal of one limit; `None` if it admits.
    fn of(limit: &'a LimitDecision) -> Option<Self> {
        let Outcome::Refuse(reason) = limit.verdict.outcome else {
            return None;
        };
        let wait = match reason {
            // Nobody knows for how long; a second is what the contract says.
            Reason::Undecided => Some(limit.verdict.retry_after.unwrap_or(UNDECIDED_WAIT)),
            Reason::LimitExceeded
            | Reason::CostExceedsLimit
            | Reason::LimitIsZero
            | Reason::QueueFull
            | Reason::SetAside
            | Reason::Banned => limit.verdict.retry_after,
        };
        Some(Self {
            headline: limit,
            reason,
            wait,
        })
    }

    const fn status(&self) -> StatusCode {
        match self.reason {
            Reason::Undecided => StatusCode::SERVICE_UNAVAILABLE,
            Reason::LimitExceeded
            | Reason::CostExceedsLimit
            | Reason::LimitIsZero
            | Reason::QueueFull
            | Reason::SetAside
            | Reason::Banned => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The wait in whole seconds, rounded up, at least 1.
    fn seconds(&self) -> Option<u64> {
        self.wait.map(|wait| wait.ceil_seconds().max(1))
    }
}

const UNDECIDED_WAIT: Nanos = Nanos::from_millis(1000);

/// The answer to one check that was decided at `now`; of an acquisition it names its permits too.
pub(super) fn respond<C: Checker>(
    decision: &Decision,
    call: Call,
    families: HeaderFamilies,
    checker: &C,
    now: Nanos,
) -> Response<Whole> {
    let sealing = Sealing::at(now, checker);
    let headline = decision.headline();
    let refusal = headline.and_then(Refusal::of);
    let families = headline.map_or(HeaderFamilies::NONE, |_| families);
    let (body, mut headers) = cuts::cut(families, |cuts| {
        write_decision(&mut cuts.buffer, decision, call, sealing);
        cuts.end();
        if let Some(headline) = headline.filter(|_| families.contains(Family::XRateLimit)) {
            rates::write_x_rate_limit(cuts, headline, checker, now);
        }
        if families.contains(Family::Draft10) {
            rates::write_draft_10(cuts, &decision.limits);
        }
    });
    if let Some(refusal) = &refusal {
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if let Some(seconds) = refusal.seconds() {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
    }
    if decision.is_degraded() {
        headers.insert(DEGRADED, HeaderValue::from_static("fallback"));
    }
    let mut response = Response::new(Whole::new(body));
    *response.status_mut() = refusal.map_or(StatusCode::OK, |refusal| refusal.status());
    *response.headers_mut() = headers;
    response
}
