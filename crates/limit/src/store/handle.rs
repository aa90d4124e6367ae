//! Handles: where a cell lies, in 26 bits.
//!
//! Knows nothing of what lies there. A handle is good until a cell of its arena is removed.

/// The handle of a cell: its arena in six bits, its index in twenty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Handle(u32);

impl Handle {
    /// Cells that an arena can have at most. Ensured by [`StoreConfig::MAX_BYTES`].
    ///
    /// [`StoreConfig::MAX_BYTES`]: crate::StoreConfig::MAX_BYTES
    pub(super) const MAX_CELLS: usize = 1 << Self::INDEX_BITS;
    const INDEX_BITS: u32 = 20;

    /// The handle of a cell of that arena.
    pub(super) fn new(arena: usize, index: usize) -> Self {
        let arena = u32::try_from(arena).unwrap_or(0);
        let index = u32::try_from(index).unwrap_or(0);
        Self(arena.unbounded_shl(Self::INDEX_BITS) | index)
    }

    /// The handle of these 26 bits.
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Its 26 bits.
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    /// The number of its arena.
    pub(super) fn arena(self) -> usize {
        usize::try_from(self.0 >> Self::INDEX_BITS).unwrap_or(usize::MAX)
    }

    /// Its index in the arena.
    pub(super) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX) % Self::MAX_CELLS
    }
}
