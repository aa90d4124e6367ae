//! Entries in order of time, each counted until its time is over: the sliding log, and permits.
//!
//! Pure functions on borrowed words: the place of the first entry and how many there are, the sum of
//! their costs, then a ring of entries of [`ENTRY_WORDS`] each: instant, cost, number. An entry of
//! instant `t` counts from `t` until just before `t + window`, so that no window of that length ever
//! holds more than was admitted in it.
//!
//! Two series of one key (DESIGN 4, Merging) are the union of their entries: a number is of one boot, and
//! entries of one instant without a number add up.
//!
//! Knows nothing of keys, tables or locks. Invariants: instants never fall; no entry in the ring
//! costs nothing, so that what was given back takes no place; the sum is that of all entries, of which those
//! that cost less than nothing count for nothing; where the ring is full and cannot grow the two oldest entries become one that
//! ends with the younger: towards refusing (P7).

pub(crate) mod merge;

use crate::{
    judge,
    units::{Cost, Nanos, Window},
    window::to_u64,
};

/// Words before the ring.
const HEAD_WORDS: usize = 2;
/// Words of an entry.
pub(crate) const ENTRY_WORDS: usize = 3;
/// Entries that the smallest ring has room for.
const FEWEST_ENTRIES: usize = 3;

/// Words of the smallest ring.
pub(crate) const FEWEST_WORDS: usize = words_for(FEWEST_ENTRIES);

/// Words of a ring of so many entries.
pub(crate) const fn words_for(entries: usize) -> usize {
    entries
        .saturating_mul(ENTRY_WORDS)
        .saturating_add(HEAD_WORDS)
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    instant: u64,
    /// Two's complement: negative where more was taken back than is known of.
    cost: u64,
    number: u64,
}

impl Entry {
    /// What it counts for.
    const fn units(&self) -> u64 {
        units_of(self.cost)
    }

    /// A cost with units more.
    const fn cost_with(&self, units: u64) -> u64 {
        let sum = self.cost.cast_signed().saturating_add_unsigned(units);
        sum.cast_unsigned()
    }
}

const fn units_of(cost: u64) -> u64 {
    if cost.cast_signed() < 0 { 0 } else { cost }
}

/// The entries as they stand at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    ring: Ring<'a>,
    window: Nanos,
    /// The instant as it was asked for; waits are told from here.
    asked: Nanos,
    /// The first entry that still counts.
    first: usize,
    used: u64,
}

impl<'a> Reading<'a> {
    /// Reads entries of which the last was made at `latest`.
    pub(crate) fn at(words: &'a [u64], window: Window, latest: Nanos, now: Nanos) -> Self {
        let ring = Ring::of(words);
        let window = window.span();
        let effective = now.max(latest);
        let (mut first, mut used) = (0, ring.sum());
        while let Some(entry) = ring.entry(first)
            && effective.saturating_sub(Nanos::new(entry.instant)) >= window
        {
            used = used.saturating_sub(entry.units());
            first = first.saturating_add(1);
        }
        Self {
            ring,
            window,
            asked: now,
            first,
            used,
        }
    }

    /// Whether the ring has no place for one more entry even without those that are over.
    pub(crate) fn is_full(&self) -> bool {
        self.first == 0 && self.ring.length() >= self.ring.room()
    }

    /// Entries that still count.
    pub(crate) fn live(&self) -> usize {
        self.ring.length().saturating_sub(self.first)
    }

    fn wait_for_end_of(&self, entry: Entry) -> Nanos {
        let end = Nanos::new(entry.instant).saturating_add(self.window);
        end.saturating_sub(self.asked)
    }
}

impl judge::Reading for Reading<'_> {
    fn used(&self) -> u64 {
        self.used
    }

    fn wait_until_within(&self, room: u64) -> Nanos {
        let mut used = self.used;
        if used <= room {
            return Nanos::ZERO;
        }
        for at in self.first..self.ring.length() {
            let Some(entry) = self.ring.entry(at) else {
                break;
            };
            used = used.saturating_sub(entry.units());
            if used <= room {
                return self.wait_for_end_of(entry);
            }
        }
        self.wait_until_empty()
    }

    fn wait_until_empty(&self) -> Nanos {
        let from_newest = (self.first..self.ring.length()).rev();
        let mut entries = from_newest.filter_map(|at| self.ring.entry(at));
        let last = entries.find(|entry| entry.units() > 0);
        last.map_or(Nanos::ZERO, |entry| self.wait_for_end_of(entry))
    }
}

