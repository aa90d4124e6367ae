//! An arena: cells of one length, dense, without holes.
//!
//! Cells lie in chunks of [`CELLS_PER_CHUNK`]; only the last chunk grows, by steps of about a
//! kibibyte, so that few cells take little memory and many waste little. A removed cell is replaced
//! by the last one. Knows nothing of keys or of what the words mean. Invariants: cells
//! `0..cells` are in use; every chunk but the last is full grown; `bytes` is what is allocated; at
//! most two steps are spare.

/// Words of cells in a full chunk: the list of chunks stays short enough to stay cached.
const CELLS_PER_CHUNK: usize = 64;
/// Aim for the bytes of a growing step.
const STEP_BYTES: usize = 1024;
/// The most cells of a growing step.
const MAX_STEP: usize = 8;
/// Bytes of a word.
const WORD_BYTES: usize = 8;

/// Cells of one length.
#[derive(Debug)]
pub(super) struct Arena {
    /// Words of a cell.
    words: usize,
    /// Cells in use.
    cells: usize,
    /// Cells that there is memory for.
    room: usize,
    chunks: Vec<Vec<u64>>,
    /// Bytes of all chunks.
    chunk_bytes: usize,
}

impl Arena {
    /// An arena of cells of `words` words; allocates nothing.
    pub(super) const fn new(words: usize) -> Self {
        Self {
            words,
            cells: 0,
            room: 0,
            chunks: Vec::new(),
            chunk_bytes: 0,
        }
    }

    /// Words of a cell.
    pub(super) const fn words(&self) -> usize {
        self.words
    }

    /// Cells in use.
    pub(super) const fn len(&self) -> usize {
        self.cells
    }

    /// Bytes allocated: the chunks and their list.
    pub(super) const fn bytes(&self) -> usize {
        let list = self.chunks.capacity().saturating_mul(size_of::<Vec<u64>>());
        self.chunk_bytes.saturating_add(list)
    }

    /// At most how many bytes one more cell will allocate.
    pub(super) const fn bytes_for_one_more(&self) -> usize {
        if self.cells < self.room {
            return 0;
        }
        let step = self.step().saturating_mul(self.cell_bytes());
        if self.room.is_multiple_of(CELLS_PER_CHUNK) && self.chunks.len() == self.chunks.capacity()
        {
            let doubled = self.chunks.capacity().saturating_add(LIST_MIN);
            return step.saturating_add(doubled.saturating_mul(size_of::<Vec<u64>>()));
        }
        step
    }

    /// The cell of this index.
    pub(super) fn cell(&self, index: usize) -> Option<&[u64]> {
        let chunk = self.chunks.get(index / CELLS_PER_CHUNK)?;
        let start = (index % CELLS_PER_CHUNK).saturating_mul(self.words);
        chunk.get(start..start.saturating_add(self.words))
    }

    /// The cell of this index, to write.
    pub(super) fn cell_mut(&mut self, index: usize) -> Option<&mut [u64]> {
        let chunk = self.chunks.get_mut(index / CELLS_PER_CHUNK)?;
        let start = (index % CELLS_PER_CHUNK).saturating_mul(self.words);
        chunk.get_mut(start..start.saturating_add(self.words))
    }

    /// Takes one more cell into use. Its words are those of whatever was there before.
    pub(super) fn push(&mut self) -> usize {
        if self.cells >= self.room {
            self.grow();
        }
        let index = self.cells;
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
        if index < last {
            self.copy(last, index);
        }
        self.cells = last;
        let spare = self.room.saturating_sub(self.cells);
        if spare >= self.step().saturating_mul(2) {
            self.shrink(self.step());
        }
        (index < last).then_some(last)
    }

    /// Gives back all memory that no cell uses.
    pub(super) fn trim(&mut self) {
        while self.room > self.cells {
            let spare = self.room.saturating_sub(self.cells);
            self.shrink(spare);
        }
        self.chunks.shrink_to_fit();
    }

