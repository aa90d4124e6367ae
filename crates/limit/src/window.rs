//! The sliding window: counters of slices of time, and what they admit.
//!
//! Pure functions on borrowed words: `slices + 1` counters and the instant of the last charge. Slice
//! number = floor(clock / width) with width = ceil(window / slices), so that all keys share one grid;
//! slice `n` lies at place `n mod (slices + 1)`. The window that ends in slice `s` holds slices
//! `s - slices + 1 ..= s` in full, and `s - slices` by its remaining part, rounded up
//! (`OldestSlice::Weighted`), or in full (`OldestSlice::Full`).
//!
//! Two series of one key (DESIGN 4, Merging) are summed slice by slice. A sum that is negative, in two's
//! complement, counts for nothing, and is kept: what it takes back may still come.
//!
//! Knows nothing of keys, tables or locks. Invariants: a refusal and a peek write nothing (P4); the
//! state is what was used, never what remains; use only falls while nothing is charged, so that the
//! first instant at which a cost fits has a closed form within each slice; nothing overflows (rule
//! 9); a clock that goes back stands still at the last charge.

pub(crate) mod merge;
mod place;

pub(crate) use self::place::to_u64;
use self::place::{Place, index_of, kept, units_of};
use crate::{
    judge::{self, Terms},
    rule::SlidingWindow,
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Verdict},
};

/// Decides one check, and charges it if it is admitted and consumes.
///
/// `counters` has `slices + 1` words. `latest` is the instant of the last charge.
#[inline]
pub(crate) fn decide(
    (rule, terms): (&SlidingWindow, &Terms),
    counters: &mut [u64],
    latest: &mut Nanos,
    now: Nanos,
    (cost, mode): (Cost, Mode),
) -> Verdict {
    let place = Place::new(rule, *latest, now);
    let reading = Reading::new(rule, place, counters);
    let outcome = terms.outcome(&reading, cost, Cost::ZERO);
    if outcome != Outcome::Allow || mode == Mode::Peek || cost == Cost::ZERO {
        return told(terms, &reading, outcome, cost);
    }
    // What is charged lies in the slice of now, which counts in full.
    let (used, total) = (reading.used, reading.total);
    let place = place.charge(counters, latest, cost.units());
    let counter = counters.get(index_of(place.slice, counters.len()));
    let counted = units_of(counter.copied().unwrap_or(0)).min(cost.units());
    let (used, total) = (used.saturating_add(counted), total.saturating_add(counted));
    let charged = Reading {
        rule,
        place,
        counters,
        total,
        used,
    };
    told(terms, &charged, outcome, cost)
}

#[inline]
fn told(terms: &Terms, reading: &Reading<'_>, outcome: Outcome, cost: Cost) -> Verdict {
    Verdict {
        charged_slice: reading.place.slice,
        ..terms.verdict(reading, outcome, (cost, Cost::ZERO))
    }
}

/// Counts units in the slice of `now` without asking whether they fit. Returns the slice.
pub(crate) fn charge(
    rule: &SlidingWindow,
    counters: &mut [u64],
    latest: &mut Nanos,
    now: Nanos,
    units: u64,
) -> u64 {
    let place = Place::new(rule, *latest, now).charge(counters, latest, units);
    place.slice
}

/// Takes units back from just that slice, at most down to zero. Returns whether a word changed: not
/// if the slice has left the window or was never charged.
pub(crate) fn give_back(
    rule: &SlidingWindow,
    counters: &mut [u64],
    latest: Nanos,
    now: Nanos,
    (slice, cost): (u64, Cost),
) -> bool {
    let place = Place::new(rule, latest, now);
    let oldest = place.slice.saturating_sub(u64::from(rule.slices));
    if slice > place.newest || slice < oldest {
        return false;
    }
    let Some(counter) = counters.get_mut(index_of(slice, counters.len())) else {
        return false;
    };
    let taken = cost.units().min(units_of(*counter));
    *counter = counter.wrapping_sub(taken);
    taken > 0
}

/// Takes units back, from the oldest slices first, at most down to zero. Returns whether a word
/// changed.
pub(crate) fn refund(
    rule: &SlidingWindow,
    counters: &mut [u64],
    latest: Nanos,
    now: Nanos,
    cost: Cost,
) -> bool {
    let place = Place::new(rule, latest, now);
    let oldest = place.slice.saturating_sub(u64::from(rule.slices));
    let mut left = cost.units();
    for slice in oldest..=place.newest {
        if let Some(counter) = counters.get_mut(index_of(slice, counters.len())) {
            let taken = left.min(units_of(*counter));
            *counter = counter.wrapping_sub(taken);
            left = left.saturating_sub(taken);
        }
    }
    left < cost.units()
}

/// A counter as it stands at an instant. Changes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    rule: &'a SlidingWindow,
    place: Place,
    counters: &'a [u64],
    /// All counts that the window still holds, the oldest in full.
    total: u64,
    used: u64,
}

impl<'a> Reading<'a> {
    /// Reads a counter that was last charged at `latest`.
    pub(crate) fn at(
        rule: &'a SlidingWindow,
        counters: &'a [u64],
        latest: Nanos,
        now: Nanos,
    ) -> Self {
        Self::new(rule, Place::new(rule, latest, now), counters)
    }

    fn new(rule: &'a SlidingWindow, place: Place, counters: &'a [u64]) -> Self {
        let mut total = 0_u64;
        let mut oldest = None;
        for counts in kept(counters, place) {
            oldest = oldest.or_else(|| counts.first().copied());
            for count in counts {
                total = total.saturating_add(units_of(*count));
            }
        }
        let oldest = units_of(oldest.unwrap_or(0));
        let whole = total.saturating_sub(oldest);
        Self {
            rule,
            place,
            counters,
            total,
            used: whole.saturating_add(place.part(oldest, rule.oldest)),
        }
    }
}

impl judge::Reading for Reading<'_> {
    fn used(&self) -> u64 {
        self.used
    }

    fn wait_until_within(&self, room: u64) -> Nanos {
        if self.used <= room {
            return Nanos::ZERO;
        }
        let mut younger = self.total;
        let mut ending = self.place.slice;
        for counts in kept(self.counters, self.place) {
            for count in counts {
                let count = units_of(*count);
                younger = younger.saturating_sub(count);
                if let Some(room) = room.checked_sub(younger)
                    && let Some(offset) = self.place.offset_within(count, room, self.rule.oldest)
                {
                    return self.place.wait_until(ending, offset);
                }
                ending = ending.saturating_add(1);
            }
        }
        self.wait_until_empty()
    }

    fn wait_until_empty(&self) -> Nanos {
        let [older, younger] = kept(self.counters, self.place);
        let mut from_newest = younger.iter().rev().chain(older.iter().rev());
        let Some(age) = from_newest.position(|count| units_of(*count) > 0) else {
            return Nanos::ZERO;
        };
        let newest_used = self.place.newest.saturating_sub(to_u64(age));
        let span = u64::from(self.rule.slices).saturating_add(1);
        self.place.wait_until(newest_used.saturating_add(span), 0)
    }
}

#[cfg(test)]
mod tests;
