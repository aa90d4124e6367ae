//! *Decided once*: an owner's memory of what it decided lately for one caller, by request number.
//!
//! INV-DECIDED-ONCE: a request number of a caller (one link of an entry boot) is decided at most once.
//! It holds while its verdicts are kept, that is for `keep` (two check deadlines): a repetition that
//! comes later was dropped by its sender, whose deadline had passed. Where [`MAX_RING`] numbers within
//! `keep` do not do, the oldest is lost, and counted. Knows nothing of frames and counters.

mod ring;

pub use self::ring::{DecidedRing, MAX_RING, MIN_RING};

#[cfg(test)]
mod tests;
