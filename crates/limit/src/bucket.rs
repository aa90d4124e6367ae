//! The bucket: a level that rises by what is admitted and drains at `limit / window`.
//!
//! The token bucket and the leaky bucket are the same level: the first says how much of it may rise at
//! once, the second how long what is on top must wait to flow out evenly (the two views of the generic
//! cell rate algorithm, ITU-T I.371). Pure functions on seven borrowed words: the level in parts of
//! `1 / window in nanoseconds` of a unit, as a number of 128 bits, the limit and the capacity seen last,
//! the mark: the units charged so far, from the instant of the first charge on; the units that were charged
//! here, whatever was given back, and the instant from which on that counts.
//!
//! The mark after a charge is its place. What was charged later lies on top, and what flows out was
//! charged first: of a charge there is left what the level holds below that.
//!
//! Of two series of one key (DESIGN 4, Merging) the one is the level, and what the other was charged since it
//! was last seen, the growth of its running total, is charged on top: levels that each drained at the whole
//! rate must never be summed.
//!
//! Knows nothing of keys, tables or locks. Invariants: exact, since a unit is `window` parts and a
//! nanosecond drains `limit` of them; the state is what was used: a changed limit drains from the last
//! charge on, a lowered ceiling clamps the level, a debt above the ceiling stays one; after a give-back the
//! level is at least what was charged after the charge, so that what stands never exceeds the promise.

pub(crate) mod merge;

use crate::{
    judge,
    units::{Cost, Nanos, Window},
};

/// Words of a counter.
pub(crate) const WORDS: usize = 7;
/// The word of the mark.
const MARK: usize = 4;
/// The word of the units charged here.
const CHARGED: usize = 5;
/// The word of the instant from which on they count: another one if the counter went and came again.
const BEGUN: usize = 6;

/// The numbers of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Units that drain in a window.
    pub(crate) limit: u64,
    pub(crate) window: Window,
    pub(crate) capacity: u64,
    /// The largest capacity of all that share the bucket.
    pub(crate) ceiling: u64,
}

impl Numbers {
    /// The numbers that an amendment reads by: what the bucket saw last, for it is no word of a rule.
    pub(crate) fn as_seen(self, words: &[u64], seen: u64) -> Self {
        Self {
            limit: limit_of(words),
            capacity: capacity_of(words),
            ceiling: self.ceiling.max(seen),
            ..self
        }
    }

    /// Parts of a unit.
    fn parts(&self) -> u128 {
        u128::from(self.window.span().as_nanos())
    }

    fn parts_of(&self, units: u64) -> u128 {
        self.parts().saturating_mul(u128::from(units))
    }

    /// What drains in a time.
    fn drained(&self, time: Nanos) -> u128 {
        u128::from(self.limit).saturating_mul(u128::from(time.as_nanos()))
    }

    /// The time in which so many parts drain, rounded up; for ever where nothing drains.
    fn time_to_drain(&self, parts: u128) -> Nanos {
        if parts == 0 {
            return Nanos::ZERO;
        }
        match self.limit {
            0 => Nanos::MAX,
            limit => {
                let nanos = parts.div_ceil(u128::from(limit));
                Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }
}

/// A bucket as it stands at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    numbers: Numbers,
    /// Parts in it.
    level: u128,
    /// How far the clock has gone back behind the last charge.
    behind: Nanos,
}

impl Reading {
    /// Reads a bucket that was charged last at `latest`, when its ceiling was `seen`.
    pub(crate) fn at(
        numbers: Numbers,
        words: &[u64],
        (seen, latest): (u64, Nanos),
        now: Nanos,
    ) -> Self {
        let stored = match words {
            [high, low, ..] => (u128::from(*high).unbounded_shl(u64::BITS)) | u128::from(*low),
            _ => 0,
        };
        // A lowered ceiling clamps the level; what was a debt stays one.
        let lowered = seen.saturating_sub(numbers.ceiling);
        let stored = match lowered {
            0 => stored,
            _ => {
                let full = numbers.parts_of(numbers.ceiling);
                let debt = stored.saturating_sub(numbers.parts_of(seen));
                stored.min(full.saturating_add(debt))
            }
        };
        let passed = now.saturating_sub(latest);
        Self {
            numbers,
            level: stored.saturating_sub(numbers.drained(passed)),
            behind: latest.saturating_sub(now),
        }
    }

