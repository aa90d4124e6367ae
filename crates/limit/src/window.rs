//! The sliding window: counters of slices of time, and what they admit.
//!
//! Pure functions on borrowed words: `slices + 1` counters and the instant of the last charge. Slice
//! number = floor(clock / width) with width = ceil(window / slices), so that all keys share one grid;
//! slice `n` lies at place `n mod (slices + 1)`. The window that ends in slice `s` holds slices
//! `s - slices + 1 ..= s` in full, and `s - slices` by its remaining part, rounded up
//! (`OldestSlice::Weighted`), or in full (`OldestSlice::Full`).
//!
//! Knows nothing of keys, tables or locks. Invariants: a refusal and a peek write nothing (P4); the
//! state is what was used, never what remains; use only falls while nothing is charged, so that the
//! first instant at which a cost fits has a closed form within each slice; nothing overflows (rule
//! 9); a clock that goes back stands still at the last charge.

mod place;

use self::place::{Place, index_of, kept, to_u64};
use crate::{
    rule::SlidingWindow,
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Reason, Verdict},
};

/// Decides one check, and charges it if it is admitted and consumes.
///
/// `counters` has `slices + 1` words. `latest` is the instant of the last charge.
pub(crate) fn decide(
    rule: &SlidingWindow,
    counters: &mut [u64],
    latest: &mut Nanos,
    now: Nanos,
    (cost, mode): (Cost, Mode),
) -> Verdict {
    let place = Place::new(rule, *latest, now);
    let reading = Reading::new(rule, place, counters);
    let outcome = reading.outcome(cost, Cost::ZERO);
    if outcome != Outcome::Allow || mode == Mode::Peek || cost == Cost::ZERO {
        return reading.verdict(outcome, cost, Cost::ZERO);
    }
    // What is charged lies in the slice of now, which counts in full.
    let used = reading.used.saturating_add(cost.units());
    let total = reading.total.saturating_add(cost.units());
    let place = place.charge(counters, latest, cost.units());
    let charged = Reading {
        rule,
        place,
        counters,
        total,
        used,
    };
    charged.verdict(outcome, cost, Cost::ZERO)
}

/// Counts units in the slice of `now` without asking whether they fit.
pub(crate) fn charge(
    rule: &SlidingWindow,
    counters: &mut [u64],
    latest: &mut Nanos,
    now: Nanos,
    units: u64,
) {
    Place::new(rule, *latest, now).charge(counters, latest, units);
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
    let before = *counter;
    *counter = before.saturating_sub(cost.units());
    *counter != before
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
                total = total.saturating_add(*count);
            }
        }
        let oldest = oldest.unwrap_or(0);
        let whole = total.saturating_sub(oldest);
        Self {
            rule,
            place,
            counters,
            total,
            used: whole.saturating_add(place.part(oldest, rule.oldest)),
        }
    }

    /// Units used in the window that ends now, rounded up.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Whether `cost` fits on top of what is used and of `pending`, which is about to be charged.
    pub(crate) fn outcome(&self, cost: Cost, pending: Cost) -> Outcome {
        let wanted = cost.units().saturating_add(pending.units());
        if cost == Cost::ZERO {
            Outcome::Allow
        } else if self.rule.limit == 0 {
            Outcome::Refuse(Reason::LimitIsZero)
        } else if wanted > self.rule.limit {
            Outcome::Refuse(Reason::CostExceedsLimit)
        } else if self.used.saturating_add(wanted) > self.rule.limit {
            Outcome::Refuse(Reason::LimitExceeded)
        } else {
            Outcome::Allow
        }
    }

    /// The verdict with the numbers as they stand.
    pub(crate) fn verdict(&self, outcome: Outcome, cost: Cost, pending: Cost) -> Verdict {
        let wanted = cost.units().saturating_add(pending.units());
        let retry_after = if cost == Cost::ZERO {
            Some(Nanos::ZERO)
        } else {
            let room = self.rule.limit.checked_sub(wanted);
            room.map(|room| self.wait_until_within(room))
        };
        let one_less = self.used.min(self.rule.limit).saturating_sub(1);
        Verdict {
            outcome,
            used: self.used,
            remaining: self.rule.limit.saturating_sub(self.used),
            retry_after,
            more_after: self.wait_until_within(one_less),
            reset_after: self.wait_until_empty(),
            delay: Nanos::ZERO,
            charged_slice: self.place.slice,
        }
    }

    /// Time from now until at most `room` units are used, if nothing is charged: exact, zero if it
    /// is so already.
    pub(crate) fn wait_until_within(&self, room: u64) -> Nanos {
        if self.used <= room {
            return Nanos::ZERO;
        }
        let mut younger = self.total;
        let mut ending = self.place.slice;
        for counts in kept(self.counters, self.place) {
            for count in counts {
                younger = younger.saturating_sub(*count);
                if let Some(room) = room.checked_sub(younger)
                    && let Some(offset) = self.place.offset_within(*count, room, self.rule.oldest)
                {
                    return self.place.wait_until(ending, offset);
                }
                ending = ending.saturating_add(1);
            }
        }
        self.wait_until_empty()
    }

    /// Time from now until nothing is used.
    fn wait_until_empty(&self) -> Nanos {
        let [older, younger] = kept(self.counters, self.place);
        let mut from_newest = younger.iter().rev().chain(older.iter().rev());
        let Some(age) = from_newest.position(|count| *count > 0) else {
            return Nanos::ZERO;
        };
        let newest_used = self.place.newest.saturating_sub(to_u64(age));
        let span = u64::from(self.rule.slices).saturating_add(1);
        self.place.wait_until(newest_used.saturating_add(span), 0)
    }
}

#[cfg(test)]
mod tests;
