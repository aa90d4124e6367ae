//! Replication: what one follower is still to be told, and what is told of that next.
//!
//! TODO(cluster-motion): see the contract of the source.

use tollgate_limit::{Merged, Nanos, Series, SlotSet, Store};
use tollgate_wire::replica::Delivery;

/// The most series that wait for one follower; above it their slots are copied again later.
pub const MAX_QUEUED: usize = 65_536;

/// What one follower gets of this node.
#[derive(Debug, Default)]
pub struct Source {
    subscribed: SlotSet,
    recopy: SlotSet,
    queue: std::collections::VecDeque<Delivery>,
}

impl Source {
    /// A follower that ordered nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The follower wants just these slots.
    pub fn handle_subscribe(&mut self, slots: &SlotSet) {
        let mut fresh = slots.clone();
        fresh.subtract(&self.subscribed);
        self.recopy.extend(&fresh);
        self.recopy.intersect(slots);
        self.subscribed = slots.clone();
    }

    /// Series changed; those that the follower wants are queued.
    pub fn handle_changed(&mut self, now: Nanos, series: &[Series]) {
        let _ = now;
        let wanted: Vec<_> = series
            .iter()
            .filter(|series| self.subscribed.contains(series.key.slot()))
            .cloned()
            .collect();
        self.batches(&wanted);
    }

    fn batches(&mut self, series: &[Series]) {
        for chunk in series.chunks(256) {
            self.queue.push_back(Delivery::Batch(chunk.to_vec()));
        }
    }

    /// Closes slots in the store and makes what the follower lacks its last delivery on them.
    pub fn give(&mut self, now: Nanos, store: &Store, slots: &SlotSet) {
        let mut out = Vec::new();
        store.seal(now, slots, true, &mut out);
        self.batches(&out);
        self.queue.push_back(Delivery::Final(slots.clone()));
    }

    /// A report was taken in.
    pub fn handle_reported(&mut self, number: u64) {
        self.queue.push_back(Delivery::Reported(number));
    }

    /// What to send next; call again when it is sent.
    pub fn poll_delivery(&mut self, now: Nanos, store: &Store) -> Option<Delivery> {
        if let Some(first) = self.queue.pop_front() {
            return Some(first);
        }
        if self.recopy.is_empty() {
            return None;
        }
        let slots = std::mem::take(&mut self.recopy);
        let mut out = Vec::new();
        store.export(now, &slots, &mut out);
        self.batches(&out);
        self.queue.push_back(Delivery::Copied(slots));
        self.queue.pop_front()
    }

    /// Series that wait, and slots that are still to be copied.
    #[must_use]
    pub fn behind(&self) -> (usize, usize) {
        (self.queue.len(), self.recopy.len())
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
