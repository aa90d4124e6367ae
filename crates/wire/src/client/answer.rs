//! The answer to a check, as a node sends it and a client reads it.
//!
//! A node writes it straight from its decision: the head, then the limits one by one.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_limit as limit;
use tollgate_limit::{
    CheckId, DecidedBy, Decision, LimitDecision, MAX_LIMITS_PER_POLICY, Nanos, Rule, Verdict,
    Window,
};

use crate::{
    client::{Fault, FaultKind},
    codec::{self, CodecError},
    verdict::RawVerdict,
};

/// The fewest bytes of a limit in an answer.
const MIN_LIMIT_BYTES: usize = 16;

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Names the check.
    pub id: CheckId,
    /// Whether the check may pass.
    pub allowed: bool,
    /// What each limit said; empty if none applies.
    pub limits: Vec<LimitAnswer>,
}

impl Answer {
    /// Whether the check may pass.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// How long to wait before the same check: of the refusing limits the longest. `None` if it
    /// is allowed, or if waiting does not cure one of them.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if self.allowed {
            return None;
        }
        let enforced = self.limits.iter().filter(|limit| !limit.shadow);
        let refused = enforced.filter(|limit| !limit.verdict.is_allowed());
        let waits = refused.map(|limit| limit.verdict.retry_after);
        let longest = waits
            .reduce(|one, other| Some(one?.max(other?)))
            .flatten()?;
        Some(Duration::from_nanos(longest.as_nanos()))
    }

    /// How long to hold the request back before it is served: of the limits that hold the longest.
    /// Zero unless a leaky bucket is among them, and if the check is refused.
    #[must_use]
    pub fn delay(&self) -> Duration {
        if !self.allowed {
            return Duration::ZERO;
        }
        let enforced = self.limits.iter().filter(|limit| !limit.shadow);
        let delays = enforced.map(|limit| limit.verdict.delay);
        delays.max().map_or(Duration::ZERO, Duration::from)
    }

    /// Whether any limit was decided without all counts that the cluster has.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.limits.iter().any(|limit| limit.degraded)
    }
}

/// What one limit said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitAnswer {
    /// The limit's name.
    pub name: String,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// The most that it can ever admit at once, in units.
    pub capacity: u64,
    /// Its window.
    pub window: Window,
    /// What it said.
    pub verdict: Verdict,
    /// Who decided.
    pub decided_by: DecidedBy,
    /// The node that decided.
    pub node: String,
    /// Whether counts may be missing.
    pub degraded: bool,
    /// Whether a refusal would be told only, and never hold.
    pub shadow: bool,
}

/// An algorithm; grows at the end only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// Counters of slices of the window.
    SlidingWindow,
    /// One entry for each admitted check.
    SlidingLog,
    /// One counter that starts anew with each window.
    FixedWindow,
    /// A level that drains, and a burst on top.
    TokenBucket,
    /// A queue that drains evenly.
    LeakyBucket,
    /// Permits.
    Concurrency,
}

impl Algorithm {
    /// Its name in files and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SlidingWindow => "sliding-window",
            Self::SlidingLog => "sliding-log",
            Self::FixedWindow => "fixed-window",
            Self::TokenBucket => "token-bucket",
            Self::LeakyBucket => "leaky-bucket",
            Self::Concurrency => "concurrency",
        }
    }
}

impl From<&Rule> for Algorithm {
    fn from(rule: &Rule) -> Self {
        match &rule.algorithm {
            limit::Algorithm::SlidingWindow(_) => Self::SlidingWindow,
            limit::Algorithm::SlidingLog(_) => Self::SlidingLog,
            limit::Algorithm::FixedWindow(_) => Self::FixedWindow,
            limit::Algorithm::TokenBucket(_) => Self::TokenBucket,
            limit::Algorithm::LeakyBucket(_) => Self::LeakyBucket,
            limit::Algorithm::Concurrency(_) => Self::Concurrency,
        }
    }
}

/// The bytes of an answer or a fault; grows at the end only. The limits of an answer follow it.
#[derive(Serialize, Deserialize)]
pub(super) enum RawReply<'a> {
    Answer {
        boot: u64,
        number: u64,
        allowed: bool,
        limits: u8,
    },
    Fault {
        kind: u8,
        #[serde(borrow)]
        field: Option<&'a str>,
        message: &'a str,
    },
}

/// The bytes of a [`LimitAnswer`].
#[derive(Serialize, Deserialize)]
struct RawLimit<'a> {
    name: &'a str,
    algorithm: Algorithm,
    capacity: u64,
    window_nanos: u64,
    verdict: RawVerdict,
    decided_by: RawDecidedBy,
    node: &'a str,
    degraded: bool,
    shadow: bool,
}

