//! One shard: a table of handles and the arenas that they lead to. It is only reached under its lock.
//!
//! Finds, adds and removes cells; what they say is in `decide`. Knows nothing of other shards or of locks. Invariants: every cell in
//! use has one handle in the table and every handle leads to a cell in use; what is allocated stays
//! within the budget (`INV-BUDGET`), save for a table while it moves.

use smallvec::SmallVec;

use super::{
    arena::Arena,
    cell::{self, Identity},
    handle::Handle,
    index::Index,
    pressure::Losses,
    standoff::Standoff,
};
use crate::{counter::Moment, key::KeyHash, units::Nanos};

/// The counters of one 1024th of the key space.
#[derive(Debug)]
pub(super) struct Shard {
    index: Index,
    /// One for each cell length that was ever needed: fewer than a handle can name.
    arenas: SmallVec<[Arena; 1]>,
    pub(super) losses: Losses,
    /// Known victims, if all cells are at their limit.
    pub(super) standoff: Option<Box<Standoff>>,
    budget: usize,
    /// Unix time of the clock's origin.
    unix_origin: Nanos,
}

impl Shard {
    /// An empty shard that may allocate so many bytes, itself included.
    pub(super) fn new(budget: usize, unix_origin: Nanos) -> Self {
        Self {
            index: Index::default(),
            arenas: SmallVec::new(),
            losses: Losses::default(),
            standoff: None,
            budget,
            unix_origin,
        }
    }

    /// Counters.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Bytes allocated, itself included.
    pub(super) fn bytes(&self) -> usize {
        let cells = self.arenas.iter().map(Arena::bytes);
        cells
            .fold(self.list_bytes(), usize::saturating_add)
            .saturating_add(self.index.bytes())
            .saturating_add(
                self.standoff
                    .as_ref()
                    .map_or(0, |standoff| standoff.bytes()),
            )
            .saturating_add(size_of::<Self>())
    }

    /// An instant, with what turns it into Unix time.
    pub(super) const fn moment(&self, now: Nanos) -> Moment {
        Moment {
            now,
            unix_origin: self.unix_origin,
        }
    }

    /// Removes every counter of a key, whatever its window.
    pub(super) fn remove(&mut self, key: KeyHash) -> bool {
        let mut removed = false;
        while let Some((handle, _)) = self.any_cell_of(key) {
            self.remove_cell(handle);
            removed = true;
        }
        removed
    }

    /// Removes one counter of a key.
    pub(super) fn remove_one(&mut self, key: KeyHash, identity: Identity) {
        if let Some(handle) = self.handle(key, identity) {
            self.remove_cell(handle);
        }
    }

    /// Forgets all counters.
    pub(super) fn clear(&mut self) {
        self.index = Index::default();
        self.arenas = SmallVec::new();
        self.standoff = None;
    }

    /// Every cell in use and its handle, the highest index of each arena first, so that a removal
    /// never moves a cell that is still to come.
    pub(super) fn cells(&self) -> impl Iterator<Item = (Handle, &[u64])> {
        self.arenas.iter().enumerate().flat_map(|(at, arena)| {
            let indexes = (0..arena.len()).rev();
            indexes.filter_map(move |index| Some((Handle::new(at, index), arena.cell(index)?)))
        })
    }

    /// Removes a cell; the last of its arena takes its place.
    pub(super) fn remove_cell(&mut self, handle: Handle) {
        let Some(cell) = cell_of(&self.arenas, handle) else {
            return;
        };
        let hash = cell::low_of(cell);
        let arenas = &self.arenas;
        self.index
            .remove(hash, handle, |known| hash_of(arenas, known));
        let Some(arena) = self.arenas.get_mut(handle.arena()) else {
            return;
        };
        if let Some(last) = arena.swap_remove(handle.index()) {
            let moved = Handle::new(handle.arena(), last);
            let hash = arena.cell(handle.index()).map_or(0, cell::low_of);
            let known = self.index.replace(hash, moved, handle);
            debug_assert!(known, "a cell in use has a handle");
        }
    }

    /// Gives back memory that no cell uses, as far as it is worth it.
    pub(super) fn trim(&mut self) {
        self.arenas.iter_mut().for_each(Arena::trim);
        let arenas = &self.arenas;
        self.index.trim(|handle| hash_of(arenas, handle));
    }

    /// Adds a cell that is not there yet, with so many words of its own, all zero: what is known of it is
    /// what it notes of the rule and its last charge.
    pub(super) fn insert(
        &mut self,
        now: Nanos,
        (key, identity): (KeyHash, Identity),
        (capacity, latest): (u64, Nanos),
        own_words: usize,
    ) -> &mut [u64] {
        let words = cell::length(own_words);
        self.make_room(now, words);
        let at = self
            .arenas
            .iter()
            .position(|arena| arena.cell_length() == words);
        let at = at.unwrap_or_else(|| {
            self.arenas.push(Arena::new(words));
            self.arenas.len().saturating_sub(1)
        });
        let bytes = self.bytes().saturating_add(self.index.bytes_for_one_more());
        let affordable = self.budget.saturating_sub(bytes);
        let Some(arena) = self.arenas.get_mut(at) else {
            return &mut [];
        };
        let index = arena.push(affordable);
        if let Some(cell) = arena.cell_mut(index) {
            cell::start(cell, key, identity, (capacity, latest));
        }
        let arenas = &self.arenas;
        let handle = Handle::new(at, index);
        self.index
            .insert(key.low(), handle, |known| hash_of(arenas, known));
        let arena = self.arenas.get_mut(at);
        arena
            .and_then(|arena| arena.cell_mut(index))
            .unwrap_or_default()
    }

