//! What tells a cell from the others of its key: its part, the algorithm, the window, the slices.
//!
//! Knows nothing of tables or of what is counted. Invariant: it never changes; only the numbers follow the rule
//! seen last.

use super::{
    COUNTER_MASK, FAILURES_FLAG, FULL_FLAG, KIND_MASK, KIND_SHIFT, Role, SLICES_MASK,
    SLIDING_WINDOW, role,
};
use crate::{
    bucket,
    calendar::{CalendarUnit, Zone},
    rule::{
        Algorithm, Alignment, Concurrency, FixedWindow, LeakyBucket, OldestSlice, Rule, SlidingLog,
        SlidingWindow, TokenBucket,
    },
    units::{Nanos, Window},
};

/// Which counter of a key and a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Part {
    /// What checks have charged.
    Charges,
    /// What was reported as failed.
    Failures,
    /// The ban, by which all checks are refused.
    Ban,
}

/// What tells a cell from the others of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct Identity {
    pub(super) window: u64,
    pub(super) meta: u64,
}

impl Identity {
    /// That of a cell's counter.
    pub(in crate::store) fn of_cell(cell: &[u64]) -> Option<Self> {
        let [_, _, meta, window, ..] = cell else {
            return None;
        };
        Some(Self {
            window: *window,
            meta: meta & COUNTER_MASK,
        })
    }

    /// Which part of a rule's state it is.
    pub(in crate::store) const fn part(self) -> Part {
        match Kind::of(self.meta) {
            Some(Kind::Ban) => Part::Ban,
            _ if self.meta & FAILURES_FLAG == 0 => Part::Charges,
            _ => Part::Failures,
        }
    }

    /// Whether it is replicated while it is counted.
    pub(in crate::store) const fn is_replicated(self) -> bool {
        super::is_replicated(self.window)
    }

    /// That of a key's ban, which no rule shares with another.
    pub(in crate::store) const BAN: Self = Self {
        window: 0,
        meta: Kind::Ban.bits(),
    };

    /// That of a part of a rule's state.
    pub(in crate::store) fn of(algorithm: &Algorithm, part: Part) -> Self {
        let role = match part {
            Part::Charges => 0,
            Part::Failures => FAILURES_FLAG,
            Part::Ban => return Self::BAN,
        };
        let (kind, slices) = match algorithm {
            Algorithm::SlidingWindow(rule) => (Kind::SlidingWindow, rule.slices),
            Algorithm::SlidingLog(_) => (Kind::SlidingLog, 0),
            Algorithm::FixedWindow(_) => (Kind::FixedWindow, 0),
            Algorithm::TokenBucket(_) => (Kind::TokenBucket, 0),
            Algorithm::LeakyBucket(_) => (Kind::LeakyBucket, 0),
            Algorithm::Concurrency(_) => (Kind::Concurrency, 0),
        };
        Self {
            window: window_word(algorithm),
            meta: u64::from(slices) | kind.bits() | role,
        }
    }
}

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SlidingWindow,
    SlidingLog,
    FixedWindow,
    TokenBucket,
    LeakyBucket,
    Concurrency,
    Ban,
}

impl Kind {
    const fn bits(self) -> u64 {
        let number: u64 = match self {
            Self::SlidingWindow => SLIDING_WINDOW,
            Self::SlidingLog => 1,
            Self::FixedWindow => 2,
            Self::TokenBucket => 3,
            Self::LeakyBucket => 4,
            Self::Concurrency => 5,
            Self::Ban => 6,
        };
        number << KIND_SHIFT
    }

    const fn of(meta: u64) -> Option<Self> {
        match (meta >> KIND_SHIFT) & KIND_MASK {
            SLIDING_WINDOW => Some(Self::SlidingWindow),
            1 => Some(Self::SlidingLog),
            2 => Some(Self::FixedWindow),
            3 => Some(Self::TokenBucket),
            4 => Some(Self::LeakyBucket),
            5 => Some(Self::Concurrency),
            6 => Some(Self::Ban),
            _ => None,
        }
    }
}

/// The word of a window: its nanoseconds, or below the shortest window a unit of the calendar and a zone.
fn window_word(algorithm: &Algorithm) -> u64 {
    if let Algorithm::FixedWindow(rule) = algorithm
        && let Alignment::Calendar(unit, zone) = rule.alignment
    {
        let unit = CalendarUnit::ALL.iter().position(|known| *known == unit);
        let unit = u64::try_from(unit.unwrap_or(0)).unwrap_or(0);
        return unit << u16::BITS | u64::from(zone.number());
    }
    algorithm.window().span().as_nanos()
}

fn alignment_of(word: u64) -> Option<Alignment> {
    if let Some(window) = Window::new(Nanos::new(word)) {
        return Some(Alignment::Epoch(window));
    }
    let unit = usize::try_from(word >> u16::BITS).ok()?;
    let zone = Zone::from_number(word & u64::from(u16::MAX))?;
    Some(Alignment::Calendar(*CalendarUnit::ALL.get(unit)?, zone))
}

/// The rule of a cell with the numbers that it or its writer saw last; `None` for a ban.
pub(in crate::store) fn rule_of(cell: &[u64]) -> Option<Rule> {
    let [_, _, meta, window, seen, _, _, words @ ..] = cell else {
        return None;
    };
    let words = match role(cell) {
        Role::Total => words,
        Role::Foreign | Role::Void => words.get(1..).unwrap_or_default(),
    };
    let limit = *seen;
    let span = Window::new(Nanos::new(*window));
    let algorithm = match Kind::of(*meta)? {
        Kind::SlidingWindow => Algorithm::SlidingWindow(SlidingWindow {
            limit,
            window: span?,
            slices: u8::try_from(meta & SLICES_MASK).ok()?,
            oldest: if meta & FULL_FLAG == 0 {
                OldestSlice::Weighted
            } else {
                OldestSlice::Full
            },
        }),
        Kind::SlidingLog => Algorithm::SlidingLog(SlidingLog {
            limit,
            window: span?,
        }),
        Kind::FixedWindow => Algorithm::FixedWindow(FixedWindow {
            limit,
            alignment: alignment_of(*window)?,
        }),
        Kind::TokenBucket => Algorithm::TokenBucket(TokenBucket {
            limit: bucket::limit_of(words),
            window: span?,
            burst: bucket::capacity_of(words),
        }),
        Kind::LeakyBucket => Algorithm::LeakyBucket(LeakyBucket {
            limit: bucket::limit_of(words),
            window: span?,
            queue: bucket::capacity_of(words).saturating_sub(1),
        }),
        Kind::Concurrency => Algorithm::Concurrency(Concurrency { limit, ttl: span? }),
        Kind::Ban => return None,
    };
    Some(Rule {
        ceiling: limit,
        ..Rule::new(algorithm)
    })
}
