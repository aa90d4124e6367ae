//! The answer to a check: status, body and headers.
//!
//! Body and header values are written into one buffer and cut out of it. Nothing of a decision needs
//! escaping: names of limits and nodes are `[A-Za-z0-9._-]{1,64}`. Knows nothing of requests.

mod body;
mod rates;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use tollgate_limit::{Decision, LimitDecision, Nanos, Outcome, Reason};

pub(super) use self::body::{write_decision, write_limit_members};
use crate::{
    checker::Checker,
    families::{Family, HeaderFamilies},
    http::problem::PROBLEM_JSON,
};

/// The media type of answers.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const DEGRADED: HeaderName = HeaderName::from_static("tollgate-degraded");

/// Bytes that the usual answer fits in, header values included.
const USUAL_LENGTH: usize = 768;

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
            Reason::LimitExceeded | Reason::CostExceedsLimit | Reason::LimitIsZero => {
                limit.verdict.retry_after
            }
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
            Reason::LimitExceeded | Reason::CostExceedsLimit | Reason::LimitIsZero => {
                StatusCode::TOO_MANY_REQUESTS
            }
        }
    }

    /// The wait in whole seconds, rounded up, at least 1.
    fn seconds(&self) -> Option<u64> {
        self.wait.map(|wait| wait.ceil_seconds().max(1))
    }
}

const UNDECIDED_WAIT: Nanos = Nanos::from_millis(1000);

/// The answer to one check that was decided at `now`.
pub(super) fn respond<C: Checker>(
    decision: &Decision,
    families: HeaderFamilies,
    checker: &C,
    now: Nanos,
) -> Response<Full<Bytes>> {
    let headline = decision.headline();
    let refusal = headline.and_then(Refusal::of);
    let mut cuts = Cuts::new();
    write_decision(&mut cuts.buffer, decision);
    cuts.end(header::CONTENT_LENGTH);
    if let Some(headline) = headline {
        if families.contains(Family::XRateLimit) {
            rates::write_x_rate_limit(&mut cuts, headline, checker, now);
        }
        if families.contains(Family::Draft10) {
            rates::write_draft_10(&mut cuts, &decision.limits);
        }
    }
    if let Some(seconds) = refusal.and_then(|refusal| refusal.seconds()) {
        body::number(&mut cuts.buffer, seconds);
        cuts.end(header::RETRY_AFTER);
    }
    let mut headers = HeaderMap::with_capacity(10);
    let media = if refusal.is_some() {
        PROBLEM_JSON
    } else {
        JSON
    };
    headers.insert(header::CONTENT_TYPE, media);
    if decision.is_degraded() {
        headers.insert(DEGRADED, HeaderValue::from_static("fallback"));
    }
    let mut response = Response::new(Full::new(cuts.finish(&mut headers)));
    *response.status_mut() = refusal.map_or(StatusCode::OK, |refusal| refusal.status());
    *response.headers_mut() = headers;
    response
}

/// One buffer with the body first, then one header value after the other.
struct Cuts {
    buffer: Vec<u8>,
    /// Where each piece ends; the first is the body.
    ends: [(usize, Option<HeaderName>); Self::MAX_PIECES],
    count: usize,
}

impl Cuts {
    /// The body, and at most 6 header values.
    const MAX_PIECES: usize = 7;

    fn new() -> Self {
        Self {
            buffer: Vec::with_capacity(USUAL_LENGTH),
            ends: [const { (0, None) }; Self::MAX_PIECES],
            count: 0,
        }
    }

    /// Ends a piece: what was written since the last one is the value of `name`.
    fn end(&mut self, name: HeaderName) {
        if let Some(slot) = self.ends.get_mut(self.count) {
            *slot = (self.buffer.len(), Some(name));
            self.count = self.count.saturating_add(1);
        }
    }

    /// Adds the values to `headers`; the body is returned.
    fn finish(self, headers: &mut HeaderMap) -> Bytes {
        let bytes = Bytes::from(self.buffer);
        let mut pieces = self.ends.into_iter().take(self.count);
        let body = pieces.next().map_or(0, |(end, _)| end);
        let mut start = body;
        for (end, name) in pieces {
            let value = HeaderValue::from_maybe_shared(bytes.slice(start..end));
            if let (Some(name), Ok(value)) = (name, value) {
                headers.insert(name, value);
            }
            start = end;
        }
        bytes.slice(..body)
    }
}
