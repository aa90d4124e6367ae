//! Series of one window added up, and taken apart again.
//!
//! Each writer's slices lie on the grid of its own clock. What it charged in one is taken for charged at
//! the end of it, or at its last charge if that was before, and goes into the slice here that holds this
//! instant: never early, and at most one slice late. Where the clocks agree so do the grids, and sums are exact.
//! A negative count lowers the slices here that its own slice touches, the older first: what it was taken
//! from lies in one of them.
//!
//! Invariants: the sum of series is never negative in any slice; what is one's own is the difference to it, so
//! that both together are the total again.

use smallvec::SmallVec;

use super::place::{Place, index_of};
use crate::{
    counter::merge::{Kept, shifted},
    rule::SlidingWindow,
    series::SeriesWords,
    units::Nanos,
};

/// The slices that a window ending in `newest` holds.
#[derive(Clone, Copy, Debug)]
struct Frame {
    oldest: u64,
    newest: u64,
    width: u64,
    /// No instant of a series is after this.
    bound: Nanos,
}

impl Frame {
    /// The window that ends at an instant.
    fn ending_at(rule: &SlidingWindow, latest: Nanos, bound: Nanos) -> Self {
        let place = Place::new(rule, latest, latest);
        Self {
            oldest: place.slice.saturating_sub(u64::from(rule.slices)),
            newest: place.slice,
            width: place.width(),
            bound,
        }
    }

    fn holds(&self, slice: u64) -> bool {
        (self.oldest..=self.newest).contains(&slice)
    }

    fn slice_of(&self, instant: u64) -> u64 {
        instant.checked_div(self.width).unwrap_or(0)
    }
}

/// What a series holds in one of its writer's slices, and the slices here that it touches.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The writer's slice.
    slice: u64,
    count: i64,
    from: u64,
    to: u64,
}

/// The parts of a series, the newest first.
fn parts(rule: &SlidingWindow, frame: Frame, kept: Kept<'_>) -> impl Iterator<Item = Part> {
    let newest = frame.slice_of(kept.latest.as_nanos());
    let words = kept.words;
    (0..=u64::from(rule.slices)).filter_map(move |age| {
        let slice = newest.checked_sub(age)?;
        let word = words.get(index_of(slice, words.len()))?;
        let first = slice.saturating_mul(frame.width);
        let last = first.saturating_add(frame.width.saturating_sub(1));
        let last = last.min(kept.latest.as_nanos());
        let part = Part {
            slice,
            count: word.cast_signed(),
            from: frame.slice_of(kept.here(first, frame.bound)),
            to: frame.slice_of(kept.here(last, frame.bound)),
        };
        (part.count != 0).then_some(part)
    })
}

/// Adds series up in words that are all zero, into the slices of the frame.
fn sum<'a>(
    rule: &SlidingWindow,
    frame: Frame,
    series: impl Iterator<Item = Kept<'a>>,
    words: &mut [u64],
) {
    let length = words.len();
    let mut negative = SmallVec::<[(u64, u64, u64); 8]>::new();
    for part in series.flat_map(|kept| parts(rule, frame, kept)) {
        if part.count < 0 {
            negative.push((part.from, part.to, part.count.unsigned_abs()));
            continue;
        }
        if frame.holds(part.to)
            && let Some(word) = words.get_mut(index_of(part.to, length))
        {
            let sum = word.saturating_add(part.count.unsigned_abs());
            *word = sum.min(i64::MAX.unsigned_abs());
        }
    }
    // In order of time: that of the series must not matter.
    negative.sort_unstable();
    for (from, to, mut left) in negative {
        for slice in from.max(frame.oldest)..=to.min(frame.newest) {
            if let Some(word) = words.get_mut(index_of(slice, length)) {
                let taken = left.min(*word);
                *word = word.saturating_sub(taken);
                left = left.saturating_sub(taken);
            }
        }
    }
}

