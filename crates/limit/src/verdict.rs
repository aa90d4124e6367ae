//! What one limit says to one check.
//!
//! Plain values, made by the algorithms and carried by everything else. Knows nothing of who
//! decided. Invariant: `remaining <= capacity` of the rule that decided (rule 8).

use crate::units::Nanos;

/// Whether a check consumes or only asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Decide and charge.
    Consume,
    /// Decide as if it were charged, and change nothing.
    Peek,
}

/// Why a limit refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The limit is used up for now.
    LimitExceeded,
    /// The cost is above the capacity: waiting does not help.
    CostExceedsLimit,
    /// The limit is 0, a block: waiting does not help.
    LimitIsZero,
    /// Neither the owner nor a standby answered, and the limit's fallback is to deny.
    Undecided,
    /// The queue of a leaky bucket has no room.
    QueueFull,
    /// What is left is kept for others.
    SetAside,
    /// The key is banned for its failures.
    Banned,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::LimitExceeded,
        Self::CostExceedsLimit,
        Self::LimitIsZero,
        Self::Undecided,
        Self::QueueFull,
        Self::SetAside,
        Self::Banned,
    ];

    /// Its name in answers and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LimitExceeded => "limit_exceeded",
            Self::CostExceedsLimit => "cost_exceeds_limit",
            Self::LimitIsZero => "limit_is_zero",
            Self::Undecided => "undecided",
            Self::QueueFull => "queue_full",
            Self::SetAside => "set_aside",
            Self::Banned => "banned",
        }
    }
}

/// Admitted or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The limit admits the check.
    Allow,
    /// The limit refuses it; nothing was consumed (P4).
    Refuse(Reason),
}

/// What one limit says to one check, the numbers as they stand after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Admitted or refused.
    pub outcome: Outcome,
    /// Units used in the window that ends now, rounded up; may exceed the capacity after the
    /// limit was lowered.
    pub used: u64,
    /// Units that still fit, `0 <= remaining <= capacity`.
    pub remaining: u64,
    /// Time until the same cost is admitted if nothing else comes; zero if it fits now, `None`
    /// if waiting does not help.
    pub retry_after: Option<Nanos>,
    /// Time until at least one more unit is free than now; zero if the counter is empty.
    pub more_after: Nanos,
    /// Time until the counter is empty.
    pub reset_after: Nanos,
    /// How long the caller should hold the request back; zero for all but `leaky-bucket`.
    pub delay: Nanos,
    /// Where the charge went, as [`Store::amend`](crate::Store::amend) takes it: a slice of a sliding
    /// window, the start of a fixed one, the instant of an entry, the mark of a bucket after its charge,
    /// the number of a permit. Meaningless where nothing was charged.
    pub charged_slice: u64,
}

impl Verdict {
    /// Whether the check is admitted.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allow)
    }
}
