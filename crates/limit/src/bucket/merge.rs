//! Series of one bucket, of which levels that each drained at the whole rate must never be summed.
//!
//! A series is the level of all that its writer knew, and how much that writer has charged itself. Where
//! a total stands, another's series adds what its writer has charged since it was last seen, at most what is
//! still in it. Where none stands the largest level does.
//!
//! Invariant: what is added lies on top of all charges before, so that a give-back takes nothing of it.

use super::{BEGUN, CHARGED, WORDS, raise_mark};
use crate::{
    counter::merge::Kept,
    series::SeriesWords,
    units::{MAX_UNITS, Nanos, Window},
};

/// The words of a series, by name.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    level: u128,
    limit: u64,
    capacity: u64,
    charged: u64,
    begun: u64,
}

impl Bucket {
    fn of(words: &[u64]) -> Self {
        let [high, low, limit, capacity, _, charged, begun] = *words else {
            return Self::default();
        };
        Self {
            level: u128::from(high).unbounded_shl(u64::BITS) | u128::from(low),
            limit,
            capacity,
            charged,
            begun,
        }
    }

    /// As it stands when so much time has passed.
    fn after(self, passed: Nanos) -> Self {
        let drained = u128::from(self.limit).saturating_mul(u128::from(passed.as_nanos()));
        Self {
            level: self.level.saturating_sub(drained),
            ..self
        }
    }

    /// A series as it stands at an instant.
    fn at(kept: Kept<'_>, now: Nanos) -> Self {
        Self::of(kept.words).after(now.saturating_sub(kept.latest_here(now)))
    }

    /// What its writer has charged of what is in it since an older state of it, in parts of a unit.
    fn charged_since(self, old: Option<Self>, window: Window) -> u128 {
        let seen = old.filter(|old| old.begun == self.begun);
        let seen = seen.map_or(0, |old| old.charged);
        let growth = self.charged.wrapping_sub(seen).cast_signed().max(0);
        let parts = u128::from(growth.unsigned_abs()).saturating_mul(parts(window));
        parts.min(self.level)
    }
}

/// Parts of a unit.
fn parts(window: Window) -> u128 {
    u128::from(window.span().as_nanos()).max(1)
}

/// Units of which so many parts are, rounded up.
fn units(parts_in_it: u128, window: Window) -> u64 {
    u64::try_from(parts_in_it.div_ceil(parts(window))).unwrap_or(u64::MAX)
}

fn set_level(words: &mut [u64], level: u128) {
    if let [high, low, ..] = words {
        *high = u64::try_from(level.unbounded_shr(u64::BITS)).unwrap_or(u64::MAX);
        *low = u64::try_from(level & u128::from(u64::MAX)).unwrap_or(u64::MAX);
    }
}

fn set_numbers(words: &mut [u64], from: Bucket) {
    if let [_, _, limit, capacity, ..] = words {
        (*limit, *capacity) = (from.limit, from.capacity);
    }
}

/// Makes a total of series: the fullest of them as it stands now. Nothing of it was charged here.
pub(crate) fn gather<'a>(
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    series: impl Iterator<Item = Kept<'a>>,
) {
    words.fill(0);
    let fullest = series
        .map(|kept| (Bucket::at(kept, now), kept.latest_here(now)))
        .max_by_key(|(bucket, latest)| (bucket.level, *latest));
    if let Some((fullest, _)) = fullest {
        set_level(words, fullest.level);
        set_numbers(words, fullest);
        *latest = now;
    }
}

/// The level of all, and what was charged here.
pub(crate) fn own(words: &[u64]) -> SeriesWords {
    SeriesWords::from_slice(words)
}

/// Changes a total from holding `old` of one series to holding `new`.
pub(crate) fn replace(
    window: Window,
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    (old, new): (Option<Kept<'_>>, Option<Kept<'_>>),
) {
    let now = now.max(*latest);
    let old = old.map(|kept| Bucket::at(kept, now));
    let new = new.map(|kept| Bucket::at(kept, now));
    let (more, less) = match (old, new) {
        (old, Some(new)) => (new.charged_since(old, window), 0),
        (Some(old), None) => (0, old.charged_since(None, window)),
        (None, None) => (0, 0),
    };
    if more == 0 && less == 0 {
        return;
    }
    let total = Bucket::of(words);
    if let Some(new) = new.filter(|_| total.limit == 0) {
        set_numbers(words, new);
    }
    let level = total.after(now.saturating_sub(*latest)).level;
    set_level(words, level.saturating_add(more).saturating_sub(less));
    if more > 0 {
        raise_mark(words, now, units(more, window));
    }
    *latest = now;
}

/// Counts as charged here what the writer of a series has charged of what is in it.
pub(crate) fn absorb(window: Window, words: &mut [u64], now: Nanos, kept: Kept<'_>) {
    let theirs = Bucket::at(kept, now).charged_since(None, window);
    super::note_charged(words, now, units(theirs, window));
}

/// When it is empty, and a window more: until then the growth of its running total says what is new.
pub(crate) fn ends_at(window: Window, kept: Kept<'_>) -> Nanos {
    let bucket = Bucket::of(kept.words);
    let drain = match bucket.level {
        0 => 0,
        level => level
            .checked_add(u128::from(bucket.limit.saturating_sub(1)))
            .and_then(|level| level.checked_div(u128::from(bucket.limit)))
            .map_or(u64::MAX, |nanos| u64::try_from(nanos).unwrap_or(u64::MAX)),
    };
    kept.latest_here(Nanos::MAX)
        .saturating_add(Nanos::new(drain))
        .saturating_add(window.span())
}

/// Whether the words are as many as a bucket has, with numbers that a rule may have.
pub(crate) fn is_sound(words: &[u64]) -> bool {
    let bucket = Bucket::of(words);
    words.len() == WORDS && bucket.limit <= MAX_UNITS && bucket.capacity <= MAX_UNITS
}

const _: () = assert!(CHARGED.saturating_add(2) == WORDS && BEGUN.saturating_add(1) == WORDS);
