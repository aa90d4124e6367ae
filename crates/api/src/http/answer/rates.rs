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

/// Revision 6: `RateLimit-Policy` of each limit, then `RateLimit-Limit`, `-Remaining` and `-Reset` of the
/// one that makes the headline.
pub(super) fn write_draft_6(cuts: &mut Cuts, limits: &[LimitDecision], headline: &LimitDecision) {
    write_unnamed_policies(cuts, limits);
    for value in old_numbers(headline) {
        number(&mut cuts.buffer, value);
        cuts.end();
    }
}

/// Revision 7: `RateLimit-Policy` of each limit, and `RateLimit` of the one that makes the headline.
pub(super) fn write_draft_7(cuts: &mut Cuts, limits: &[LimitDecision], headline: &LimitDecision) {
    write_unnamed_policies(cuts, limits);
    let names: [&[u8]; 3] = [b"limit=", b", remaining=", b", reset="];
    for (name, value) in names.into_iter().zip(old_numbers(headline)) {
        cuts.buffer.extend_from_slice(name);
        number(&mut cuts.buffer, value);
    }
    cuts.end();
}

/// Limit, remaining and reset. The reset of a refusal is that of `Retry-After`, which must not be earlier.
fn old_numbers(headline: &LimitDecision) -> [u64; 3] {
    let wait = Refusal::of(headline).and_then(|refusal| refusal.seconds());
    let reset = wait.unwrap_or_else(|| headline.verdict.reset_after.ceil_seconds());
    [headline.rule.capacity(), headline.verdict.remaining, reset]
        .map(|value| value.min(MAX_INTEGER))
}

/// `10;w=60, 1000;w=86400`: revisions 6 and 7 know no names.
fn write_unnamed_policies(cuts: &mut Cuts, limits: &[LimitDecision]) {
    for (place, limit) in enforced(limits).enumerate() {
        if place > 0 {
            cuts.buffer.extend_from_slice(b", ");
        }
        number(&mut cuts.buffer, limit.rule.capacity().min(MAX_INTEGER));
        write_window(&mut cuts.buffer, limit);
    }
    cuts.end();
}

/// Revision 10: `RateLimit-Policy` and `RateLimit`, one member for each limit.
pub(super) fn write_draft_10(cuts: &mut Cuts, limits: &[LimitDecision]) {
    for (place, limit) in enforced(limits).enumerate() {
        write_name(&mut cuts.buffer, place, limit);
        cuts.buffer.extend_from_slice(b";q=");
        number(&mut cuts.buffer, limit.rule.capacity().min(MAX_INTEGER));
        if matches!(limit.rule.algorithm, Algorithm::Concurrency(_)) {
            cuts.buffer
                .extend_from_slice(b";qu=\"concurrent-requests\"");
        }
        write_window(&mut cuts.buffer, limit);
    }
    cuts.end();
    for (place, limit) in enforced(limits).enumerate() {
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

/// The limits that headers tell of: what cannot refuse is no client's business.
fn enforced(limits: &[LimitDecision]) -> impl Iterator<Item = &LimitDecision> {
    limits.iter().filter(|limit| limit.rule.is_enforced())
}

/// The window, where there is one of at least a second: permits have none.
fn write_window(out: &mut BytesMut, limit: &LimitDecision) {
    let window = limit.rule.algorithm.refill();
    let has_window = !matches!(limit.rule.algorithm, Algorithm::Concurrency(_));
    if has_window && window >= MIN_WINDOW {
        out.extend_from_slice(b";w=");
        number(out, window.ceil_seconds());
    }
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
