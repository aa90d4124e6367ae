//! The grid of slices, and where an instant lies in it.
//!
//! Knows nothing of limits: how much a slice counts, when it has shrunk so far, which word it is.
//! Invariant: `now` is never before the last charge, so `newest <= slice`.

use std::num::NonZeroU64;

use crate::{
    rule::{OldestSlice, SlidingWindow},
    units::Nanos,
};

/// An instant on the grid of slices, beside that of the last charge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The instant as it was asked for; waits are told from here.
    asked: u64,
    /// The later of `asked` and the last charge.
    now: u64,
    width: NonZeroU64,
    /// The slice of `now`.
    pub(super) slice: u64,
    /// The slice of the last charge.
    pub(super) newest: u64,
}

impl Place {
    /// The place of `now` and of the last charge in a rule's grid.
    pub(super) fn new(rule: &SlidingWindow, latest: Nanos, now: Nanos) -> Self {
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

    /// The width of a slice.
    pub(super) const fn width(self) -> u64 {
        self.width.get()
    }

    /// Clears the slices passed since the last charge and adds to that of now.
    pub(super) fn charge(self, counters: &mut [u64], latest: &mut Nanos, units: u64) -> Self {
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
            let sum = counter.cast_signed().saturating_add_unsigned(units);
            *counter = sum.cast_unsigned();
        }
        *latest = Nanos::new(self.now);
        Self {
            newest: self.slice,
            ..self
        }
    }

    /// How much of the oldest slice's count the window still holds, rounded up.
    pub(super) fn part(self, count: u64, oldest: OldestSlice) -> u64 {
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
    pub(super) fn offset_within(self, count: u64, room: u64, oldest: OldestSlice) -> Option<u64> {
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
    pub(super) fn wait_until(self, slice: u64, offset: u64) -> Nanos {
        let start = slice.saturating_mul(self.width.get());
        let instant = start.saturating_add(offset).max(self.now);
        Nanos::new(instant.saturating_sub(self.asked))
    }
}

/// The counts that the window of now still holds, oldest first: the first is that of slice
/// `slice - slices`, the last that of `newest`. In two runs, since the places go round.
pub(super) fn kept(counters: &[u64], place: Place) -> [&[u64]; 2] {
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

/// What a counter counts for: a negative one, of which more was taken back than is known of, for nothing.
pub(super) const fn units_of(counter: u64) -> u64 {
    if counter.cast_signed() < 0 {
        0
    } else {
        counter
    }
}

/// The place of a slice among so many counters.
pub(super) fn index_of(slice: u64, length: usize) -> usize {
    let length = NonZeroU64::new(to_u64(length)).unwrap_or(NonZeroU64::MIN);
    usize::try_from(slice % length).unwrap_or(0)
}

/// A number of things in memory, as a count.
pub(crate) fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
