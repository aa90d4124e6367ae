//! The index of a shard: from a key's low half to the handle of its cell.
//!
//! Open addressing with linear probing over four-byte slots, each a handle and six bits of the hash:
//! one cache line finds a key, where a table with control bytes beside its entries needs two, on two
//! pages. Removal shifts the followers back, so that no tombstone is ever left. Knows nothing of
//! cells: the hash of a handle comes from the caller. Invariants: the number of slots is a power of
//! two; at most three quarters of them are taken; between a key's home and its slot none is empty.

use super::handle::Handle;

/// Bits of the hash in a slot, to tell most other keys apart without a look at their cell.
const TAG_BITS: u32 = 6;
const TAG_MASK: u32 = (1 << TAG_BITS) - 1;
/// No handle: its arena does not exist.
const EMPTY: u32 = u32::MAX;
/// Slots of the smallest index.
const MIN_SLOTS: usize = 8;

/// Handles by hash.
#[derive(Debug, Default)]
pub(super) struct Index {
    slots: Box<[u32]>,
    taken: usize,
}

impl Index {
    /// Handles in it.
    pub(super) const fn len(&self) -> usize {
        self.taken
    }

    /// Bytes allocated.
    pub(super) const fn bytes(&self) -> usize {
        bytes_of(self.slots.len())
    }

    /// How many bytes one more handle will allocate.
    pub(super) const fn bytes_for_one_more(&self) -> usize {
        if self.has_room() {
            return 0;
        }
        bytes_of(self.more_slots()).saturating_sub(self.bytes())
    }

    /// The first handle of that hash that is the right one.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        mut is_right: impl FnMut(Handle) -> bool,
    ) -> Option<Handle> {
        let tag = tag_of(hash);
        let mut at = self.home(hash);
        loop {
            let slot = *self.slots.get(at)?;
            if slot == EMPTY {
                return None;
            }
            if slot & TAG_MASK == tag {
                let handle = Handle::from_bits(slot >> TAG_BITS);
                if is_right(handle) {
                    return Some(handle);
                }
            }
            at = self.after(at);
        }
    }

    /// Adds a handle that is not in it.
    pub(super) fn insert(&mut self, hash: u64, handle: Handle, hash_of: impl Fn(Handle) -> u64) {
        if !self.has_room() {
            self.resize(self.more_slots(), hash_of);
        }
        self.put(hash, handle);
        self.taken = self.taken.saturating_add(1);
    }

    /// Puts another handle of the same hash in a handle's place. Whether it was there.
    pub(super) fn replace(&mut self, hash: u64, old: Handle, new: Handle) -> bool {
        let Some(at) = self.slot_of(hash, old) else {
            return false;
        };
        self.set(at, slot(hash, new));
        true
    }

    /// Removes a handle. Whether it was there.
    pub(super) fn remove(
        &mut self,
        hash: u64,
        handle: Handle,
        hash_of: impl Fn(Handle) -> u64,
    ) -> bool {
        let Some(mut hole) = self.slot_of(hash, handle) else {
            return false;
        };
        let mut at = self.after(hole);
        while let Some(&follower) = self.slots.get(at).filter(|slot| **slot != EMPTY) {
            let home = self.home(hash_of(Handle::from_bits(follower >> TAG_BITS)));
            // It may go back to the hole unless its home lies behind it.
            if self.distance(home, at) >= self.distance(hole, at) {
                self.set(hole, follower);
                hole = at;
            }
            at = self.after(at);
        }
        self.set(hole, EMPTY);
        self.taken = self.taken.saturating_sub(1);
        true
    }

    /// Gives back slots if the handles fit into half of them.
    pub(super) fn trim(&mut self, hash_of: impl Fn(Handle) -> u64) {
        if self.taken == 0 {
            self.slots = Box::default();
            return;
        }
        let mut slots = self.slots.len();
        while slots > MIN_SLOTS && fits(self.taken, slots / 2) {
            slots /= 2;
        }
        if slots < self.slots.len() {
            self.resize(slots, hash_of);
        }
    }

    /// All handles, in no order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = Handle> {
        let taken = self.slots.iter().filter(|slot| **slot != EMPTY);
        taken.map(|slot| Handle::from_bits(slot >> TAG_BITS))
    }

    const fn has_room(&self) -> bool {
        fits(self.taken.saturating_add(1), self.slots.len())
    }

    const fn more_slots(&self) -> usize {
        if self.slots.is_empty() {
            MIN_SLOTS
        } else {
            self.slots.len().saturating_mul(2)
        }
    }

    fn resize(&mut self, slots: usize, hash_of: impl Fn(Handle) -> u64) {
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; slots].into_boxed_slice());
        for slot in old.into_iter().filter(|slot| *slot != EMPTY) {
            let handle = Handle::from_bits(slot >> TAG_BITS);
            self.put(hash_of(handle), handle);
        }
    }

    fn put(&mut self, hash: u64, handle: Handle) {
        let mut at = self.home(hash);
        while self.slots.get(at).is_some_and(|slot| *slot != EMPTY) {
            at = self.after(at);
        }
        self.set(at, slot(hash, handle));
    }

    fn slot_of(&self, hash: u64, handle: Handle) -> Option<usize> {
        let wanted = slot(hash, handle);
        let mut at = self.home(hash);
        loop {
            match *self.slots.get(at)? {
                EMPTY => return None,
                slot if slot == wanted => return Some(at),
                _ => at = self.after(at),
            }
        }
    }

    fn set(&mut self, at: usize, value: u32) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = value;
        }
    }

    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash & u64::from(u32::MAX)).unwrap_or(0) & self.mask()
    }

    fn after(&self, at: usize) -> usize {
        at.wrapping_add(1) & self.mask()
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }
}

fn slot(hash: u64, handle: Handle) -> u32 {
    handle.bits() << TAG_BITS | tag_of(hash)
}

fn tag_of(hash: u64) -> u32 {
    u32::try_from(hash >> (u64::BITS - TAG_BITS)).unwrap_or(0)
}

const fn fits(taken: usize, slots: usize) -> bool {
    taken.saturating_mul(4) <= slots.saturating_mul(3)
}

const fn bytes_of(slots: usize) -> usize {
    slots.saturating_mul(size_of::<u32>())
}

#[cfg(test)]
mod tests;
