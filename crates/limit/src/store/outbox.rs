//! What of a shard is to be sent: the counters that were written, in order, and those that are sent at once.
//!
//! Names keys by their low half; a cell says itself how much of it is unsent, so that a name too many costs a
//! look and a forgotten one nothing but a scan. Knows nothing of cells or locks. Invariant: each list is at most
//! one in [`LIST_SHARE`] of the cells; above that the shard is scanned instead, which then costs no more.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{SEND_AFTER, SHARD_COUNT};
use crate::units::Nanos;

/// A list names at most one in so many cells.
const LIST_SHARE: usize = 16;
/// The least that a list has room for.
const MIN_LIST: usize = 16;
/// A list grows by one in so many of its entries.
const GROWTH_SHARE: usize = 4;
/// Shards in a word of signals.
const BITS: usize = 64;
const WORDS: usize = SHARD_COUNT / BITS;

/// A counter that was written.
#[derive(Clone, Copy, Debug)]
struct Due {
    since: Nanos,
    low: u64,
}

/// The lists of a shard.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    due: VecDeque<Due>,
    urgent: Vec<u64>,
    /// Since when counters are due that the list had no room for.
    due_overfull: Option<Nanos>,
    /// Whether counters are urgent that the list had no room for.
    is_urgent_overfull: bool,
    /// Of the store: `None` of a shard alone.
    signals: Option<(Arc<Signals>, usize)>,
}

/// What is to be looked at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The counters of that low half of a key.
    Named(u64),
    /// All that is urgent.
    Urgent,
    /// All that is unsent.
    All,
}

impl Outbox {
    /// That of the shard of that number.
    pub(super) fn new(signals: Arc<Signals>, shard: usize) -> Self {
        Self {
            signals: Some((signals, shard)),
            ..Self::default()
        }
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        let due = self.due.capacity().saturating_mul(size_of::<Due>());
        let urgent = self.urgent.capacity().saturating_mul(size_of::<u64>());
        due.saturating_add(urgent)
    }

    /// Whether either list takes one more without growing.
    pub(super) fn has_room(&self) -> bool {
        self.due.len() < self.due.capacity() && self.urgent.len() < self.urgent.capacity()
    }

    /// Counters named.
    pub(super) fn len(&self) -> usize {
        self.due.len().saturating_add(self.urgent.len())
    }

    /// Notes a counter that is sent after a while; `cells` and `affordable` bound the list.
    pub(super) fn push_due(&mut self, now: Nanos, low: u64, (cells, affordable): (usize, usize)) {
        let before = self.due.len();
        let room = room_for_one_more(
            before,
            self.due.capacity(),
            cells,
            affordable,
            size_of::<Due>(),
        );
        match room {
            None => self.due_overfull = self.due_overfull.or(Some(now)),
            Some(more) => {
                self.due.reserve_exact(more);
                self.due.push_back(Due { since: now, low });
            }
        }
        if before == 0
            && let Some((signals, shard)) = &self.signals
        {
            signals.due.raise(*shard);
        }
    }

    /// Notes a counter that is sent at once.
    pub(super) fn push_urgent(&mut self, low: u64, (cells, affordable): (usize, usize)) {
        let before = self.urgent.len();
        let room = room_for_one_more(
            before,
            self.urgent.capacity(),
            cells,
            affordable,
            size_of::<u64>(),
        );
        match room {
            None => self.is_urgent_overfull = true,
            Some(more) => {
                self.urgent.reserve_exact(more);
                self.urgent.push(low);
            }
        }
        if before == 0
            && let Some((signals, shard)) = &self.signals
        {
            signals.raise_urgent(*shard);
        }
    }

