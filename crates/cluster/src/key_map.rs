//! A bounded map by key, shared by all threads: what an entry node remembers of the keys of others.
//!
//! Knows nothing of what is kept. Invariant: never more than the most that it was made for; when it is
//! full what is new is not kept.

use std::{
    hash::{BuildHasherDefault, Hasher},
    sync::atomic::{AtomicUsize, Ordering},
};

use dashmap::{DashMap, Entry};
use tollgate_limit::KeyHash;

/// Something for each of at most so many keys. Each call locks a shard once.
#[derive(Debug)]
pub(crate) struct KeyMap<V> {
    map: DashMap<KeyHash, V, BuildHasherDefault<KeyHashHasher>>,
    /// At least the map's length: raised before an insert, lowered after a removal.
    count: AtomicUsize,
    most: usize,
}

impl<V> KeyMap<V> {
    /// An empty map.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            map: DashMap::with_hasher_and_shard_amount(BuildHasherDefault::default(), SHARDS),
            count: AtomicUsize::new(0),
            most,
        }
    }

    /// Keeps a value; in the place of one that is there if that gives way, which may leave it something.
    pub(crate) fn set(
        &self,
        key: KeyHash,
        mut value: V,
        gives_way: impl FnOnce(&V, &mut V) -> bool,
    ) {
        match self.map.entry(key) {
            Entry::Occupied(mut place) => {
                if gives_way(place.get(), &mut value) {
                    place.insert(value);
                }
            }
            Entry::Vacant(place) => {
                if self.count.fetch_add(1, Ordering::Relaxed) < self.most {
                    place.insert(value);
                } else {
                    self.count.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Looks at the value of a key.
    pub(crate) fn read<R>(&self, key: KeyHash, read: impl FnOnce(&V) -> R) -> Option<R> {
        self.map.get(&key).map(|value| read(&value))
    }

    /// Changes the value of a key.
    pub(crate) fn change<R>(&self, key: KeyHash, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.map.get_mut(&key).map(|mut value| change(&mut value))
    }

    /// Forgets the value of a key, if it is one of these.
    pub(crate) fn remove_if(&self, key: KeyHash, is_one: impl FnOnce(&V) -> bool) {
        if self
            .map
            .remove_if(&key, |_key, value| is_one(value))
            .is_some()
        {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Keeps only these. One pass over all, a shard at a time.
    pub(crate) fn retain(&self, is_one: impl Fn(&V) -> bool) {
        self.map.retain(|_key, value| {
            let keep = is_one(value);
            if !keep {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
            keep
        });
    }

    /// How many keys have a value: one atomic read.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether none has.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there really are.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> usize {
        self.map.len()
    }
}

/// Fixed, so that nothing depends on the machine.
const SHARDS: usize = 64;

/// Takes the key's own bits, which are a keyed hash already, so nobody can aim at a bucket.
#[derive(Debug, Default)]
struct KeyHashHasher(u64);

impl Hasher for KeyHashHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = self.0.rotate_left(32) ^ half;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}
