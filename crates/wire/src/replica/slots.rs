//! Sets of slots on the wire: the shards that have any, each with a bit for each of its slots.
//!
//! Invariant: a set has one form only, so that what is read is in order, in range and never empty.

use tollgate_limit::{SHARD_COUNT, SlotSet};

use crate::codec::{self, CodecError};

/// Appends a set.
pub(super) fn put_slots(body: &mut Vec<u8>, slots: &SlotSet) -> Result<(), CodecError> {
    let count = u16::try_from(slots.shards().count()).map_err(|_error| CodecError::TooLarge)?;
    codec::put(body, &count)?;
    slots.shards().try_for_each(|shard| {
        let number = u16::try_from(shard).map_err(|_error| CodecError::TooLarge)?;
        codec::put(body, &(number, slots.of_shard(shard)))
    })
}

/// Takes a set off a body.
pub(super) fn read_slots(body: &mut &[u8]) -> Result<SlotSet, CodecError> {
    let count: u16 = codec::take(body)?;
    if usize::from(count) > SHARD_COUNT {
        return Err(CodecError::Malformed);
    }
    let mut slots = SlotSet::new();
    let mut next = 0;
    for _ in 0..count {
        let (shard, mask): (u16, u64) = codec::take(body)?;
        let shard = usize::from(shard);
        if shard < next || shard >= SHARD_COUNT || mask == 0 {
            return Err(CodecError::Malformed);
        }
        slots.set_shard(shard, mask);
        next = shard.saturating_add(1);
    }
    Ok(slots)
}
