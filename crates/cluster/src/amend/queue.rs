//! The entry node's side: repeats amendments until they are acknowledged.

use std::collections::VecDeque;

use thiserror::Error;
use tollgate_limit::{Ask, Change, Nanos};
use tollgate_wire::identity::BootId;

use super::AMEND_WINDOW;

/// The oldest outstanding amendment is [`AMEND_WINDOW`] numbers back: the owner could not tell it
/// from a repetition any more. Nothing was stored.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("more than {AMEND_WINDOW} amendments are outstanding")]
pub struct QueueFull;

/// A change of a counter that must reach its owner, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The counter, its rule and the units.
    pub ask: Ask,
    /// What is to be done.
    pub change: Change,
}

/// The outstanding amendments towards one owner.
///
/// Invariants: sequence numbers are dense from 0 for each boot of the owner; all outstanding ones lie
/// in one [`AMEND_WINDOW`].
#[derive(Debug)]
pub struct AmendQueue {
    owner: BootId,
    /// The number of the first place, which is taken unless there is none.
    first: u64,
    places: VecDeque<Option<Outstanding>>,
    outstanding: usize,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    amendment: Amendment,
    sent_at: Option<Nanos>,
    expires: Nanos,
}

impl AmendQueue {
    /// Nothing is outstanding towards this boot of the owner.
    #[must_use]
    pub const fn new(owner: BootId) -> Self {
        Self {
            owner,
            first: 0,
            places: VecDeque::new(),
            outstanding: 0,
        }
    }

    /// The owner speaks as this boot. If it is a new one, what was for the old one is dropped, since
    /// its counters are gone, and numbers start at 0.
    pub fn handle_owner(&mut self, owner: BootId) {
        if owner != self.owner {
            *self = Self::new(owner);
        }
    }

    /// The boot of the owner that the amendments are for.
    #[must_use]
    pub const fn owner(&self) -> BootId {
        self.owner
    }

    /// A counter must be changed; that is due at once, and for [`Amendment::life`] from now. Gives its
    /// sequence number.
    ///
    /// # Errors
    /// [`QueueFull`].
    pub fn push(&mut self, now: Nanos, amendment: Amendment) -> Result<u64, QueueFull> {
        if self.places.len() >= AMEND_WINDOW {
            return Err(QueueFull);
        }
        let behind = u64::try_from(self.places.len()).map_err(|_error| QueueFull)?;
        let sequence = self.first.saturating_add(behind);
        self.places.push_back(Some(Outstanding {
            amendment,
            sent_at: None,
            expires: now.saturating_add(amendment.life()),
        }));
        self.outstanding = self.outstanding.saturating_add(1);
        Ok(sequence)
    }

