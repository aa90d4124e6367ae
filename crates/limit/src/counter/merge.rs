//! Series of one counter made into what decisions are made on, and back: whatever the algorithm.
//!
//! A total is what its own store has counted and what it knows of others' series. Three rules make all of
//! it: [`gather`] adds series up, [`own`] says what of a total is in none of the others' series, and
//! [`replace`] is the one after the other, with the newer content of a series in the place of the older.
//! So any order of any deliveries leads to one state, and what a store counted itself is never lost by one.
//!
//! An instant of a series lies on its writer's clock; it is moved by the offset to the clock here, and never
//! behind now. Counts so leave late, by the way's time and in windows by a slice at most, never early.
//!
//! A count that is negative was taken back by one store from what another had charged. It lowers what was
//! charged in its place. While nothing is there it is kept and counts for nothing: what it lowers may come yet.
//!
//! Pure functions on borrowed words; knows nothing of keys, tables, versions or locks. Nothing here trusts
//! words that a peer has sent: what is not of its counter counts for little or nothing, and never panics.

use super::{Held, HeldMut, Moment, words};
use crate::{
    bucket, entries, fixed_window,
    rule::{Algorithm, Rule},
    series::SeriesWords,
    units::Nanos,
    window,
};

/// A series as a store keeps it: its words on its writer's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    /// The last charge, by the writer's clock.
    pub(crate) latest: Nanos,
    /// What is added to an instant of the writer to make it one of this store; wraps.
    pub(crate) offset: u64,
    pub(crate) words: &'a [u64],
}

impl Kept<'_> {
    /// An instant of the writer by the clock here, at most `bound`; one before the origin is the origin.
    pub(crate) fn here(&self, instant: u64, bound: Nanos) -> u64 {
        shifted(instant, self.offset).min(bound.as_nanos())
    }

    /// The last charge by the clock here.
    pub(crate) fn latest_here(&self, bound: Nanos) -> Nanos {
        Nanos::new(self.here(self.latest.as_nanos(), bound))
    }
}

/// An instant moved by an offset; one before the origin is the origin.
pub(crate) fn shifted(instant: u64, offset: u64) -> u64 {
    match offset.cast_signed() {
        back @ ..0 => instant.saturating_sub(back.unsigned_abs()),
        ahead => instant.saturating_add(ahead.unsigned_abs()),
    }
}

/// The offset of a series that is there at `now`, whose writer's clock showed `clock` when it was sent. What
/// the writer charged after that, as only a wrong clock says, is taken for charged now.
pub(crate) fn offset(now: Nanos, clock: u64, latest: Nanos) -> u64 {
    let ahead = latest.as_nanos().wrapping_sub(clock).cast_signed().max(0);
    let clock = clock.wrapping_add(ahead.unsigned_abs());
    now.as_nanos().wrapping_sub(clock)
}

/// Makes a total, whose words are all zero, of what is held of all series of a counter.
pub(crate) fn gather(rule: &Rule, total: HeldMut<'_>, at: Moment, series: &[Kept<'_>]) {
    let HeldMut { latest, words, .. } = total;
    let (now, all) = (at.now, series.iter().copied());
    match &rule.algorithm {
        Algorithm::SlidingWindow(rule) => {
            window::merge::gather(rule, (words, latest), now, all);
        }
        Algorithm::SlidingLog(rule) => {
            let form = entries::merge::Form::Log(rule.window);
            entries::merge::gather(form, (words, latest), now, all);
        }
        Algorithm::Concurrency(rule) => {
            let form = entries::merge::Form::Permits(rule.ttl);
            entries::merge::gather(form, (words, latest), now, all);
        }
        Algorithm::FixedWindow(_) => fixed_window::merge::gather((words, latest), now, all),
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => {
            bucket::merge::gather((words, latest), now, all);
        }
    }
}

/// What of a total is of none of these: its writer's own series. Of a bucket the level of all, and how much
/// its writer has charged.
pub(crate) fn own(rule: &Rule, total: Held<'_>, at: Moment, foreign: &[Kept<'_>]) -> SeriesWords {
    let Held { latest, words, .. } = total;
    let all = foreign.iter().copied();
    match &rule.algorithm {
        Algorithm::SlidingWindow(rule) => window::merge::own(rule, (words, latest), all),
        Algorithm::SlidingLog(rule) => {
            let form = entries::merge::Form::Log(rule.window);
            entries::merge::own(form, (words, latest), at.now, all)
        }
        Algorithm::Concurrency(rule) => {
            let form = entries::merge::Form::Permits(rule.ttl);
            entries::merge::own(form, (words, latest), at.now, all)
        }
        Algorithm::FixedWindow(_) => fixed_window::merge::own(words, all),
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => bucket::merge::own(words),
    }
}

