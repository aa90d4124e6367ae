//! Who writes what is counted in a shard, and when it is to be sent.
//!
//! Knows nothing of what is counted. Invariant: no writer ever starts a series from nothing a second time.

use super::Shard;
use crate::{
    key::KeyHash,
    store::{SLOTS_PER_SHARD, cell::Urge},
    units::Nanos,
};

impl Shard {
    /// Who writes what this store counts for a key now.
    pub(in crate::store) fn writer_of(&self, key: KeyHash) -> u64 {
        let at = key.slot().index() % SLOTS_PER_SHARD;
        let epochs = self.epochs.as_ref();
        let epoch = epochs.and_then(|epochs| epochs.get(at)).copied();
        self.writer.wrapping_add(u64::from(epoch.unwrap_or(0)))
    }

    /// What is counted in these slots from now on is of another writer.
    pub(in crate::store) fn raise_epochs(&mut self, slots: u64) {
        if slots == 0 {
            return;
        }
        let epochs = self
            .epochs
            .get_or_insert_with(|| Box::new([0; SLOTS_PER_SHARD]));
        for (at, epoch) in epochs.iter_mut().enumerate() {
            if is_in(slots, at) {
                *epoch = epoch.wrapping_add(1);
            }
        }
    }

    /// Notes that a version was given.
    pub(in crate::store) fn note_version(&mut self, version: u64) {
        self.highest_gone = self.highest_gone.max(version);
    }

    /// Notes when a counter is to be sent.
    #[inline]
    pub(in crate::store) fn note_urge(&mut self, now: Nanos, key: KeyHash, urge: Urge) {
        if urge != Urge::None {
            self.note_unsent(now, key, urge);
        }
    }

    fn note_unsent(&mut self, now: Nanos, key: KeyHash, urge: Urge) {
        let affordable = if self.outbox.has_room() {
            0
        } else {
            self.budget.saturating_sub(self.bytes())
        };
        let bounds = (self.index.len(), affordable);
        match urge {
            Urge::None => {}
            Urge::Due => self.outbox.push_due(now, key.low(), bounds),
            Urge::Urgent => self.outbox.push_urgent(key.low(), bounds),
        }
    }
}

/// Whether the slot of that number within the shard is one of those.
fn is_in(slots: u64, at: usize) -> bool {
    let bit = u32::try_from(at).unwrap_or(u32::MAX);
    slots & 1_u64.unbounded_shl(bit) != 0
}
