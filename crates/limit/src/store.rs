//! The counter store: all counters of a node, bounded in bytes.
//!
//! It looks up, decides and writes in one step under a shard's lock; no cell leaves it, so that no
//! update is lost to an eviction or a hand-over in between (P1). Shard = top ten bits of the slot, so
//! that one slot lies in one shard; the place in a shard's table comes from the key's low half; all
//! 128 bits are compared, and the window with them. Must not know of clocks, owners or frames.
//!
//! Invariants: a check of several limits locks its shards once each, in ascending order, and charges
//! all of them or none (P4); memory stays within the budget (P7).

mod arena;
mod ban;
mod cell;
mod decide;
mod export;
mod gather;
mod handle;
mod index;
mod locked;
mod merge;
mod outbox;
mod pressure;
mod replica;
mod shard;
mod standoff;
mod void;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::{Mutex, MutexGuard};

pub use self::{cell::MIN_REPLICATED_WINDOW, replica::SEND_AFTER};
use self::{
    cell::{Identity, Part},
    locked::Locked,
    outbox::Signals,
    shard::Shard,
};
use crate::{
    key::{KeyHash, SLOT_COUNT},
    rule::{Algorithm, Rule},
    units::{Cost, MAX_UNITS, Nanos},
    verdict::{Mode, Verdict},
};

/// Shards of a store.
pub const SHARD_COUNT: usize = 1024;

/// What a store may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Unix time of the clock's origin, as carried forward by the monotonic clock: fixed windows are
    /// aligned by it, nothing else. Default 0.
    pub unix_origin: Nanos,
    /// The writer of the series that this store writes; the writers that follow it are this store's too. A
    /// boot id, so that no two stores write one series. Default 1.
    pub writer: u64,
    /// Where the numbers of permits start: random, so that no two stores give one twice. Default 1.
    pub first_permit: u64,
    /// Bytes for all counters, table and bookkeeping included; each shard has an equal part. Default
    /// 256 MiB. Clamped to [`StoreConfig::MIN_BYTES`] and [`StoreConfig::MAX_BYTES`].
    pub max_bytes: u64,
}

impl StoreConfig {
    /// The least that a store works with: room for a few counters of any kind in each shard.
    pub const MIN_BYTES: u64 = 16 * 1024 * 1024;
    /// The most that a store makes use of: more counters have no handle.
    pub const MAX_BYTES: u64 = 64 * 1024 * 1024 * 1024;
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            unix_origin: Nanos::ZERO,
            writer: 1,
            first_permit: 1,
            max_bytes: 256 * 1024 * 1024,
        }
    }
}

/// One limit of a check, as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The counter.
    pub key: KeyHash,
    /// The algorithm and its numbers.
    pub rule: Rule,
    /// What the check costs on this limit; with [`Cost::ZERO`] it is admitted and not counted.
    pub cost: Cost,
}

impl Ask {
    fn shares_counter_with(&self, other: &Self) -> bool {
        let identity = |ask: &Self| Identity::of(&ask.rule.algorithm, Part::Charges);
        self.key == other.key && identity(self) == identity(other)
    }
}

/// A change of one counter that is no check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Takes the cost back from where a charge went, at most down to zero; no effect if that is over.
    /// Of a bucket's charge what has flowed out, the first charged first, is not taken back; what goes back
    /// of later charges counts as having flowed out, so that too little may go back, never too much.
    /// Releases a permit.
    GiveBack {
        /// [`Verdict::charged_slice`] of the charge.
        slice: u64,
    },
    /// Takes the cost back, the oldest first, at most down to zero. Releases no permit.
    Refund,
    /// Counts the cost without asking whether it fits.
    Charge,
    /// Counts the cost as failed: what reaches the limit of a rule with a ban bans the key.
    Failure,
    /// Forgets all that is counted for the key, the ban too.
    Reset,
}

