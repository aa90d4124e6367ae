//! Series of one log, or of one limit's permits, added up and taken apart again.
//!
//! Entries are moved by the offset of the clocks and put in order of time. In a log those of one instant add
//! up; a negative one lowers the entry of its instant, else, if its clock is another, the newest before it,
//! else the oldest after it, within [`NEAR`]. Permits add up by number: one of which nothing is left is out
//! no more, wherever it was released.
//!
//! Invariants: what is one's own is the difference to the sum of the others, exactly, so that any order of
//! any deliveries leads to one total; a negative entry that finds nothing to lower stays, and counts for
//! nothing, until what it lowers comes; a ring that is full makes one of its two oldest entries (P7).

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{ENTRY_WORDS, Entry, FEWEST_ENTRIES, HEAD_WORDS, Ring, RingMut, units_of, words_for};
use crate::{
    counter::merge::{Kept, shifted},
    rule::MAX_LOG_LIMIT,
    series::SeriesWords,
    units::{Nanos, Window},
    window::to_u64,
};

/// How far from its place a negative entry still finds what it lowers: the times of two ways differ by less.
const NEAR: Nanos = Nanos::from_millis(250);
/// Entries that are looked at for that, before it and after it; if they are used up it is dropped.
const REACH: usize = 64;

/// What the entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Costs, known by their instant.
    Log(Window),
    /// Permits, known by their number.
    Permits(Window),
}

impl Form {
    const fn window(self) -> Nanos {
        match self {
            Self::Log(window) | Self::Permits(window) => window.span(),
        }
    }

    const fn is_log(self) -> bool {
        matches!(self, Self::Log(_))
    }
}

/// An entry on the way from one series to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mixed {
    instant: u64,
    number: u64,
    cost: i64,
    /// How far from its instant it finds what it lowers.
    near: u64,
}

type Mix = SmallVec<[Mixed; 4]>;

/// The entries of words, as they are there.
fn entries_of(words: &[u64]) -> impl Iterator<Item = Entry> {
    let ring = Ring::of(words);
    (0..ring.length().min(ring.room())).filter_map(move |at| ring.entry(at))
}

/// The entries of a series by the clock here.
fn moved(form: Form, kept: Kept<'_>, bound: Nanos) -> impl Iterator<Item = Mixed> {
    entries_of(kept.words).map(move |entry| Mixed {
        instant: kept.here(entry.instant, bound),
        number: if form.is_log() { 0 } else { entry.number },
        cost: entry.cost.cast_signed(),
        near: if kept.offset == 0 { 0 } else { NEAR.as_nanos() },
    })
}

/// Makes one entry of those that are the same, in order of time; what nothing is left of goes.
fn add_up(mut mix: Mix) -> Mix {
    mix.sort_unstable_by_key(|entry| (entry.number, entry.instant));
    let mut sums = Mix::with_capacity(mix.len());
    for entry in mix {
        let before = sums.last_mut().filter(|before| {
            let at_once = entry.number != 0 || before.instant == entry.instant;
            before.number == entry.number && at_once
        });
        let Some(before) = before else {
            sums.push(entry);
            continue;
        };
        // A release may be told later than the permit ends: it must not make it end later.
        if entry.cost > 0 || before.cost < 0 {
            before.instant = entry.instant;
        }
        before.cost = before.cost.saturating_add(entry.cost);
        before.near = before.near.max(entry.near);
    }
    sums.retain(|entry| entry.cost != 0);
    sums.sort_unstable_by_key(|entry| (entry.instant, entry.number));
    sums
}

/// Lets negative entries lower what is near, the oldest first.
fn settle(form: Form, mix: &mut Mix) {
    if !form.is_log() || mix.iter().all(|entry| entry.cost > 0 || entry.near == 0) {
        return;
    }
    for at in 0..mix.len() {
        let (before, rest) = mix.split_at_mut(at);
        let Some((lowers, after)) = rest.split_first_mut() else {
            return;
        };
        if lowers.cost > 0 || lowers.near == 0 {
            continue;
        }
        let older = before.iter_mut().rev().take(REACH);
        let newer = after.iter_mut().take(REACH);
        for entry in older.chain(newer) {
            if entry.cost > 0 && entry.instant.abs_diff(lowers.instant) <= lowers.near {
                let taken = entry.cost.min(lowers.cost.saturating_neg());
                entry.cost = entry.cost.saturating_sub(taken);
                lowers.cost = lowers.cost.saturating_add(taken);
            }
        }
    }
    mix.retain(|entry| entry.cost != 0);
}

