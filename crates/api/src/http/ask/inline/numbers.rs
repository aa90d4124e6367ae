//! Which numbers go with which algorithm.
//!
//! Invariant: a number that the algorithm has no use for is an error and never ignored: whoever sent it
//! means something by it.

use std::borrow::Cow;

use tollgate_limit::{AlgorithmSpec, CalendarUnit, DEFAULT_SLICES, Nanos};

use crate::fault::Fault;

pub(super) const WINDOW: &str = "a duration from \"1ms\" to \"3660d\", such as \"1m\" or \"1h30m\"";
pub(super) const TTL: &str = "a duration from \"1ms\" to \"3660d\", such as \"30s\": when a permit that nobody released ends";
pub(super) const SLICES: &str = "a whole number from 1 to 60";
pub(super) const ALGORITHM: &str = "\"sliding-window\", \"sliding-log\", \"fixed-window\", \"token-bucket\", \"leaky-bucket\" or \"concurrency\"";
pub(super) const CALENDAR: &str = "\"hour\", \"day\", \"week\", \"month\" or \"year\"";

pub(super) const ALGORITHMS: [(&str, Algorithm); 6] = [
    ("sliding-window", Algorithm::SlidingWindow),
    ("sliding-log", Algorithm::SlidingLog),
    ("fixed-window", Algorithm::FixedWindow),
    ("token-bucket", Algorithm::TokenBucket),
    ("leaky-bucket", Algorithm::LeakyBucket),
    ("concurrency", Algorithm::Concurrency),
];
pub(super) const CALENDARS: [(&str, CalendarUnit); 5] = [
    ("hour", CalendarUnit::Hour),
    ("day", CalendarUnit::Day),
    ("week", CalendarUnit::Week),
    ("month", CalendarUnit::Month),
    ("year", CalendarUnit::Year),
];

/// An algorithm, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Algorithm {
    #[default]
    SlidingWindow,
    SlidingLog,
    FixedWindow,
    TokenBucket,
    LeakyBucket,
    Concurrency,
}

/// The algorithm and its numbers, as they come.
#[derive(Debug, Default)]
pub(super) struct Numbers<'a> {
    pub(super) algorithm: Option<Algorithm>,
    pub(super) window: Option<Nanos>,
    pub(super) calendar: Option<CalendarUnit>,
    pub(super) time_zone: Option<Cow<'a, str>>,
    pub(super) slices: Option<u64>,
    pub(super) hard: Option<bool>,
    pub(super) burst: Option<u64>,
    pub(super) queue: Option<u64>,
    pub(super) ttl: Option<Nanos>,
}

impl Numbers<'_> {
    /// The algorithm's spec; whether its numbers are in their bounds is not known yet.
    pub(super) fn finish(self) -> Result<AlgorithmSpec, Fault> {
        let algorithm = self.algorithm.unwrap_or_default();
        self.check(algorithm)?;
        let window = || self.window.ok_or_else(|| missing("window", WINDOW));
        Ok(match algorithm {
            Algorithm::SlidingWindow => AlgorithmSpec::SlidingWindow {
                window: window()?,
                slices: self.slices.unwrap_or(DEFAULT_SLICES),
                hard: self.hard.unwrap_or(false),
            },
            Algorithm::SlidingLog => AlgorithmSpec::SlidingLog { window: window()? },
            Algorithm::FixedWindow => match (self.window, self.calendar) {
                (Some(window), None) => AlgorithmSpec::FixedWindow { window },
                (None, Some(unit)) => AlgorithmSpec::CalendarWindow {
                    unit,
                    time_zone: self.time_zone.map(Cow::into_owned),
                },
                (Some(_), Some(_)) => {
                    let right = "either `window` or `calendar`";
                    return Err(Fault::new(
                        "limit.calendar",
                        "stands beside `window`",
                        right,
                    ));
                }
                (None, None) => {
                    let right = "a duration such as \"1h\", or `calendar`: \"hour\", \"day\", \"week\", \"month\" or \"year\"";
                    return Err(missing("window", right));
                }
            },
            Algorithm::TokenBucket => AlgorithmSpec::TokenBucket {
                window: window()?,
                burst: self.burst,
            },
            Algorithm::LeakyBucket => AlgorithmSpec::LeakyBucket {
                window: window()?,
                queue: self.queue,
            },
            Algorithm::Concurrency => AlgorithmSpec::Concurrency {
                ttl: self.ttl.ok_or_else(|| missing("ttl", TTL))?,
            },
        })
    }

    /// Finds a number that does not belong to the algorithm.
    fn check(&self, algorithm: Algorithm) -> Result<(), Fault> {
        for (field, is_given, owners, right) in self.given() {
            if is_given && !owners.contains(&algorithm) {
                let wrong = format!("does not belong to {:?}", name_of(algorithm));
                return Err(Fault::new(format!("limit.{field}"), wrong, right));
            }
        }
        if self.time_zone.is_some() && self.calendar.is_none() {
            let wrong = "stands without `calendar`";
            return Err(Fault::new("limit.time_zone", wrong, ZONE));
        }
        Ok(())
    }

    /// Each number: whether it is given, which algorithms it belongs to, and what is right.
    const fn given(&self) -> [Given; 8] {
        use Algorithm::{Concurrency, FixedWindow, LeakyBucket, SlidingWindow, TokenBucket};
        [
            ("window", self.window.is_some(), &TIMED, NO_WINDOW),
            (
                "calendar",
                self.calendar.is_some(),
                &[FixedWindow],
                FIXED_ALONE,
            ),
            ("time_zone", self.time_zone.is_some(), &[FixedWindow], ZONE),
            ("slices", self.slices.is_some(), &[SlidingWindow], SLICED),
            ("hard", self.hard.is_some(), &[SlidingWindow], SLICED),
            ("burst", self.burst.is_some(), &[TokenBucket], BURST_ALONE),
            ("queue", self.queue.is_some(), &[LeakyBucket], QUEUE_ALONE),
            ("ttl", self.ttl.is_some(), &[Concurrency], TTL_ALONE),
        ]
    }
}

/// A field, whether it is given, the algorithms that have a use for it, and what is right.
type Given = (&'static str, bool, &'static [Algorithm], &'static str);

/// The algorithms that count over a window.
const TIMED: [Algorithm; 5] = [
    Algorithm::SlidingWindow,
    Algorithm::SlidingLog,
    Algorithm::FixedWindow,
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
];
const NO_WINDOW: &str = "with \"concurrency\" give `ttl` instead";
const FIXED_ALONE: &str = "`calendar` with \"algorithm\": \"fixed-window\" alone";
const ZONE: &str = "`time_zone` beside the `calendar` of a \"fixed-window\" alone";
const SLICED: &str = "`slices` and `hard` with \"algorithm\": \"sliding-window\" alone";
const BURST_ALONE: &str = "`burst` with \"algorithm\": \"token-bucket\" alone";
const QUEUE_ALONE: &str = "`queue` with \"algorithm\": \"leaky-bucket\" alone";
const TTL_ALONE: &str = "`ttl` with \"algorithm\": \"concurrency\" alone";

fn missing(field: &str, right: &'static str) -> Fault {
    Fault::new(format!("limit.{field}"), "missing", right)
}

fn name_of(algorithm: Algorithm) -> &'static str {
    let mut names = ALGORITHMS.iter();
    let named = names.find(|(_, known)| *known == algorithm);
    named.map_or("", |(name, _)| name)
}
