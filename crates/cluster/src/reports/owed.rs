//! The slots in which something was counted for others, marked by all threads with every such count.
//!
//! INV-OWED-UNTIL-ACKNOWLEDGED: a slot is marked after what it is marked for was counted, so that whoever
//! takes the mark and then reads the counters finds it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate_limit::{SLOT_COUNT, SlotId, SlotSet};

/// One bit for each slot. Shared by all threads.
#[derive(Debug)]
pub struct OwedSlots {
    words: Box<[AtomicU64]>,
    /// Whether a bit may be set.
    any: AtomicBool,
}

const BITS: usize = 64;

impl OwedSlots {
    /// Something was counted in a slot that another node owns. Two atomic writes.
    pub fn mark(&self, slot: SlotId) {
        let (at, bit) = place(slot);
        if let Some(word) = self.words.get(at) {
            // Written even if it is set: the one who takes it must see what was counted before.
            word.fetch_or(bit, Ordering::AcqRel);
            self.any.store(true, Ordering::Release);
        }
    }

    /// The same for all of these.
    pub fn mark_all(&self, slots: &SlotSet) {
        for slot in slots.iter() {
            self.mark(slot);
        }
    }

    /// Whether nothing is marked: one atomic read.
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn contains(&self, slot: SlotId) -> bool {
        let (at, bit) = place(slot);
        let word = self.words.get(at);
        word.is_some_and(|word| word.load(Ordering::Acquire) & bit != 0)
    }

    /// Takes all marks off.
    pub(super) fn take_into(&self, slots: &mut SlotSet) {
        if !self.any.swap(false, Ordering::AcqRel) {
            return;
        }
        for (shard, word) in self.words.iter().enumerate() {
            if word.load(Ordering::Relaxed) != 0 {
                let marked = word.swap(0, Ordering::AcqRel);
                slots.set_shard(shard, slots.of_shard(shard) | marked);
            }
        }
    }
}

impl Default for OwedSlots {
    fn default() -> Self {
        Self {
            words: (0..SLOT_COUNT / BITS).map(|_| AtomicU64::new(0)).collect(),
            any: AtomicBool::new(false),
        }
    }
}

fn place(slot: SlotId) -> (usize, u64) {
    let bit = u32::from(slot.number()) % u64::BITS;
    (slot.index() / BITS, 1_u64.rotate_left(bit))
}
