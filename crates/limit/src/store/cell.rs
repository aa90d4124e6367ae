//! A cell: one counter as a run of words, and what the words mean.
//!
//! Seven words of header, then the counter's own. A cell is a total, on which decisions are made, or what is
//! known of another writer's series of the same counter: see `cell::series`. Knows nothing of tables, budgets
//! or locks. Invariant: what tells a cell from the others of its key never changes: its part, the algorithm,
//! the window, the slices, its role; only the numbers follow the rule seen last.

mod identity;
mod series;
mod standing;

pub(super) use self::{
    identity::{Identity, Part, rule_of},
    series::{
        Foreign, MOST_VERSION, Role, is_marked, kept, mark, role, seen, start_foreign, start_void,
        unmark, version, void_end, writer,
    },
    standing::{Standing, standing, standing_of_foreign},
};
use crate::{
    counter::{Held, HeldMut},
    key::KeyHash,
    rule::{Algorithm, OldestSlice, Rule},
    units::{Nanos, Window},
};

/// Words before the counter's own: key high, key low, meta, window, what was noted of the rule, last charge,
/// and of a total what was written since it was sent, of others their writer.
pub(super) const HEADER_WORDS: usize = 7;
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
/// In meta: set if the cell holds another writer's series.
const FOREIGN_FLAG: u64 = 0x2000;
/// In meta: set if nothing of a series counts any more.
const VOID_FLAG: u64 = 0x4000;
/// In meta of a total: set if series are held beside it. Of others: set if they are to be sent.
const MARK_FLAG: u64 = 0x8000;
/// In meta: what tells a counter from the others of its key.
const COUNTER_MASK: u64 = SLICES_MASK | KIND_MASK << KIND_SHIFT | FAILURES_FLAG;
/// In meta: what a total has none of.
const ROLE_MASK: u64 = FOREIGN_FLAG | VOID_FLAG;
/// In meta: one write. The version, raised by each write, takes the upper 48 bits.
const ONE_WRITE: u64 = 0x1_0000;
const VERSION_SHIFT: u32 = 16;
/// Cells of more words of their own have one of few lengths: so that there are few arenas.
const LONG: usize = 34;
const LENGTH_STEP: usize = 4;
/// Where the steps lie: a ring of entries that doubles fills its cell.
const STEP_OFFSET: usize = 2;
/// Windows below this are not replicated: they are over before a copy is of use.
pub const MIN_REPLICATED_WINDOW: Nanos = Nanos::from_millis(2000);
/// A counter is sent at once when one in so many of its limit was written.
const URGENT_SHARE: u64 = 32;

