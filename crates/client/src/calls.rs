//! The calls in flight: a ring by request id, which is also the order of their deadlines.
//!
//! Pure. All calls of a client have the same time, so the oldest id is due first: one structure
//! routes replies without hashing and tells the one timer when to wake. Invariants: ids grow by one
//! and are never used again; an id is answered at most once; at most `max` calls are in flight and
//! the ring spans at most [`SPAN_PER_CALL`] times as many ids.

use std::collections::VecDeque;

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Ids that the ring may span for each call that may be in flight: one slow reply must not stop
/// those behind it.
const SPAN_PER_CALL: usize = 16;

/// A call in flight.
#[derive(Debug)]
pub(crate) struct Call<R> {
    /// When it was sent.
    pub(crate) sent: Instant,
    /// When it is over.
    pub(crate) due: Instant,
    /// Who waits.
    pub(crate) reply: R,
}

/// What a reply belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<R> {
    /// To a call, which is no longer in flight.
    Call(R),
    /// To a call that is over.
    Late,
    /// To nothing that was ever asked.
    Unknown,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Calls<R> {
    first: u64,
    ring: VecDeque<Option<Call<R>>>,
    live: usize,
    max: usize,
}

impl<R> Calls<R> {
    /// None in flight, at most `max` at once.
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            first: 1,
            ring: VecDeque::new(),
            live: 0,
            max,
        }
    }

    /// The id of the next call, if there is room for it.
    pub(crate) fn next_id(&self) -> Option<u64> {
        let span = self.ring.len();
        let room = self.live < self.max && span < self.max.saturating_mul(SPAN_PER_CALL);
        room.then(|| self.first.saturating_add(as_id(span)))
    }

    /// Adds the call that [`next_id`](Self::next_id) named; due no earlier than those before it.
    pub(crate) fn push(&mut self, call: Call<R>) {
        self.ring.push_back(Some(call));
        self.live = self.live.saturating_add(1);
    }

    /// The call that a reply is for.
    pub(crate) fn take(&mut self, id: u64) -> Taken<R> {
        let Some(place) = id.checked_sub(self.first) else {
            return if id == 0 { Taken::Unknown } else { Taken::Late };
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let Some(slot) = self.ring.get_mut(place) else {
            return Taken::Unknown;
        };
        let Some(call) = slot.take() else {
            return Taken::Late;
        };
        self.live = self.live.saturating_sub(1);
        self.trim();
        Taken::Call(call.reply)
    }

    /// When the oldest call in flight is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.ring.front()?.as_ref().map(|call| call.due)
    }

    /// The oldest call in flight, if it is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Call<R>> {
        if self.next_due()? > now {
            return None;
        }
        self.pop()
    }

    /// The oldest call in flight.
    pub(crate) fn pop(&mut self) -> Option<Call<R>> {
        let call = self.ring.pop_front()??;
        self.first = self.first.saturating_add(1);
        self.live = self.live.saturating_sub(1);
        self.trim();
        Some(call)
    }

    /// Keeps the front of the ring a call in flight.
    fn trim(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first = self.first.saturating_add(1);
        }
    }
}

fn as_id(span: usize) -> u64 {
    u64::try_from(span).unwrap_or(u64::MAX)
}
