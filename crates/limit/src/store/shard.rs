//! One shard: a table of handles and the arenas that they lead to. It is only reached under its lock.
//!
//! Finds, adds and removes cells; what they say is in `decide`, what goes to other stores in `export`. Knows
//! nothing of other shards or of locks. Invariants: every cell in use has one handle in the table and every
//! handle leads to a cell in use; what is allocated stays within the budget (`INV-BUDGET`), save for a table
//! while it moves; a total that comes back has a version above all that this writer ever had in the shard.

mod room;
mod writers;

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    SLOTS_PER_SHARD,
    arena::Arena,
    cell::{self, Identity, Role},
    handle::Handle,
    index::Index,
    outbox::{Outbox, Signals},
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
    /// The slots that are open, one bit each.
    pub(super) open: u64,
    pub(super) outbox: Outbox,
    /// The first writer of each slot.
    writer: u64,
    /// How often each slot was forgotten; none if none ever was.
    epochs: Option<Box<[u32; SLOTS_PER_SHARD]>>,
    /// At least the highest version of a total that is gone.
    highest_gone: u64,
    /// When the first total was made: versions count from there, whatever the clock's origin is.
    first_total: Option<Nanos>,
    pub(super) tally: Tally,
}

/// Cells that are no totals, and what became of series for which there was no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) foreign: usize,
    pub(super) voids: usize,
    pub(super) absorbed: u64,
    pub(super) refused: u64,
}

/// What is held of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A total.
    Total(Handle),
    /// Only what others counted.
    Others,
    /// Nothing that counts.
    Nothing,
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
            open: u64::MAX,
            outbox: Outbox::default(),
            writer: 1,
            epochs: None,
            highest_gone: 0,
            first_total: None,
            tally: Tally::default(),
        }
    }

    /// That shard as one of a store.
    pub(super) fn in_store(self, signals: Arc<Signals>, number: usize, writer: u64) -> Self {
        Self {
            outbox: Outbox::new(signals, number),
            writer,
            ..self
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
            .saturating_add(self.outbox.bytes())
            .saturating_add(
                self.epochs
                    .as_ref()
                    .map_or(0, |epochs| size_of_val(&**epochs)),
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

    /// Removes the total of a counter.
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
        self.outbox.clear();
        self.tally = Tally::default();
        // What was counted until now may have been sent.
        self.writer = self.writer.wrapping_add(1);
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
        match cell::role(cell) {
            Role::Total => self.highest_gone = self.highest_gone.max(cell::version(cell)),
            Role::Foreign => self.tally.foreign = self.tally.foreign.saturating_sub(1),
            Role::Void => self.tally.voids = self.tally.voids.saturating_sub(1),
        }
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
        self.outbox.trim();
    }

    /// Adds a total that is not there yet, with so many words of its own, all zero: what is known of it is
    /// what it notes of the rule and its last charge.
    pub(super) fn insert(
        &mut self,
        now: Nanos,
        (key, identity): (KeyHash, Identity),
        noted: (u64, Nanos),
        own_words: usize,
    ) -> &mut [u64] {
        let words = cell::length(own_words);
        self.make_room(now, words);
        let since = now.saturating_sub(*self.first_total.get_or_insert(now));
        let microseconds = since.as_nanos() / NANOS_PER_MICROSECOND;
        let version = self.highest_gone.saturating_add(1).max(microseconds);
        let version = version.min(cell::MOST_VERSION);
        self.add(key, words, |cell| {
            cell::start(cell, (key, identity), noted, version);
        })
    }

    /// Adds another cell of a key, with so many words of its own.
    pub(super) fn insert_other(
        &mut self,
        now: Nanos,
        key: KeyHash,
        own_words: usize,
        start: impl FnOnce(&mut [u64]),
    ) {
        let words = cell::length(own_words);
        self.make_room(now, words);
        let mut added = Role::Total;
        self.add(key, words, |cell| {
            start(cell);
            added = cell::role(cell);
        });
        match added {
            Role::Total => {}
            Role::Foreign => self.tally.foreign = self.tally.foreign.saturating_add(1),
            Role::Void => self.tally.voids = self.tally.voids.saturating_add(1),
        }
    }

    /// Adds a cell of that length, for which there is room.
    fn add(&mut self, key: KeyHash, words: usize, start: impl FnOnce(&mut [u64])) -> &mut [u64] {
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
            start(cell);
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

    /// The total of a counter.
    #[inline]
    pub(super) fn find(&self, key: KeyHash, identity: Identity) -> Option<&[u64]> {
        cell_of(&self.arenas, self.handle(key, identity)?)
    }

    /// The total of a counter, to write.
    #[inline]
    pub(super) fn find_mut(&mut self, key: KeyHash, identity: Identity) -> Option<&mut [u64]> {
        self.cell_mut(self.handle(key, identity)?)
    }

    /// The cell of a handle.
    #[inline]
    pub(super) fn cell(&self, handle: Handle) -> Option<&[u64]> {
        cell_of(&self.arenas, handle)
    }

    /// The cell of a handle, to write.
    #[inline]
    pub(super) fn cell_mut(&mut self, handle: Handle) -> Option<&mut [u64]> {
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

    /// What is held of a counter, in one look.
    #[inline]
    pub(super) fn look_up(&self, key: KeyHash, identity: Identity) -> Found {
        let arenas = &self.arenas;
        let mut other = Found::Nothing;
        let total = self.index.find(key.low(), |handle| {
            let Some(cell) = cell_of(arenas, handle) else {
                return false;
            };
            if cell::is(cell, key, identity) {
                return true;
            }
            if cell::is_of(cell, key, identity) && cell::role(cell) == Role::Foreign {
                other = Found::Others;
            }
            false
        });
        total.map_or(other, Found::Total)
    }

    /// Looks at all cells of a counter, whatever their role.
    pub(super) fn each_cell_of_counter(
        &self,
        (key, identity): (KeyHash, Identity),
        mut look: impl FnMut(Handle, &[u64]),
    ) {
        self.each_cell_of(key, |handle, cell| {
            if cell::is_of(cell, key, identity) {
                look(handle, cell);
            }
        });
    }

    /// Looks at all cells of keys of that low half.
    pub(super) fn each_cell_of_low(&self, low: u64, mut look: impl FnMut(Handle, &[u64])) {
        let arenas = &self.arenas;
        self.index.find(low, |handle| {
            if let Some(cell) = cell_of(arenas, handle).filter(|cell| cell::low_of(cell) == low) {
                look(handle, cell);
            }
            false
        });
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

/// What versions count in.
const NANOS_PER_MICROSECOND: u64 = 1000;

#[cfg(test)]
mod tests;
