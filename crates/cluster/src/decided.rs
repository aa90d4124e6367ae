//! *Decided once*: an owner's memory of what it decided lately, by (entry boot, request number).
//!
//! INV-DECIDED-ONCE: a request number of an entry boot is decided at most once. It holds while its
//! verdicts are kept, that is for `keep` (two check deadlines): a repetition that comes later was
//! dropped by its sender, whose deadline had passed. Where [`MAX_RING`] numbers within `keep` do not
//! do, the oldest is lost, and counted. Knows nothing of frames and counters.

mod ring;

use std::collections::BTreeMap;

use tollgate_limit::{Nanos, Verdict};
use tollgate_wire::identity::BootId;

pub use self::ring::{DecidedRing, MAX_RING, MIN_RING};

/// The most entry boots that verdicts are kept for. When full, the one that was idle longest goes.
pub const MAX_BOOTS: usize = 1_024;

/// The rings of all entry boots.
///
/// A node that shares each boot's ring among that boot's streams keeps the [`DecidedRing`]s itself.
#[derive(Debug)]
pub struct Decided {
    keep: Nanos,
    rings: BTreeMap<BootId, DecidedRing>,
}

impl Decided {
    /// No boot yet; verdicts are kept for `keep`: two check deadlines.
    #[must_use]
    pub const fn new(keep: Nanos) -> Self {
        Self {
            keep,
            rings: BTreeMap::new(),
        }
    }

    /// What was decided for this boot under this number, if it is still known.
    #[must_use]
    pub fn verdicts(&self, boot: BootId, number: u64) -> Option<&[Verdict]> {
        self.rings.get(&boot)?.verdicts(number)
    }

    /// Keeps what was decided.
    pub fn record(&mut self, now: Nanos, boot: BootId, number: u64, verdicts: &[Verdict]) {
        if !self.rings.contains_key(&boot) && self.rings.len() >= MAX_BOOTS {
            self.forget_idlest();
        }
        let keep = self.keep;
        self.rings
            .entry(boot)
            .or_insert_with(|| DecidedRing::new(keep))
            .record(now, number, verdicts);
    }

    /// Forgets the boots for which nothing was recorded within `keep`.
    pub fn sweep(&mut self, now: Nanos) {
        self.rings.retain(|_boot, ring| !ring.is_idle(now));
    }

    /// How many boots are known.
    #[must_use]
    pub fn boots(&self) -> usize {
        self.rings.len()
    }

    fn forget_idlest(&mut self) {
        let idlest = self.rings.iter().min_by_key(|(_, ring)| ring.last_used());
        if let Some(boot) = idlest.map(|(boot, _)| *boot) {
            self.rings.remove(&boot);
        }
    }
}

#[cfg(test)]
mod tests;