/// Changes a total from holding `old` of one series to holding `new`; `others` are the series of all other
/// writers that it holds.
pub(crate) fn replace(
    rule: &Rule,
    total: HeldMut<'_>,
    at: Moment,
    others: &[Kept<'_>],
    (old, new): (Option<Kept<'_>>, Option<Kept<'_>>),
) {
    let HeldMut { latest, words, .. } = total;
    let now = at.now;
    match &rule.algorithm {
        Algorithm::SlidingWindow(rule) => {
            window::merge::replace(rule, (words, latest), now, others, (old, new));
        }
        Algorithm::SlidingLog(rule) => {
            let form = entries::merge::Form::Log(rule.window);
            entries::merge::replace(form, (words, latest), now, others, (old, new));
        }
        Algorithm::Concurrency(rule) => {
            let form = entries::merge::Form::Permits(rule.ttl);
            entries::merge::replace(form, (words, latest), now, others, (old, new));
        }
        Algorithm::FixedWindow(_) => {
            fixed_window::merge::replace((words, latest), now, others, (old, new));
        }
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => {
            bucket::merge::replace(rule.window(), (words, latest), now, (old, new));
        }
    }
}

/// Makes a series of another writer one's own: called before it is dropped from what is held. For all but
/// buckets there is nothing to do: what is in none of the others' series is one's own.
pub(crate) fn absorb(rule: &Rule, total: HeldMut<'_>, at: Moment, kept: Kept<'_>) {
    match &rule.algorithm {
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => {
            bucket::merge::absorb(rule.window(), total.words, at.now, kept);
        }
        Algorithm::SlidingWindow(_)
        | Algorithm::SlidingLog(_)
        | Algorithm::FixedWindow(_)
        | Algorithm::Concurrency(_) => {}
    }
}

/// Words that a total needs to take these series in beside what it holds: for rings as many as there are
/// entries, up to a bound, for the other algorithms its usual words.
pub(crate) fn words_to_hold(rule: &Rule, total: Option<&[u64]>, series: &[Kept<'_>]) -> usize {
    match &rule.algorithm {
        Algorithm::SlidingLog(_) | Algorithm::Concurrency(_) => {
            let series = series.iter().map(|kept| kept.words);
            entries::merge::words_to_hold(total.into_iter().chain(series))
        }
        Algorithm::SlidingWindow(_)
        | Algorithm::FixedWindow(_)
        | Algorithm::TokenBucket(_)
        | Algorithm::LeakyBucket(_) => words(&rule.algorithm),
    }
}

/// How many of the words of a cell are those of its series: a cell may be longer.
pub(crate) fn words_in_use(rule: &Rule, cell: &[u64]) -> usize {
    let most = match &rule.algorithm {
        Algorithm::SlidingLog(_) | Algorithm::Concurrency(_) => entries::merge::words_in_use(cell),
        Algorithm::SlidingWindow(_)
        | Algorithm::FixedWindow(_)
        | Algorithm::TokenBucket(_)
        | Algorithm::LeakyBucket(_) => words(&rule.algorithm),
    };
    most.min(cell.len())
}

/// When nothing of a series counts any more, on the clock here.
pub(crate) fn ends_at(rule: &Rule, at: Moment, kept: Kept<'_>) -> Nanos {
    match &rule.algorithm {
        Algorithm::SlidingWindow(rule) => window::merge::ends_at(rule, kept),
        Algorithm::SlidingLog(rule) => entries::merge::ends_at(rule.window, kept),
        Algorithm::Concurrency(rule) => entries::merge::ends_at(rule.ttl, kept),
        Algorithm::FixedWindow(_) => fixed_window::merge::ends_at(at.unix_origin, kept.words),
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => {
            bucket::merge::ends_at(rule.window(), kept)
        }
    }
}

/// Whether words can be those of a series of such a counter: what a peer has sent is kept only then.
pub(crate) fn is_sound(rule: &Rule, words: &[u64]) -> bool {
    match &rule.algorithm {
        Algorithm::SlidingWindow(_) => words.len() == super::words(&rule.algorithm),
        Algorithm::SlidingLog(_) | Algorithm::Concurrency(_) => entries::merge::is_sound(words),
        Algorithm::FixedWindow(rule) => fixed_window::merge::is_sound(rule, words),
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => bucket::merge::is_sound(words),
    }
}

#[cfg(test)]
mod tests;