    /// The owner has it.
    pub fn acknowledge(&mut self, sequence: u64) {
        let index = sequence
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok());
        let place = index.and_then(|index| self.places.get_mut(index));
        if place.and_then(Option::take).is_some() {
            self.outstanding = self.outstanding.saturating_sub(1);
        }
        self.settle();
    }

    /// Those to send now: never sent, or sent `retry_interval` ago at least. Each counts as sent when
    /// the iterator has passed it.
    pub fn due(
        &mut self,
        now: Nanos,
        retry_interval: Nanos,
    ) -> impl Iterator<Item = (u64, Amendment)> + use<'_> {
        let sequences = self.first..;
        sequences
            .zip(&mut self.places)
            .filter_map(move |(sequence, place)| {
                let outstanding = place.as_mut()?;
                let waits = outstanding
                    .sent_at
                    .is_some_and(|sent_at| now < sent_at.saturating_add(retry_interval));
                if waits {
                    return None;
                }
                outstanding.sent_at = Some(now);
                Some((sequence, outstanding.amendment))
            })
    }

    /// Drops those whose life is over.
    pub fn expire(&mut self, now: Nanos) {
        for place in &mut self.places {
            if place
                .take_if(|outstanding| outstanding.expires <= now)
                .is_some()
            {
                self.outstanding = self.outstanding.saturating_sub(1);
            }
        }
        self.settle();
    }

    /// How many are outstanding.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.outstanding
    }

    /// Whether nothing is outstanding.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.outstanding == 0
    }

    fn settle(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first = self.first.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::{
        Algorithm, Ask, Change, Cost, KeyHash, Nanos, OldestSlice, Rule, SlidingWindow, Window,
    };
    use tollgate_wire::identity::BootId;

    use super::{AMEND_WINDOW, AmendQueue, Amendment, QueueFull};
    use crate::amend::{Acceptance, AmendWindow};

    const RETRY: Nanos = at(100);

    const fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    fn amendment(change: Change) -> Amendment {
        let rule = Rule::new(Algorithm::SlidingWindow(SlidingWindow {
            limit: 5,
            window: Window::new(at(1_000)).unwrap(),
            slices: 1,
            oldest: OldestSlice::Weighted,
        }));
        let key = KeyHash::from_halves(1, 2);
        let cost = Cost::ONE;
        Amendment {
            ask: Ask { key, rule, cost },
            change,
        }
    }

    fn give_back(slice: u64) -> Amendment {
        amendment(Change::GiveBack { slice })
    }

    fn due(queue: &mut AmendQueue, now: u64) -> Vec<u64> {
        queue
            .due(at(now), RETRY)
            .map(|(sequence, _)| sequence)
            .collect()
    }

    #[test]
    fn an_amendment_is_repeated_until_acknowledged() {
        let mut queue = AmendQueue::new(BootId(1));
        assert_eq!(queue.push(at(0), give_back(7)), Ok(0));
        assert_eq!(queue.push(at(0), give_back(8)), Ok(1));
        let sent: Vec<_> = queue.due(at(0), RETRY).collect();
        assert_eq!(sent, [(0, give_back(7)), (1, give_back(8))]);
        assert_eq!(due(&mut queue, 99), []);
        queue.acknowledge(0);
        queue.acknowledge(0);
        queue.acknowledge(55);
        assert_eq!(queue.len(), 1);
        assert_eq!(due(&mut queue, 100), [1]);
        assert_eq!(
            queue.push(at(100), give_back(9)),
            Ok(2),
            "no number is used twice"
        );
        assert_eq!(due(&mut queue, 150), [2]);
        queue.acknowledge(2);
        queue.acknowledge(1);
        assert!(queue.is_empty());
        assert_eq!(due(&mut queue, 900), []);
        assert_eq!(queue.push(at(900), give_back(9)), Ok(3));
    }

    #[test]
    fn it_ends_with_its_window() {
        let mut queue = AmendQueue::new(BootId(1));
        queue.push(at(0), give_back(1)).unwrap();
        queue.push(at(500), give_back(2)).unwrap();
        queue.expire(at(999));
        assert_eq!(queue.len(), 2);
        queue.expire(at(1_000));
        assert_eq!(due(&mut queue, 1_000), [1]);
        queue.expire(at(1_500));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_new_boot_of_the_owner_starts_anew() {
        let mut queue = AmendQueue::new(BootId(1));
        queue.push(at(0), give_back(1)).unwrap();
        queue.handle_owner(BootId(1));
        assert_eq!(queue.len(), 1);
        queue.handle_owner(BootId(2));
        assert!(queue.is_empty());
        assert_eq!(queue.push(at(0), give_back(2)), Ok(0));
    }

    #[test]
    fn all_that_is_outstanding_fits_the_owners_window() {
        let mut queue = AmendQueue::new(BootId(1));
        let mut owner = AmendWindow::new();
        for _ in 0..AMEND_WINDOW {
            queue.push(at(0), give_back(1)).unwrap();
        }
        assert_eq!(queue.push(at(0), give_back(1)), Err(QueueFull));
        queue.acknowledge(5);
        assert_eq!(
            queue.push(at(0), give_back(1)),
            Err(QueueFull),
            "0 holds the window"
        );
        queue.acknowledge(0);
        assert_eq!(queue.push(at(0), give_back(1)), Ok(1_024));
        let mut sent = due(&mut queue, 0);
        sent.reverse();
        for sequence in sent {
            assert_eq!(owner.accept(sequence), Acceptance::Fresh);
        }
    }
}
