//! A rule: the algorithm, its numbers and its terms, all that an owner must know of a limit.
//!
//! Knows nothing of names, keys or policies. Invariant: a `Rule` that exists can be computed with:
//! every bound of rule 9 was checked when its parts were made.

use crate::{
    calendar::{CalendarUnit, Zone},
    units::{Nanos, Window},
};

/// An algorithm with its numbers, and the terms on which it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// How it counts.
    pub algorithm: Algorithm,
    /// Units of the capacity that are kept for others than the asker; at most the capacity.
    pub set_aside: u64,
    /// Whether a refusal holds.
    pub enforcement: Enforcement,
    /// What reported failures lead to; `None` unless the limit counts failures and bans.
    pub ban: Option<Ban>,
    /// The largest capacity of all tiers of the limit, at least that of this one: what a bucket that they
    /// share may hold. Buckets alone look at it.
    pub ceiling: u64,
}

impl Rule {
    /// The rule of an algorithm on the usual terms: all of it for the asker, enforced, no ban.
    #[must_use]
    pub const fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            set_aside: 0,
            enforcement: Enforcement::Enforced,
            ban: None,
            ceiling: algorithm.capacity(),
        }
    }

    /// What a counter notes of a rule that charged it: of a bucket the ceiling, of others the capacity.
    pub(crate) const fn noted(&self) -> u64 {
        match &self.algorithm {
            Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => self.ceiling,
            Algorithm::SlidingWindow(_)
            | Algorithm::SlidingLog(_)
            | Algorithm::FixedWindow(_)
            | Algorithm::Concurrency(_) => self.capacity(),
        }
    }

    /// The most that the limit can ever admit at once.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.algorithm.capacity()
    }

    /// The most that the limit can ever admit at once of this asker.
    #[must_use]
    pub const fn open_capacity(&self) -> u64 {
        self.capacity().saturating_sub(self.set_aside)
    }

    /// The window that the limit counts over.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.algorithm.window()
    }

    /// Whether a refusal holds; if not, the check is admitted all the same.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        matches!(self.enforcement, Enforcement::Enforced)
    }
}

impl From<Algorithm> for Rule {
    fn from(algorithm: Algorithm) -> Self {
        Self::new(algorithm)
    }
}

/// Whether a limit's refusals hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// A refusal refuses the check.
    #[default]
    Enforced,
    /// Decided and counted as if enforced, told, never denied (rule 10).
    Shadow,
}

/// An algorithm and its numbers, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Counters of slices of the window.
    SlidingWindow(SlidingWindow),
    /// One entry for each admitted check.
    SlidingLog(SlidingLog),
    /// One counter that starts anew with each window.
    FixedWindow(FixedWindow),
    /// A level that drains, and a burst that fits on top.
    TokenBucket(TokenBucket),
    /// A queue that drains evenly: admitted with a delay.
    LeakyBucket(LeakyBucket),
    /// Permits that are out until released or until their time is over.
    Concurrency(Concurrency),
}

impl Algorithm {
    /// The most that can ever be admitted at once.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self {
            Self::SlidingWindow(rule) => rule.limit,
            Self::SlidingLog(rule) => rule.limit,
            Self::FixedWindow(rule) => rule.limit,
            Self::TokenBucket(rule) => rule.burst,
            Self::LeakyBucket(rule) => rule.capacity(),
            Self::Concurrency(rule) => rule.limit,
        }
    }

    /// The window; of calendar windows the nominal one, of permits their time to live.
    #[must_use]
    pub const fn window(&self) -> Window {
        match self {
            Self::SlidingWindow(rule) => rule.window,
            Self::SlidingLog(rule) => rule.window,
            Self::FixedWindow(rule) => match rule.alignment {
                Alignment::Epoch(window) => window,
                Alignment::Calendar(unit, _) => unit.nominal(),
            },
            Self::TokenBucket(rule) => rule.window,
            Self::LeakyBucket(rule) => rule.window,
            Self::Concurrency(rule) => rule.ttl,
        }
    }

    /// The time in which as much as the capacity flows: the window, but for buckets, whose capacity is not
    /// their limit. Capacity and this are the rate. Rounded up; of a bucket through which nothing flows the
    /// window.
    #[must_use]
    pub fn refill(&self) -> Nanos {
        let window = self.window().span();
        let limit = match self {
            Self::TokenBucket(rule) => rule.limit,
            Self::LeakyBucket(rule) => rule.limit,
            Self::SlidingWindow(_)
            | Self::SlidingLog(_)
            | Self::FixedWindow(_)
            | Self::Concurrency(_) => return window,
        };
        if limit == 0 {
            return window;
        }
        let product = u128::from(window.as_nanos()).saturating_mul(u128::from(self.capacity()));
        let nanos = product.div_ceil(u128::from(limit));
        Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Its name in files, answers and keys.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SlidingWindow(_) => "sliding-window",
            Self::SlidingLog(_) => "sliding-log",
            Self::FixedWindow(_) => "fixed-window",
            Self::TokenBucket(_) => "token-bucket",
            Self::LeakyBucket(_) => "leaky-bucket",
            Self::Concurrency(_) => "concurrency",
        }
    }
}

