//! Replication: what one follower is still to be told, and what is told of that next.
//!
//! TODO(cluster-motion): see the contract of the source.

use tollgate_limit::{Merged, Nanos, Series, SlotSet, Store};
use tollgate_wire::replica::Delivery;

/// The most series that wait for one follower; above it their slots are copied again later.
pub const MAX_QUEUED: usize = 65_536;

/// What one follower gets of this node.
#[derive(Debug, Default)]
pub struct Source {}

impl Source {
    /// A follower that ordered nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The follower wants just these slots.
    pub fn handle_subscribe(&mut self, slots: &SlotSet) {
        let _ = slots;
    }

    /// Series changed; those that the follower wants are queued.
    pub fn handle_changed(&mut self, now: Nanos, series: &[Series]) {
        let _ = (now, series);
    }

    /// Closes slots in the store and makes what the follower lacks its last delivery on them.
    pub fn give(&mut self, now: Nanos, store: &Store, slots: &SlotSet) {
        let _ = (now, store, slots);
    }

    /// A report was taken in.
    pub fn handle_reported(&mut self, number: u64) {
        let _ = number;
    }

    /// What to send next; call again when it is sent.
    pub fn poll_delivery(&mut self, now: Nanos, store: &Store) -> Option<Delivery> {
        let _ = (now, store);
        None
    }

    /// Series that wait, and slots that are still to be copied.
    #[must_use]
    pub fn behind(&self) -> (usize, usize) {
        (0, 0)
    }
}

/// What became of series that came from another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenIn {
    /// New here, or newer than what was held.
    pub taken: usize,
    /// Held already, or this node's own.
    pub known: usize,
    /// Not kept.
    pub refused: usize,
}

/// Takes over what another node counted, each series once.
pub fn take_in(store: &Store, now: Nanos, series: &[Series]) -> TakenIn {
    let mut sum = TakenIn::default();
    for series in series {
        let count = match store.merge(now, series) {
            Merged::Taken => &mut sum.taken,
            Merged::Known | Merged::Own => &mut sum.known,
            Merged::Refused => &mut sum.refused,
        };
        *count = count.saturating_add(1);
    }
    sum
}
