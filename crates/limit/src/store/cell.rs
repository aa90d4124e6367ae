//! A cell: one counter as a run of words, and what the words mean.
//!
//! Six words of header, then the counter's own. Knows nothing of tables, budgets or locks. Invariant:
//! what tells a cell from the others of its key never changes: its part, the algorithm, the window, the
//! slices; only the numbers follow the rule seen last.

use super::ban;
use crate::{
    bucket,
    calendar::{CalendarUnit, Zone},
    counter::{Held, HeldMut, Moment, Reading},
    judge::Reading as _,
    key::KeyHash,
    rule::{
        Algorithm, Alignment, Concurrency, FixedWindow, LeakyBucket, OldestSlice, Rule, SlidingLog,
        SlidingWindow, TokenBucket,
    },
    units::{Nanos, Window},
};

/// Words before the counter's own: key high, key low, meta, window, what was noted of the rule, last charge.
pub(super) const HEADER_WORDS: usize = 6;
/// In meta: the slices.
const SLICES_MASK: u64 = 0xff;
/// In meta: set if the oldest slice counts in full.
const FULL_FLAG: u64 = 0x100;
/// In meta: the kind, from this bit on.
const KIND_SHIFT: u32 = 9;
const KIND_MASK: u64 = 0b111;
/// The kind of a sliding window.
const SLIDING_WINDOW: u64 = 0;
/// In meta: set if the cell counts reported failures.
const FAILURES_FLAG: u64 = 0x1000;
/// In meta: what tells a cell from the others of its key.
const IDENTITY_MASK: u64 = SLICES_MASK | KIND_MASK << KIND_SHIFT | FAILURES_FLAG;
/// In meta: one write. The number of writes takes the upper 48 bits.
const ONE_WRITE: u64 = 0x1_0000;
/// Cells above this length have a length that [`LENGTH_STEP`] divides: so that there are few lengths.
const LONG: usize = 40;
const LENGTH_STEP: usize = 4;

/// Which counter of a key and a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What checks have charged.
    Charges,
    /// What was reported as failed.
    Failures,
    /// The ban, by which all checks are refused.
    Ban,
}

/// What tells a cell from the others of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    window: u64,
    meta: u64,
}

impl Identity {
    /// That of a key's ban, which no rule shares with another.
    pub(super) const BAN: Self = Self {
        window: 0,
        meta: Kind::Ban.bits(),
    };