/// What a store holds and what it lost, as of one look at each shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Counters that are decided on here.
    pub keys: u64,
    /// Bytes allocated: cells, tables, lists and the shards themselves.
    pub bytes: u64,
    /// Bytes that may be allocated.
    pub max_bytes: u64,
    /// Counters dropped since they were empty.
    pub expired: u64,
    /// Counters below their limit dropped for want of memory.
    pub evicted: u64,
    /// Counters at their limit dropped for want of memory: each was a limit forgotten.
    pub evicted_at_limit: u64,
    /// Series of other writers that are held.
    pub foreign: u64,
    /// Series of which it is held that nothing counts any more.
    pub voids: u64,
    /// Counters named to be sent, some of them twice.
    pub due: u64,
    /// Series that became part of this store's own since their counter had too many.
    pub absorbed: u64,
    /// Series that were not taken: too many of their counter, or unsound.
    pub refused: u64,
}

/// All counters of a node. Shared by reference between threads.
#[derive(Debug)]
pub struct Store {
    shards: Box<[Padded]>,
    max_bytes: u64,
    next_permit: AtomicU64,
    /// The shard that the next sweep begins with.
    next_sweep: AtomicUsize,
    /// The shard that the next look for what is due begins with.
    next_due: AtomicUsize,
    signals: Arc<Signals>,
}