/// Makes an entry of that number without asking whether it fits. Returns its instant.
///
/// Entries of one instant without a number become one.
pub(crate) fn charge(
    words: &mut [u64],
    window: Window,
    latest: &mut Nanos,
    (now, units): (Nanos, u64),
    number: u64,
) -> Nanos {
    let instant = now.max(*latest);
    let reading = Reading::at(words, window, *latest, now);
    let (first, used) = (reading.first, reading.used);
    let mut ring = RingMut::of(words);
    ring.drop_first(first, used);
    *latest = instant;
    if number == 0 && ring.add_to_last(instant, units) {
        return instant;
    }
    ring.push(Entry {
        instant: instant.as_nanos(),
        cost: units,
        number,
    });
    instant
}

/// Which entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one of this instant.
    Instant(u64),
    /// The one of this number.
    Number(u64),
}

/// Takes units back from one entry, at most down to zero. Returns whether a word changed.
pub(crate) fn give_back(words: &mut [u64], which: Which, cost: Cost) -> bool {
    let mut ring = RingMut::of(words);
    let length = ring.view().length();
    let found = (0..length).find(|at| {
        ring.view().entry(*at).is_some_and(|entry| match which {
            Which::Instant(instant) => entry.instant == instant,
            Which::Number(number) => entry.number == number && number != 0,
        })
    });
    found.is_some_and(|at| ring.take_from(at, cost.units()) > 0)
}

/// Takes units back, from the oldest entries that still count first. Returns whether a word changed.
pub(crate) fn refund(
    words: &mut [u64],
    window: Window,
    (latest, now): (Nanos, Nanos),
    cost: Cost,
) -> bool {
    let first = Reading::at(words, window, latest, now).first;
    let mut ring = RingMut::of(words);
    let mut left = cost.units();
    let (mut at, entries) = (first, ring.view().length());
    for _ in first..entries {
        let before = ring.view().length();
        left = left.saturating_sub(ring.take_from(at, left));
        // An entry of which nothing is left makes place for the next.
        at = at.saturating_add(usize::from(ring.view().length() == before));
    }
    left < cost.units()
}

/// Copies the entries into a longer ring.
pub(crate) fn move_to(words: &[u64], longer: &mut [u64]) {
    longer.fill(0);
    let old = Ring::of(words);
    let mut new = RingMut::of(longer);
    for at in 0..old.length() {
        if let Some(entry) = old.entry(at) {
            new.push(entry);
        }
    }
}

/// The ring, to read.
#[derive(Clone, Copy, Debug)]
struct Ring<'a> {
    words: &'a [u64],
}

impl<'a> Ring<'a> {
    const fn of(words: &'a [u64]) -> Self {
        Self { words }
    }

    /// Entries that there is room for.
    fn room(&self) -> usize {
        self.words.len().saturating_sub(HEAD_WORDS) / ENTRY_WORDS
    }

    fn head(&self) -> usize {
        let packed = self.words.first().copied().unwrap_or(0);
        usize::try_from(packed & u64::from(u32::MAX)).unwrap_or(0)
    }

    fn length(&self) -> usize {
        let packed = self.words.first().copied().unwrap_or(0);
        usize::try_from(packed >> u32::BITS).unwrap_or(0)
    }

    fn sum(&self) -> u64 {
        self.words.get(1).copied().unwrap_or(0)
    }

    /// The words of an entry.
    fn place(&self, at: usize) -> usize {
        let ring = self.room().max(1);
        let place = self.head().saturating_add(at).checked_rem(ring);
        words_for(place.unwrap_or(0))
    }

