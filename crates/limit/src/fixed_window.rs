//! The fixed window: one counter that starts anew with each window of wall time.
//!
//! Pure functions on three borrowed words: the first instant of the window of the last charge, the
//! first of the next, both in Unix time, and what was used in it. Around an edge up to twice the limit
//! is admitted: that is what a fixed window promises.
//!
//! Two series of one key (DESIGN 4, Merging) are summed where they are of one window, else the later stands.
//!
//! Knows nothing of keys, tables or locks, and reads no clock. Invariant: wall time is that of the start
//! carried forward by the monotonic clock, so that a window never comes back; one that has begun by the wall
//! clock of another node has begun.

pub(crate) mod merge;

use crate::{
    calendar::{epoch_window_at, window_at},
    judge::{self, Reading as _},
    rule::{Alignment, FixedWindow},
    units::{Cost, Nanos},
};

/// Words of a counter.
pub(crate) const WORDS: usize = 3;

/// A counter as it stands at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The window of the instant, in Unix time.
    start: Nanos,
    end: Nanos,
    /// Negative if more was taken back than is known of.
    counted: i64,
    /// The instant, in Unix time.
    asked: Nanos,
}

impl Reading {
    /// Reads a counter at an instant of Unix time, of which the last charge was at `latest`.
    pub(crate) fn at(rule: &FixedWindow, words: &[u64], latest: Nanos, asked: Nanos) -> Self {
        let unix = asked.max(latest);
        if let [start, end, used] = *words
            // One that begins later is of a wall clock before this one: it has begun. The last window of
            // all has no end.
            && (unix.as_nanos() < end || end == u64::MAX)
        {
            return Self {
                start: Nanos::new(start),
                end: Nanos::new(end),
                counted: used.cast_signed(),
                asked,
            };
        }
        let (start, end) = match rule.alignment {
            Alignment::Epoch(window) => epoch_window_at(window, unix),
            Alignment::Calendar(unit, zone) => window_at(unit, zone, unix),
        };
        Self {
            start,
            end,
            counted: 0,
            asked,
        }
    }

    /// The start of its window, which names it.
    pub(crate) const fn start(&self) -> u64 {
        self.start.as_nanos()
    }
}

impl judge::Reading for Reading {
    fn used(&self) -> u64 {
        self.counted.max(0).unsigned_abs()
    }

    fn wait_until_within(&self, room: u64) -> Nanos {
        if self.used() <= room {
            return Nanos::ZERO;
        }
        self.end.saturating_sub(self.asked)
    }

    fn wait_until_empty(&self) -> Nanos {
        self.wait_until_within(0)
    }
}

/// Counts units without asking whether they fit.
pub(crate) fn charge(words: &mut [u64], reading: &Reading, units: u64) {
    if let [start, end, used] = words {
        *start = reading.start.as_nanos();
        *end = reading.end.as_nanos();
        let counted = reading.counted.saturating_add_unsigned(units);
        *used = counted.cast_unsigned();
    }
}

/// Takes units back if that window is still the counter's. Returns whether a word changed.
pub(crate) fn give_back(words: &mut [u64], reading: &Reading, start: u64, cost: Cost) -> bool {
    if reading.start() != start {
        return false;
    }
    refund(words, reading, cost)
}

/// Takes units back from the window of the reading. Returns whether a word changed.
pub(crate) fn refund(words: &mut [u64], reading: &Reading, cost: Cost) -> bool {
    match words {
        [start, _, used] if *start == reading.start() => {
            let taken = cost.units().min(reading.used());
            *used = used.wrapping_sub(taken);
            taken > 0
        }
        _ => false,
    }
}