    /// How long it takes until what is in it, and what is pending, has flowed out.
    pub(crate) fn backlog(&self, pending: Cost) -> Nanos {
        let pending = self.numbers.parts_of(pending.units());
        let backlog = self.level.saturating_add(pending);
        self.numbers
            .time_to_drain(backlog)
            .saturating_add(self.behind)
    }

    fn wait_until_parts(&self, parts: u128) -> Nanos {
        let surplus = self.level.saturating_sub(parts);
        if surplus == 0 {
            return Nanos::ZERO;
        }
        let wait = self.numbers.time_to_drain(surplus);
        wait.saturating_add(self.behind)
    }
}

impl judge::Reading for Reading {
    fn used(&self) -> u64 {
        u64::try_from(self.level.div_ceil(self.numbers.parts().max(1))).unwrap_or(u64::MAX)
    }

    fn wait_until_within(&self, room: u64) -> Nanos {
        self.wait_until_parts(self.numbers.parts_of(room))
    }

    fn wait_until_empty(&self) -> Nanos {
        self.wait_until_parts(0)
    }
}

/// Adds units at an instant without asking whether they fit. Returns their place.
pub(crate) fn charge(words: &mut [u64], reading: &Reading, now: Nanos, units: u64) -> u64 {
    let level = reading
        .level
        .saturating_add(reading.numbers.parts_of(units));
    store(words, reading, level);
    note_charged(words, now, units);
    raise_mark(words, now, units)
}

/// Counts units as charged here.
fn note_charged(words: &mut [u64], now: Nanos, units: u64) {
    if let Some([charged, begun]) = words.get_mut(CHARGED..=BEGUN) {
        if *begun == 0 {
            *begun = now.as_nanos();
        }
        *charged = charged.wrapping_add(units);
    }
}

/// Puts units on top. Returns their place.
fn raise_mark(words: &mut [u64], now: Nanos, units: u64) -> u64 {
    let Some(mark) = words.get_mut(MARK) else {
        return 0;
    };
    if *mark == 0 {
        // Above the places of a counter of this key that went before.
        *mark = now.as_nanos();
    }
    *mark = mark.wrapping_add(units);
    *mark
}

/// Takes back what of a charge has not flowed out. Returns whether a word changed.
pub(crate) fn give_back(words: &mut [u64], reading: &Reading, place: u64, cost: Cost) -> bool {
    let mark = words.get(MARK).copied().unwrap_or(0);
    // A place that was never made is after all: then more lies on top than there is.
    let on_top = reading.numbers.parts_of(mark.wrapping_sub(place));
    let left = reading.level.saturating_sub(on_top);
    let given = reading.numbers.parts_of(cost.units());
    if place == mark
        && given <= left
        && let Some(mark) = words.get_mut(MARK)
    {
        // The last charge goes as if it had never been: it must not lie on those before.
        *mark = mark.wrapping_sub(cost.units());
    }
    take(words, reading, given.min(left))
}

/// Takes units back, at most down to nothing. Returns whether a word changed.
pub(crate) fn refund(words: &mut [u64], reading: &Reading, cost: Cost) -> bool {
    take(words, reading, reading.numbers.parts_of(cost.units()))
}

/// The capacity that a bucket saw last.
pub(crate) fn capacity_of(words: &[u64]) -> u64 {
    words.get(3).copied().unwrap_or(0)
}

/// The limit that a bucket saw last.
pub(crate) fn limit_of(words: &[u64]) -> u64 {
    words.get(2).copied().unwrap_or(0)
}

fn take(words: &mut [u64], reading: &Reading, parts: u128) -> bool {
    let level = reading.level.saturating_sub(parts);
    if level == reading.level {
        return false;
    }
    store(words, reading, level);
    true
}

fn store(words: &mut [u64], reading: &Reading, parts: u128) {
    if let [high, low, limit, capacity, ..] = words {
        *high = u64::try_from(parts >> u64::BITS).unwrap_or(u64::MAX);
        *low = u64::try_from(parts & u128::from(u64::MAX)).unwrap_or(u64::MAX);
        *limit = reading.numbers.limit;
        *capacity = reading.numbers.capacity;
    }
}

#[cfg(test)]
mod tests;
