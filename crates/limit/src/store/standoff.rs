//! What a scan learnt of a shard in which every key is at its limit.
//!
//! Without it, a flood of keys that are at their limit at once would cost a scan for each insert. It
//! holds the keys that recover first, and those written since, which may be below their limit: so the
//! next victims are known without another scan. Keys, not handles, since cells move. Knows nothing of
//! tables.
//!
//! Invariant (`INV-STANDOFF`): every cell of the shard that is not a suspect is at its limit until at
//! least `horizon`, or until the instant that `waiting` has for it.

use crate::{key::KeyHash, units::Nanos};

/// The least that each list holds.
const MIN_LENGTH: usize = 4;

/// The victims known in advance. Two lists of a fixed length.
#[derive(Debug)]
pub(super) struct Standoff {
    /// Written since the scan. One key may stand more than once.
    suspects: Vec<KeyHash>,
    /// At their limit until that instant, the first to recover last.
    waiting: Vec<(Nanos, KeyHash)>,
    length: usize,
}

impl Standoff {
    /// Remembers the first to recover of all cells, as many as `length`.
    pub(super) fn new(mut all: Vec<(Nanos, KeyHash)>, length: usize) -> Self {
        let length = length.max(MIN_LENGTH);
        if length < all.len() {
            all.select_nth_unstable(length);
            all.truncate(length);
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        let mut waiting = Vec::with_capacity(length);
        waiting.extend(all);
        Self {
            suspects: Vec::with_capacity(length),
            waiting,
            length,
        }
    }

    /// Bytes allocated, itself included.
    pub(super) const fn bytes(&self) -> usize {
        let suspects = self
            .suspects
            .capacity()
            .saturating_mul(size_of::<KeyHash>());
        let waiting = self.waiting.capacity();
        let waiting = waiting.saturating_mul(size_of::<(Nanos, KeyHash)>());
        suspects
            .saturating_add(waiting)
            .saturating_add(size_of::<Self>())
    }

    /// Whether time has overtaken it: a cell at its limit has recovered, or none is known any more.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        self.waiting
            .last()
            .is_none_or(|(recovers_at, _)| *recovers_at <= now)
    }

    /// Notes a cell that was written.
    pub(super) fn suspect(&mut self, key: KeyHash) {
        if self.suspects.last() != Some(&key) {
            self.suspects.push(key);
        }
    }

    /// Whether there is no room for one more suspect.
    pub(super) const fn is_full(&self) -> bool {
        self.suspects.len() >= self.length
    }

    /// Keeps the suspects that are below their limit. `recovery` says until when a key is at its
    /// limit, `None` that it is not, and nothing of a key that is gone.
    pub(super) fn settle(&mut self, mut recovery: impl FnMut(KeyHash) -> Suspect) {
        self.suspects.sort_unstable();
        self.suspects.dedup();
        let mut suspects = std::mem::take(&mut self.suspects);
        suspects.retain(|key| match recovery(*key) {
            Suspect::Gone => false,
            Suspect::Below => true,
            Suspect::AtLimit { recovers_at } => {
                self.wait(recovers_at, *key);
                false
            }
        });
        self.suspects = suspects;
    }

    /// The suspects.
    pub(super) fn suspects(&self) -> impl Iterator<Item = KeyHash> {
        self.suspects.iter().copied()
    }

    /// Takes the key that recovers first.
    pub(super) fn pop(&mut self) -> Option<(Nanos, KeyHash)> {
        self.waiting.pop()
    }

    /// Puts a key in its place if it recovers before the horizon: the last of a full list.
    fn wait(&mut self, recovers_at: Nanos, key: KeyHash) {
        let entry = (recovers_at, key);
        // Of what was left out nothing is known but that it recovers after all that are in.
        if self.waiting.first().is_none_or(|horizon| *horizon <= entry) {
            return;
        }
        let at = self.waiting.partition_point(|other| *other > entry);
        if self.waiting.len() < self.length {
            self.waiting.insert(at, entry);
        } else if let Some(kept) = self.waiting.get_mut(..at) {
            // The horizon goes, the others move up.
            kept.rotate_left(1);
            if let Some(place) = kept.last_mut() {
                *place = entry;
            }
        }
    }
}

/// What has become of a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspect {
    /// It is no longer there.
    Gone,
    /// It is below its limit.
    Below,
    /// It is at its limit until then.
    AtLimit {
        /// The instant.
        recovers_at: Nanos,
    },
}
