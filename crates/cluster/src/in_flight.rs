//! The in-flight checks of one peer: a queue with one timer.
//!
//! Numbers are dense and increasing, so the queue is a ring indexed by number; deadlines are mostly
//! in order, so the next one is at the front of a second queue, and the few stragglers sit in a heap.
//! All work is O(1) amortised while deadlines are in order, and nothing is allocated once the rings
//! have grown. Knows nothing of what is in flight, nor of timers.
//!
//! Invariants: at most [`MAX_IN_FLIGHT`] checks, whose numbers span at most as many; every check
//! leaves exactly once; [`InFlight::next_deadline`] is the least deadline of all.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use thiserror::Error;
use tollgate_limit::Nanos;

/// The most checks in flight to one peer, and the widest span of their numbers.
pub const MAX_IN_FLIGHT: usize = 65_536;

/// Too many checks are in flight to the peer, or the number is in flight or too far from the others.
/// Nothing was stored and the payload is dropped: fall back.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("more than {MAX_IN_FLIGHT} checks are in flight")]
pub struct Full;

/// A check in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending<T> {
    /// When it was sent.
    pub sent_at: Nanos,
    /// When it times out.
    pub deadline: Nanos,
    /// What the caller keeps with it.
    pub payload: T,
}

/// A deadline and the number that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    deadline: Nanos,
    number: u64,
}

/// The in-flight checks of one peer.
#[derive(Debug)]
pub struct InFlight<T> {
    /// The number of the first place. The first place is taken unless there is none.
    first: u64,
    places: VecDeque<Option<Pending<T>>>,
    taken: usize,
    /// Deadlines in ascending order. Those of checks that have left stay until they come to the front.
    in_order: VecDeque<Due>,
    /// Deadlines that came after a later one.
    stragglers: BinaryHeap<Reverse<Due>>,
}

impl<T> InFlight<T> {
    /// None in flight.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: 0,
            places: VecDeque::new(),
            taken: 0,
            in_order: VecDeque::new(),
            stragglers: BinaryHeap::new(),
        }
    }

    /// A check is sent, for the first time or again.
    ///
    /// # Errors
    /// [`Full`].
    pub fn insert(
        &mut self,
        number: u64,
        sent_at: Nanos,
        deadline: Nanos,
        payload: T,
    ) -> Result<(), Full> {
        let place = self.place_for(number)?;
        *place = Some(Pending {
            sent_at,
            deadline,
            payload,
        });
        self.taken = self.taken.saturating_add(1);
        let due = Due { deadline, number };
        match self.in_order.back() {
            Some(last) if deadline < last.deadline => self.stragglers.push(Reverse(due)),
            Some(_) | None => self.in_order.push_back(due),
        }
        self.bound_deadlines();
        Ok(())
    }

    /// A check is answered; `None` if it is not in flight (any more).
    pub fn take(&mut self, number: u64) -> Option<Pending<T>> {
        let pending = self.remove(number)?;
        self.settle();
        Some(pending)
    }

    /// Takes all checks whose deadline has come, in the order of their deadlines.
    pub fn expire(&mut self, now: Nanos, mut expired: impl FnMut(u64, Pending<T>)) {
        while let Some(due) = self.next_due() {
            if now < due.deadline {
                return;
            }
            if let Some(pending) = self.remove(due.number) {
                expired(due.number, pending);
            }
            self.settle();
        }
    }

    /// Takes all checks, in the order of their numbers: the connection is gone.
    pub fn drain(&mut self, mut lost: impl FnMut(u64, Pending<T>)) {
        let numbers = self.first..;
        for (number, place) in numbers.zip(self.places.drain(..)) {
            if let Some(pending) = place {
                lost(number, pending);
            }
        }
        self.taken = 0;
        self.in_order.clear();
        self.stragglers.clear();
    }

    /// When the first check times out: the one timer.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.next_due().map(|due| due.deadline)
    }

    /// How many are in flight.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.taken
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// The free place of a number; the queue grows to it on either side.
    fn place_for(&mut self, number: u64) -> Result<&mut Option<Pending<T>>, Full> {
        if self.places.is_empty() {
            self.first = number;
        }
        if let Some(before) = self.first.checked_sub(number) {
            let before = usize::try_from(before).map_err(|_error| Full)?;
            if before.saturating_add(self.places.len()) > MAX_IN_FLIGHT {
                return Err(Full);
            }
            for _ in 0..before {
                self.places.push_front(None);
            }
            self.first = number;
        }
        let index = self.index_of(number).ok_or(Full)?;
        if index >= MAX_IN_FLIGHT {
            return Err(Full);
        }
        while self.places.len() <= index {
            self.places.push_back(None);
        }
        self.places
            .get_mut(index)
            .filter(|place| place.is_none())
            .ok_or(Full)
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    fn remove(&mut self, number: u64) -> Option<Pending<T>> {
        let index = self.index_of(number)?;
        let pending = self.places.get_mut(index)?.take()?;
        self.taken = self.taken.saturating_sub(1);
        Some(pending)
    }

    /// Drops what has left from the front of the queues.
    fn settle(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first = self.first.saturating_add(1);
        }
        while self.in_order.front().is_some_and(|due| !self.awaits(*due)) {
            self.in_order.pop_front();
        }
        while self
            .stragglers
            .peek()
            .is_some_and(|due| !self.awaits(due.0))
        {
            self.stragglers.pop();
        }
    }

    fn awaits(&self, due: Due) -> bool {
        self.index_of(due.number)
            .and_then(|index| self.places.get(index)?.as_ref())
            .is_some_and(|pending| pending.deadline == due.deadline)
    }

    fn next_due(&self) -> Option<Due> {
        let straggler = self.stragglers.peek().map(|due| due.0);
        match (self.in_order.front().copied(), straggler) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Keeps the deadlines of checks that have left from piling up behind one that has not.
    fn bound_deadlines(&mut self) {
        if self.in_order.len() > MAX_DEADLINES || self.stragglers.len() > MAX_DEADLINES {
            let mut in_order = std::mem::take(&mut self.in_order);
            in_order.retain(|due| self.awaits(*due));
            self.in_order = in_order;
            let mut stragglers = std::mem::take(&mut self.stragglers);
            stragglers.retain(|due| self.awaits(due.0));
            self.stragglers = stragglers;
        }
    }
}

/// The most deadlines in either queue.
const MAX_DEADLINES: usize = 2 * MAX_IN_FLIGHT;

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
