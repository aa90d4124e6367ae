//! A verdict on the wire.

use serde::{Deserialize, Serialize};
use tollgate_limit::{Nanos, Outcome, Reason, Verdict};

/// The bytes of a [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RawVerdict {
    outcome: RawOutcome,
    used: u64,
    remaining: u64,
    retry_after_nanos: Option<u64>,
    more_after_nanos: u64,
    reset_after_nanos: u64,
    delay_nanos: u64,
    charged_slice: u64,
}

/// The bytes of an [`Outcome`]; grows at the end only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RawOutcome {
    Allow,
    LimitExceeded,
    CostExceedsLimit,
    LimitIsZero,
    Undecided,
    QueueFull,
    SetAside,
    Banned,
}

impl From<Outcome> for RawOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Allow => Self::Allow,
            Outcome::Refuse(Reason::LimitExceeded) => Self::LimitExceeded,
            Outcome::Refuse(Reason::CostExceedsLimit) => Self::CostExceedsLimit,
            Outcome::Refuse(Reason::LimitIsZero) => Self::LimitIsZero,
            Outcome::Refuse(Reason::Undecided) => Self::Undecided,
            Outcome::Refuse(Reason::Banned) => Self::Banned,
            Outcome::Refuse(Reason::SetAside) => Self::SetAside,
            Outcome::Refuse(Reason::QueueFull) => Self::QueueFull,
        }
    }
}

impl From<RawOutcome> for Outcome {
    fn from(raw: RawOutcome) -> Self {
        match raw {
            RawOutcome::Allow => Self::Allow,
            RawOutcome::LimitExceeded => Self::Refuse(Reason::LimitExceeded),
            RawOutcome::CostExceedsLimit => Self::Refuse(Reason::CostExceedsLimit),
            RawOutcome::LimitIsZero => Self::Refuse(Reason::LimitIsZero),
            RawOutcome::Undecided => Self::Refuse(Reason::Undecided),
            RawOutcome::Banned => Self::Refuse(Reason::Banned),
            RawOutcome::SetAside => Self::Refuse(Reason::SetAside),
            RawOutcome::QueueFull => Self::Refuse(Reason::QueueFull),
        }
    }
}

impl From<&Verdict> for RawVerdict {
    fn from(verdict: &Verdict) -> Self {
        Self {
            outcome: verdict.outcome.into(),
            used: verdict.used,
            remaining: verdict.remaining,
            retry_after_nanos: verdict.retry_after.map(Nanos::as_nanos),
            more_after_nanos: verdict.more_after.as_nanos(),
            reset_after_nanos: verdict.reset_after.as_nanos(),
            delay_nanos: verdict.delay.as_nanos(),
            charged_slice: verdict.charged_slice,
        }
    }
}

impl From<RawVerdict> for Verdict {
    fn from(raw: RawVerdict) -> Self {
        Self {
            outcome: raw.outcome.into(),
            used: raw.used,
            remaining: raw.remaining,
            retry_after: raw.retry_after_nanos.map(Nanos::new),
            more_after: Nanos::new(raw.more_after_nanos),
            reset_after: Nanos::new(raw.reset_after_nanos),
            delay: Nanos::new(raw.delay_nanos),
            charged_slice: raw.charged_slice,
        }
    }
}
