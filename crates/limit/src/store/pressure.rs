//! What goes when memory is short (P7), and what goes with time.
//!
//! First counters that are empty and voids, then those below their limit by the least used share of it, the
//! oldest use first among equals, and a key at its limit only when all in the shard are: the one that
//! recovers first, one for each insert. One scan serves a batch, and leaves a [`Standoff`] if all that
//! is left is at its limit, so that its cost is spread over many inserts. Knows nothing of locks.

use std::cmp::Ordering;

use super::{
    cell::{self, Identity, Role, Standing},
    handle::Handle,
    shard::Shard,
    standoff::{Standoff, Suspect},
};
use crate::{counter::Moment, key::KeyHash, units::Nanos};

/// A batch is one in so many cells.
const BATCH_SHARE: usize = 16;

/// Counters that went, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Empty.
    pub(super) expired: u64,
    /// For want of memory, below their limit.
    pub(super) evicted: u64,
    /// For want of memory, at their limit.
    pub(super) evicted_at_limit: u64,
}

/// A cell that is not at its limit, and its rank: share used, then age.
#[derive(Clone, Copy)]
struct Candidate {
    handle: Handle,
    used: u64,
    limit: u64,
    latest: Nanos,
}

impl Candidate {
    fn rank(&self, other: &Self) -> Ordering {
        let mine = u128::from(self.used).saturating_mul(u128::from(other.limit));
        let theirs = u128::from(other.used).saturating_mul(u128::from(self.limit));
        mine.cmp(&theirs).then(self.latest.cmp(&other.latest))
    }
}

/// How all cells of a shard stand.
#[derive(Default)]
struct Scan {
    empty: Vec<Handle>,
    below: Vec<Candidate>,
    at_limit: Vec<(Nanos, KeyHash)>,
}

impl Shard {
    /// Frees a batch of cells, or one that is at its limit if all are.
    pub(super) fn evict(&mut self, now: Nanos) {
        if self.evict_known(now) {
            return;
        }
        let (removed, standoff) = self.evict_batch(now);
        let Some(standoff) = standoff else { return };
        if removed == 0 {
            self.evict_next(standoff, now);
        } else {
            self.standoff = Some(standoff);
        }
    }

    /// Frees cells that are not at their limit; false if there are none.
    pub(super) fn evict_spare(&mut self, now: Nanos) -> bool {
        if let Some(mut standoff) = self.standoff.take()
            && !standoff.is_over(now)
        {
            self.settle(&mut standoff, now);
            let removed = self.evict_suspect(&standoff, now);
            self.standoff = Some(standoff);
            return removed;
        }
        let (removed, standoff) = self.evict_batch(now);
        self.standoff = standoff;
        removed > 0
    }

    /// Frees a batch of cells that are not at their limit. Returns how many, and a standoff if all that
    /// are left are at theirs.
    fn evict_batch(&mut self, now: Nanos) -> (usize, Option<Box<Standoff>>) {
        let Scan {
            empty,
            mut below,
            at_limit,
        } = self.scan(now);
        let batch = (self.len() / BATCH_SHARE).max(1);
        let wanted = batch.saturating_sub(empty.len()).min(below.len());
        let spared = below.len().saturating_sub(wanted);
        if wanted > 0 && spared > 0 {
            below.select_nth_unstable_by(wanted.saturating_sub(1), Candidate::rank);
        }
        below.truncate(wanted);
        let removed = empty.len().saturating_add(wanted);
        self.losses.expired = self.losses.expired.saturating_add(count(empty.len()));
        self.losses.evicted = self.losses.evicted.saturating_add(count(wanted));
        let below = below.iter().map(|candidate| candidate.handle);
        let shared: Vec<_> = below.clone().filter_map(|cell| self.shared(cell)).collect();
        self.remove_cells(empty.into_iter().chain(below).collect());
        for name in shared {
            self.remove_others(name);
        }
        if spared == 0 && !at_limit.is_empty() {
            return (removed, Some(Box::new(Standoff::new(at_limit, batch))));
        }
        (removed, None)
    }