/// A shard on cache lines of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Padded(Mutex<Shard>);

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new(config: &StoreConfig) -> Self {
        let max_bytes = config.max_bytes;
        let max_bytes = max_bytes.clamp(StoreConfig::MIN_BYTES, StoreConfig::MAX_BYTES);
        let budget = usize::try_from(max_bytes).unwrap_or(usize::MAX) / SHARD_COUNT;
        let signals = Arc::new(Signals::default());
        let shards = (0..SHARD_COUNT).map(|number| {
            let shard = Shard::new(budget, config.unix_origin);
            let shard = shard.in_store(Arc::clone(&signals), number, config.writer);
            Padded(Mutex::new(shard))
        });
        Self {
            shards: shards.collect(),
            max_bytes,
            next_permit: AtomicU64::new(config.first_permit),
            next_sweep: AtomicUsize::new(0),
            next_due: AtomicUsize::new(0),
            signals,
        }
    }

    /// Decides one limit. A refusal and a peek write nothing; the numbers of a peek are those of now.
    pub fn decide(&self, now: Nanos, ask: &Ask, mode: Mode) -> Verdict {
        let number = self.number_for(&ask.rule);
        let mut shard = self.lock(shard_of(ask.key));
        shard.decide(now, ask, mode, number)
    }

    /// Decides all limits of one check, all or nothing: one verdict for each ask, in order. If one that
    /// is enforced refuses, none is charged and the verdicts of the others say what stands without it;
    /// one in shadow that refuses is not charged itself. Asks of one key count on top of each other.
    ///
    /// Allocates only for checks of more than four limits.
    pub fn decide_all(&self, now: Nanos, asks: &[Ask], mode: Mode, out: &mut impl Extend<Verdict>) {
        if let [ask] = asks {
            out.extend([self.decide(now, ask, mode)]);
            return;
        }
        let mut locked = Locked::new(self, asks);
        self.decide_locked(&mut locked, now, (asks, mode), out);
    }

    fn decide_locked(
        &self,
        locked: &mut Locked<'_>,
        now: Nanos,
        (asks, mode): (&[Ask], Mode),
        out: &mut impl Extend<Verdict>,
    ) {
        let fits = |(at, ask): (usize, &Ask)| {
            let pending = pending_before(asks, at);
            let shard = locked.shard(ask.key);
            !ask.rule.is_enforced() || shard.is_some_and(|shard| shard.fits(now, ask, pending))
        };
        let charges = mode == Mode::Consume && asks.iter().enumerate().all(fits);
        for (at, ask) in asks.iter().enumerate() {
            let number = self.number_for(&ask.rule);
            let Some(shard) = locked.shard_mut(ask.key) else {
                continue;
            };
            let verdict = if charges {
                shard.decide(now, ask, mode, number)
            } else {
                shard.foresee(now, ask, pending_before(asks, at))
            };
            out.extend([verdict]);
        }
    }

    /// Changes a counter as a later message says: [`Change`] says how. `ask.cost` are the units.
    pub fn amend(&self, now: Nanos, ask: &Ask, change: Change) {
        let number = self.number_for(&ask.rule);
        self.lock(shard_of(ask.key)).amend(now, ask, change, number);
    }

    /// The number of the next permit; 0 where there is none.
    fn number_for(&self, rule: &Rule) -> u64 {
        match rule.algorithm {
            Algorithm::Concurrency(_) => self.next_permit.fetch_add(1, Ordering::Relaxed).max(1),
            Algorithm::SlidingWindow(_)
            | Algorithm::SlidingLog(_)
            | Algorithm::FixedWindow(_)
            | Algorithm::TokenBucket(_)
            | Algorithm::LeakyBucket(_) => 0,
        }
    }

    /// Sets the count of a key that is not there yet; no effect on a known key.
    pub fn seed(&self, now: Nanos, key: KeyHash, rule: &Rule, used: u64) {
        self.lock(shard_of(key)).seed(now, (key, rule), used);
    }

    /// The state of a counter, as a peek for one unit; `None` if nothing is counted for the key.
    #[must_use]
    pub fn read(&self, now: Nanos, key: KeyHash, rule: &Rule) -> Option<Verdict> {
        self.lock(shard_of(key)).read(now, key, rule)
    }

    /// Drops the empty counters of the next `shards` shards, at most once round; returns how many.
    pub fn sweep(&self, now: Nanos, shards: usize) -> usize {
        let shards = shards.min(SHARD_COUNT);
        let first = self.next_sweep.fetch_add(shards, Ordering::Relaxed);
        let mut dropped = 0_usize;
        for step in 0..shards {
            let mut shard = self.lock(first.wrapping_add(step) % SHARD_COUNT);
            dropped = dropped.saturating_add(shard.expire(now));
        }
        dropped
    }

    /// Removes the counters of a key; whether there was one.
    pub fn remove(&self, key: KeyHash) -> bool {
        self.lock(shard_of(key)).remove(key)
    }

    /// Removes all counters.
    pub fn clear(&self) {
        for shard in &self.shards {
            shard.0.lock().clear();
        }
    }

    /// What it holds and what it lost. Takes each shard's lock in turn, for a few sums.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let mut stats = StoreStats {
            max_bytes: self.max_bytes,
            ..StoreStats::default()
        };
        for shard in &self.shards {
            let shard = shard.0.lock();
            let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
            let tally = &shard.tally;
            let others = tally.foreign.saturating_add(tally.voids);
            let totals = shard.len().saturating_sub(others);
            add(&mut stats.keys, u64::try_from(totals).unwrap_or(0));
            add(
                &mut stats.foreign,
                u64::try_from(tally.foreign).unwrap_or(0),
            );
            add(&mut stats.voids, u64::try_from(tally.voids).unwrap_or(0));
            add(
                &mut stats.due,
                u64::try_from(shard.outbox.len()).unwrap_or(0),
            );
            add(&mut stats.absorbed, tally.absorbed);
            add(&mut stats.refused, tally.refused);
            add(&mut stats.bytes, u64::try_from(shard.bytes()).unwrap_or(0));
            add(&mut stats.expired, shard.losses.expired);
            add(&mut stats.evicted, shard.losses.evicted);
            add(&mut stats.evicted_at_limit, shard.losses.evicted_at_limit);
        }
        stats
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "a shard's number is below SHARD_COUNT"
    )]
    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].0.lock()
    }
}

/// The shard of a key: the top ten bits of its slot.
fn shard_of(key: KeyHash) -> usize {
    key.slot().index() / SLOTS_PER_SHARD
}

/// What the asks before this one will charge to its counter.
fn pending_before(asks: &[Ask], at: usize) -> Cost {
    let Some((before, [ask, ..])) = asks.split_at_checked(at) else {
        return Cost::ZERO;
    };
    let same = before.iter().filter(|other| other.shares_counter_with(ask));
    let units = same.fold(0_u64, |sum, other| sum.saturating_add(other.cost.units()));
    // More than any limit is more than any limit.
    Cost::new(units.min(MAX_UNITS)).unwrap_or(Cost::ZERO)
}

const SLOTS_PER_SHARD: usize = SLOT_COUNT / SHARD_COUNT;

#[cfg(test)]
mod tests;
