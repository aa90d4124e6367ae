//! The sliding window: counters of slices of time, and what they admit.
//!
//! Pure functions on borrowed words: `slices + 1` counters and the instant of the last charge. Slice
//! number = floor(clock / width) with width = ceil(window / slices), so that all keys share one grid;
//! slice `n` lies at place `n mod (slices + 1)`. The window that ends in slice `s` holds slices
//! `s - slices + 1 ..= s` in full, and `s - slices` by its remaining part, rounded up
//! ([`OldestSlice::Weighted`]), or in full ([`OldestSlice::Full`]).
//!
//! Knows nothing of keys, tables or locks. Invariants: a refusal and a peek write nothing (P4); the
//! state is what was used, never what remains; use only falls while nothing is charged, so that the
//! first instant at which a cost fits has a closed form within each slice; nothing overflows (rule
//! 9); a clock that goes back stands still at the last charge.

use std::num::NonZeroU64;

use crate::{
    rule::{OldestSlice, SlidingWindow},
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

/// The counts that the window of now still holds, oldest first: the first is that of slice
/// `slice - slices`, the last that of `newest`. In two runs, since the places go round.
fn kept(counters: &[u64], place: Place) -> [&[u64]; 2] {
    let head = index_of(place.newest, counters.len());
    let (younger, older) = match counters.split_at_checked(head.saturating_add(1)) {
        Some(runs) => runs,
        None => (counters, [].as_slice()),
    };
    let gone = place.slice.saturating_sub(place.newest);
    let gone = usize::try_from(gone).unwrap_or(usize::MAX);
    let gone_younger = gone.saturating_sub(older.len());
    [
        older.get(gone..).unwrap_or_default(),
        younger.get(gone_younger..).unwrap_or_default(),
    ]
}

/// An instant on the grid of slices, beside that of the last charge.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The instant as it was asked for; waits are told from here.
    asked: u64,
    /// The later of `asked` and the last charge.
    now: u64,
    width: NonZeroU64,
    /// The slice of `now`.
    slice: u64,
    /// The slice of the last charge.
    newest: u64,
}

impl Place {
    fn new(rule: &SlidingWindow, latest: Nanos, now: Nanos) -> Self {
        let span = rule.window.span().as_nanos();
        let width = span.div_ceil(u64::from(rule.slices).max(1));
        let width = NonZeroU64::new(width).unwrap_or(NonZeroU64::MIN);
        let effective = now.as_nanos().max(latest.as_nanos());
        let slice = effective / width;
        // Most charges come in the slice of the one before: spares a division.
        let start = slice.saturating_mul(width.get());
        let newest = if latest.as_nanos() >= start {
            slice
        } else {
            latest.as_nanos() / width
        };
        Self {
            asked: now.as_nanos(),
            now: effective,
            width,
            slice,
            newest,
        }
    }

    /// Clears the slices passed since the last charge and adds to that of now.
    fn charge(self, counters: &mut [u64], latest: &mut Nanos, units: u64) -> Self {
        let length = counters.len();
        if self.slice.saturating_sub(self.newest) >= to_u64(length) {
            counters.fill(0);
        } else {
            for passed in self.newest.saturating_add(1)..=self.slice {
                if let Some(counter) = counters.get_mut(index_of(passed, length)) {
                    *counter = 0;
                }
            }
        }
        if let Some(counter) = counters.get_mut(index_of(self.slice, length)) {
            *counter = counter.saturating_add(units);
        }
        *latest = Nanos::new(self.now);
        Self {
            newest: self.slice,
            ..self
        }
    }

    /// How much of the oldest slice's count the window still holds, rounded up.
    fn part(self, count: u64, oldest: OldestSlice) -> u64 {
        match oldest {
            OldestSlice::Full => count,
            OldestSlice::Weighted if count == 0 => 0,
            OldestSlice::Weighted => {
                let passed = self.now % self.width;
                let remaining = self.width.get().saturating_sub(passed);
                scale(count, remaining, self.width, Rounding::Up)
            }
        }
    }

    /// The first offset in a slice at which the oldest slice's `count` has shrunk to `room`; `None`
    /// if it does not in that slice.
    fn offset_within(self, count: u64, room: u64, oldest: OldestSlice) -> Option<u64> {
        if count <= room {
            return Some(0);
        }
        match oldest {
            OldestSlice::Full => None,
            // ceil(count · remaining / width) <= room  ⇔  remaining <= floor(room · width / count)
            OldestSlice::Weighted => {
                let count = NonZeroU64::new(count)?;
                let remaining = scale(room, self.width.get(), count, Rounding::Down);
                (remaining > 0).then(|| self.width.get().saturating_sub(remaining))
            }
        }
    }

    /// Time from the instant asked for to an instant of the grid, or to now if that is later.
    fn wait_until(self, slice: u64, offset: u64) -> Nanos {
        let start = slice.saturating_mul(self.width.get());
        let instant = start.saturating_add(offset).max(self.now);
        Nanos::new(instant.saturating_sub(self.asked))
    }
}

#[derive(Clone, Copy)]
enum Rounding {
    Up,
    Down,
}

/// `value · numerator / denominator`, exact, at most `u64::MAX`.
fn scale(value: u64, numerator: u64, denominator: NonZeroU64, rounding: Rounding) -> u64 {
    if let Some(product) = value.checked_mul(numerator) {
        return match rounding {
            Rounding::Up => product.div_ceil(denominator.get()),
            Rounding::Down => product / denominator,
        };
    }
    let product = u128::from(value).saturating_mul(u128::from(numerator));
    let denominator = u128::from(denominator.get());
    let scaled = match rounding {
        Rounding::Up => product.div_ceil(denominator),
        Rounding::Down => product.checked_div(denominator).unwrap_or(u128::MAX),
    };
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The place of a slice among so many counters.
fn index_of(slice: u64, length: usize) -> usize {
    let length = NonZeroU64::new(to_u64(length)).unwrap_or(NonZeroU64::MIN);
    usize::try_from(slice % length).unwrap_or(0)
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
