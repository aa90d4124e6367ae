//! Series: what one writer has counted for one counter, as it goes from store to store.
//!
//! For each counter there is one series for each writer that has counted, and only that writer writes it and
//! raises its version with each write. Whoever holds series of a counter keeps the highest version of each,
//! so that any order and any repetition give the same state (DESIGN 4, Merging). What is counted is the sum.
//!
//! Instants in a series are on its writer's clock; `clock` says what that clock shows now. A receiver so
//! takes a series for as old as it was when it was sent: counts leave late by the way's time, never early.
//!
//! Plain values; knows nothing of stores or bytes.

use smallvec::SmallVec;

use crate::{key::KeyHash, rule::Algorithm, units::Nanos};

/// Who writes a series: one start of a node, until it has forgotten the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer(u64);

impl Writer {
    /// The writer of that number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Which counter of a key. The numbers of an algorithm are those that the writer saw last; kind, window and
/// slices tell one counter from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// What checks have charged.
    Charges(Algorithm),
    /// What was reported as failed.
    Failures(Algorithm),
    /// The ban of the key.
    Ban,
}

/// The words of a series. Most have twelve at most.
pub type SeriesWords = SmallVec<[u64; 12]>;

/// What one writer has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// All of it. A count may be negative, as two's complement: what was given back of another's charge.
    Counts {
        /// What the counter noted of the rule.
        seen: u64,
        /// The last write of a charge.
        latest: Nanos,
        /// As the counter's own words.
        words: SeriesWords,
    },
    /// Nothing of it counts any more: it was reset, or another series has taken it in.
    Void,
}

/// What one writer has counted for one counter, up to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The key.
    pub key: KeyHash,
    /// Which counter of it.
    pub counter: Counter,
    /// Who writes it.
    pub writer: Writer,
    /// Raised with each write; below 2^48.
    pub version: u64,
    /// The writer's clock at the instant of export. Wraps: a writer may have started after this node.
    pub clock: u64,
    /// What it says.
    pub body: Body,
}

/// What became of a series that was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Merged {
    /// It is new here, or newer than what was held.
    Taken,
    /// As much was held already.
    Known,
    /// This store writes it itself.
    Own,
    /// It could not be kept: too many series of one counter, or its words are none of its counter's.
    Refused,
}