/// The bytes of a [`DecidedBy`]; grows at the end only.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum RawDecidedBy {
    Owner,
    Standby,
    Cached,
    Fallback,
    Switch,
}

impl From<DecidedBy> for RawDecidedBy {
    fn from(decided_by: DecidedBy) -> Self {
        match decided_by {
            DecidedBy::Owner => Self::Owner,
            DecidedBy::Standby => Self::Standby,
            DecidedBy::Cached => Self::Cached,
            DecidedBy::Fallback => Self::Fallback,
            DecidedBy::Switch => Self::Switch,
        }
    }
}

impl From<RawDecidedBy> for DecidedBy {
    fn from(raw: RawDecidedBy) -> Self {
        match raw {
            RawDecidedBy::Owner => Self::Owner,
            RawDecidedBy::Standby => Self::Standby,
            RawDecidedBy::Cached => Self::Cached,
            RawDecidedBy::Fallback => Self::Fallback,
            RawDecidedBy::Switch => Self::Switch,
        }
    }
}

impl<'a> From<&'a LimitDecision> for RawLimit<'a> {
    fn from(decision: &'a LimitDecision) -> Self {
        let rule = &decision.rule;
        Self {
            name: decision.limit.name(),
            algorithm: rule.into(),
            capacity: rule.capacity(),
            window_nanos: rule.window().span().as_nanos(),
            verdict: (&decision.verdict).into(),
            decided_by: decision.decided_by.into(),
            node: decision.node.as_str(),
            degraded: decision.degraded,
            shadow: !rule.is_enforced(),
        }
    }
}

impl TryFrom<RawLimit<'_>> for LimitAnswer {
    type Error = CodecError;

    fn try_from(raw: RawLimit<'_>) -> Result<Self, CodecError> {
        let window = Window::new(Nanos::new(raw.window_nanos));
        Ok(Self {
            name: raw.name.to_owned(),
            algorithm: raw.algorithm,
            capacity: raw.capacity,
            window: window.ok_or(CodecError::Malformed)?,
            verdict: raw.verdict.into(),
            decided_by: raw.decided_by.into(),
            node: raw.node.to_owned(),
            degraded: raw.degraded,
            shadow: raw.shadow,
        })
    }
}

/// Appends the answer to a check to a body.
///
/// # Errors
/// [`CodecError::TooLarge`] with more limits than a policy can have.
#[inline]
pub fn put_decision(body: &mut Vec<u8>, decision: &Decision) -> Result<(), CodecError> {
    let head = RawReply::Answer {
        boot: decision.id.boot,
        number: decision.id.number,
        allowed: decision.is_allowed(),
        limits: count(decision.limits.len())?,
    };
    codec::put(body, &head)?;
    let mut limits = decision.limits.iter();
    limits.try_for_each(|limit| codec::put(body, &RawLimit::from(limit)))
}

fn count(limits: usize) -> Result<u8, CodecError> {
    let count = u8::try_from(limits).map_err(|_error| CodecError::TooLarge)?;
    if limits > MAX_LIMITS_PER_POLICY {
        return Err(CodecError::TooLarge);
    }
    Ok(count)
}

/// Reads what a node says to a check: an answer, or why there is none.
///
/// # Errors
/// [`CodecError`]: the node's fault.
pub fn read_answer(mut body: &[u8]) -> Result<Result<Answer, Fault>, CodecError> {
    let body = &mut body;
    let reply = match codec::take(body)? {
        RawReply::Answer {
            boot,
            number,
            allowed,
            limits,
        } => Ok(Answer {
            id: CheckId { boot, number },
            allowed,
            limits: read_limits(body, usize::from(limits))?,
        }),
        RawReply::Fault {
            kind,
            field,
            message,
        } => Err(Fault {
            kind: FaultKind::from_code(kind),
            field: field.map(str::to_owned),
            message: message.to_owned(),
        }),
    };
    codec::end(body)?;
    Ok(reply)
}

fn read_limits(body: &mut &[u8], count: usize) -> Result<Vec<LimitAnswer>, CodecError> {
    if count > MAX_LIMITS_PER_POLICY || count > body.len() / MIN_LIMIT_BYTES {
        return Err(CodecError::Malformed);
    }
    let mut limits = Vec::with_capacity(count);
    for _ in 0..count {
        limits.push(codec::take::<RawLimit<'_>>(body)?.try_into()?);
    }
    Ok(limits)
}
