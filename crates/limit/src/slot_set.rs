//! Sets of slots: one bit for each of the 65 536.
//!
//! What is subscribed, moved and acknowledged is told by these. Knows nothing of owners. Invariant: 8 KiB
//! whatever is in it.

use crate::key::{SLOT_COUNT, SlotId};

/// Words of a set.
const WORDS: usize = SLOT_COUNT / BITS;
const BITS: usize = 64;

/// A set of slots.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet {
    words: Box<[u64; WORDS]>,
}

impl SlotSet {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self {
            words: Box::new([0; WORDS]),
        }
    }

    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Self {
            words: Box::new([u64::MAX; WORDS]),
        }
    }

    /// Adds a slot; whether it is new.
    pub fn insert(&mut self, slot: SlotId) -> bool {
        let (word, bit) = place(slot);
        let Some(word) = self.words.get_mut(word) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes a slot out; whether it was in it.
    pub fn remove(&mut self, slot: SlotId) -> bool {
        let (word, bit) = place(slot);
        let Some(word) = self.words.get_mut(word) else {
            return false;
        };
        let was_in = *word & bit != 0;
        *word &= !bit;
        was_in
    }

    /// Whether a slot is in it.
    #[must_use]
    pub fn contains(&self, slot: SlotId) -> bool {
        let (word, bit) = place(slot);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether none is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        let ones = self.words.iter().map(|word| word.count_ones());
        ones.filter_map(|ones| usize::try_from(ones).ok())
            .fold(0, usize::saturating_add)
    }

    /// Those in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = SlotId> {
        let words = self.words.iter().enumerate();
        words
            .filter(|(_, word)| **word != 0)
            .flat_map(|(at, word)| {
                let first = at.saturating_mul(BITS);
                let ones = (0..BITS).filter(move |bit| word >> bit & 1 == 1);
                ones.filter_map(move |bit| u16::try_from(first.saturating_add(bit)).ok())
            })
            .map(SlotId::new)
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: &Self) {
        self.zip(other, |own, other| own | other);
    }

    /// Takes all of another set out.
    pub fn subtract(&mut self, other: &Self) {
        self.zip(other, |own, other| own & !other);
    }

    /// Keeps what is in both.
    pub fn intersect(&mut self, other: &Self) {
        self.zip(other, |own, other| own & other);
    }

    /// What is in this set and in another.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        let mut common = self.clone();
        common.intersect(other);
        common
    }

    /// What is in this set and not in another.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// The slots of one of 1 024 shards of 64 slots, as bits: what shard and word have in common.
    #[must_use]
    pub fn of_shard(&self, shard: usize) -> u64 {
        self.words.get(shard).copied().unwrap_or(0)
    }

    /// Sets the slots of one shard.
    pub fn set_shard(&mut self, shard: usize, slots: u64) {
        if let Some(word) = self.words.get_mut(shard) {
            *word = slots;
        }
    }

    /// The shards of which a slot is in it, in order.
    pub fn shards(&self) -> impl Iterator<Item = usize> {
        let words = self.words.iter().enumerate();
        words.filter(|(_, word)| **word != 0).map(|(at, _)| at)
    }

    fn zip(&mut self, other: &Self, join: impl Fn(u64, u64) -> u64) {
        for (own, other) in self.words.iter_mut().zip(other.words.iter()) {
            *own = join(*own, *other);
        }
    }
}

impl Default for SlotSet {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SlotSet({} slots)", self.len())
    }
}

impl Extend<SlotId> for SlotSet {
    fn extend<T: IntoIterator<Item = SlotId>>(&mut self, slots: T) {
        for slot in slots {
            self.insert(slot);
        }
    }
}

impl FromIterator<SlotId> for SlotSet {
    fn from_iter<T: IntoIterator<Item = SlotId>>(slots: T) -> Self {
        let mut set = Self::new();
        Extend::extend(&mut set, slots);
        set
    }
}

/// The word of a slot, and its bit in it.
fn place(slot: SlotId) -> (usize, u64) {
    let bit = u32::from(slot.number()) % u64::BITS;
    (slot.index() / BITS, 1_u64.rotate_left(bit))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::SlotSet;
    use crate::{key::SlotId, store::SHARD_COUNT};

    fn set(slots: &BTreeSet<u16>) -> SlotSet {
        slots.iter().copied().map(SlotId::new).collect()
    }

    fn numbers(set: &SlotSet) -> BTreeSet<u16> {
        set.iter().map(SlotId::number).collect()
    }

    proptest! {
        #[test]
        fn it_is_a_set(
            one in prop::collection::btree_set(any::<u16>(), 0..100),
            other in prop::collection::btree_set(any::<u16>(), 0..100),
            slot: u16,
        ) {
            let (first, second) = (set(&one), set(&other));
            prop_assert_eq!(&numbers(&first), &one);
            prop_assert_eq!(first.len(), one.len());
            prop_assert_eq!(first.is_empty(), one.is_empty());
            prop_assert_eq!(first.contains(SlotId::new(slot)), one.contains(&slot));
            let both = |join: fn(&mut SlotSet, &SlotSet)| {
                let mut joined = first.clone();
                join(&mut joined, &second);
                numbers(&joined)
            };
            prop_assert_eq!(both(SlotSet::extend), one.union(&other).copied().collect());
            prop_assert_eq!(both(SlotSet::subtract), one.difference(&other).copied().collect());
            prop_assert_eq!(both(SlotSet::intersect), one.intersection(&other).copied().collect());
            prop_assert_eq!(both(|one, other| *one = one.without(other)), both(SlotSet::subtract));
            prop_assert_eq!(both(|one, other| *one = one.common(other)), both(SlotSet::intersect));
            let mut by_shard = SlotSet::new();
            for shard in first.shards() {
                by_shard.set_shard(shard, first.of_shard(shard));
            }
            prop_assert_eq!(by_shard, first);
        }
    }

    #[test]
    fn all_slots_are_in_the_largest() {
        let mut all = SlotSet::all();
        assert_eq!(all.len(), 65_536);
        assert_eq!(all.shards().count(), SHARD_COUNT);
        assert!(all.remove(SlotId::new(65_535)));
        assert!(!all.remove(SlotId::new(65_535)));
        assert!(all.insert(SlotId::new(65_535)));
        assert_eq!(all, SlotSet::all());
    }
}
