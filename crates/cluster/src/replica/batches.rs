//! Deliveries that are ready to be sent, in order: series are put into batches that fit into a frame.
//!
//! Knows nothing of where they come from. It is emptied before more is made, so it holds what a few shards hold
//! at most.

use std::collections::VecDeque;

use tollgate_limit::Series;
use tollgate_wire::replica::{BATCH_BYTES, Delivery, MAX_BATCH, size_of};

/// Deliveries in order.
#[derive(Debug, Default)]
pub(super) struct Batches {
    ready: VecDeque<Delivery>,
    open: Vec<Series>,
    open_bytes: usize,
}

impl Batches {
    /// Adds a series; whether its batch is full with it.
    pub(super) fn push(&mut self, series: Series) -> bool {
        self.open_bytes = self.open_bytes.saturating_add(size_of(&series));
        self.open.push(series);
        let is_full = self.open.len() >= MAX_BATCH || self.open_bytes >= BATCH_BYTES;
        if is_full {
            self.flush();
        }
        is_full
    }

    pub(super) fn extend(&mut self, series: Vec<Series>) {
        for series in series {
            self.push(series);
        }
    }

    /// Adds what must come behind the series so far.
    pub(super) fn close(&mut self, delivery: Delivery) {
        self.flush();
        self.ready.push_back(delivery);
    }

    /// Ends the batch.
    pub(super) fn flush(&mut self) {
        self.open_bytes = 0;
        if !self.open.is_empty() {
            let series = std::mem::take(&mut self.open);
            self.ready.push_back(Delivery::Batch(series));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<Delivery> {
        self.ready.pop_front()
    }
}