    fn copy(&mut self, from: usize, to: usize) {
        let words = self.words;
        let start = |index: usize| (index % CELLS_PER_CHUNK).saturating_mul(words);
        let (from_chunk, to_chunk) = (from / CELLS_PER_CHUNK, to / CELLS_PER_CHUNK);
        let source = start(from)..start(from).saturating_add(words);
        if from_chunk == to_chunk {
            if let Some(chunk) = self.chunks.get_mut(to_chunk) {
                chunk.copy_within(source, start(to));
            }
            return;
        }
        let Ok([target, origin]) = self.chunks.get_disjoint_mut([to_chunk, from_chunk]) else {
            return;
        };
        let target = target.get_mut(start(to)..start(to).saturating_add(words));
        if let (Some(target), Some(origin)) = (target, origin.get(source)) {
            target.copy_from_slice(origin);
        }
    }

    fn grow(&mut self) {
        if self.room.is_multiple_of(CELLS_PER_CHUNK) {
            self.chunks.push(Vec::new());
        }
        let within = self.room % CELLS_PER_CHUNK;
        let step = self.step().min(CELLS_PER_CHUNK.saturating_sub(within));
        let words = step.saturating_mul(self.words);
        if let Some(chunk) = self.chunks.last_mut() {
            let before = chunk.capacity();
            chunk.reserve_exact(words);
            chunk.resize(chunk.len().saturating_add(words), 0);
            let more = chunk.capacity().saturating_sub(before);
            self.chunk_bytes = self
                .chunk_bytes
                .saturating_add(more.saturating_mul(WORD_BYTES));
            self.room = self.room.saturating_add(step);
        }
    }

    /// Gives back up to `cells` cells of memory, no more than the last chunk has.
    fn shrink(&mut self, cells: usize) {
        let Some(chunk) = self.chunks.last_mut() else {
            self.room = self.cells;
            return;
        };
        let before = chunk.capacity();
        let has = chunk.len().checked_div(self.words).unwrap_or(0);
        let gone = cells.min(has);
        chunk.truncate(has.saturating_sub(gone).saturating_mul(self.words));
        chunk.shrink_to_fit();
        let less = before.saturating_sub(chunk.capacity());
        if chunk.is_empty() {
            self.chunks.pop();
        }
        self.chunk_bytes = self
            .chunk_bytes
            .saturating_sub(less.saturating_mul(WORD_BYTES));
        self.room = self.room.saturating_sub(gone);
    }

    const fn cell_bytes(&self) -> usize {
        self.words.saturating_mul(WORD_BYTES)
    }

    /// Cells of a growing step: a divisor of a chunk, so that a chunk ends with a step.
    const fn step(&self) -> usize {
        if self.cell_bytes().saturating_mul(MAX_STEP) <= STEP_BYTES.saturating_mul(2) {
            MAX_STEP
        } else {
            2
        }
    }
}

/// The capacity of the first list of chunks.
const LIST_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::{Arena, CELLS_PER_CHUNK, WORD_BYTES};

    impl Arena {
        /// Recounts what the fields say.
        pub(in crate::store) fn check(&self) {
            let capacity: usize = self.chunks.iter().map(Vec::capacity).sum();
            assert_eq!(self.chunk_bytes, capacity * WORD_BYTES);
            let words: usize = self.chunks.iter().map(Vec::len).sum();
            assert_eq!(self.room * self.words, words);
            assert!(self.cells <= self.room);
            assert!(
                self.room <= self.cells + 2 * self.step(),
                "two steps are spare at most"
            );
            let full = self.chunks.iter().rev().skip(1);
            for chunk in full {
                assert_eq!(chunk.len(), CELLS_PER_CHUNK * self.words);
            }
        }
    }

    fn numbered(words: usize, cells: usize) -> Arena {
        let mut arena = Arena::new(words);
        for number in 0..cells {
            let told = arena.bytes().saturating_add(arena.bytes_for_one_more());
            let index = arena.push();
            assert!(arena.bytes() <= told, "{} of {told} bytes", arena.bytes());
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
    fn removed_memory_is_given_back() {
        let mut arena = numbered(17, 1000);
        let full = arena.bytes();
        for _ in 0..900 {
            arena.swap_remove(0);
        }
        assert!(arena.bytes() < full / 5, "{} of {full}", arena.bytes());
    }
}
