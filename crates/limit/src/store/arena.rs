//! An arena: cells of one length, dense, without holes.
//!
//! Cells lie in chunks of [`CELLS_PER_CHUNK`]; the first few are listed in the arena itself, since
//! another page costs more than another line. Only the last chunk grows, by about a kibibyte or a sixteenth, so that few cells take little memory, many
//! waste little, and the allocator is not left with holes as large as the arena. A removed cell is
//! replaced by the last one. Knows nothing of keys or of what the words mean. Invariants: every chunk
//! but the last is full; what is spare is at most two steps; `chunk_bytes` is what the chunks take.

use smallvec::SmallVec;

/// Chunks that are listed in the arena itself.
const INLINE_CHUNKS: usize = 4;
/// Cells of a full chunk.
const CELLS_PER_CHUNK: usize = 256;
/// A growing step is one in so many cells of a chunk.
const STEP_SHARE: usize = 16;
/// Bytes that the smallest step stays below, unless two cells need more.
const SMALL_STEP_BYTES: usize = 1024;
/// Bytes of a word.
const WORD_BYTES: usize = 8;

/// Cells of one length.
#[derive(Debug)]
pub(super) struct Arena {
    chunks: SmallVec<[Vec<u64>; INLINE_CHUNKS]>,
    /// Words of a cell.
    length: usize,
    /// Cells in use.
    cells: usize,
    chunk_bytes: usize,
}

impl Arena {
    /// An arena of cells of `length` words; allocates nothing.
    pub(super) fn new(length: usize) -> Self {
        Self {
            chunks: SmallVec::new(),
            length,
            cells: 0,
            chunk_bytes: 0,
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

    /// Bytes allocated: the chunks and their list.
    pub(super) fn bytes(&self) -> usize {
        self.chunk_bytes.saturating_add(self.list_bytes())
    }

    /// How many bytes one more cell will allocate at least.
    pub(super) fn bytes_for_one_more(&self) -> usize {
        if self.has_room() {
            return 0;
        }
        self.cell_bytes().saturating_add(self.bytes_for_list())
    }

    /// The cell of this index.
    #[inline]
    pub(super) fn cell(&self, index: usize) -> Option<&[u64]> {
        let start = (index % CELLS_PER_CHUNK).saturating_mul(self.length);
        let chunk = self.chunks.get(index / CELLS_PER_CHUNK)?;
        chunk.get(start..start.saturating_add(self.length))
    }

    /// The cell of this index, to write.
    #[inline]
    pub(super) fn cell_mut(&mut self, index: usize) -> Option<&mut [u64]> {
        let start = (index % CELLS_PER_CHUNK).saturating_mul(self.length);
        let chunk = self.chunks.get_mut(index / CELLS_PER_CHUNK)?;
        chunk.get_mut(start..start.saturating_add(self.length))
    }

    /// Takes one more cell into use, all zero. Allocates no more than `affordable` bytes, but what
    /// one cell needs.
    pub(super) fn push(&mut self, affordable: usize) -> usize {
        if !self.has_room() {
            self.grow(affordable.saturating_sub(self.bytes_for_list()));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.resize(chunk.len().saturating_add(self.length), 0);
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
        let step = self.step().saturating_mul(self.length);
        let start = (last % CELLS_PER_CHUNK).saturating_mul(self.length);
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.truncate(start);
            let wanted = start.saturating_add(step);
            if chunk.capacity() >= wanted.saturating_add(step) {
                self.shrink_last_to(wanted);
            }
        }
        if start == 0 {
            self.shrink_last_to(0);
            self.chunks.pop();
        }
        (index < last).then_some(last)
    }

    /// Gives back all memory that no cell uses.
    pub(super) fn trim(&mut self) {
        self.shrink_last_to(0);
        self.chunks.shrink_to_fit();
    }

    fn copy(&mut self, from: usize, to: usize) {
        let words = self.length;
        let start = |index: usize| (index % CELLS_PER_CHUNK).saturating_mul(words);
        let source = start(from)..start(from).saturating_add(words);
        let (from_chunk, to_chunk) = (from / CELLS_PER_CHUNK, to / CELLS_PER_CHUNK);
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

    fn grow(&mut self, affordable: usize) {
        let within = self.cells % CELLS_PER_CHUNK;
        if within == 0 {
            self.chunks.reserve_exact(1);
            self.chunks.push(Vec::new());
        }
        let most = affordable.checked_div(self.cell_bytes()).unwrap_or(0);
        let left = CELLS_PER_CHUNK.saturating_sub(within);
        let step = self.step().min(most).min(left).max(1);
        let words = step.saturating_mul(self.length);
        if let Some(chunk) = self.chunks.last_mut() {
            let before = chunk.capacity();
            chunk.reserve_exact(words);
            let more = chunk.capacity().saturating_sub(before);
            let more = more.saturating_mul(WORD_BYTES);
            self.chunk_bytes = self.chunk_bytes.saturating_add(more);
        }
    }

    fn shrink_last_to(&mut self, words: usize) {
        if let Some(chunk) = self.chunks.last_mut() {
            let before = chunk.capacity();
            chunk.shrink_to(words);
            let less = before.saturating_sub(chunk.capacity());
            let less = less.saturating_mul(WORD_BYTES);
            self.chunk_bytes = self.chunk_bytes.saturating_sub(less);
        }
    }

    const fn cell_bytes(&self) -> usize {
        self.length.saturating_mul(WORD_BYTES)
    }

    fn list_bytes(&self) -> usize {
        if self.chunks.spilled() {
            self.chunks.capacity().saturating_mul(LIST_ENTRY_BYTES)
        } else {
            0
        }
    }

    /// What one more cell would add to the list of chunks.
    fn bytes_for_list(&self) -> usize {
        let length = self.chunks.len();
        if self.cells.is_multiple_of(CELLS_PER_CHUNK) && length == self.chunks.capacity() {
            let longer = length.saturating_add(1).saturating_mul(LIST_ENTRY_BYTES);
            longer.saturating_sub(self.list_bytes())
        } else {
            0
        }
    }

    fn has_room(&self) -> bool {
        !self.cells.is_multiple_of(CELLS_PER_CHUNK)
            && self
                .chunks
                .last()
                .is_some_and(|chunk| chunk.len() < chunk.capacity())
    }

    /// Cells of a growing step.
    const fn step(&self) -> usize {
        let share = (self.cells % CELLS_PER_CHUNK) / STEP_SHARE;
        let least = match SMALL_STEP_BYTES.checked_div(self.cell_bytes()) {
            Some(least) if least > 2 => least,
            Some(_) | None => 2,
        };
        if share > least { share } else { least }
    }
}

/// Bytes of an entry in the list of chunks.
const LIST_ENTRY_BYTES: usize = size_of::<Vec<u64>>();

#[cfg(test)]
mod tests;
