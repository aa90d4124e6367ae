//! A limit as people write it, before it is checked.
//!
//! Plain: TOML, JSON and bincode each fill it at their own edge. Knows nothing of formats; what is
//! wrong with a spec is said by [`SpecError`], which names the field.

use thiserror::Error;

use crate::units::Nanos;

/// Slices of a window unless told otherwise.
pub const DEFAULT_SLICES: u64 = 10;

/// A limit, unchecked. [`Limit::new`](crate::Limit::new) checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSpec {
    /// `[A-Za-z0-9._-]{1,64}`, unique in its policy.
    pub name: String,
    /// Attribute and the patterns of which one must match; all attributes must.
    pub matches: Vec<(String, Vec<String>)>,
    /// Attributes that the limit counts by, in order.
    pub key: Vec<String>,
    /// The algorithm and its numbers.
    pub algorithm: AlgorithmSpec,
    /// What decides when neither owner nor standby answers.
    pub fallback: Fallback,
    /// Whether a check without a key attribute is an error instead of passing by.
    pub required: bool,
}

/// An algorithm and its numbers, unchecked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlgorithmSpec {
    /// Counters of slices of the window.
    SlidingWindow {
        /// Units for each window.
        limit: u64,
        /// The window.
        window: Nanos,
        /// 1 to 60, [`DEFAULT_SLICES`] unless told otherwise.
        slices: u64,
        /// Whether the oldest slice counts in full.
        hard: bool,
    },
}

/// What decides for a limit when neither owner nor standby answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// Decide on this node alone, with this share of the limit.
    #[default]
    LocalFull,
    /// Decide on this node alone, with the limit divided by the active members.
    LocalFair,
    /// Admit.
    Allow,
    /// Refuse, reason `undecided`.
    Deny,
}

/// What is wrong with a spec, and what is right. The writer's fault; nothing was changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {wrong}; {right}")]
pub struct SpecError {
    /// The field as people write it.
    pub field: String,
    /// What is wrong with it.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}
