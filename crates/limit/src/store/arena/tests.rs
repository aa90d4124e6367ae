//! Tests of the arena: words, places and bytes.

use super::{Arena, CELLS_PER_CHUNK};

impl Arena {
    /// Checks the invariants.
    pub(in crate::store) fn check(&self) {
        let capacity: usize = self.chunks.iter().map(Vec::capacity).sum();
        assert_eq!(self.chunk_bytes, capacity * 8);
        let words: usize = self.chunks.iter().map(Vec::len).sum();
        assert_eq!(words, self.cells * self.length);
        assert_eq!(self.chunks.len(), self.cells.div_ceil(CELLS_PER_CHUNK));
        let spare = (capacity - words) / self.length;
        assert!(spare <= 2 * self.step(), "{spare} cells are spare");
    }
}

fn numbered(words: usize, cells: usize) -> Arena {
    let mut arena = Arena::new(words);
    for number in 0..cells {
        let index = arena.push(usize::MAX);
        assert_eq!(index, number);
        arena
            .cell_mut(index)
            .expect("just made")
            .fill(number as u64);
        arena.check();
    }
    arena
}

#[test]
fn cells_keep_their_words_while_the_arena_grows() {
    for words in [8, 17, 33, 67] {
        let arena = numbered(words, 1800);
        for index in 0..1800 {
            let cell = arena.cell(index).expect("in use");
            assert_eq!(cell, vec![index as u64; words]);
        }
    }
}

#[test]
fn the_last_cell_takes_the_place_of_a_removed_one() {
    for words in [8, 17, 67] {
        let mut arena = numbered(words, 1800);
        assert_eq!(arena.swap_remove(3), Some(1799));
        assert_eq!(arena.cell(3).expect("in use"), vec![1799; words]);
        assert_eq!(arena.swap_remove(1798), None, "the last one itself");
        assert_eq!(arena.swap_remove(1798), None, "not in use");
        assert_eq!(arena.len(), 1798);
        for left in (0..1798).rev() {
            arena.swap_remove(left / 2);
            arena.check();
            assert_eq!(arena.len(), left);
        }
        arena.trim();
        assert_eq!(arena.bytes(), 0);
    }
}

#[test]
fn no_more_is_allocated_than_can_be_afforded() {
    for cells in [1, 2, 3, 4] {
        let mut arena = Arena::new(17);
        assert_eq!(arena.bytes_for_one_more(), 17 * 8);
        arena.push(17 * 8 * cells + 7);
        assert_eq!(arena.bytes(), 17 * 8 * cells);
    }
    let mut arena = Arena::new(17);
    for cells in 1..2000 {
        let told = arena.bytes() + arena.bytes_for_one_more();
        arena.push(0);
        assert_eq!(arena.bytes(), told, "with {cells} cells");
    }
}

#[test]
fn removed_memory_is_given_back() {
    let mut arena = numbered(17, 1000);
    let full = arena.bytes();
    for _ in 0..900 {
        arena.swap_remove(0);
    }
    assert!(arena.bytes() < full / 5, "{} of {full}", arena.bytes());
}
