//! Spans, instants and shares as people read them.

use jiff::{SignedDuration, Timestamp};
use tollgate_limit::Nanos;

/// An instant in UTC, to the second.
pub(in super::super) fn instant(nanos: Nanos) -> String {
    let whole = nanos.as_nanos() / 1_000_000_000 * 1_000_000_000;
    // 64 bits of nanoseconds end in 2554, far before jiff's last year.
    Timestamp::from_nanosecond(whole.into()).map_or_else(|_late| String::new(), |it| it.to_string())
}

/// A span: `1h 30m`.
pub(super) fn span(span: Nanos) -> String {
    let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    format!("{:#}", SignedDuration::from_nanos(nanos))
}

/// `a minute`, or `in 1h`.
pub(super) fn every(period: Nanos) -> String {
    if period == Nanos::from_millis(60_000) {
        "a minute".to_owned()
    } else {
        format!("in {}", span(period))
    }
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
