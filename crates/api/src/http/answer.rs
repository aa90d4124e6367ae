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
    families::{Draft, Family, HeaderFamilies},
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

    /// The status of the answer, where refusals have this one.
    const fn status(&self, denied: StatusCode) -> StatusCode {
        match self.reason {
            Reason::Undecided => StatusCode::SERVICE_UNAVAILABLE,
            Reason::LimitExceeded
            | Reason::CostExceedsLimit
            | Reason::LimitIsZero
            | Reason::QueueFull
            | Reason::SetAside
            | Reason::Banned => denied,
        }
    }

    /// The wait in whole seconds, rounded up, at least 1.
    fn seconds(&self) -> Option<u64> {
        self.wait.map(|wait| wait.ceil_seconds().max(1))
    }
}

/// The status of a refusal, unless a proxy is told another.
const DENIED: StatusCode = StatusCode::TOO_MANY_REQUESTS;
const UNDECIDED_WAIT: Nanos = Nanos::from_millis(1000);

/// The answer to one check that was decided at `now`; of an acquisition it names its permits too.
pub(super) fn respond<C: Checker>(
    decision: &Decision,
    call: Call,
    families: HeaderFamilies,
    checker: &C,
    now: Nanos,
) -> Response<Whole> {
    render(decision, call, families, checker, now, None)
}

/// The answer to a proxy: of an admitted check no body, of a refused one this status.
pub(super) fn respond_to_proxy<C: Checker>(
    decision: &Decision,
    families: HeaderFamilies,
    checker: &C,
    now: Nanos,
    denied: StatusCode,
) -> Response<Whole> {
    let denied = Some(denied);
    render(decision, Call::Check, families, checker, now, denied)
}

fn render<C: Checker>(
    decision: &Decision,
    call: Call,
    families: HeaderFamilies,
    checker: &C,
    now: Nanos,
    proxied: Option<StatusCode>,
) -> Response<Whole> {
    let denied = proxied.unwrap_or(DENIED);
    let sealing = Sealing::at(now, checker);
    let headline = decision.headline();
    let refusal = headline.and_then(Refusal::of);
    let families = headline.map_or(HeaderFamilies::NONE, |_| families);
    let (body, mut headers) = cuts::cut(families, |cuts| {
        if refusal.is_some() || proxied.is_none() {
            body::write(&mut cuts.buffer, decision, call, sealing, denied);
        }
        cuts.end();
        let Some(headline) = headline else { return };
        if families.contains(Family::XRateLimit) {
            rates::write_x_rate_limit(cuts, headline, checker, now);
        }
        match families.draft() {
            Some(Draft::Six) => rates::write_draft_6(cuts, &decision.limits, headline),
            Some(Draft::Seven) => rates::write_draft_7(cuts, &decision.limits, headline),
            Some(Draft::Ten) => rates::write_draft_10(cuts, &decision.limits),
            None => {}
        }
    });
    if let Some(refusal) = &refusal {
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if let Some(seconds) = refusal.seconds() {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
    } else if proxied.is_some() {
        headers.remove(header::CONTENT_TYPE);
    }
    if decision.is_degraded() {
        headers.insert(DEGRADED, HeaderValue::from_static("fallback"));
    }
    let mut response = Response::new(Whole::new(body));
    *response.status_mut() = refusal.map_or(StatusCode::OK, |refusal| refusal.status(denied));
    *response.headers_mut() = headers;
    response
}
