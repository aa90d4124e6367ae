//! Times as logs write them, in nanoseconds since 1970.
//!
//! Pure. Invariant: no digit down to the nanosecond is lost.

use jiff::{Timestamp, civil::DateTime, fmt::strtime, tz::TimeZone};
use thiserror::Error;
use tollgate_limit::Nanos;

/// The time of an access log of Apache or nginx.
const ACCESS_LOG: &str = "%d/%b/%Y:%H:%M:%S %z";
/// Epoch numbers from here on are milliseconds: 100 000 000 000 s would be the year 5138.
const FIRST_MILLIS: u64 = 100_000_000_000;
/// The most characters of a wrong time that an error repeats.
const MAX_REPEATED: usize = 64;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// A text that is not a time that can be counted with. The log's fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TimeError {
    /// Of no form that is known.
    #[error(
        "{text:?} is not a time; write 17/May/2015:10:05:03 +0000, RFC 3339, 2023-11-16 18:15:46.68 (UTC), \
         or seconds or milliseconds since 1970"
    )]
    Malformed {
        /// The text, cut off.
        text: String,
    },
    /// Before 1970, or after what 64 bits of nanoseconds hold.
    #[error("{text:?} is not between the years 1970 and 2554")]
    OutOfRange {
        /// The text, cut off.
        text: String,
    },
}

/// Reads a time. One without a zone is UTC.
///
/// # Errors
/// [`TimeError`] says what is wrong.
pub fn parse_time(text: &str) -> Result<Nanos, TimeError> {
    let text = text.trim();
    let repeated = || text.chars().take(MAX_REPEATED).collect();
    if text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return epoch(text).map_err(|wrong| wrong.with(repeated()));
    }
    let stamp = stamp(text).ok_or_else(|| Wrong::Malformed.with(repeated()))?;
    let nanos = u64::try_from(stamp.as_nanosecond());
    nanos
        .map(Nanos::new)
        .map_err(|_negative| Wrong::OutOfRange.with(repeated()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Malformed,
    OutOfRange,
}

impl Wrong {
    fn with(self, text: String) -> TimeError {
        match self {
            Self::Malformed => TimeError::Malformed { text },
            Self::OutOfRange => TimeError::OutOfRange { text },
        }
    }
}

fn stamp(text: &str) -> Option<Timestamp> {
    if text.as_bytes().iter().take(3).any(|byte| *byte == b'/') {
        return strtime::parse(ACCESS_LOG, text).ok()?.to_timestamp().ok();
    }
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        TimeZone::UTC.to_timestamp(civil).ok()
    })
}

/// Seconds or milliseconds since 1970, with or without a fraction.
fn epoch(text: &str) -> Result<Nanos, Wrong> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(Wrong::Malformed);
    }
    let whole: u64 = whole.parse().map_err(|_long| Wrong::OutOfRange)?;
    let unit = if whole < FIRST_MILLIS {
        NANOS_PER_SECOND
    } else {
        NANOS_PER_MILLI
    };
    // Nine digits of a second; of a millisecond the last three are below a nanosecond.
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let billionths = digits.fold(0_u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit.saturating_sub(b'0')))
    });
    let part = billionths.saturating_mul(unit) / NANOS_PER_SECOND;
    whole
        .checked_mul(unit)
        .and_then(|nanos| nanos.checked_add(part))
        .map(Nanos::new)
        .ok_or(Wrong::OutOfRange)
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;

    use super::{TimeError, parse_time};

    #[test]
    fn every_form_keeps_its_nanoseconds() {
        for (text, nanos) in [
            ("17/May/2015:10:05:03 +0000", 1_431_857_103_000_000_000),
            ("17/May/2015:12:05:03 +0200", 1_431_857_103_000_000_000),
            ("2015-05-17T10:05:03Z", 1_431_857_103_000_000_000),
            ("2015-05-17T12:05:03.5+02:00", 1_431_857_103_500_000_000),
            ("2023-11-16 18:15:46.6805900", 1_700_158_546_680_590_000),
            ("2023-11-16T18:15:46.680590001", 1_700_158_546_680_590_001),
            ("1431857103", 1_431_857_103_000_000_000),
            (" 1431857103.000000001 ", 1_431_857_103_000_000_001),
            ("1431857103000", 1_431_857_103_000_000_000),
            ("1431857103000.25", 1_431_857_103_000_250_000),
            ("0", 0),
            ("7.5", 7_500_000_000),
            ("2554-07-21T23:34:33Z", 18_446_744_073_000_000_000),
        ] {
            assert_eq!(parse_time(text), Ok(Nanos::new(nanos)), "{text}");
        }
    }

    #[test]
    fn all_else_says_what_is_right() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "yesterday",
            "32/May/2015:10:05:03 +0000",
            "17/May/2015:10:05:03",
            "2015-05-17T25:00:00Z",
            "1e9",
            "/",
            "é/é",
        ] {
            let error = parse_time(text).unwrap_err();
            assert!(
                matches!(error, TimeError::Malformed { .. }),
                "{text:?}: {error}"
            );
        }
        for text in [
            "1969-12-31T23:59:59Z",
            "2999-01-01T00:00:00Z",
            "99999999999999999999",
        ] {
            let error = parse_time(text).unwrap_err();
            assert!(
                matches!(error, TimeError::OutOfRange { .. }),
                "{text:?}: {error}"
            );
        }
        let long = parse_time(&"x".repeat(1 << 20)).unwrap_err().to_string();
        assert!(long.len() < 400, "{}", long.len());
    }
}