/// The length of a cell with so many words of its own.
pub(super) const fn length(own_words: usize) -> usize {
    if own_words <= LONG {
        return own_words.saturating_add(HEADER_WORDS);
    }
    let stepped = own_words.saturating_add(STEP_OFFSET);
    let stepped = stepped.next_multiple_of(LENGTH_STEP);
    stepped
        .saturating_sub(STEP_OFFSET)
        .saturating_add(HEADER_WORDS)
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

/// Whether a cell is the total of this counter.
#[inline]
pub(super) fn is(cell: &[u64], key: KeyHash, identity: Identity) -> bool {
    is_with(cell, key, identity, COUNTER_MASK | ROLE_MASK)
}

/// Whether a cell is of this counter, whatever its role.
#[inline]
pub(super) fn is_of(cell: &[u64], key: KeyHash, identity: Identity) -> bool {
    is_with(cell, key, identity, COUNTER_MASK)
}

#[inline]
fn is_with(cell: &[u64], key: KeyHash, identity: Identity, mask: u64) -> bool {
    let [high, low, meta, window, ..] = cell else {
        return false;
    };
    *low == key.low()
        && *high == key.high()
        && *window == identity.window
        && meta & mask == identity.meta
}

/// Makes a fresh total of a cell, whatever was in it.
pub(super) fn start(
    cell: &mut [u64],
    (key, identity): (KeyHash, Identity),
    (capacity, now): (u64, Nanos),
    version: u64,
) {
    let [high, low, meta, window, seen, latest, unsent, own @ ..] = cell else {
        return;
    };
    *high = key.high();
    *low = key.low();
    *meta = version.unbounded_shl(VERSION_SHIFT) | identity.meta;
    *window = identity.window;
    *seen = capacity;
    *latest = now.as_nanos();
    *unsent = 0;
    own.fill(0);
}

/// The counter of a total.
#[inline]
pub(super) fn held(cell: &[u64]) -> Option<Held<'_>> {
    let [_, _, meta, _, seen, latest, _, words @ ..] = cell else {
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
/// are noted. Says too whether the counter is to be sent.
#[inline]
pub(super) fn change<T>(
    cell: &mut [u64],
    rule: &Rule,
    change: impl FnOnce(HeldMut<'_>) -> (T, Wrote),
) -> Option<(T, Urge)> {
    let [_, _, meta, window, seen, latest, unsent, words @ ..] = cell else {
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
    let (full, units) = match wrote {
        Wrote::No => return Some((result, Urge::None)),
        Wrote::Amended(units) => (*meta & FULL_FLAG, units),
        Wrote::Yes(units) => {
            *seen = rule.noted();
            let is_full = is_full(&rule.algorithm);
            (if is_full { FULL_FLAG } else { 0 }, units)
        }
    };
    *latest = instant.as_nanos();
    // The number of writes goes round: it must never spill into what the cell is.
    *meta = (*meta & !FULL_FLAG | full).wrapping_add(ONE_WRITE);
    let before = *unsent;
    *unsent = before.saturating_add(units.max(1));
    Some((result, urge(*window, *seen, before, *unsent)))
}

/// Numbers a write of a total that no rule tells of.
pub(super) fn amend(cell: &mut [u64], change: impl FnOnce(HeldMut<'_>)) -> Urge {
    let [_, _, meta, window, seen, latest, unsent, words @ ..] = cell else {
        return Urge::None;
    };
    let in_use = words_in_use(*meta, words.len());
    let mut instant = Nanos::new(*latest);
    change(HeldMut {
        seen: *seen,
        latest: &mut instant,
        words: words.get_mut(..in_use).unwrap_or_default(),
    });
    *latest = instant.as_nanos();
    *meta = meta.wrapping_add(ONE_WRITE);
    let before = *unsent;
    *unsent = before.saturating_add(1);
    urge(*window, *seen, before, *unsent)
}

/// Changes what others' series have a part in. No write of this writer, so it has no number.
pub(super) fn mix(cell: &mut [u64], change: impl FnOnce(HeldMut<'_>)) {
    let [_, _, meta, _, seen, latest, _, words @ ..] = cell else {
        return;
    };
    let in_use = words_in_use(*meta, words.len());
    let mut instant = Nanos::new(*latest);
    change(HeldMut {
        seen: *seen,
        latest: &mut instant,
        words: words.get_mut(..in_use).unwrap_or_default(),
    });
    *latest = instant.as_nanos();
}

/// Units of a total that were written since it was sent.
pub(super) fn unsent(cell: &[u64]) -> u64 {
    cell.get(6).copied().unwrap_or(0)
}

/// What a total is and what of it is unsent, to be kept where its words move.
pub(super) fn state(cell: &[u64]) -> (u64, u64) {
    (cell.get(2).copied().unwrap_or(0), unsent(cell))
}

/// Sets that.
pub(super) fn set_state(cell: &mut [u64], (state, to_send): (u64, u64)) {
    if let [_, _, meta, _, _, _, unsent, ..] = cell {
        *meta = state;
        *unsent = to_send;
    }
}

/// Whether so much of a total is unsent that it is sent at once.
pub(super) fn is_urgent(cell: &[u64]) -> bool {
    matches!(cell, [_, _, _, window, seen, _, unsent, ..]
        if is_replicated(*window) && *unsent >= urgent_from(*seen))
}

/// A total is sent.
pub(super) fn set_sent(cell: &mut [u64]) {
    if let Some(unsent) = cell.get_mut(6) {
        *unsent = 0;
    }
}

/// When a counter that was written is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urge {
    /// That is known already, or it is never sent by itself.
    None,
    /// After a while.
    Due,
    /// At once.
    Urgent,
}

#[inline]
fn urge(window: u64, seen: u64, before: u64, after: u64) -> Urge {
    let urgent = urgent_from(seen);
    if before > 0 && (before >= urgent || after < urgent) {
        return Urge::None;
    }
    if !is_replicated(window) {
        return Urge::None;
    }
    if after >= urgent {
        Urge::Urgent
    } else {
        Urge::Due
    }
}

const fn urgent_from(seen: u64) -> u64 {
    let share = seen / URGENT_SHARE;
    if share == 0 { 1 } else { share }
}

/// Whether a counter of that word of a window is replicated: the word of a ban and those of the calendar are
/// below the shortest window.
pub(super) const fn is_replicated(window: u64) -> bool {
    window < Window::MIN.as_nanos() || window >= MIN_REPLICATED_WINDOW.as_nanos()
}

const fn is_full(algorithm: &Algorithm) -> bool {
    matches!(algorithm, Algorithm::SlidingWindow(window) if matches!(window.oldest, OldestSlice::Full))
}

/// Whether a change wrote anything, and how many units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// A word changed, by the rule's numbers.
    Yes(u64),
    /// A word changed, by a later message, which may tell of a rule of before: its numbers are not noted.
    Amended(u64),
    /// All is as it was.
    No,
}