    /// Removes the empty counters; returns how many.
    pub(super) fn expire(&mut self, now: Nanos) -> usize {
        let at = self.moment(now);
        let empty = self.cells().filter_map(|(handle, cell)| {
            (self.standing_of(cell, at) == Some(Standing::Empty)).then_some(handle)
        });
        let empty: Vec<_> = empty.collect();
        let dropped = empty.len();
        self.losses.expired = self.losses.expired.saturating_add(count(dropped));
        self.remove_cells(empty);
        if dropped > 0 {
            self.trim();
        }
        dropped
    }

    /// Notes that a counter was written, in case a standoff has to know.
    pub(super) fn note_write(&mut self, now: Nanos, key: KeyHash) {
        let Some(mut standoff) = self.standoff.take() else {
            return;
        };
        if standoff.is_full() {
            self.settle(&mut standoff, now);
        }
        // With as many below their limit as a batch has, a scan is worth it.
        if !standoff.is_full() {
            standoff.suspect(key);
            self.standoff = Some(standoff);
        }
    }

    /// Removes the one cell that a standoff names; false if there is none or it is over.
    fn evict_known(&mut self, now: Nanos) -> bool {
        let Some(mut standoff) = self.standoff.take() else {
            return false;
        };
        if standoff.is_over(now) {
            return false;
        }
        self.settle(&mut standoff, now);
        if !self.evict_suspect(&standoff, now) {
            return self.evict_next(standoff, now);
        }
        self.standoff = Some(standoff);
        true
    }

    /// Removes the least used of the cells that a standoff suspects to be below their limit.
    fn evict_suspect(&mut self, standoff: &Standoff, now: Nanos) -> bool {
        let candidates = standoff
            .suspects()
            .filter_map(|key| self.candidate(key, now));
        let Some(least) = candidates.min_by(Candidate::rank) else {
            return false;
        };
        if least.used == 0 {
            self.losses.expired = self.losses.expired.saturating_add(1);
        } else {
            self.losses.evicted = self.losses.evicted.saturating_add(1);
        }
        self.remove_with_others(least.handle);
        true
    }

    /// Removes the cell that recovers first, with all at their limit; false if none is remembered.
    fn evict_next(&mut self, mut standoff: Box<Standoff>, now: Nanos) -> bool {
        let Some((victim, key)) = self.first_to_recover(&mut standoff, now) else {
            return false;
        };
        self.losses.evicted_at_limit = self.losses.evicted_at_limit.saturating_add(1);
        self.remove_with_others(victim);
        self.standoff = Some(standoff);
        // Of a key with several cells only the first to recover may be remembered.
        if self.any_cell_of(key).is_some() {
            self.note_write(now, key);
        }
        true
    }

    fn settle(&self, standoff: &mut Standoff, now: Nanos) {
        standoff.settle(|key| {
            let mut suspect = Suspect::Gone;
            self.each_standing_of(key, now, |_, standing| {
                suspect = match (suspect, standing) {
                    (Suspect::Below, _) | (_, Standing::Empty | Standing::Below { .. }) => {
                        Suspect::Below
                    }
                    (known, Standing::AtLimit { recovers_after }) => {
                        let recovers_at = now.saturating_add(recovers_after);
                        match known {
                            Suspect::AtLimit { recovers_at: first } => Suspect::AtLimit {
                                recovers_at: first.min(recovers_at),
                            },
                            Suspect::Gone | Suspect::Below => Suspect::AtLimit { recovers_at },
                        }
                    }
                };
            });
            suspect
        });
    }

    fn candidate(&self, key: KeyHash, now: Nanos) -> Option<Candidate> {
        let mut least: Option<Candidate> = None;
        self.each_standing_of(key, now, |handle, standing| {
            let candidate = candidate_of(handle, standing);
            least = match (least, candidate) {
                (Some(known), Some(other)) if known.rank(&other).is_le() => Some(known),
                (known, None) => known,
                (_, other) => other,
            };
        });
        least
    }

