//! One check as it is asked, whatever protocol it came by, and why it may be faulty.
//!
//! Knows nothing of HTTP or frames: the edges fill a [`Question`] and map a [`CheckError`].

use std::sync::Arc;

use thiserror::Error;

use crate::{
    attributes::{AttributeError, Attributes},
    policy::Limit,
    spec::SpecError,
    units::Cost,
    verdict::Mode,
};

/// The policy that a check names unless it names one.
pub const DEFAULT_POLICY: &str = "default";

/// One check.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// What is asked about.
    pub subject: Subject<'a>,
    /// What it costs; with [`Mode::Peek`] what it would cost.
    pub cost: Cost,
    /// Whether it consumes.
    pub mode: Mode,
    /// Which limits it meets.
    pub call: Call,
}

/// Which limits of a policy a question meets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Call {
    /// All but those on concurrency, whose permits nobody would release.
    #[default]
    Check,
    /// All of them.
    Acquire,
}

/// What a check asks about.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// The limits of a configured policy that match the attributes.
    Policy {
        /// The policy's name.
        name: &'a str,
        /// What is known of the request.
        attributes: Attributes<'a>,
    },
    /// One limit that came with the request; its key attributes are in `key`.
    Inline {
        /// The limit, made by [`Limit::inline`].
        limit: Arc<Limit>,
        /// The key's attributes; each must have a value.
        key: Attributes<'a>,
    },
}

/// A check that cannot be decided because it is wrong. The caller's fault; nothing was counted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CheckError {
    /// No such policy is configured.
    #[error("policy `{name}` is not configured")]
    UnknownPolicy {
        /// The name asked for.
        name: String,
    },
    /// Inline limits are switched off on this node.
    #[error("inline limits are switched off on this node")]
    InlineOff,
    /// An attribute breaks a bound.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
    /// A limit requires an attribute that the check does not have.
    #[error("limit `{limit}` requires attribute `{attribute}`")]
    Required {
        /// The limit.
        limit: String,
        /// The attribute.
        attribute: String,
    },
    /// An attribute that a limit takes its cost from is no cost.
    #[error(
        "limit `{limit}` takes its cost from attribute `{attribute}`, which is not a whole number from 0 to 2^53"
    )]
    NoCost {
        /// The limit.
        limit: String,
        /// The attribute.
        attribute: String,
    },
    /// All limits that the check meets are on concurrency.
    #[error("all limits that the check meets are on concurrency")]
    OnlyConcurrency,
    /// An inline limit's key attribute has no value.
    #[error("key attribute `{attribute}` of an inline limit must have a value")]
    EmptyKey {
        /// The attribute.
        attribute: String,
    },
    /// The inline limit itself is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
}
