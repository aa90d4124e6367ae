//! One shard: a table of handles and the arenas that they lead to. It is only reached under its lock.
//!
//! Looks up, decides and writes; knows nothing of other shards or of locks. Invariants: every cell in
//! use has one handle in the table and every handle leads to a cell in use; what is allocated stays
//! within the budget (`INV-BUDGET`), save for a table while it moves.

use smallvec::SmallVec;

use super::{
    arena::Arena,
    cell::{self, Wrote},
    handle::Handle,
    index::Index,
    pressure::Losses,
    standoff::Standoff,
};
use crate::{
    key::KeyHash,
    rule::{Rule, SlidingWindow},
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Verdict},
    window::{self, Reading},
};

/// The counters of one 1024th of the key space.
#[derive(Debug)]
pub(super) struct Shard {
    index: Index,
    /// One for each cell length that was ever needed: at most as many as there are slice counts.
    arenas: SmallVec<[Arena; 1]>,
    pub(super) losses: Losses,
    /// Known victims, if all cells are at their limit.
    pub(super) standoff: Option<Box<Standoff>>,
    budget: usize,
}

impl Shard {
    /// An empty shard that may allocate so many bytes, itself included.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            index: Index::default(),
            arenas: SmallVec::new(),
            losses: Losses::default(),
            standoff: None,
            budget,
        }
    }

    /// Counters.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Bytes allocated, itself included.
    pub(super) fn bytes(&self) -> usize {
        let list = if self.arenas.spilled() {
            self.arenas.capacity().saturating_mul(size_of::<Arena>())
        } else {
            0
        };
        let cells = self.arenas.iter().map(Arena::bytes);
        cells
            .fold(list, usize::saturating_add)
            .saturating_add(self.index.bytes())
            .saturating_add(
                self.standoff
                    .as_ref()
                    .map_or(0, |standoff| standoff.bytes()),
            )
            .saturating_add(size_of::<Self>())
    }

    /// Decides one limit.
    pub(super) fn decide(
        &mut self,
        now: Nanos,
        (key, rule): (KeyHash, &Rule),
        (cost, mode): (Cost, Mode),
    ) -> Verdict {
        let Rule::SlidingWindow(rule) = rule;
        if let Some(cell) = self.find_mut(key, rule) {
            let verdict = decide_cell(cell, rule, now, (cost, mode));
            if charges(&verdict, cost, mode) {
                self.note_write(now, key);
            }
            return verdict;
        }
        let reading = Reading::at(rule, &[], now, now);
        let outcome = reading.outcome(cost, Cost::ZERO);
        if outcome != Outcome::Allow || mode == Mode::Peek || cost == Cost::ZERO {
            return reading.verdict(outcome, cost, Cost::ZERO);
        }
        let cell = self.insert(now, key, rule);
        let verdict = decide_cell(cell, rule, now, (cost, mode));
        self.note_write(now, key);
        verdict
    }

    /// What one limit would say if `pending` were charged before; charges nothing.
    pub(super) fn foresee(
        &self,
        now: Nanos,
        (key, rule): (KeyHash, &Rule),
        (cost, pending): (Cost, Cost),
    ) -> Verdict {
        let Rule::SlidingWindow(rule) = rule;
        let reading = self.reading(now, key, rule);
        let reading = reading.unwrap_or_else(|| Reading::at(rule, &[], now, now));
        reading.verdict(reading.outcome(cost, pending), cost, pending)
    }

    /// Whether one limit would admit if `pending` were charged before.
    pub(super) fn fits(
        &self,
        now: Nanos,
        (key, rule): (KeyHash, &Rule),
        (cost, pending): (Cost, Cost),
    ) -> bool {
        let Rule::SlidingWindow(rule) = rule;
        let reading = self.reading(now, key, rule);
        let reading = reading.unwrap_or_else(|| Reading::at(rule, &[], now, now));
        reading.outcome(cost, pending) == Outcome::Allow
    }

    /// The state of a counter as a peek for one unit; `None` if nothing is counted for the key.
    pub(super) fn read(&self, now: Nanos, key: KeyHash, rule: &Rule) -> Option<Verdict> {
        let Rule::SlidingWindow(rule) = rule;
        let reading = self.reading(now, key, rule)?;
        let outcome = reading.outcome(Cost::ONE, Cost::ZERO);
        (reading.used() > 0).then(|| reading.verdict(outcome, Cost::ONE, Cost::ZERO))
    }

    /// Gives units back to the slice that they were charged to.
    pub(super) fn give_back(
        &mut self,
        now: Nanos,
        (key, rule): (KeyHash, &Rule),
        (slice, cost): (u64, Cost),
    ) {
        let Rule::SlidingWindow(rule) = rule;
        if let Some(cell) = self.find_mut(key, rule) {
            cell::change(cell, rule, |counters, latest| {
                let wrote = window::give_back(rule, counters, *latest, now, (slice, cost));
                ((), if wrote { Wrote::Yes } else { Wrote::No })
            });
            self.note_write(now, key);
        }
    }

    /// Starts a counter that is not there yet.
    pub(super) fn seed(&mut self, now: Nanos, (key, rule): (KeyHash, &Rule), used: u64) {
        let Rule::SlidingWindow(rule) = rule;
        if used == 0 || self.find(key, rule).is_some() {
            return;
        }
        let cell = self.insert(now, key, rule);
        cell::change(cell, rule, |counters, latest| {
            window::charge(rule, counters, latest, now, used);
            ((), Wrote::Yes)
        });
        self.note_write(now, key);
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

    fn insert(&mut self, now: Nanos, key: KeyHash, rule: &SlidingWindow) -> &mut [u64] {
        let words = cell::words(rule.slices);
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
            cell::start(cell, key, rule, now);
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
            if self.bytes_with_one_more(words) > self.budget {
                self.trim();
            }
        }
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
        let doubled = self.arenas.capacity().saturating_mul(2);
        let list = if self.arenas.len() < self.arenas.capacity() {
            0
        } else {
            doubled.saturating_mul(size_of::<Arena>())
        };
        Arena::new(words).bytes_for_one_more().saturating_add(list)
    }

    fn find(&self, key: KeyHash, rule: &SlidingWindow) -> Option<&[u64]> {
        let arenas = &self.arenas;
        let handle = self.index.find(key.low(), |handle| {
            cell_of(arenas, handle).is_some_and(|cell| cell::counts_for(cell, key, rule))
        })?;
        cell_of(arenas, handle)
    }

    fn find_mut(&mut self, key: KeyHash, rule: &SlidingWindow) -> Option<&mut [u64]> {
        let arenas = &self.arenas;
        let handle = self.index.find(key.low(), |handle| {
            cell_of(arenas, handle).is_some_and(|cell| cell::counts_for(cell, key, rule))
        })?;
        let arena = self.arenas.get_mut(handle.arena())?;
        arena.cell_mut(handle.index())
    }

    /// A cell of a key, whatever its window.
    pub(super) fn any_cell_of(&self, key: KeyHash) -> Option<(Handle, &[u64])> {
        let arenas = &self.arenas;
        let handle = self.index.find(key.low(), |handle| {
            cell_of(arenas, handle).is_some_and(|cell| cell::has_key(cell, key))
        })?;
        Some((handle, cell_of(arenas, handle)?))
    }

    fn reading<'a>(
        &'a self,
        now: Nanos,
        key: KeyHash,
        rule: &'a SlidingWindow,
    ) -> Option<Reading<'a>> {
        let (counters, latest) = cell::parts(self.find(key, rule)?)?;
        Some(Reading::at(rule, counters, latest, now))
    }
}

fn decide_cell(
    cell: &mut [u64],
    rule: &SlidingWindow,
    now: Nanos,
    (cost, mode): (Cost, Mode),
) -> Verdict {
    let verdict = cell::change(cell, rule, |counters, latest| {
        let verdict = window::decide(rule, counters, latest, now, (cost, mode));
        let wrote = if charges(&verdict, cost, mode) {
            Wrote::Yes
        } else {
            Wrote::No
        };
        (verdict, wrote)
    });
    verdict.unwrap_or_else(|| {
        let reading = Reading::at(rule, &[], now, now);
        reading.verdict(reading.outcome(cost, Cost::ZERO), cost, Cost::ZERO)
    })
}

/// Whether a check with that verdict is counted.
fn charges(verdict: &Verdict, cost: Cost, mode: Mode) -> bool {
    verdict.is_allowed() && mode == Mode::Consume && cost > Cost::ZERO
}

fn cell_of(arenas: &[Arena], handle: Handle) -> Option<&[u64]> {
    arenas.get(handle.arena())?.cell(handle.index())
}

fn hash_of(arenas: &[Arena], handle: Handle) -> u64 {
    cell_of(arenas, handle).map_or(0, cell::low_of)
}

#[cfg(test)]
mod tests;