    /// The cell that recovers first of those that still stand as they were remembered.
    fn first_to_recover(&self, standoff: &mut Standoff, now: Nanos) -> Option<(Handle, KeyHash)> {
        while let Some((recovers_at, key)) = standoff.pop() {
            let mut found = None;
            self.each_standing_of(key, now, |handle, standing| {
                if let Standing::AtLimit { recovers_after } = standing
                    && now.saturating_add(recovers_after) == recovers_at
                {
                    found = Some(handle);
                }
            });
            if let Some(handle) = found {
                return Some((handle, key));
            }
        }
        None
    }

    /// How each cell of a key stands: a key may have one for its charges, its failures and its ban.
    fn each_standing_of(&self, key: KeyHash, now: Nanos, mut look: impl FnMut(Handle, Standing)) {
        let at = self.moment(now);
        self.each_cell_of(key, |handle, cell| {
            if let Some(standing) = self.standing_of(cell, at) {
                look(handle, standing);
            }
        });
    }

    /// How a cell stands by itself; `None` of a series in a total: it goes with that.
    pub(super) fn standing_of(&self, cell: &[u64], at: Moment) -> Option<Standing> {
        match cell::role(cell) {
            Role::Total => Some(cell::standing(cell, at)),
            Role::Void => Some(cell::standing_of_foreign(cell, at)),
            Role::Foreign => {
                let standing = cell::standing_of_foreign(cell, at);
                let (key, identity) = (cell::key_of(cell)?, Identity::of_cell(cell)?);
                let is_alone = || self.find(key, identity).is_none();
                (standing == Standing::Empty || is_alone()).then_some(standing)
            }
        }
    }

    /// The counter of a total that has series beside it.
    fn shared(&self, handle: Handle) -> Option<(KeyHash, Identity)> {
        let cell = self.cell(handle)?;
        let is_shared = cell::role(cell) == Role::Total && cell::is_marked(cell);
        let name = (cell::key_of(cell)?, Identity::of_cell(cell)?);
        is_shared.then_some(name)
    }

    /// Removes a cell, and the series that are in it.
    fn remove_with_others(&mut self, handle: Handle) {
        let shared = self.shared(handle);
        self.remove_cell(handle);
        if let Some(name) = shared {
            self.remove_others(name);
        }
    }

    fn remove_others(&mut self, name: (KeyHash, Identity)) {
        loop {
            let handles = self.handles_of(name);
            let mut foreign = handles.into_iter().filter(|handle| {
                let cell = self.cell(*handle);
                cell.is_some_and(|cell| cell::role(cell) == Role::Foreign)
            });
            let Some(handle) = foreign.next() else { return };
            self.remove_cell(handle);
        }
    }

    fn scan(&self, now: Nanos) -> Scan {
        let mut scan = Scan::default();
        let at = self.moment(now);
        for (handle, cell) in self.cells() {
            let Some(standing) = self.standing_of(cell, at) else {
                continue;
            };
            match standing {
                Standing::Empty => scan.empty.push(handle),
                Standing::Below { .. } if cell::role(cell) == Role::Void => {
                    scan.empty.push(handle);
                }
                Standing::Below { .. } => scan.below.extend(candidate_of(handle, standing)),
                Standing::AtLimit { recovers_after } => {
                    let recovers_at = now.saturating_add(recovers_after);
                    let key = cell::key_of(cell);
                    scan.at_limit.extend(key.map(|key| (recovers_at, key)));
                }
            }
        }
        scan
    }

    /// Removes cells, the highest handles first: a removal moves only cells above it.
    pub(super) fn remove_cells(&mut self, mut handles: Vec<Handle>) {
        handles.sort_unstable_by(|a, b| b.cmp(a));
        for handle in handles {
            self.remove_cell(handle);
        }
    }
}

fn candidate_of(handle: Handle, standing: Standing) -> Option<Candidate> {
    let (used, limit, latest) = match standing {
        Standing::Empty => (0, 1, Nanos::ZERO),
        Standing::Below {
            used,
            limit,
            latest,
        } => (used, limit, latest),
        Standing::AtLimit { .. } => return None,
    };
    Some(Candidate {
        handle,
        used,
        limit,
        latest,
    })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
