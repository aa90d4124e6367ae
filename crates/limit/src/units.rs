//! Units: one type for each, so that a span is never taken for a cost.
//!
//! Knows nothing of algorithms. Invariants: no operator is defined, arithmetic is by named
//! methods that saturate; a [`Cost`] never exceeds [`MAX_UNITS`], a [`Window`] lies in its bounds.

use thiserror::Error;

/// The largest limit and the largest cost: 2^53, what a JSON number holds exactly.
pub const MAX_UNITS: u64 = 1 << 53;

/// Nanoseconds: a span, or an instant of a monotonic clock counted from that clock's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// No time at all, and the clock's origin.
    pub const ZERO: Self = Self(0);
    /// The end of time: 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    #[must_use]
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `millis` milliseconds; saturates at [`Nanos::MAX`].
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The number of nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, rounded up: a wait told in them is never too short.
    #[must_use]
    pub const fn ceil_millis(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Whole seconds, rounded up.
    #[must_use]
    pub const fn ceil_seconds(self) -> u64 {
        self.0.div_ceil(1_000_000_000)
    }

    /// The sum, at most [`Nanos::MAX`].
    #[must_use]
    pub const fn saturating_add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The difference; zero if `span` is longer.
    #[must_use]
    pub const fn saturating_sub(self, span: Self) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(span: std::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

/// What a check consumes: a whole number from 0 to [`MAX_UNITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The default of a check.
    pub const ONE: Self = Self(1);

    /// A cost of `units`.
    ///
    /// # Errors
    /// [`OutOfRange`] above [`MAX_UNITS`]: the caller's fault, nothing was done.
    pub const fn new(units: u64) -> Result<Self, OutOfRange> {
        if units > MAX_UNITS {
            return Err(OutOfRange { max: MAX_UNITS });
        }
        Ok(Self(units))
    }

    /// The number of units.
    #[must_use]
    pub const fn units(self) -> u64 {
        self.0
    }
}

/// A number above its bound.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("must be at most {max}")]
pub struct OutOfRange {
    /// The largest that is allowed.
    pub max: u64,
}

/// The length of a limit's window, from 1 ms to 10 years (of 366 days).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window(Nanos);

impl Window {
    /// The shortest window.
    pub const MIN: Nanos = Nanos::from_millis(1);
    /// The longest window.
    pub const MAX: Nanos = Nanos::from_millis(10 * 366 * 24 * 3600 * 1000);

    /// The window of the shortest length.
    pub const SHORTEST: Self = Self(Self::MIN);

    /// A window of `span`; `None` outside [`Window::MIN`] to [`Window::MAX`].
    #[must_use]
    pub const fn new(span: Nanos) -> Option<Self> {
        if span.0 < Self::MIN.0 || span.0 > Self::MAX.0 {
            return None;
        }
        Some(Self(span))
    }

    /// Its length.
    #[must_use]
    pub const fn span(self) -> Nanos {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Cost, MAX_UNITS, Nanos, OutOfRange, Window};

    #[test]
    fn a_wait_is_rounded_up() {
        for (nanos, millis, seconds) in [
            (0, 0, 0),
            (1, 1, 1),
            (1_000_000, 1, 1),
            (1_000_001, 2, 1),
            (1_000_000_001, 1001, 2),
        ] {
            let span = Nanos::new(nanos);
            assert_eq!((span.ceil_millis(), span.ceil_seconds()), (millis, seconds));
        }
    }

    #[test]
    fn spans_saturate() {
        let one = Nanos::new(1);
        assert_eq!(Nanos::MAX.saturating_add(one), Nanos::MAX);
        assert_eq!(Nanos::ZERO.saturating_sub(one), Nanos::ZERO);
        assert_eq!(Nanos::from_millis(u64::MAX), Nanos::MAX);
        assert_eq!(Nanos::from(Duration::MAX), Nanos::MAX);
        assert_eq!(
            Duration::from(Nanos::from_millis(1500)),
            Duration::from_millis(1500)
        );
    }

    #[test]
    fn costs_and_windows_keep_their_bounds() {
        assert_eq!(Cost::new(MAX_UNITS).map(Cost::units), Ok(1 << 53));
        assert_eq!(Cost::new(MAX_UNITS + 1), Err(OutOfRange { max: MAX_UNITS }));
        let just_below = Window::MIN.saturating_sub(Nanos::new(1));
        let just_above = Window::MAX.saturating_add(Nanos::new(1));
        assert_eq!(Window::new(just_below), None);
        assert_eq!(Window::new(just_above), None);
        for bound in [Window::MIN, Window::MAX] {
            assert_eq!(Window::new(bound).map(Window::span), Some(bound));
        }
    }
}
