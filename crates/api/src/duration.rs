//! Durations as people write them: `250ms`, `10s`, `1h30m`.
//!
//! Shared by JSON and TOML. Knows nothing of what a duration is for, or of its bounds there.

use thiserror::Error;
use tollgate_limit::Nanos;

/// Units and their lengths in nanoseconds, the longest first.
const UNITS: [(&str, u64); 6] = [
    ("w", 7 * 24 * 3_600_000_000_000),
    ("d", 24 * 3_600_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// A text that is not a duration. The writer's fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DurationError {
    /// Not numbers with units.
    #[error(
        "a duration is a whole number and a unit, `ms`, `s`, `m`, `h`, `d` or `w`, or a sum such as `1h30m`"
    )]
    Malformed,
    /// Above what 64 bits of nanoseconds hold, 584 years.
    #[error("a duration must be below 584 years")]
    TooLong,
}

/// Reads a duration: one or more terms of a whole number and a unit, each unit at most once and the
/// longer first.
///
/// # Errors
/// [`DurationError`] says what is wrong.
pub fn parse(text: &str) -> Result<Nanos, DurationError> {
    let mut rest = text;
    let mut open: &[(&str, u64)] = &UNITS;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(letters);
        let place = open.iter().position(|(name, _)| *name == unit);
        let (place, false) = (place.ok_or(DurationError::Malformed)?, digits == 0) else {
            return Err(DurationError::Malformed);
        };
        let (_, nanos) = open.get(place).ok_or(DurationError::Malformed)?;
        let number: u64 = number.parse().map_err(|_error| DurationError::TooLong)?;
        sum = number
            .checked_mul(*nanos)
            .and_then(|term| term.checked_add(sum))
            .ok_or(DurationError::TooLong)?;
        open = open.get(place.saturating_add(1)..).unwrap_or_default();
        rest = tail;
    }
    if text.is_empty() {
        return Err(DurationError::Malformed);
    }
    Ok(Nanos::new(sum))
}

/// Writes a duration so that [`parse`] reads it back; below a millisecond it is rounded up.
#[must_use]
pub fn render(span: Nanos) -> String {
    let mut left = span.ceil_millis();
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, nanos) in UNITS {
        let millis = nanos / 1_000_000;
        let count = left / millis;
        if count > 0 {
            text.push_str(&count.to_string());
            text.push_str(unit);
            left %= millis;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_limit::Nanos;

    use super::{DurationError, parse, render};

    #[test]
    fn numbers_with_units_and_their_sums_are_durations() {
        for (text, millis) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("1m", 60_000),
            ("1h30m", 5_400_000),
            ("1w2d3h4m5s6ms", 788_645_006),
            ("0s", 0),
            ("007s", 7000),
        ] {
            assert_eq!(parse(text), Ok(Nanos::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn all_else_is_refused() {
        for text in [
            "",
            "s",
            "7",
            "7 s",
            " 7s",
            "7s ",
            "7 parsecs",
            "7S",
            "-1s",
            "+1s",
            "1.5s",
            "1h1h",
            "30m1h",
            "1s1",
            "1ms1s",
            "٣s",
            "1h\u{0}",
        ] {
            assert_eq!(parse(text), Err(DurationError::Malformed), "{text:?}");
        }
        for text in ["99999999999999999999s", "31000w", "30500w18446744073s"] {
            assert_eq!(parse(text), Err(DurationError::TooLong), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_rendered_reads_back(millis in 0_u64..18_446_744_073_709) {
            let span = Nanos::from_millis(millis);
            prop_assert_eq!(parse(&render(span)), Ok(span));
        }

        #[test]
        fn a_sum_is_the_sum_of_its_terms(h in 0_u64..1000, m in 0_u64..1000, ms in 0_u64..1000) {
            let millis = h * 3_600_000 + m * 60_000 + ms;
            prop_assert_eq!(parse(&format!("{h}h{m}m{ms}ms")), Ok(Nanos::from_millis(millis)));
        }

        #[test]
        fn no_text_is_a_trap(text in ".*") {
            let parsed = parse(&text);
            prop_assert!(parsed.is_err() || text.is_ascii());
        }
    }
}
