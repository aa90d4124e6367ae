//! The rate limit headers: values only, each appended to the buffer of the answer.
//!
//! Times are whole seconds, rounded up, so that whoever waits that long has waited long enough.

use bytes::BytesMut;
use tollgate_limit::{Algorithm, LimitDecision, Nanos};

use super::{Refusal, body::number, cuts::Cuts};
use crate::checker::Checker;

/// The largest integer of a structured field: 15 digits.
const MAX_INTEGER: u64 = 999_999_999_999_999;
/// The shortest window that is told; the draft knows whole seconds only.
const MIN_WINDOW: Nanos = Nanos::from_millis(1000);
/// Added to an instant before it is cut to whole seconds, so that it is rounded up.
const ALMOST_A_SECOND: Nanos = Nanos::new(999_999_999);

/// `X-RateLimit-*`, of the limit that makes the headline.
pub(super) fn write_x_rate_limit<C: Checker>(
    cuts: &mut Cuts,
    headline: &LimitDecision,
    checker: &C,
    now: Nanos,
) {
    number(&mut cuts.buffer, headline.rule.capacity());
    cuts.end();
    number(&mut cuts.buffer, headline.verdict.remaining);
    cuts.end();
    let reset = now.saturating_add(headline.verdict.reset_after);
    let reset = checker.wall_seconds(reset.saturating_add(ALMOST_A_SECOND));
    number(&mut cuts.buffer, reset);
    cuts.end();
}

/// `RateLimit-Policy` and `RateLimit`, one member for each limit that is enforced: what cannot refuse is
/// no client's business.
pub(super) fn write_draft_10(cuts: &mut Cuts, limits: &[LimitDecision]) {
    let enforced = || limits.iter().filter(|limit| limit.rule.is_enforced());
    for (place, limit) in enforced().enumerate() {
        write_name(&mut cuts.buffer, place, limit);
        cuts.buffer.extend_from_slice(b";q=");
        let rule = &limit.rule;
        number(&mut cuts.buffer, rule.capacity().min(MAX_INTEGER));
        let window = rule.window().span();
        if matches!(rule.algorithm, Algorithm::Concurrency(_)) {
            cuts.buffer
                .extend_from_slice(b";qu=\"concurrent-requests\"");
        } else if window >= MIN_WINDOW {
            cuts.buffer.extend_from_slice(b";w=");
            number(&mut cuts.buffer, window.ceil_seconds());
        }
    }
    cuts.end();
    for (place, limit) in enforced().enumerate() {
        write_name(&mut cuts.buffer, place, limit);
        cuts.buffer.extend_from_slice(b";r=");
        number(&mut cuts.buffer, limit.verdict.remaining.min(MAX_INTEGER));
        if let Some(seconds) = seconds_until_more(limit) {
            cuts.buffer.extend_from_slice(b";t=");
            number(&mut cuts.buffer, seconds);
        }
    }
    cuts.end();
}

/// Of a refusal the same as `Retry-After`; of a full quota nothing, since no more will come.
fn seconds_until_more(limit: &LimitDecision) -> Option<u64> {
    match Refusal::of(limit) {
        Some(refusal) => refusal.seconds(),
        None if limit.verdict.more_after == Nanos::ZERO => None,
        None => Some(limit.verdict.more_after.ceil_seconds()),
    }
}

fn write_name(out: &mut BytesMut, place: usize, limit: &LimitDecision) {
    out.extend_from_slice(if place == 0 { b"\"" } else { b", \"" });
    out.extend_from_slice(limit.limit.name().as_bytes());
    out.extend_from_slice(b"\"");
}
