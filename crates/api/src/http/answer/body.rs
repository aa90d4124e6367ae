//! The body of an answer, member by member.

use bytes::BytesMut;
use tollgate_limit::{Call, Decision, LimitDecision, Reason, Verdict};

use super::{Refusal, Sealing};

/// Appends the body of one answer.
pub(in crate::http) fn write_decision(
    out: &mut BytesMut,
    decision: &Decision,
    call: Call,
    sealing: Sealing<'_>,
) {
    let headline = decision.headline();
    let refusal = headline.and_then(Refusal::of);
    text(out, "{\"id\":\"");
    sealing.write_id(out, decision);
    text(out, "\"");
    match call {
        Call::Check => {}
        Call::Acquire => sealing.write_permit_id(out, decision),
    }
    text(out, ",\"allowed\":");
    truth(out, refusal.is_none());
    if let Some(refusal) = &refusal {
        text(out, ",\"reason\":\"");
        text(out, refusal.reason.as_str());
        text(out, "\",\"denied_by\":");
        write_refusing(out, decision);
    }
    if let Some(headline) = headline {
        text(out, ",\"limit\":");
        number(out, headline.rule.capacity());
        write_numbers(out, headline);
        text(out, ",\"delay_ms\":");
        number(out, decision.delay().ceil_millis());
    }
    text(out, ",\"limits\":[");
    for (place, limit) in decision.limits.iter().enumerate() {
        if place > 0 {
            text(out, ",");
        }
        text(out, "{");
        write_limit_members(out, limit);
        text(out, "}");
    }
    text(out, "]");
    if let Some(refusal) = &refusal {
        write_problem(out, decision, refusal);
    }
    text(out, "}");
}

/// Appends what one limit said, without the braces.
pub(in crate::http) fn write_limit_members(out: &mut BytesMut, limit: &LimitDecision) {
    let rule = &limit.rule;
    text(out, "\"name\":\"");
    text(out, limit.limit.name());
    text(out, "\",\"algorithm\":\"");
    text(out, rule.algorithm.name());
    text(out, "\",\"limit\":");
    number(out, rule.capacity());
    text(out, ",\"window_ms\":");
    number(out, rule.window().span().ceil_millis());
    text(out, ",\"used\":");
    number(out, limit.verdict.used);
    write_numbers(out, limit);
    text(out, ",\"allowed\":");
    truth(out, limit.verdict.is_allowed());
    text(out, ",\"decided_by\":\"");
    text(out, limit.decided_by.as_str());
    text(out, "\",\"node\":\"");
    text(out, limit.node.as_str());
    text(out, "\",\"degraded\":");
    truth(out, limit.degraded);
    text(out, ",\"shadow\":");
    truth(out, !rule.is_enforced());
}

fn write_numbers(out: &mut BytesMut, limit: &LimitDecision) {
    let Verdict {
        remaining,
        retry_after,
        reset_after,
        ..
    } = &limit.verdict;
    let wait = Refusal::of(limit).map_or(*retry_after, |refusal| refusal.wait);
    text(out, ",\"remaining\":");
    number(out, *remaining);
    text(out, ",\"retry_after_ms\":");
    match wait {
        Some(wait) => number(out, wait.ceil_millis()),
        None => text(out, "null"),
    }
    text(out, ",\"reset_after_ms\":");
    number(out, reset_after.ceil_millis());
}

/// The members that make a refusal a problem.
fn write_problem(out: &mut BytesMut, decision: &Decision, refusal: &Refusal<'_>) {
    let (error, kind, title) = match refusal.reason {
        Reason::Undecided => (
            "temporarily_undecided",
            "temporary-reduced-capacity",
            "Request cannot be decided at the moment",
        ),
        Reason::Banned => (
            "banned",
            "abnormal-usage-detected",
            "Banned for too many failures",
        ),
        Reason::LimitExceeded
        | Reason::CostExceedsLimit
        | Reason::LimitIsZero
        | Reason::QueueFull
        | Reason::SetAside => ("rate_limit_exceeded", "quota-exceeded", "Quota exceeded"),
    };
    text(out, ",\"error\":\"");
    text(out, error);
    text(out, "\",\"message\":\"");
    write_message(out, refusal);
    text(
        out,
        "\",\"type\":\"https://iana.org/assignments/http-problem-types#",
    );
    text(out, kind);
    text(out, "\",\"title\":\"");
    text(out, title);
    text(out, "\",\"status\":");
    number(out, u64::from(refusal.status().as_u16()));
    text(out, ",\"detail\":\"Limit ");
    text(out, refusal.headline.limit.name());
    text(out, ": ");
    write_message(out, refusal);
    text(out, "\",\"violated-policies\":");
    write_refusing(out, decision);
}

fn write_message(out: &mut BytesMut, refusal: &Refusal<'_>) {
    let (what, never) = match refusal.reason {
        Reason::LimitExceeded => ("Too many requests", "waiting does not help"),
        Reason::CostExceedsLimit => ("The cost is above the limit", "waiting does not help"),
        Reason::LimitIsZero => ("The limit is zero", "waiting does not help"),
        Reason::Undecided => ("No node could decide in time", "ask again later"),
        Reason::QueueFull => ("The queue is full", "waiting does not help"),
        Reason::SetAside => (
            "What is left is kept for other requests",
            "waiting does not help",
        ),
        Reason::Banned => ("Banned after too many failures", "waiting does not help"),
    };
    text(out, what);
    let Some(seconds) = refusal.seconds() else {
        text(out, ", ");
        return text(out, never);
    };
    text(out, ", retry in ");
    number(out, seconds);
    text(out, if seconds == 1 { " second" } else { " seconds" });
}

fn write_refusing(out: &mut BytesMut, decision: &Decision) {
    text(out, "[");
    let refusing = decision.limits.iter().filter(|limit| limit.refuses());
    for (place, limit) in refusing.enumerate() {
        text(out, if place == 0 { "\"" } else { ",\"" });
        text(out, limit.limit.name());
        text(out, "\"");
    }
    text(out, "]");
}

/// Appends a number.
#[inline]
pub(in crate::http) fn number(out: &mut BytesMut, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends text that needs no escaping.
#[inline]
pub(in crate::http) fn text(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

#[inline]
fn truth(out: &mut BytesMut, truth: bool) {
    text(out, if truth { "true" } else { "false" });
}