    /// That of a part of a rule's state.
    pub(super) fn of(algorithm: &Algorithm, part: Part) -> Self {
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

/// The length of a cell with so many words of its own.
pub(super) const fn length(own_words: usize) -> usize {
    let exact = own_words.saturating_add(HEADER_WORDS);
    if exact <= LONG {
        exact
    } else {
        exact.next_multiple_of(LENGTH_STEP)
    }
}

/// The low half of a cell's key: its hash in the table.
pub(super) fn low_of(cell: &[u64]) -> u64 {
    cell.get(1).copied().unwrap_or(0)
}

/// The key of a cell.
pub(super) fn key_of(cell: &[u64]) -> Option<KeyHash> {
    let [high, low, ..] = cell else { return None };
    Some(KeyHash::from_halves(*high, *low))
}

/// Whether a cell counts for this key.
pub(super) fn has_key(cell: &[u64], key: KeyHash) -> bool {
    matches!(cell, [high, low, ..] if *high == key.high() && *low == key.low())
}

/// Whether a cell is that of this key.
#[inline]
pub(super) fn is(cell: &[u64], key: KeyHash, identity: Identity) -> bool {
    let [high, low, meta, window, ..] = cell else {
        return false;
    };
    *low == key.low()
        && *high == key.high()
        && *window == identity.window
        && meta & IDENTITY_MASK == identity.meta
}

/// Makes a fresh counter of a cell, whatever was in it.
pub(super) fn start(
    cell: &mut [u64],
    key: KeyHash,
    identity: Identity,
    (capacity, now): (u64, Nanos),
) {
    let [high, low, meta, window, seen, latest, own @ ..] = cell else {
        return;
    };
    *high = key.high();
    *low = key.low();
    *meta = identity.meta;
    *window = identity.window;
    *seen = capacity;
    *latest = now.as_nanos();
    own.fill(0);
}

/// The counter of a cell.
pub(super) fn held(cell: &[u64]) -> Option<Held<'_>> {
    let [_, _, meta, _, seen, latest, words @ ..] = cell else {
        return None;
    };
    Some(Held {
        seen: *seen,
        latest: Nanos::new(*latest),
        words: words.get(..words_in_use(*meta, words.len()))?,
    })
}

/// How many of a cell's own words its counter takes: a window goes round in just as many as it has
/// slices and one, a ring of entries finds out by itself.
#[inline]
fn words_in_use(meta: u64, own_words: usize) -> usize {
    if (meta >> KIND_SHIFT) & KIND_MASK != SLIDING_WINDOW {
        return own_words;
    }
    let slices = usize::try_from(meta & SLICES_MASK).unwrap_or(0);
    slices.saturating_add(1).min(own_words)
}

/// Runs a change of the counter. If it says that it wrote, the write is numbered and the rule's numbers
/// are noted.
#[inline]
pub(super) fn change<T>(
    cell: &mut [u64],
    rule: &Rule,
    change: impl FnOnce(HeldMut<'_>) -> (T, Wrote),
) -> Option<T> {
    let [_, _, meta, _, seen, latest, words @ ..] = cell else {
        return None;
    };
    let in_use = words_in_use(*meta, words.len());
    let words = words.get_mut(..in_use)?;
    let mut instant = Nanos::new(*latest);
    let (result, wrote) = change(HeldMut {
        seen: *seen,
        latest: &mut instant,
        words,
    });
    let full = match wrote {
        Wrote::No => return Some(result),
        Wrote::Amended => *meta & FULL_FLAG,
        Wrote::Yes => {
            *seen = rule.noted();
            let is_full = matches!(
                &rule.algorithm,
                Algorithm::SlidingWindow(window) if window.oldest == OldestSlice::Full
            );
            if is_full { FULL_FLAG } else { 0 }
        }
    };
    *latest = instant.as_nanos();
    // The number of writes goes round: it must never spill into what the cell is.
    *meta = (*meta & !FULL_FLAG | full).wrapping_add(ONE_WRITE);
    Some(result)
}

/// Whether a change wrote anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// A word changed, by the rule's numbers.
    Yes,
    /// A word changed, by a later message, which may tell of a rule of before: its numbers are not noted.
    Amended,
    /// All is as it was.
    No,
}

impl From<bool> for Wrote {
    fn from(wrote: bool) -> Self {
        if wrote { Self::Yes } else { Self::No }
    }
}

/// How a cell stands at an instant, by the rule that it saw last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing is used: it is as good as gone.
    Empty,
    /// Less than the limit is used.
    Below {
        used: u64,
        limit: u64,
        latest: Nanos,
    },
    /// The limit is used up, for so long.
    AtLimit { recovers_after: Nanos },
}

/// How a cell stands.
pub(super) fn standing(cell: &[u64], at: Moment) -> Standing {
    let Some(held) = held(cell) else {
        return Standing::Empty;
    };
    let Some(rule) = rule_of(cell) else {
        return ban::standing(held.words, at.now);
    };
    let (limit, latest) = (rule.capacity(), held.latest);
    let reading = Reading::at(&rule, held, at);
    let used = reading.used();
    if used == 0 {
        return Standing::Empty;
    }
    if used < limit {
        return Standing::Below {
            used,
            limit,
            latest,
        };
    }
    Standing::AtLimit {
        recovers_after: reading.wait_until_within(limit.saturating_sub(1)),
    }
}

/// The rule of a cell with the numbers that it saw last; `None` for a ban.
fn rule_of(cell: &[u64]) -> Option<Rule> {
    let [_, _, meta, window, seen, _, words @ ..] = cell else {
        return None;
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
