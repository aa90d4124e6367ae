//! Series of one window added up, and taken apart again.
//!
//! Each writer's slices lie on the grid of its own clock. What it charged in one is taken for charged at
//! the end of it, or at its last charge if that was before, and goes into the slice here that holds this
//! instant: never early, and at most one slice late. Where the clocks agree so do the grids, and sums are exact.
//! A negative count lowers the slices here that its own slice touches, the older first: what it was taken
//! from lies in one of them.
//!
//! Invariants: what is one's own is the difference to the sum of the others, exactly, so that any order of any
//! deliveries leads to one total; a sum does not depend on the window that is looked at.

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

/// Series added up, whatever window is looked at.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// What is counted in each slice, in order of time.
    counts: SmallVec<[(u64, i64); 12]>,
    /// What was taken back from one of the slices from the first to the second, and nothing of it is there.
    missing: SmallVec<[(u64, u64, i64); 2]>,
}

impl Sums {
    fn of<'a>(rule: &SlidingWindow, frame: Frame, series: impl Iterator<Item = Kept<'a>>) -> Self {
        let mut sums = Self::default();
        for part in series.flat_map(|kept| parts(rule, frame, kept)) {
            if part.count < 0 {
                sums.missing.push((part.from, part.to, part.count));
            } else {
                sums.counts.push((part.to, part.count));
            }
        }
        sums.counts.sort_unstable();
        sums.counts.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            is_same
        });
        // In order of time: that of the series must not matter.
        sums.missing.sort_unstable();
        for (from, to, missing) in &mut sums.missing {
            let first = sums.counts.partition_point(|(slice, _)| slice < from);
            let touched = sums.counts.iter_mut().skip(first);
            for (_, count) in touched.take_while(|(slice, _)| slice <= to) {
                let taken = missing.saturating_neg().min(*count);
                *count = count.saturating_sub(taken);
                *missing = missing.saturating_add(taken);
            }
        }
        sums.missing.retain(|(_, _, missing)| *missing < 0);
        sums
    }

    /// What lies in each slice of the frame. What is missing lies in the first that it may be missing from.
    fn each(&self, frame: Frame) -> impl Iterator<Item = (u64, i64)> {
        let missing = self.missing.iter().map(|(from, _, count)| (*from, *count));
        let all = self.counts.iter().copied().chain(missing);
        all.filter(move |(slice, _)| frame.holds(*slice))
    }

    fn add_to(&self, words: &mut [u64], frame: Frame) {
        for (slice, count) in self.each(frame) {
            change(words, slice, |word| word.saturating_add(count));
        }
    }

    fn take_from(&self, words: &mut [u64], frame: Frame) {
        for (slice, count) in self.each(frame) {
            change(words, slice, |word| word.saturating_sub(count));
        }
    }

    /// Lets what is missing lower what others than these series have charged.
    fn settle(&self, words: &mut [u64], frame: Frame) {
        let length = words.len();
        for (from, to, missing) in &self.missing {
            if from == to || !frame.holds(*from) || !frame.holds(*to) {
                continue;
            }
            let at = |slice: u64| {
                words
                    .get(index_of(slice, length))
                    .map_or(0, |word| word.cast_signed())
            };
            let lacks = at(*from).max(*missing).min(0).saturating_neg();
            let moved = lacks.min(at(*to).max(0));
            change(words, *from, |word| word.saturating_add(moved));
            change(words, *to, |word| word.saturating_sub(moved));
        }
    }
}

/// Changes the counter of a slice.
fn change(words: &mut [u64], slice: u64, change: impl FnOnce(i64) -> i64) {
    let length = words.len();
    if let Some(word) = words.get_mut(index_of(slice, length)) {
        *word = change(word.cast_signed()).cast_unsigned();
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
    *latest = last.unwrap_or(*latest);
    words.fill(0);
    let frame = Frame::ending_at(rule, *latest, now);
    Sums::of(rule, frame, series).add_to(words, frame);
}

/// What of a total is in none of the series.
pub(crate) fn own<'a>(
    rule: &SlidingWindow,
    (words, latest): (&[u64], Nanos),
    foreign: impl Iterator<Item = Kept<'a>>,
) -> SeriesWords {
    let mut own = SeriesWords::from_slice(words);
    let frame = Frame::ending_at(rule, latest, latest);
    Sums::of(rule, frame, foreign).take_from(&mut own, frame);
    own
}

/// Changes a total from holding `old` of one series to holding `new`.
pub(crate) fn replace(
    rule: &SlidingWindow,
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    others: &[Kept<'_>],
    (old, new): (Option<Kept<'_>>, Option<Kept<'_>>),
) {
    let bound = now.max(*latest);
    let before = Frame::ending_at(rule, *latest, bound);
    let held = others.iter().copied().chain(old);
    Sums::of(rule, before, held).take_from(words, before);
    let lacking: SmallVec<[i64; 12]> = words.iter().map(|word| word.cast_signed().min(0)).collect();
    let until = new.map_or(*latest, |new| new.latest_here(bound));
    Place::new(rule, *latest, until).charge(words, latest, 0);
    let after = Frame::ending_at(rule, *latest, bound);
    if let (Some(old), Some(new)) = (old, new)
        && lacking.iter().any(|lacks| *lacks < 0)
    {
        follow(rule, (words, lacking), (before, old), (after, new));
    }
    let held = others.iter().copied().chain(new);
    let sums = Sums::of(rule, after, held);
    sums.add_to(words, after);
    sums.settle(words, after);
}

/// What was taken back of a series goes where its newer content lies: else it would come back. A slice moves
/// as long as there are charges in it, and with each delivery by the difference of their times.
fn follow(
    rule: &SlidingWindow,
    (words, mut lacking): (&mut [u64], SmallVec<[i64; 12]>),
    (before, old): (Frame, Kept<'_>),
    (after, new): (Frame, Kept<'_>),
) {
    let length = words.len();
    for part in parts(rule, before, old).filter(|part| before.holds(part.to)) {
        let moved = parts(rule, after, new).find(|moved| moved.slice == part.slice);
        let Some(moved) = moved.filter(|moved| moved.to != part.to && after.holds(moved.to)) else {
            continue;
        };
        let Some(lacks) = lacking.get_mut(index_of(part.to, length)) else {
            continue;
        };
        let count = part
            .count
            .min(moved.count)
            .min(lacks.saturating_neg())
            .max(0);
        *lacks = lacks.saturating_add(count);
        if after.holds(part.to) {
            change(words, part.to, |word| word.saturating_add(count));
        }
        change(words, moved.to, |word| word.saturating_sub(count));
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