    fn entry(&self, at: usize) -> Option<Entry> {
        if at >= self.length() {
            return None;
        }
        let place = self.place(at);
        match self.words.get(place..place.saturating_add(ENTRY_WORDS))? {
            [instant, cost, number] => Some(Entry {
                instant: *instant,
                cost: *cost,
                number: *number,
            }),
            _ => None,
        }
    }
}

/// The ring, to write.
#[derive(Debug)]
struct RingMut<'a> {
    words: &'a mut [u64],
}

impl<'a> RingMut<'a> {
    const fn of(words: &'a mut [u64]) -> Self {
        Self { words }
    }

    const fn view(&self) -> Ring<'_> {
        Ring::of(self.words)
    }

    /// Drops the first entries; what is left sums up to `sum`.
    fn drop_first(&mut self, dropped: usize, sum: u64) {
        let view = self.view();
        let head = view.head().saturating_add(dropped);
        let head = head.checked_rem(view.room().max(1)).unwrap_or(0);
        let length = view.length().saturating_sub(dropped);
        self.set_head((head, length), sum);
    }

    fn set_head(&mut self, (head, length): (usize, usize), sum: u64) {
        if let [packed, total, ..] = self.words {
            *packed = to_u64(length).unbounded_shl(u32::BITS) | to_u64(head);
            *total = sum;
        }
    }

    /// Adds to the last entry if it is of that instant and has no number.
    fn add_to_last(&mut self, instant: Nanos, units: u64) -> bool {
        let view = self.view();
        let Some(last) = view.length().checked_sub(1) else {
            return false;
        };
        let Some(entry) = view.entry(last) else {
            return false;
        };
        if entry.instant != instant.as_nanos() || entry.number != 0 {
            return false;
        }
        self.set_cost(last, entry.cost_with(units));
        true
    }

    fn push(&mut self, entry: Entry) {
        if self.view().length() >= self.view().room() {
            self.join_oldest();
        }
        let view = self.view();
        let (head, length) = (view.head(), view.length());
        let sum = view.sum().saturating_add(entry.units());
        self.set(length, entry);
        self.set_head((head, length.saturating_add(1)), sum);
    }

    /// Makes one entry of the two oldest, which ends when the younger does.
    fn join_oldest(&mut self) {
        let view = self.view();
        let (oldest, next) = (view.entry(0), view.entry(1));
        let units = oldest.map_or(0, |oldest| oldest.units());
        // What is missing from another entry is missing from this one no more: towards refusing.
        if let Some(next) = next.filter(|_| units > 0) {
            self.set_cost(1, next.units().saturating_add(units));
        }
        let sum = self.view().sum().saturating_sub(units);
        self.drop_first(1, sum);
    }

    /// Takes units from an entry, and the entry out of the ring if none is left; returns how many.
    fn take_from(&mut self, at: usize, units: u64) -> u64 {
        let Some(entry) = self.view().entry(at) else {
            return 0;
        };
        let taken = units.min(entry.units());
        self.set_cost(at, entry.cost.wrapping_sub(taken));
        if taken == entry.cost {
            self.remove(at);
        }
        taken
    }

    /// Takes an entry out that costs nothing: those before it move up. As many as were looked at to find it.
    fn remove(&mut self, at: usize) {
        for place in (0..at).rev() {
            if let Some(entry) = self.view().entry(place) {
                self.set(place.saturating_add(1), entry);
            }
        }
        let sum = self.view().sum();
        self.drop_first(1, sum);
    }

    fn set(&mut self, at: usize, entry: Entry) {
        let place = self.view().place(at);
        let words = self.words.get_mut(place..place.saturating_add(ENTRY_WORDS));
        if let Some([instant, cost, number]) = words {
            (*instant, *cost, *number) = (entry.instant, entry.cost, entry.number);
        }
    }

    fn set_cost(&mut self, at: usize, units: u64) {
        let view = self.view();
        let place = view.place(at).saturating_add(1);
        let (head, length, sum) = (view.head(), view.length(), view.sum());
        if let Some(cost) = self.words.get_mut(place) {
            let sum = sum.saturating_sub(units_of(*cost));
            let sum = sum.saturating_add(units_of(units));
            *cost = units;
            self.set_head((head, length), sum);
        }
    }
}

#[cfg(test)]
mod tests;