/// All that series hold, by the clock here. What is over is not dropped: it may be lowered yet.
fn sum<'a>(form: Form, bound: Nanos, series: impl Iterator<Item = Kept<'a>>) -> Mix {
    let mix = series.flat_map(|kept| moved(form, kept, bound)).collect();
    let mut mix = add_up(mix);
    settle(form, &mut mix);
    mix
}

fn drop_over(form: Form, now: Nanos, mix: &mut Mix) {
    let window = form.window().as_nanos();
    mix.retain(|entry| now.as_nanos().saturating_sub(entry.instant) < window);
}

/// Makes a total of series and of what is here already.
fn fill<'a>(
    form: Form,
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    series: impl Iterator<Item = Kept<'a>> + Clone,
    home: Option<Mix>,
) {
    let last = series.clone().map(|kept| kept.latest_here(now)).max();
    let before = home.as_ref().map_or(Nanos::ZERO, |_| *latest);
    *latest = last.map_or(*latest, |last| last.max(before));
    let mut mix = sum(form, now, series);
    if let Some(home) = home {
        // What was taken back here of another's entry finds it where a newer series tells it: its writer may
        // have worked its instant out of what was taken back.
        mix.extend(home.into_iter().map(|entry| Mixed {
            near: if entry.cost < 0 {
                NEAR.as_nanos()
            } else {
                entry.near
            },
            ..entry
        }));
        mix = add_up(mix);
        settle(form, &mut mix);
    }
    drop_over(form, now, &mut mix);
    words.fill(0);
    let mut ring = RingMut::of(words);
    for entry in mix {
        // A series whose last charge was given back may say that it was before an entry.
        *latest = (*latest).max(Nanos::new(entry.instant));
        ring.push(Entry {
            instant: entry.instant,
            cost: entry.cost.cast_unsigned(),
            number: entry.number,
        });
    }
}

/// Makes a total of series.
pub(crate) fn gather<'a>(
    form: Form,
    total: (&mut [u64], &mut Nanos),
    now: Nanos,
    series: impl Iterator<Item = Kept<'a>> + Clone,
) {
    fill(form, total, now, series, None);
}

/// What of a total is in none of the series, with what is missing of them as negative entries.
fn difference<'a>(
    form: Form,
    (words, latest): (&[u64], Nanos),
    now: Nanos,
    foreign: impl Iterator<Item = Kept<'a>>,
) -> Mix {
    let now = now.max(latest);
    let others = sum(form, now, foreign);
    let home = Kept {
        latest,
        offset: 0,
        words,
    };
    let mut mix: Mix = moved(form, home, now).collect();
    mix.extend(others.into_iter().map(|entry| Mixed {
        cost: entry.cost.saturating_neg(),
        near: 0,
        ..entry
    }));
    let mut mix = add_up(mix);
    drop_over(form, now, &mut mix);
    mix
}

/// What of a total is in none of the series: a ring that begins at its first place, of just its entries.
pub(crate) fn own<'a>(
    form: Form,
    total: (&[u64], Nanos),
    now: Nanos,
    foreign: impl Iterator<Item = Kept<'a>>,
) -> SeriesWords {
    let mix = shortened(difference(form, total, now, foreign));
    let mut words = SeriesWords::with_capacity(words_for(mix.len()));
    let sum = mix.iter().fold(0_u64, |sum, entry| {
        sum.saturating_add(units_of(entry.cost.cast_unsigned()))
    });
    let length = to_u64(mix.len()).unbounded_shl(u32::BITS);
    words.extend([length, sum]);
    for entry in mix {
        words.extend([entry.instant, entry.cost.cast_unsigned(), entry.number]);
    }
    words
}

/// At most as many entries as a series may have: the oldest that are negative go, then the oldest become one.
fn shortened(mut mix: Mix) -> Mix {
    let most = usize::try_from(MAX_LOG_LIMIT).unwrap_or(usize::MAX);
    let mut surplus = mix.len().saturating_sub(most);
    mix.retain(|entry| {
        let goes = surplus > 0 && entry.cost < 0;
        surplus = surplus.saturating_sub(usize::from(goes));
        !goes
    });
    let cost = mix
        .iter()
        .take(surplus)
        .fold(0_i64, |sum, entry| sum.saturating_add(entry.cost));
    mix.drain(..surplus.min(mix.len()));
    if let Some(oldest) = mix.first_mut() {
        oldest.cost = oldest.cost.saturating_add(cost);
    }
    mix
}

