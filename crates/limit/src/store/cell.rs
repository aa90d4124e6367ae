//! A cell: one counter as a run of words, and what the words mean.
//!
//! Six words of header, then `slices + 1` counters. Knows nothing of tables, budgets or locks.
//! Invariant: the header's window and slices are those of the rule that made the cell; only the
//! limit and the oldest slice's treatment follow the rule seen last.

use crate::{
    key::KeyHash,
    rule::{OldestSlice, SlidingWindow},
    units::{Nanos, Window},
    window::Reading,
};

/// Words before the counters: key high, key low, meta, window, limit last seen, last charge.
const HEADER_WORDS: usize = 6;
/// In meta: the slices.
const SLICES_MASK: u64 = 0xff;
/// In meta: set if the oldest slice counts in full.
const FULL_FLAG: u64 = 0x100;
/// In meta: one write. The number of writes takes the upper 48 bits.
const ONE_WRITE: u64 = 0x1_0000;

/// The words of a cell with that many slices.
pub(super) fn words(slices: u8) -> usize {
    usize::from(slices)
        .saturating_add(HEADER_WORDS)
        .saturating_add(1)
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

/// Whether a cell counts for this key in this window.
pub(super) fn counts_for(cell: &[u64], key: KeyHash, rule: &SlidingWindow) -> bool {
    let [high, low, meta, window, ..] = cell else {
        return false;
    };
    *low == key.low()
        && *high == key.high()
        && *window == rule.window.span().as_nanos()
        && meta & SLICES_MASK == u64::from(rule.slices)
}

/// Makes a fresh counter of a cell, whatever was in it.
pub(super) fn start(cell: &mut [u64], key: KeyHash, rule: &SlidingWindow, now: Nanos) {
    let [high, low, meta, window, limit, latest, counters @ ..] = cell else {
        return;
    };
    *high = key.high();
    *low = key.low();
    *meta = u64::from(rule.slices);
    *window = rule.window.span().as_nanos();
    *limit = rule.limit;
    *latest = now.as_nanos();
    counters.fill(0);
}

/// The counters of a cell and the instant of its last charge.
pub(super) fn parts(cell: &[u64]) -> Option<(&[u64], Nanos)> {
    let [_, _, _, _, _, latest, counters @ ..] = cell else {
        return None;
    };
    Some((counters, Nanos::new(*latest)))
}

/// Runs a change of the counters. If it says that it wrote, the write is numbered and the rule's
/// numbers are noted.
pub(super) fn change<T>(
    cell: &mut [u64],
    rule: &SlidingWindow,
    change: impl FnOnce(&mut [u64], &mut Nanos) -> (T, Wrote),
) -> Option<T> {
    let [_, _, meta, _, limit, latest, counters @ ..] = cell else {
        return None;
    };
    let mut instant = Nanos::new(*latest);
    let (result, wrote) = change(counters, &mut instant);
    if wrote == Wrote::Yes {
        *latest = instant.as_nanos();
        *limit = rule.limit;
        let full = match rule.oldest {
            OldestSlice::Full => FULL_FLAG,
            OldestSlice::Weighted => 0,
        };
        *meta = (*meta & !FULL_FLAG | full).saturating_add(ONE_WRITE);
    }
    Some(result)
}

/// Whether a change wrote anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// A word changed.
    Yes,
    /// All is as it was.
    No,
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
pub(super) fn standing(cell: &[u64], now: Nanos) -> Standing {
    let (Some(rule), Some((counters, latest))) = (rule_of(cell), parts(cell)) else {
        return Standing::Empty;
    };
    let reading = Reading::at(&rule, counters, latest, now);
    if reading.used() == 0 {
        return Standing::Empty;
    }
    if reading.used() < rule.limit {
        return Standing::Below {
            used: reading.used(),
            limit: rule.limit,
            latest,
        };
    }
    Standing::AtLimit {
        recovers_after: reading.wait_until_within(rule.limit.saturating_sub(1)),
    }
}

/// The rule that a cell saw last.
fn rule_of(cell: &[u64]) -> Option<SlidingWindow> {
    let [_, _, meta, window, limit, ..] = cell else {
        return None;
    };
    let oldest = if meta & FULL_FLAG == 0 {
        OldestSlice::Weighted
    } else {
        OldestSlice::Full
    };
    Some(SlidingWindow {
        limit: *limit,
        window: Window::new(Nanos::new(*window))?,
        slices: u8::try_from(meta & SLICES_MASK).ok()?,
        oldest,
    })
}
