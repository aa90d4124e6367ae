//! What a history breaks.

use thiserror::Error;
use tollgate_limit::{Nanos, NodeId};

/// A promise that was broken, with the numbers that show it. Instants in nanoseconds of the run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Violation {
    /// P1, P2: more was admitted than the formula allows.
    #[error(
        "P2: {key}: {admitted} admitted after {from:?} up to {to:?}, at most {most} \
         + crash {crash} + dual {dual} + open {open}"
    )]
    TooMany {
        /// The key.
        key: String,
        /// The window starts after this instant.
        from: Nanos,
        /// And ends with this one.
        to: Nanos,
        /// What was admitted in it, less what was given back.
        admitted: u64,
        /// What the algorithm allows.
        most: u64,
        /// What crashed owners may have lost.
        crash: u64,
        /// What owners may have admitted that did not know of each other.
        dual: u64,
        /// What was answered degraded.
        open: u64,
    },
    /// P3: a check was not answered in time.
    #[error("P3: {key}: check {check} asked at {asked:?}, answered at {answered:?}")]
    Late {
        /// The check.
        check: u64,
        /// The key.
        key: String,
        /// When it was asked.
        asked: Nanos,
        /// When it was answered, if ever.
        answered: Option<Nanos>,
    },
    /// P9: something was refused that fits.
    #[error(
        "P9: {key}: check {check} for {cost} refused at {at:?}, with at most {used} used of {capacity}"
    )]
    RefusedThoughItFits {
        /// The check.
        check: u64,
        /// The key.
        key: String,
        /// What was asked for.
        cost: u64,
        /// When it was asked.
        at: Nanos,
        /// The most that may have been used.
        used: u64,
        /// What may be used.
        capacity: u64,
    },
    /// P6: counts were lost.
    #[error("P6: {key}: {counted} counted at the end, at least {least} were admitted and kept")]
    Lost {
        /// The key.
        key: String,
        /// What is counted.
        counted: u64,
        /// What must be.
        least: u64,
    },
    /// P6, P9: something was counted that was not admitted, or twice.
    #[error("P6: {key}: {counted} counted at the end, at most {most} were admitted")]
    Invented {
        /// The key.
        key: String,
        /// What is counted.
        counted: u64,
        /// What may be.
        most: u64,
    },
    /// P6: two nodes decided for a key at once, though nothing had gone wrong.
    #[error("P6: {key}: {one} and {other} both decide at {at:?} without a fault")]
    TwoOwners {
        /// The key.
        key: String,
        /// One owner.
        one: NodeId,
        /// The other.
        other: NodeId,
        /// Since when.
        at: Nanos,
    },
    /// A standby decided although it could have asked the owner.
    #[error("{key}: standby {standby} decided check {check} at {at:?}, owner {owner} in its reach")]
    NeedlessStandby {
        /// The key.
        key: String,
        /// The check.
        check: u64,
        /// Who decided.
        standby: NodeId,
        /// Who should have.
        owner: NodeId,
        /// When.
        at: Nanos,
    },
    /// A node decided as owner that was none.
    #[error("{key}: {node} decided check {check} as owner at {at:?} and was none")]
    NoOwner {
        /// The key.
        key: String,
        /// The check.
        check: u64,
        /// Who decided.
        node: NodeId,
        /// When.
        at: Nanos,
    },
}
