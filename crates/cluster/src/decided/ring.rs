//! The latest verdicts for one caller: a direct-mapped ring by request number.

use smallvec::SmallVec;
use tollgate_limit::{Nanos, Verdict};

use crate::sabotage::{self, Sabotage};

/// The places of a new ring.
pub const MIN_RING: usize = 256;

/// The most places of a ring, about 8 MiB.
pub const MAX_RING: usize = 65_536;

/// The latest verdicts for one caller. Number n lies at n modulo the ring's size, a power of two;
/// the ring doubles when an entry younger than `keep` would be overwritten. It allocates when it
/// grows, and for checks with more than one limit until each place had one.
#[derive(Debug)]
pub struct DecidedRing {
    keep: Nanos,
    places: Vec<Place>,
    last_used: Nanos,
    overwritten: u64,
}

#[derive(Clone, Debug, Default)]
struct Place {
    /// `None` while it was never used.
    number: Option<u64>,
    at: Nanos,
    verdicts: SmallVec<[Verdict; 1]>,
}

impl DecidedRing {
    /// An empty ring; verdicts are kept for `keep`: two check deadlines.
    #[must_use]
    pub fn new(keep: Nanos) -> Self {
        Self {
            keep,
            places: vec![Place::default(); MIN_RING],
            last_used: Nanos::ZERO,
            overwritten: 0,
        }
    }

    /// What was decided under this number, if it is still known.
    #[must_use]
    pub fn verdicts(&self, number: u64) -> Option<&[Verdict]> {
        if sabotage::is(Sabotage::RepeatDecidedTwice) {
            return None;
        }
        let place = self.places.get(self.index_of(number)?)?;
        (place.number == Some(number)).then_some(&place.verdicts)
    }

    /// Keeps what was decided. A number that is known must not be decided again.
    pub fn record(&mut self, now: Nanos, number: u64, verdicts: &[Verdict]) {
        debug_assert!(self.verdicts(number).is_none(), "INV-DECIDED-ONCE");
        self.last_used = self.last_used.max(now);
        while self.is_young(now, number) {
            if self.places.len() >= MAX_RING {
                self.overwritten = self.overwritten.saturating_add(1);
                break;
            }
            self.grow();
        }
        let index = self.index_of(number);
        if let Some(place) = index.and_then(|index| self.places.get_mut(index)) {
            place.number = Some(number);
            place.at = now;
            place.verdicts.clear();
            place.verdicts.extend_from_slice(verdicts);
        }
    }

    /// Whether nothing was recorded for `keep`.
    #[must_use]
    pub fn is_idle(&self, now: Nanos) -> bool {
        now.saturating_sub(self.last_used) > self.keep
    }

    /// How many verdicts were lost before their time, since the ring was at its largest.
    #[must_use]
    pub const fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// How many places it has.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Whether the place of a number holds another that must still be kept.
    fn is_young(&self, now: Nanos, number: u64) -> bool {
        let index = self.index_of(number);
        index
            .and_then(|index| self.places.get(index))
            .is_some_and(|place| {
                place.number.is_some_and(|known| known != number)
                    && now.saturating_sub(place.at) <= self.keep
            })
    }

    /// Doubles the ring. Two numbers that had different places keep different ones.
    fn grow(&mut self) {
        let size = self.places.len().saturating_mul(2);
        let old = std::mem::replace(&mut self.places, vec![Place::default(); size]);
        for place in old {
            let index = place.number.and_then(|number| self.index_of(number));
            if let Some(free) = index.and_then(|index| self.places.get_mut(index)) {
                *free = place;
            }
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        let mask = u64::try_from(self.places.len().checked_sub(1)?).ok()?;
        usize::try_from(number & mask).ok()
    }
}
