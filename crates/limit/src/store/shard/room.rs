//! How a shard keeps its budget: what one more cell takes, and what goes for it.
//!
//! Knows nothing of what cells say.

use super::{Arena, Index, Shard, cell};
use crate::units::Nanos;

impl Shard {
    /// Evicts until one more cell of that many words fits.
    pub(in crate::store) fn make_room(&mut self, now: Nanos, words: usize) {
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
    pub(in crate::store) fn make_spare_room(&mut self, now: Nanos, words: usize) -> bool {
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

    pub(super) fn bytes_with_one_more(&self, words: usize) -> usize {
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

    pub(super) fn list_bytes(&self) -> usize {
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
    pub(in crate::store) fn could_hold(&self, own_words: usize) -> bool {
        // Arenas that are empty stay in their list.
        let alone = Index::default().bytes_for_one_more();
        let cell = Arena::new(cell::length(own_words)).bytes_for_one_more();
        let list = self.list_bytes().saturating_add(self.bytes_for_list());
        let bytes = [cell, alone, list, size_of::<Self>()];
        bytes.into_iter().fold(0, usize::saturating_add) <= self.budget
    }
}
