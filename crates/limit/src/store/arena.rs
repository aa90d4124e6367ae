//! An arena: cells of one length, dense, without holes, in one run of words.
//!
//! It grows by a sixteenth, a few cells at least, so that few cells take little memory and many waste
//! little, and so that a cell is found by its index alone. A removed cell is replaced by the last
//! one. Knows nothing of keys or of what the words mean. Invariant: `words` is a whole number of
//! cells, all in use; what is spare is at most two steps.

/// A growing step is one in so many cells.
const STEP_SHARE: usize = 16;
/// Bytes that the smallest step stays below, unless two cells need more.
const SMALL_STEP_BYTES: usize = 1024;
/// Bytes of a word.
const WORD_BYTES: usize = 8;

/// Cells of one length.
#[derive(Debug)]
pub(super) struct Arena {
    /// Words of a cell.
    length: usize,
    /// Cells in use.
    cells: usize,
    words: Vec<u64>,
}

impl Arena {
    /// An arena of cells of `length` words; allocates nothing.
    pub(super) const fn new(length: usize) -> Self {
        Self {
            length,
            cells: 0,
            words: Vec::new(),
        }
    }

    /// Words of a cell.
    pub(super) const fn cell_length(&self) -> usize {
        self.length
    }

    /// Cells in use.
    pub(super) const fn len(&self) -> usize {
        self.cells
    }

    /// Bytes allocated.
    pub(super) const fn bytes(&self) -> usize {
        self.words.capacity().saturating_mul(WORD_BYTES)
    }

    /// How many bytes one more cell will allocate at least.
    pub(super) const fn bytes_for_one_more(&self) -> usize {
        if self.has_room() {
            return 0;
        }
        self.cell_bytes()
    }

    /// The cell of this index.
    #[inline]
    pub(super) fn cell(&self, index: usize) -> Option<&[u64]> {
        let start = index.saturating_mul(self.length);
        self.words.get(start..start.saturating_add(self.length))
    }

    /// The cell of this index, to write.
    #[inline]
    pub(super) fn cell_mut(&mut self, index: usize) -> Option<&mut [u64]> {
        let start = index.saturating_mul(self.length);
        self.words.get_mut(start..start.saturating_add(self.length))
    }

    /// Takes one more cell into use, all zero. Allocates no more than `affordable` bytes, but what
    /// one cell needs.
    pub(super) fn push(&mut self, affordable: usize) -> usize {
        if !self.has_room() {
            let most = affordable.checked_div(self.cell_bytes()).unwrap_or(0);
            let step = self.step().min(most).max(1);
            self.words.reserve_exact(step.saturating_mul(self.length));
        }
        let index = self.cells;
        self.words
            .resize(self.words.len().saturating_add(self.length), 0);
        self.cells = self.cells.saturating_add(1);
        index
    }

    /// Gives up a cell; the last one takes its place. Returns the index that the last one had, if
    /// that is another.
    pub(super) fn swap_remove(&mut self, index: usize) -> Option<usize> {
        let last = self.cells.checked_sub(1)?;
        if index > last {
            return None;
        }
        let start = last.saturating_mul(self.length);
        if index < last {
            self.words
                .copy_within(start.., index.saturating_mul(self.length));
        }
        self.words.truncate(start);
        self.cells = last;
        let step = self.step().saturating_mul(self.length);
        let wanted = start.saturating_add(step);
        if self.words.capacity() >= wanted.saturating_add(step) {
            self.words.shrink_to(wanted);
        }
        (index < last).then_some(last)
    }

    /// Gives back all memory that no cell uses.
    pub(super) fn trim(&mut self) {
        self.words.shrink_to_fit();
    }

    const fn cell_bytes(&self) -> usize {
        self.length.saturating_mul(WORD_BYTES)
    }

    const fn has_room(&self) -> bool {
        self.words.len().saturating_add(self.length) <= self.words.capacity()
    }

    /// Cells of a growing step.
    const fn step(&self) -> usize {
        let share = self.cells / STEP_SHARE;
        let least = match SMALL_STEP_BYTES.checked_div(self.cell_bytes()) {
            Some(least) if least > 2 => least,
            Some(_) | None => 2,
        };
        if share > least { share } else { least }
    }
}

#[cfg(test)]
mod tests {
    use super::Arena;

    impl Arena {
        /// Checks the invariants.
        pub(in crate::store) fn check(&self) {
            assert_eq!(self.words.len(), self.cells * self.length);
            let spare = (self.words.capacity() - self.words.len()) / self.length;
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
            let arena = numbered(words, 300);
            for index in 0..300 {
                let cell = arena.cell(index).expect("in use");
                assert_eq!(cell, vec![index as u64; words]);
            }
        }
    }

    #[test]
    fn the_last_cell_takes_the_place_of_a_removed_one() {
        for words in [8, 17, 67] {
            let mut arena = numbered(words, 200);
            assert_eq!(arena.swap_remove(3), Some(199));
            assert_eq!(arena.cell(3).expect("in use"), vec![199; words]);
            assert_eq!(arena.swap_remove(198), None, "the last one itself");
            assert_eq!(arena.swap_remove(198), None, "not in use");
            assert_eq!(arena.len(), 198);
            for left in (0..198).rev() {
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
            let told = arena.bytes_for_one_more();
            arena.push(told * cells + 7);
            assert_eq!(arena.bytes(), told * cells);
        }
        let mut arena = Arena::new(17);
        arena.push(0);
        assert_eq!(arena.bytes(), 17 * 8);
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
}
