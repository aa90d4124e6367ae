//! Keys: the identity of one counter as a keyed 128-bit hash, and its slot.
//!
//! The hash is SipHash-1-3-128 under the cluster's hash key, over length-prefixed parts (rule 6), so
//! that two different lists of parts never collide and no client can aim at one owner. Knows nothing
//! of policies or placement.

use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Slots of the key space.
pub const SLOT_COUNT: usize = 65_536;

/// The cluster's secret for hashing keys: 128 bits, the same on every node for the cluster's life.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u8; 16]);

impl HashKey {
    /// The key with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// A key of one counter: 128 bits. The high half gives slot and shard, the low half the place in a
/// table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash {
    high: u64,
    low: u64,
}

impl KeyHash {
    /// The key with these halves.
    #[must_use]
    pub const fn from_halves(high: u64, low: u64) -> Self {
        Self { high, low }
    }

    /// The half that slot and shard come from.
    #[must_use]
    pub const fn high(self) -> u64 {
        self.high
    }

    /// The half that the place in a table comes from.
    #[must_use]
    pub const fn low(self) -> u64 {
        self.low
    }

    /// The slot: the top 16 bits.
    #[must_use]
    pub const fn slot(self) -> SlotId {
        let [first, second, ..] = self.high.to_be_bytes();
        SlotId(u16::from_be_bytes([first, second]))
    }
}

/// One of [`SLOT_COUNT`] shares of the key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(u16);

impl SlotId {
    /// The slot of this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Its place in a table of all slots.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Hashes the parts of a key. Clone it after the parts that all keys of a limit share.
#[derive(Clone, Debug)]
pub struct KeyHasher(SipHasher13);

impl KeyHasher {
    /// A hasher under the cluster's key.
    #[must_use]
    pub fn new(key: &HashKey) -> Self {
        Self(SipHasher13::new_with_key(&key.0))
    }

    /// Adds one part; its length goes first.
    pub fn part(&mut self, part: &[u8]) {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        self.0.write(&length.to_le_bytes());
        self.0.write(part);
    }

    /// The key of all parts so far.
    #[must_use]
    pub fn finish(&self) -> KeyHash {
        let hash = self.0.finish128();
        KeyHash::from_halves(hash.h1, hash.h2)
    }
}

#[cfg(test)]
mod tests {
    use super::{HashKey, KeyHash, KeyHasher, SlotId};

    fn hash(key: u8, parts: &[&str]) -> KeyHash {
        let mut hasher = KeyHasher::new(&HashKey::new([key; 16]));
        for part in parts {
            hasher.part(part.as_bytes());
        }
        hasher.finish()
    }

    #[test]
    fn lists_of_parts_never_collide() {
        let lists: [&[&str]; 6] = [&[], &[""], &["", ""], &["ab", "c"], &["a", "bc"], &["abc"]];
        for (at, list) in lists.iter().enumerate() {
            for other in &lists[..at] {
                assert_ne!(hash(1, list), hash(1, other), "{list:?} and {other:?}");
            }
        }
    }

    /// All nodes of a cluster, of any version, must agree.
    #[test]
    fn the_hash_never_changes() {
        let known = KeyHash::from_halves(13_745_398_323_600_217_881, 2_447_133_024_198_183_315);
        assert_eq!(hash(7, &["configured", "api", "per-key"]), known);
        assert_ne!(hash(8, &["configured", "api", "per-key"]), known);
    }

    #[test]
    fn a_slot_is_the_top_of_the_high_half() {
        let key = KeyHash::from_halves(0xabcd_0000_0000_0001, u64::MAX);
        assert_eq!(key.slot(), SlotId::new(0xabcd));
        assert_eq!((key.slot().number(), key.slot().index()), (0xabcd, 0xabcd));
    }

    #[test]
    fn the_secret_is_never_printed() {
        assert_eq!(format!("{:?}", HashKey::new([7; 16])), "HashKey(secret)");
    }
}
