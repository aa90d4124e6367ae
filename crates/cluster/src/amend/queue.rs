//! The entry node's side: repeats amendments until they are acknowledged.
//!
//! What its owner cannot take any more comes out again, so that it can be sent to the next one. A give-back
//! names a slice of the clock of the boot that charged, which means nothing to another: it comes out as
//! a refund of as much, since the charge has come to the next owner with the other counts. But a permit's
//! number is the same everywhere.

use std::collections::VecDeque;

use thiserror::Error;
use tollgate_limit::{Algorithm, Ask, Change, Nanos};
use tollgate_wire::identity::BootId;

use super::AMEND_WINDOW;

/// The oldest outstanding amendment is [`AMEND_WINDOW`] numbers back: the owner could not tell it
/// from a repetition any more. Nothing was stored, and what was to be held comes back.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("more than {AMEND_WINDOW} amendments are outstanding")]
pub struct QueueFull<H = ()>(pub H);

/// A change of a counter that must reach its owner, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The counter, its rule and the units.
    pub ask: Ask,
    /// What is to be done.
    pub change: Change,
}

impl Amendment {
    /// Whether it means the same to another owner than the one that it was for: a slice is one of its
    /// clock, but a permit's number is nobody else's, and a fixed window starts at one instant of Unix time.
    #[must_use]
    pub const fn outlives_owner(&self) -> bool {
        match self.change {
            Change::GiveBack { .. } => matches!(
                self.ask.rule.algorithm,
                Algorithm::Concurrency(_) | Algorithm::FixedWindow(_)
            ),
            Change::Refund | Change::Charge | Change::Failure | Change::Reset => true,
        }
    }

    /// What says as much to another owner than the one that it was for.
    #[must_use]
    pub const fn for_another_owner(self) -> Self {
        if self.outlives_owner() {
            self
        } else {
            Self {
                ask: self.ask,
                change: Change::Refund,
            }
        }
    }
}

/// An amendment and what bounds it; out of a queue, one that its owner did not take, for the next owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// What is to be done.
    pub amendment: Amendment,
    /// When it is of no use any more.
    pub expires: Nanos,
    /// The boot of the only owner that it means just this to; `None` if it is any that owns the key.
    pub boot: Option<BootId>,
}

impl Returned {
    /// The same for whoever owns the key now, which is this boot.
    #[must_use]
    pub fn for_owner(self, owner: BootId) -> Self {
        if self.boot.is_none_or(|boot| boot == owner) {
            self
        } else {
            self.for_any()
        }
    }

    /// The same for any that owns the key, but for the boot that it was for, which does not own it any more.
    const fn for_any(self) -> Self {
        Self {
            amendment: self.amendment.for_another_owner(),
            expires: self.expires,
            boot: None,
        }
    }
}

/// The outstanding amendments towards one owner, each with something that is held as long.
///
/// Invariants: sequence numbers are dense from 0 and never used twice, whatever the owner's boot, so that
/// none is taken for a repetition of another; all outstanding ones lie in one [`AMEND_WINDOW`].
#[derive(Debug)]
pub struct AmendQueue<H = ()> {
    owner: BootId,
    /// The number of the first place, which is taken unless there is none.
    first: u64,
    places: VecDeque<Option<Outstanding<H>>>,
    outstanding: usize,
}

#[derive(Debug)]
struct Outstanding<H> {
    amendment: Amendment,
    sent_at: Option<Nanos>,
    expires: Nanos,
    held: H,
}

impl<H> Outstanding<H> {
    fn returned(self) -> (Returned, H) {
        let returned = Returned {
            amendment: self.amendment,
            expires: self.expires,
            boot: None,
        };
        (returned.for_any(), self.held)
    }
}

impl<H> AmendQueue<H> {
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

    /// The owner speaks as this boot. If it is a new one, what was for the old one comes out, for whoever
    /// has its counts.
    pub fn handle_owner(&mut self, owner: BootId) -> Vec<(Returned, H)> {
        if owner == self.owner {
            return Vec::new();
        }
        self.owner = owner;
        self.drain()
    }

    /// The owner is gone: all come out, for the next.
    pub fn drain(&mut self) -> Vec<(Returned, H)> {
        let taken = u64::try_from(self.places.len()).unwrap_or(u64::MAX);
        self.first = self.first.saturating_add(taken);
        self.outstanding = 0;
        let places = self.places.drain(..).flatten();
        places.map(Outstanding::returned).collect()
    }

    /// The owner does not own the slot (any more): it is not sent again, and comes out for the next.
    pub fn take_back(&mut self, sequence: u64) -> Option<(Returned, H)> {
        self.take(sequence).map(Outstanding::returned)
    }

    /// The boot of the owner that the amendments are for.
    #[must_use]
    pub const fn owner(&self) -> BootId {
        self.owner
    }

    /// A counter must be changed; that is due at once, and until an instant: as a rule for
    /// [`Amendment::life`] from now, when what it is about has left the counter anyway. Gives its sequence
    /// number. `held` is dropped when the owner has it or it has expired.
    ///
    /// # Errors
    /// [`QueueFull`].
    pub fn push_until(
        &mut self,
        expires: Nanos,
        amendment: Amendment,
        held: H,
    ) -> Result<u64, QueueFull<H>> {
        if self.places.len() >= AMEND_WINDOW {
            return Err(QueueFull(held));
        }
        let Ok(behind) = u64::try_from(self.places.len()) else {
            return Err(QueueFull(held));
        };
        let sequence = self.first.saturating_add(behind);
        self.places.push_back(Some(Outstanding {
            amendment,
            sent_at: None,
            expires,
            held,
        }));
        self.outstanding = self.outstanding.saturating_add(1);
        Ok(sequence)
    }

    /// The owner has it.
    pub fn acknowledge(&mut self, sequence: u64) {
        self.take(sequence);
    }

    /// Whether the owner has not said yet that it has it.
    #[must_use]
    pub fn is_outstanding(&self, sequence: u64) -> bool {
        let place = self.index_of(sequence).and_then(|at| self.places.get(at));
        place.is_some_and(Option::is_some)
    }

    /// Those to send now: never sent, or sent `retry_interval` ago at least. Each counts as sent when
    /// the iterator has passed it.
    pub fn due(
        &mut self,
        now: Nanos,
        retry_interval: Nanos,
    ) -> impl Iterator<Item = (u64, Amendment)> + use<'_, H> {
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

    /// Drops those whose window has passed.
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

    fn index_of(&self, sequence: u64) -> Option<usize> {
        let index = sequence.checked_sub(self.first)?;
        usize::try_from(index).ok()
    }

    fn take(&mut self, sequence: u64) -> Option<Outstanding<H>> {
        let at = self.index_of(sequence)?;
        let taken = self.places.get_mut(at)?.take()?;
        self.outstanding = self.outstanding.saturating_sub(1);
        self.settle();
        Some(taken)
    }

    fn settle(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first = self.first.saturating_add(1);
        }
    }
}

impl AmendQueue {
    /// The same for [`Amendment::life`] from now, holding nothing.
    ///
    /// # Errors
    /// [`QueueFull`].
    pub fn push(&mut self, now: Nanos, amendment: Amendment) -> Result<u64, QueueFull> {
        let expires = now.saturating_add(amendment.life());
        self.push_until(expires, amendment, ())
    }
}

#[cfg(test)]
mod tests;
