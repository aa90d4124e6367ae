//! The rate limit headers of a response, the same as a node's own over HTTP.
//!
//! Times are whole seconds, rounded up, so that whoever waits that long has waited long enough.
//! Invariant: an answer without limits makes no header.

use std::fmt::{self, Write as _};

use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate_limit::Nanos;

use super::{
    WallClock,
    families::HeaderFamilies,
    refusal::{self, Refusal},
};
use crate::{Answer, LimitAnswer};

/// The largest integer of a structured field: 15 digits.
const MAX_INTEGER: u64 = 999_999_999_999_999;
/// The shortest window that is told; the draft knows whole seconds only.
const MIN_WINDOW: Nanos = Nanos::from_millis(1000);

const X_RATE_LIMIT: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];
const DRAFT_10: [HeaderName; 2] = [
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("ratelimit"),
];

/// The headers of an answer, by family.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RateHeaders {
    x_rate_limit: Option<[HeaderValue; 3]>,
    draft_10: Option<[HeaderValue; 2]>,
}

impl RateHeaders {
    pub(super) fn new(answer: &Answer, families: HeaderFamilies, clock: &WallClock) -> Self {
        let mut headers = Self::default();
        if families.contains(HeaderFamilies::X_RATE_LIMIT) {
            let headline = refusal::headline(answer);
            headers.x_rate_limit = headline.map(|limit| x_rate_limit(limit, clock));
        }
        if families.contains(HeaderFamilies::DRAFT_10) && !answer.limits.is_empty() {
            headers.draft_10 = draft_10(&answer.limits);
        }
        headers
    }

    /// Adds them, but of no family that is there already: mixed numbers would say nothing.
    pub(super) fn put(self, headers: &mut HeaderMap) {
        put_family(headers, X_RATE_LIMIT, self.x_rate_limit);
        put_family(headers, DRAFT_10, self.draft_10);
    }
}

fn put_family<const N: usize>(
    headers: &mut HeaderMap,
    names: [HeaderName; N],
    values: Option<[HeaderValue; N]>,
) {
    let Some(values) = values else { return };
    if names.iter().any(|name| headers.contains_key(name)) {
        return;
    }
    headers.extend(names.into_iter().zip(values));
}

fn x_rate_limit(headline: &LimitAnswer, clock: &WallClock) -> [HeaderValue; 3] {
    let reset = clock.since_epoch();
    let reset = reset.saturating_add(headline.verdict.reset_after);
    [
        headline.capacity.into(),
        headline.verdict.remaining.into(),
        reset.ceil_seconds().into(),
    ]
}

/// One member for each limit in both; `None` if a name cannot stand in a header.
fn draft_10(limits: &[LimitAnswer]) -> Option<[HeaderValue; 2]> {
    let (mut policy, mut rate) = (String::new(), String::new());
    for limit in limits {
        write_limit(limit, &mut policy, &mut rate).ok()?;
    }
    let values = [policy, rate].map(|value| HeaderValue::try_from(value).ok());
    let [Some(policy), Some(rate)] = values else {
        return None;
    };
    Some([policy, rate])
}

fn write_limit(limit: &LimitAnswer, policy: &mut String, rate: &mut String) -> fmt::Result {
    let name = legal_name(limit).ok_or(fmt::Error)?;
    let comma = if policy.is_empty() { "" } else { ", " };
    write!(
        policy,
        "{comma}\"{name}\";q={}",
        limit.capacity.min(MAX_INTEGER)
    )?;
    let window = limit.window.span();
    if window >= MIN_WINDOW {
        write!(policy, ";w={}", window.ceil_seconds())?;
    }
    let remaining = limit.verdict.remaining.min(MAX_INTEGER);
    write!(rate, "{comma}\"{name}\";r={remaining}")?;
    if let Some(seconds) = seconds_until_more(limit) {
        write!(rate, ";t={seconds}")?;
    }
    Ok(())
}

/// Of a refusal the same as `Retry-After`; of a full quota nothing, since no more will come.
fn seconds_until_more(limit: &LimitAnswer) -> Option<u64> {
    match Refusal::of(limit) {
        Some(refusal) => refusal.seconds(),
        None if limit.verdict.more_after == Nanos::ZERO => None,
        None => Some(limit.verdict.more_after.ceil_seconds()),
    }
}

/// The limit's name if it is what nodes call limits; another one must not reach a header.
fn legal_name(limit: &LimitAnswer) -> Option<&str> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    limit.name.bytes().all(legal).then_some(&limit.name)
}
