//! Queue skeleton.
use thiserror::Error;
use tollgate_limit::{Nanos, Window};
use tollgate_wire::identity::BootId;

use crate::settle::Charge;

/// Too many give-backs of the owner are outstanding. Nothing was stored: the charge stands.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("too many give-backs are outstanding")]
pub struct QueueFull;

/// The entry node's outstanding give-backs towards one owner.
#[derive(Debug)]
pub struct GiveBackQueue {}

impl GiveBackQueue {
    /// Nothing outstanding towards this boot of the owner.
    #[must_use]
    pub fn new(_owner: BootId) -> Self {
        todo!()
    }
    /// The owner has started anew: what was for its old boot is dropped, numbers start at 0.
    pub fn handle_owner(&mut self, _owner: BootId) {
        todo!()
    }
    /// A charge must go back; it is due at once. Gives its sequence number.
    ///
    /// # Errors
    /// [`QueueFull`].
    pub fn push(
        &mut self,
        _now: Nanos,
        _charge: Charge,
        _window: Window,
    ) -> Result<u64, QueueFull> {
        todo!()
    }
    /// The owner has it.
    pub fn acknowledge(&mut self, _sequence: u64) {
        todo!()
    }
    /// Those to send now, never sent or sent `retry_interval` ago at least; each counts as sent.
    pub fn due(
        &mut self,
        _now: Nanos,
        _retry_interval: Nanos,
    ) -> impl Iterator<Item = (u64, Charge)> {
        std::iter::empty()
    }
    /// Drops those whose window has passed.
    pub fn expire(&mut self, _now: Nanos) {
        todo!()
    }
    /// Whether nothing is outstanding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// How many are outstanding.
    #[must_use]
    pub fn len(&self) -> usize {
        todo!()
    }
}