/// Changes a total from holding `old` of one series to holding `new`.
pub(crate) fn replace(
    form: Form,
    (words, latest): (&mut [u64], &mut Nanos),
    now: Nanos,
    others: &[Kept<'_>],
    (old, new): (Option<Kept<'_>>, Option<Kept<'_>>),
) {
    let now = now.max(*latest);
    let before = others.iter().copied().chain(old);
    let mut home = difference(form, (words, *latest), now, before);
    if let (Some(old), Some(new)) = (old, new) {
        follow(form, &mut home, now, (old, new));
    }
    let after = others.iter().copied().chain(new);
    fill(form, (words, latest), now, after, Some(home));
}

/// What was taken back of entries goes where their newer content lies: else it would come back.
fn follow(form: Form, home: &mut Mix, now: Nanos, (old, new): (Kept<'_>, Kept<'_>)) {
    if !form.is_log() || old.offset == new.offset {
        return;
    }
    let known = home.len();
    let mut after: SmallVec<[Entry; 4]> = entries_of(new.words).collect();
    after.sort_unstable_by_key(|entry| entry.instant);
    for entry in entries_of(old.words) {
        let was_at = old.here(entry.instant, now);
        let in_home = |mixed: &Mixed| match mixed.instant.cmp(&was_at) {
            Ordering::Equal => mixed.number.cmp(&0),
            unequal @ (Ordering::Less | Ordering::Greater) => unequal,
        };
        let known = home.get_mut(..known).unwrap_or_default();
        let Ok(at) = known.binary_search_by(in_home) else {
            continue;
        };
        let newer = after.binary_search_by_key(&entry.instant, |entry| entry.instant);
        let newer = newer.ok().and_then(|at| after.get(at));
        let (Some(missing), Some(newer)) = (known.get_mut(at), newer) else {
            continue;
        };
        let both = entry.cost.cast_signed().min(newer.cost.cast_signed());
        let cost = both.min(missing.cost.saturating_neg()).max(0);
        missing.cost = missing.cost.saturating_add(cost);
        home.push(Mixed {
            instant: new.here(newer.instant, now),
            number: 0,
            cost: cost.saturating_neg(),
            near: 0,
        });
    }
}

/// Words of a ring that takes all of these entries, up to as many as a log may have.
pub(crate) fn words_to_hold<'a>(rings: impl Iterator<Item = &'a [u64]>) -> usize {
    let entries = rings.fold(0_usize, |sum, words| {
        sum.saturating_add(entries_of(words).count())
    });
    let most = usize::try_from(MAX_LOG_LIMIT).unwrap_or(usize::MAX);
    words_for(entries.clamp(FEWEST_ENTRIES, most))
}

/// The words up to the last entry of a series.
pub(crate) fn words_in_use(words: &[u64]) -> usize {
    words_for(Ring::of(words).length())
}

/// When the last entry is over, by the clock here.
pub(crate) fn ends_at(window: Window, kept: Kept<'_>) -> Nanos {
    let last = entries_of(kept.words).last();
    let last = last.map_or(kept.latest.as_nanos(), |entry| entry.instant);
    Nanos::new(shifted(last, kept.offset)).saturating_add(window.span())
}

/// Whether the words are a ring that begins at its first place, of entries in order of time that cost
/// something, with their sum.
pub(crate) fn is_sound(words: &[u64]) -> bool {
    let ring = Ring::of(words);
    let most = usize::try_from(MAX_LOG_LIMIT).unwrap_or(usize::MAX);
    let fits = words.len() >= HEAD_WORDS && ring.length() <= ring.room().min(most);
    if !fits || ring.head() != 0 || !is_of_words(words.len(), ring.length()) {
        return false;
    }
    let (mut last, mut sum) = (0, 0_u64);
    for entry in entries_of(words) {
        if entry.instant < last || entry.cost == 0 {
            return false;
        }
        last = entry.instant;
        sum = sum.saturating_add(entry.units());
    }
    sum == ring.sum()
}

/// Whether a ring of so many entries is as long as it needs to be, in a cell that may be a little longer.
const fn is_of_words(words: usize, entries: usize) -> bool {
    words >= words_for(entries) && words <= words_for(entries.saturating_add(FEWEST_ENTRIES))
}

const _: () = assert!(ENTRY_WORDS == 3, "an entry is instant, cost, number");
