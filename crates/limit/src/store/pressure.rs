//! What goes when memory is short (P7), and what goes with time.
//!
//! First counters that are empty, then those below their limit by the least used share of it, the
//! oldest use first among equals, and a key at its limit only when all in the shard are: the one that
//! recovers first. One scan serves a batch, so that its cost is spread over the inserts that the
//! batch makes room for. Knows nothing of locks.

use std::cmp::Ordering;

use super::{
    cell::{self, Standing},
    shard::{Handle, Shard},
};
use crate::units::Nanos;

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

/// A cell below its limit.
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

impl Shard {
    /// Frees a batch of cells, or one that is at its limit if all are.
    pub(super) fn evict(&mut self, now: Nanos) {
        let batch = (self.len() / BATCH_SHARE).max(1);
        let mut empty = Vec::new();
        let mut below = Vec::new();
        let mut first_to_recover: Option<(Nanos, Handle)> = None;
        for (handle, cell) in self.cells() {
            match cell::standing(cell, now) {
                Standing::Empty => empty.push(handle),
                Standing::Below {
                    used,
                    limit,
                    latest,
                } => below.push(Candidate {
                    handle,
                    used,
                    limit,
                    latest,
                }),
                Standing::AtLimit { recovers_after } => {
                    let candidate = (recovers_after, handle);
                    if first_to_recover.is_none_or(|first| candidate < first) {
                        first_to_recover = Some(candidate);
                    }
                }
            }
        }
        let wanted = batch.saturating_sub(empty.len()).min(below.len());
        if wanted > 0 && wanted < below.len() {
            below.select_nth_unstable_by(wanted.saturating_sub(1), Candidate::rank);
        }
        below.truncate(wanted);
        self.losses.expired = self.losses.expired.saturating_add(count(empty.len()));
        self.losses.evicted = self.losses.evicted.saturating_add(count(below.len()));
        let mut victims = empty;
        victims.extend(below.iter().map(|candidate| candidate.handle));
        if let (true, Some((_, handle))) = (victims.is_empty(), first_to_recover) {
            self.losses.evicted_at_limit = self.losses.evicted_at_limit.saturating_add(1);
            victims.push(handle);
        }
        self.remove_cells(victims);
    }

    /// Removes the empty counters; returns how many.
    pub(super) fn expire(&mut self, now: Nanos) -> usize {
        let empty = self.cells().filter_map(|(handle, cell)| {
            (cell::standing(cell, now) == Standing::Empty).then_some(handle)
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

    /// Removes cells, the highest handles first: a removal moves only cells above it.
    fn remove_cells(&mut self, mut handles: Vec<Handle>) {
        handles.sort_unstable_by(|a, b| b.cmp(a));
        for handle in handles {
            self.remove_cell(handle);
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