/// The numbers of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    /// Units for each window, 0 (a block) to [`MAX_UNITS`](crate::MAX_UNITS).
    pub limit: u64,
    /// The window.
    pub window: Window,
    /// Slices of the window, 1 to [`MAX_SLICES`].
    pub slices: u8,
    /// How the oldest slice counts.
    pub oldest: OldestSlice,
}

/// The most slices of a window.
pub const MAX_SLICES: u8 = 60;

/// How the slice counts that lies only partly in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OldestSlice {
    /// By its remaining part: at most L in any W(1 - 1/slices). `hard = false`.
    Weighted,
    /// In full: at most L in any W. `hard = true`, needs two slices at least.
    Full,
}

/// The numbers of a sliding log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    /// Units for each window, 0 (a block) to [`MAX_LOG_LIMIT`].
    pub limit: u64,
    /// The window.
    pub window: Window,
}

/// The largest limit of a sliding log: it keeps an entry for each admitted check.
pub const MAX_LOG_LIMIT: u64 = 10_000;

/// The numbers of a fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    /// Units for each window, 0 (a block) to [`MAX_UNITS`](crate::MAX_UNITS).
    pub limit: u64,
    /// Where windows start and end.
    pub alignment: Alignment,
}

/// Where fixed windows start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// At whole multiples of the window since 1970-01-01T00:00:00Z.
    Epoch(Window),
    /// With the calendar of a time zone.
    Calendar(CalendarUnit, Zone),
}

/// The numbers of a token bucket: `limit / window` is the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    /// Units for each window, 0 (a block) to [`MAX_UNITS`](crate::MAX_UNITS).
    pub limit: u64,
    /// The window.
    pub window: Window,
    /// The most at once, at least 1 unless `limit` is 0, to [`MAX_UNITS`](crate::MAX_UNITS).
    pub burst: u64,
}

/// The numbers of a leaky bucket: `limit / window` is the rate of the outflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeakyBucket {
    /// Units for each window, 0 (a block) to [`MAX_UNITS`](crate::MAX_UNITS).
    pub limit: u64,
    /// The window.
    pub window: Window,
    /// Units that may wait beside the one that flows out, below [`MAX_UNITS`](crate::MAX_UNITS).
    pub queue: u64,
}

impl LeakyBucket {
    /// What waits and what flows out; nothing where nothing flows.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self.limit {
            0 => 0,
            _ => self.queue.saturating_add(1),
        }
    }
}

/// The numbers of a limit on concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Concurrency {
    /// Permits out at once, 0 (a block) to [`MAX_LOG_LIMIT`].
    pub limit: u64,
    /// When a permit that nobody released ends.
    pub ttl: Window,
}

/// What a key is put under whose reported failures have reached the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ban {
    /// How long the first ban is.
    pub length: Nanos,
    /// By what each further ban is longer, in thousandths: 1000 to [`MAX_ESCALATION`].
    pub escalation: u32,
    /// The longest ban, at least `length`, and the time without one after which the level falls.
    pub longest: Nanos,
}

/// The largest factor by which bans may grow, in thousandths.
pub const MAX_ESCALATION: u32 = 1_000_000;
