//! InFlight skeleton.
use thiserror::Error;
use tollgate_limit::Nanos;

/// The most checks in flight to one peer, and the widest span of their numbers.
pub const MAX_IN_FLIGHT: usize = 65_536;

/// Too many checks are in flight to the peer. Nothing was stored; fall back.
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
    /// The caller's.
    pub payload: T,
}

/// The in-flight checks of one peer.
#[derive(Debug)]
pub struct InFlight<T> {
    _payload: Option<T>,
}

impl<T> InFlight<T> {
    /// None in flight.
    #[must_use]
    pub fn new() -> Self {
        todo!()
    }
    /// A check is sent.
    ///
    /// # Errors
    /// [`Full`]: too many are in flight, or the number is too far from theirs, or taken.
    pub fn insert(
        &mut self,
        _number: u64,
        _sent_at: Nanos,
        _deadline: Nanos,
        _payload: T,
    ) -> Result<(), Full> {
        todo!()
    }
    /// A check is answered.
    pub fn take(&mut self, _number: u64) -> Option<Pending<T>> {
        todo!()
    }
    /// Takes all checks whose deadline has come.
    pub fn expire(&mut self, _now: Nanos, _expired: impl FnMut(u64, Pending<T>)) {
        todo!()
    }
    /// Takes all checks: the connection is gone.
    pub fn drain(&mut self, _lost: impl FnMut(u64, Pending<T>)) {
        todo!()
    }
    /// When the first check times out.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        todo!()
    }
    /// How many are in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        todo!()
    }
    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        todo!()
    }
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self::new()
    }
}
