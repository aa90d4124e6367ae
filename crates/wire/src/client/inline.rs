//! A limit that comes with a check.
//!
//! Not checked here: whether its numbers are in their bounds is for the node to say, field by field.
//! Invariant: what is read is borrowed from the frame.

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize};
use tollgate_limit::{AlgorithmSpec, CalendarUnit, Fallback, Nanos};

use crate::rule::RawUnit;

/// Slices of a window unless told otherwise.
const DEFAULT_SLICES: u8 = 10;

/// A limit that comes with a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineLimit<'a> {
    /// Its name, `[A-Za-z0-9._-]{1,64}`.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Units for each window, or permits at once: 0 (a block) to 2^53.
    pub limit: u64,
    /// Its algorithm.
    #[serde(borrow)]
    pub algorithm: InlineAlgorithm<'a>,
    /// What decides when its owner does not answer.
    #[serde(with = "RawFallback")]
    pub fallback: Fallback,
}

impl<'a> InlineLimit<'a> {
    /// The usual limit: a sliding window of 10 slices, not hard, decided by the node alone when the
    /// owner does not answer. A window beyond 584 years is sent as just that.
    #[must_use]
    pub fn sliding_window(name: impl Into<Cow<'a, str>>, limit: u64, window: Duration) -> Self {
        Self {
            name: name.into(),
            limit,
            algorithm: InlineAlgorithm::SlidingWindow {
                window_nanos: Nanos::from(window).as_nanos(),
                slices: DEFAULT_SLICES,
                hard: false,
            },
            fallback: Fallback::LocalFull,
        }
    }
}

/// The algorithm of such a limit; grows at the end only. Windows are 1 ms to 10 years.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InlineAlgorithm<'a> {
    /// Counters of slices of the window.
    SlidingWindow {
        /// The window, in nanoseconds.
        window_nanos: u64,
        /// Slices of the window, 1 to 60.
        slices: u8,
        /// Whether the oldest slice counts in full; needs two slices at least.
        hard: bool,
    },
    /// An entry for each admitted check: the limit is 10 000 at most.
    SlidingLog {
        /// The window, in nanoseconds.
        window_nanos: u64,
    },
    /// A counter that starts anew with each window since the epoch.
    FixedWindow {
        /// The window, in nanoseconds.
        window_nanos: u64,
    },
    /// A counter that starts anew with the calendar: a fixed window as well.
    CalendarWindow {
        /// The part of the calendar.
        #[serde(with = "RawUnit")]
        unit: CalendarUnit,
        /// The name of a time zone such as `Europe/Berlin`; empty is UTC.
        #[serde(borrow)]
        time_zone: Cow<'a, str>,
    },
    /// A level that drains at limit / window.
    TokenBucket {
        /// The window, in nanoseconds.
        window_nanos: u64,
        /// The most at once; `None` is the limit.
        burst: Option<u64>,
    },
    /// A queue that drains at limit / window: an admitted check is told how long to wait.
    LeakyBucket {
        /// The window, in nanoseconds.
        window_nanos: u64,
        /// What may wait; `None` is the limit less one.
        queue: Option<u64>,
    },
    /// Permits. Nodes refuse it: nothing of this protocol releases one.
    Concurrency {
        /// When a permit that nobody released ends, in nanoseconds.
        ttl_nanos: u64,
    },
}

impl From<&InlineAlgorithm<'_>> for AlgorithmSpec {
    fn from(algorithm: &InlineAlgorithm<'_>) -> Self {
        match algorithm {
            InlineAlgorithm::SlidingWindow {
                window_nanos,
                slices,
                hard,
            } => Self::SlidingWindow {
                window: Nanos::new(*window_nanos),
                slices: u64::from(*slices),
                hard: *hard,
            },
            InlineAlgorithm::SlidingLog { window_nanos } => Self::SlidingLog {
                window: Nanos::new(*window_nanos),
            },
            InlineAlgorithm::FixedWindow { window_nanos } => Self::FixedWindow {
                window: Nanos::new(*window_nanos),
            },
            InlineAlgorithm::CalendarWindow { unit, time_zone } => Self::CalendarWindow {
                unit: *unit,
                time_zone: (!time_zone.is_empty()).then(|| time_zone.clone().into_owned()),
            },
            InlineAlgorithm::TokenBucket {
                window_nanos,
                burst,
            } => Self::TokenBucket {
                window: Nanos::new(*window_nanos),
                burst: *burst,
            },
            InlineAlgorithm::LeakyBucket {
                window_nanos,
                queue,
            } => Self::LeakyBucket {
                window: Nanos::new(*window_nanos),
                queue: *queue,
            },
            InlineAlgorithm::Concurrency { ttl_nanos } => Self::Concurrency {
                ttl: Nanos::new(*ttl_nanos),
            },
        }
    }
}

/// The bytes of a [`Fallback`]; grows at the end only.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Fallback")]
enum RawFallback {
    LocalFull,
    LocalFair,
    Allow,
    Deny,
}
