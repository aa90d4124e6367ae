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
    queue: std::collections::VecDeque<Item>,
}

#[derive(Debug)]
enum Item {
    Series(Nanos, Series),
    Say(Delivery),
}

impl Source {
    /// A follower that ordered nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The follower wants just these slots.
    pub fn handle_subscribe(&mut self, slots: &SlotSet) {
        let new = slots.without(&self.subscribed);
        self.recopy.extend(&new);
        self.recopy.intersect(slots);
        self.subscribed = slots.clone();
    }

    /// Series changed; those that the follower wants are queued.
    pub fn handle_changed(&mut self, now: Nanos, series: &[Series]) {
        if crate::sabotage::is(crate::sabotage::Sabotage::NoReplication) {
            return;
        }
        for series in series {
            if self.subscribed.contains(series.key.slot()) {
                self.queue.push_back(Item::Series(now, series.clone()));
            }
        }
    }

    /// Closes slots in the store and makes what the follower lacks its last delivery on them.
    pub fn give(&mut self, now: Nanos, store: &Store, slots: &SlotSet) {
        let complete = slots.common(&self.subscribed.without(&self.recopy));
        let mut series = Vec::new();
        store.seal(now, &complete, false, &mut series);
        store.seal(now, &slots.without(&complete), true, &mut series);
        let series = series.into_iter().map(|series| Item::Series(now, series));
        self.queue.extend(series);
        self.queue.push_back(Item::Say(Delivery::Final(slots.clone())));
    }

    /// A report was taken in.
    pub fn handle_reported(&mut self, number: u64) {
        self.queue.push_back(Item::Say(Delivery::Reported(number)));
    }

    /// What to send next; call again when it is sent.
    pub fn poll_delivery(&mut self, now: Nanos, store: &Store) -> Option<Delivery> {
        if self.queue.is_empty() && !self.recopy.is_empty() {
            let slots = std::mem::take(&mut self.recopy);
            let mut series = Vec::new();
            store.export(now, &slots, &mut series);
            let series = series.into_iter().map(|series| Item::Series(now, series));
            self.queue.extend(series);
            self.queue.push_back(Item::Say(Delivery::Copied(slots)));
        }
        let mut batch = Vec::new();
        while let Some(Item::Series(..)) = self.queue.front() {
            if let Some(Item::Series(at, series)) = self.queue.pop_front() {
                let waited = now.saturating_sub(at).as_nanos();
                batch.push(Series { clock: series.clock.wrapping_add(waited), ..series });
            }
        }
        if !batch.is_empty() {
            return Some(Delivery::Batch(batch));
        }
        match self.queue.pop_front()? {
            Item::Say(delivery) => Some(delivery),
            Item::Series(_, series) => Some(Delivery::Batch(vec![series])),
        }
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