/// Makes a total of series.
pub(crate) fn gather<'a>(
    rule: &SlidingWindow,
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    series: impl Iterator<Item = Kept<'a>> + Clone,
) {
    let last = series.clone().map(|kept| kept.latest_here(now)).max();
    let last = last.unwrap_or(*latest);
    words.fill(0);
    sum(rule, Frame::ending_at(rule, last, now), series, words);
    *latest = last;
}

/// What of a total is in none of the series.
pub(crate) fn own<'a>(
    rule: &SlidingWindow,
    (words, latest): (&[u64], Nanos),
    foreign: impl Iterator<Item = Kept<'a>>,
) -> SeriesWords {
    let mut of_others = SeriesWords::from_elem(0, words.len());
    let frame = Frame::ending_at(rule, latest, latest);
    sum(rule, frame, foreign, &mut of_others);
    let pairs = words.iter().zip(&of_others);
    pairs
        .map(|(all, others)| {
            let all = (*all).min(i64::MAX.unsigned_abs()).cast_signed();
            all.saturating_sub_unsigned(*others).cast_unsigned()
        })
        .collect()
}

/// Changes a total from holding `old` of one series to holding `new`.
pub(crate) fn replace(
    rule: &SlidingWindow,
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    others: &[Kept<'_>],
    (old, new): (Option<Kept<'_>>, Option<Kept<'_>>),
) {
    let before = others.iter().copied().chain(old);
    let mut home = own(rule, (words, *latest), before);
    let mut until = *latest;
    if let (Some(old), Some(new)) = (old, new) {
        follow(rule, (&mut home, &mut until), now, (old, new));
    }
    let home = Kept {
        latest: until,
        offset: 0,
        words: &home,
    };
    let after = others.iter().copied().chain(new).chain([home]);
    gather(rule, (words, latest), now.max(until), after);
}

/// What was taken back of a series goes where its newer content lies: else it would come back. A slice moves
/// as long as there are charges in it.
fn follow(
    rule: &SlidingWindow,
    (home, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    (old, new): (Kept<'_>, Kept<'_>),
) {
    let length = home.len();
    let bound = now.max(*latest);
    let before = Frame::ending_at(rule, *latest, bound);
    let mut missing: SmallVec<[u64; 12]> = home
        .iter()
        .map(|word| word.cast_signed().min(0).unsigned_abs())
        .collect();
    if missing.iter().all(|missing| *missing == 0) {
        return;
    }
    let until = new.latest_here(bound);
    Place::new(rule, *latest, until).charge(home, latest, 0);
    let after = Frame::ending_at(rule, *latest, bound);
    for part in parts(rule, before, old).filter(|part| before.holds(part.to)) {
        let moved = parts(rule, after, new).find(|moved| moved.slice == part.slice);
        let Some(moved) = moved.filter(|moved| moved.to != part.to && after.holds(moved.to)) else {
            continue;
        };
        let Some(missing) = missing.get_mut(index_of(part.to, length)) else {
            continue;
        };
        let both = part.count.min(moved.count).max(0).unsigned_abs();
        let count = both.min(*missing);
        *missing = missing.saturating_sub(count);
        if let Some(left) = home
            .get_mut(index_of(part.to, length))
            .filter(|_| after.holds(part.to))
        {
            *left = left.wrapping_add(count);
        }
        if let Some(found) = home.get_mut(index_of(moved.to, length)) {
            *found = found.wrapping_sub(count);
        }
    }
}

/// When the slice of the last charge has left the window, by the clock here.
pub(crate) fn ends_at(rule: &SlidingWindow, kept: Kept<'_>) -> Nanos {
    let latest = Nanos::new(shifted(kept.latest.as_nanos(), kept.offset));
    let place = Place::new(rule, latest, latest);
    let slices = u64::from(rule.slices).saturating_add(1);
    let end = place.slice.saturating_add(slices);
    Nanos::new(end.saturating_mul(place.width()))
}