    /// Takes the next to look at: the urgent first, then what is old enough.
    pub(super) fn pop(&mut self, now: Nanos) -> Option<Look> {
        if self.is_urgent_overfull {
            self.is_urgent_overfull = false;
            self.urgent.clear();
            return Some(Look::Urgent);
        }
        if let Some(low) = self.urgent.pop() {
            return Some(Look::Named(low));
        }
        let is_old = |since: Nanos| since.saturating_add(SEND_AFTER) <= now;
        if self.due_overfull.is_some_and(is_old) {
            self.due_overfull = None;
            self.due.clear();
            return Some(Look::All);
        }
        self.due
            .pop_front_if(|due| is_old(due.since))
            .map(|due| Look::Named(due.low))
    }

    /// Puts back what could not be looked at to the end.
    pub(super) const fn put_back(&mut self, look: Look) {
        match look {
            Look::Named(_) => {}
            Look::Urgent => self.is_urgent_overfull = true,
            Look::All => self.due_overfull = Some(Nanos::ZERO),
        }
    }

    /// Tells the store what is left. Whether something is.
    pub(super) fn signal(&self) -> bool {
        let is_urgent = !self.urgent.is_empty() || self.is_urgent_overfull;
        let is_due = !self.due.is_empty() || self.due_overfull.is_some();
        if let Some((signals, shard)) = &self.signals {
            if is_urgent {
                signals.raise_urgent(*shard);
            }
            if is_due {
                signals.due.raise(*shard);
            }
        }
        is_urgent || is_due
    }

    /// Forgets all names and gives the memory back.
    pub(super) fn clear(&mut self) {
        self.due = VecDeque::new();
        self.urgent = Vec::new();
        self.due_overfull = None;
        self.is_urgent_overfull = false;
    }

    /// Gives back memory that no name uses.
    pub(super) fn trim(&mut self) {
        self.due.shrink_to_fit();
        self.urgent.shrink_to_fit();
    }
}

/// By how many entries a list has to grow for one more; `None` if it must not.
fn room_for_one_more(
    length: usize,
    capacity: usize,
    cells: usize,
    affordable: usize,
    entry_bytes: usize,
) -> Option<usize> {
    if length >= (cells / LIST_SHARE).max(MIN_LIST) {
        return None;
    }
    if length < capacity {
        return Some(0);
    }
    let more = (length / GROWTH_SHARE).max(2);
    (more.saturating_mul(entry_bytes) <= affordable).then_some(more)
}

/// Which shards have something to send: one look for all of them.
#[derive(Debug, Default)]
pub(super) struct Signals {
    pub(super) urgent: Bits,
    pub(super) due: Bits,
    is_urgent: AtomicBool,
}

impl Signals {
    /// Whether a shard has something that is sent at once.
    pub(super) fn has_urgent(&self) -> bool {
        self.is_urgent.load(Ordering::Relaxed)
    }

    /// Takes that: the shards that have it are to be taken after.
    pub(super) fn take_urgent(&self) -> bool {
        self.is_urgent.swap(false, Ordering::Relaxed)
    }

    /// Says that a shard may have something that is sent at once.
    pub(super) fn set_urgent(&self) {
        self.is_urgent.store(true, Ordering::Relaxed);
    }

    fn raise_urgent(&self, shard: usize) {
        self.urgent.raise(shard);
        self.set_urgent();
    }
}

/// One bit for each shard. It is set under the shard's lock and taken before it, so that none is missed.
#[derive(Debug, Default)]
pub(super) struct Bits([AtomicU64; WORDS]);

impl Bits {
    pub(super) fn raise(&self, shard: usize) {
        let bit = 1_u64.unbounded_shl(u32::try_from(shard % BITS).unwrap_or(0));
        if let Some(word) = self.0.get(shard / BITS) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Takes the bit of a shard.
    pub(super) fn take(&self, shard: usize) -> bool {
        let bit = 1_u64.unbounded_shl(u32::try_from(shard % BITS).unwrap_or(0));
        let Some(word) = self.0.get(shard / BITS) else {
            return false;
        };
        word.load(Ordering::Relaxed) & bit != 0
            && word.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }
}