    /// Evicts until one more cell of that many words fits.
    fn make_room(&mut self, now: Nanos, words: usize) {
        while self.bytes_with_one_more(words) > self.budget && self.index.len() > 0 {
            let before = self.index.len();
            self.evict(now);
            debug_assert!(self.index.len() < before, "an eviction frees a cell");
            if self.index.len() == 0 {
                self.standoff = None;
            }
            if self.bytes_with_one_more(words) > self.budget {
                self.trim();
            }
        }
    }

    /// Evicts counters below their limit until one more cell of that many words fits; false if it does not.
    pub(super) fn make_spare_room(&mut self, now: Nanos, words: usize) -> bool {
        while self.bytes_with_one_more(words) > self.budget {
            if !self.evict_spare(now) {
                self.trim();
                return self.bytes_with_one_more(words) <= self.budget;
            }
            if self.bytes_with_one_more(words) > self.budget {
                self.trim();
            }
        }
        true
    }

    fn bytes_with_one_more(&self, words: usize) -> usize {
        let arena = self
            .arenas
            .iter()
            .find(|arena| arena.cell_length() == words);
        let cells = arena.map_or_else(|| self.bytes_for_an_arena(words), Arena::bytes_for_one_more);
        let index = self.index.bytes_for_one_more();
        self.bytes().saturating_add(index).saturating_add(cells)
    }

    /// What an arena that is not there yet takes: its first cell, and the list if that has to double.
    fn bytes_for_an_arena(&self, words: usize) -> usize {
        let cell = Arena::new(words).bytes_for_one_more();
        cell.saturating_add(self.bytes_for_list())
    }

    fn list_bytes(&self) -> usize {
        if self.arenas.spilled() {
            self.arenas.capacity().saturating_mul(size_of::<Arena>())
        } else {
            0
        }
    }

    /// What one more arena adds to their list, which then doubles if it is full.
    fn bytes_for_list(&self) -> usize {
        if self.arenas.len() < self.arenas.capacity() {
            return 0;
        }
        let doubled = self.arenas.capacity().saturating_mul(2);
        let doubled = doubled.saturating_mul(size_of::<Arena>());
        doubled.saturating_sub(self.list_bytes())
    }

    /// Whether a cell with so many words of its own would fit if it were alone.
    pub(super) fn could_hold(&self, own_words: usize) -> bool {
        // Arenas that are empty stay in their list.
        let alone = Index::default().bytes_for_one_more();
        let cell = Arena::new(cell::length(own_words)).bytes_for_one_more();
        let list = self.list_bytes().saturating_add(self.bytes_for_list());
        let bytes = [cell, alone, list, size_of::<Self>()];
        bytes.into_iter().fold(0, usize::saturating_add) <= self.budget
    }

    /// The cell of a key.
    #[inline]
    pub(super) fn find(&self, key: KeyHash, identity: Identity) -> Option<&[u64]> {
        cell_of(&self.arenas, self.handle(key, identity)?)
    }

    /// The cell of a key, to write.
    #[inline]
    pub(super) fn find_mut(&mut self, key: KeyHash, identity: Identity) -> Option<&mut [u64]> {
        let handle = self.handle(key, identity)?;
        let arena = self.arenas.get_mut(handle.arena())?;
        arena.cell_mut(handle.index())
    }

    #[inline]
    fn handle(&self, key: KeyHash, identity: Identity) -> Option<Handle> {
        let arenas = &self.arenas;
        self.index.find(key.low(), |handle| {
            cell_of(arenas, handle).is_some_and(|cell| cell::is(cell, key, identity))
        })
    }

    /// Looks at all cells of a key.
    pub(super) fn each_cell_of(&self, key: KeyHash, mut look: impl FnMut(Handle, &[u64])) {
        let arenas = &self.arenas;
        self.index.find(key.low(), |handle| {
            if let Some(cell) = cell_of(arenas, handle).filter(|cell| cell::has_key(cell, key)) {
                look(handle, cell);
            }
            false
        });
    }

    /// A cell of a key, whatever its window.
    pub(super) fn any_cell_of(&self, key: KeyHash) -> Option<(Handle, &[u64])> {
        let arenas = &self.arenas;
        let handle = self.index.find(key.low(), |handle| {
            cell_of(arenas, handle).is_some_and(|cell| cell::has_key(cell, key))
        })?;
        Some((handle, cell_of(arenas, handle)?))
    }
}

fn cell_of(arenas: &[Arena], handle: Handle) -> Option<&[u64]> {
    arenas.get(handle.arena())?.cell(handle.index())
}

fn hash_of(arenas: &[Arena], handle: Handle) -> u64 {
    cell_of(arenas, handle).map_or(0, cell::low_of)
}

#[cfg(test)]
mod tests;
