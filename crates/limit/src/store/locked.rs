//! The shards of one check, all locked.
//!
//! Invariant (`INV-LOCK-ORDER`): each shard once, in ascending order, so that checks which share
//! several shards never wait for each other in a circle. Knows nothing of counters.

use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::{Ask, Store, shard::Shard, shard_of};
use crate::key::KeyHash;

/// Limits of one check that are decided without an allocation.
pub(super) const INLINE_ASKS: usize = 4;

/// The locked shards that a check needs.
pub(super) struct Locked<'a> {
    guards: SmallVec<[(usize, MutexGuard<'a, Shard>); INLINE_ASKS]>,
}

impl<'a> Locked<'a> {
    /// Waits for the shards of all asks.
    pub(super) fn new(store: &'a Store, asks: &[Ask]) -> Self {
        let mut shards: SmallVec<[usize; INLINE_ASKS]> =
            asks.iter().map(|ask| shard_of(ask.key)).collect();
        shards.sort_unstable();
        shards.dedup();
        let guards = shards.into_iter().map(|shard| (shard, store.lock(shard)));
        Self {
            guards: guards.collect(),
        }
    }

    /// The shard of a key, if it is one of those asked for.
    pub(super) fn shard(&self, key: KeyHash) -> Option<&Shard> {
        let (_, guard) = self.guards.get(self.position(key)?)?;
        Some(guard)
    }

    /// The shard of a key to write, if it is one of those asked for.
    pub(super) fn shard_mut(&mut self, key: KeyHash) -> Option<&mut Shard> {
        let at = self.position(key)?;
        let (_, guard) = self.guards.get_mut(at)?;
        Some(guard)
    }

    fn position(&self, key: KeyHash) -> Option<usize> {
        let wanted = shard_of(key);
        self.guards.iter().position(|(shard, _)| *shard == wanted)
    }
}
