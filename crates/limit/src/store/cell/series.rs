//! Cells that hold what another writer has counted: its words on its clock, or that nothing of it counts.
//!
//! After the header a foreign cell has the offset of its writer's clock, then the writer's words; a void has
//! nothing. Knows nothing of tables or locks. Invariant: the version is its writer's, and so are the words.

use super::{
    FOREIGN_FLAG, FULL_FLAG, Identity, MARK_FLAG, ROLE_MASK, VERSION_SHIFT, VOID_FLAG, words_in_use,
};
use crate::{counter::merge::Kept, key::KeyHash, units::Nanos};

/// The highest version.
pub(in crate::store) const MOST_VERSION: u64 = (1 << 48) - 1;

/// What a cell holds of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Role {
    /// All that is counted.
    Total,
    /// Another writer's series.
    Foreign,
    /// That nothing of a series counts any more.
    Void,
}

/// The role of a cell.
pub(in crate::store) fn role(cell: &[u64]) -> Role {
    let meta = cell.get(2).copied().unwrap_or(0);
    match meta & ROLE_MASK {
        0 => Role::Total,
        FOREIGN_FLAG => Role::Foreign,
        _ => Role::Void,
    }
}

/// What a series says beside its words.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Foreign {
    pub(in crate::store) writer: u64,
    pub(in crate::store) version: u64,
    pub(in crate::store) seen: u64,
    /// Whether the oldest slice counts in full.
    pub(in crate::store) is_full: bool,
}

/// Makes a foreign cell, its words still all zero.
pub(in crate::store) fn start_foreign(
    cell: &mut [u64],
    (key, identity): (KeyHash, Identity),
    foreign: &Foreign,
    (latest, offset): (Nanos, u64),
) {
    let flags = FOREIGN_FLAG | if foreign.is_full { FULL_FLAG } else { 0 };
    head(
        cell,
        (key, identity),
        (foreign.writer, foreign.version),
        flags,
    );
    if let [_, _, _, _, seen, last, _, clock, own @ ..] = cell {
        *seen = foreign.seen;
        *last = latest.as_nanos();
        *clock = offset;
        own.fill(0);
    }
}

/// Makes a void that is over at an instant of this store's clock.
pub(in crate::store) fn start_void(
    cell: &mut [u64],
    (key, identity): (KeyHash, Identity),
    (writer, version): (u64, u64),
    (seen, end): (u64, Nanos),
) {
    head(cell, (key, identity), (writer, version), VOID_FLAG);
    if let [_, _, _, _, noted, last, ..] = cell {
        *noted = seen;
        *last = end.as_nanos();
    }
}

fn head(
    cell: &mut [u64],
    (key, identity): (KeyHash, Identity),
    (writer, version): (u64, u64),
    flags: u64,
) {
    if let [high, low, meta, window, _, _, by, ..] = cell {
        *high = key.high();
        *low = key.low();
        *meta = version.min(MOST_VERSION).unbounded_shl(VERSION_SHIFT) | identity.meta | flags;
        *window = identity.window;
        *by = writer;
    }
}

/// The version of a cell.
pub(in crate::store) fn version(cell: &[u64]) -> u64 {
    cell.get(2).copied().unwrap_or(0) >> VERSION_SHIFT
}

/// The writer of a foreign cell or a void.
pub(in crate::store) fn writer(cell: &[u64]) -> u64 {
    cell.get(6).copied().unwrap_or(0)
}

/// What a foreign cell holds.
pub(in crate::store) fn kept(cell: &[u64]) -> Option<Kept<'_>> {
    let [_, _, meta, _, _, latest, _, offset, words @ ..] = cell else {
        return None;
    };
    Some(Kept {
        latest: Nanos::new(*latest),
        offset: *offset,
        words: words.get(..words_in_use(*meta, words.len()))?,
    })
}

/// What a counter noted of the rule.
pub(in crate::store) fn seen(cell: &[u64]) -> u64 {
    cell.get(4).copied().unwrap_or(0)
}

/// When a void may be forgotten.
pub(in crate::store) fn void_end(cell: &[u64]) -> Nanos {
    Nanos::new(cell.get(5).copied().unwrap_or(0))
}

/// Whether a total has series beside it, or another cell is to be sent.
pub(in crate::store) fn is_marked(cell: &[u64]) -> bool {
    cell.get(2).is_some_and(|meta| meta & MARK_FLAG != 0)
}

/// Sets that.
pub(in crate::store) fn mark(cell: &mut [u64]) {
    if let Some(meta) = cell.get_mut(2) {
        *meta |= MARK_FLAG;
    }
}

/// Ends that.
pub(in crate::store) fn unmark(cell: &mut [u64]) {
    if let Some(meta) = cell.get_mut(2) {
        *meta &= !MARK_FLAG;
    }
}
