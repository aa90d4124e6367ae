//! The order of events: by time, and of one time by when they were planned.
//!
//! The trace is a hash over what happened, in order. Same seed, same trace.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    hash::Hasher,
};

use siphasher::sip::SipHasher13;
use tollgate_limit::Nanos;

/// Events to come, and a hash over those that were.
#[derive(Debug)]
pub(super) struct Queue<E> {
    events: BinaryHeap<Reverse<Planned<E>>>,
    planned: u64,
    happened: u64,
    trace: SipHasher13,
}

#[derive(Debug)]
struct Planned<E> {
    at: Nanos,
    sequence: u64,
    event: E,
}

impl<E> Queue<E> {
    pub(super) fn new() -> Self {
        Self {
            events: BinaryHeap::new(),
            planned: 0,
            happened: 0,
            trace: SipHasher13::new(),
        }
    }

    pub(super) fn plan(&mut self, at: Nanos, event: E) {
        let sequence = self.planned;
        self.planned = self.planned.saturating_add(1);
        self.events.push(Reverse(Planned {
            at,
            sequence,
            event,
        }));
    }

    /// The next event, unless it is after `until`.
    pub(super) fn next(&mut self, until: Nanos) -> Option<(Nanos, E)> {
        if self.events.peek().is_none_or(|next| next.0.at > until) {
            return None;
        }
        let Reverse(next) = self.events.pop()?;
        self.happened = self.happened.saturating_add(1);
        self.trace.write_u64(next.at.as_nanos());
        self.trace.write_u64(next.sequence);
        Some((next.at, next.event))
    }

    /// Adds something that happened to the trace.
    pub(super) fn note(&mut self, what: u64) {
        self.trace.write_u64(what);
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace.finish()
    }

    pub(super) const fn happened(&self) -> u64 {
        self.happened
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Planned<E> {}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Planned<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}
