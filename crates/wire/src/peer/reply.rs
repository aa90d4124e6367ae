//! What an owner answers.

use serde::{Deserialize, Serialize};
use tollgate_limit::{DecidedBy, NodeId, Verdict};

use crate::{
    codec::{self, CodecError},
    identity::BootId,
    verdict::RawVerdict,
};

/// The head of an answer to a check; the verdicts follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// How many follow: as many as were asked for, in that order.
    pub count: u8,
    /// Who decided; `None` is the node that answers, as the owner, on all counts. Costs nothing then.
    pub said: Option<Said>,
}

/// Who decided a check, where that is not simply the node that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The node.
    pub node: String,
    /// This start of it.
    pub boot: BootId,
    /// As what: [`DecidedBy::Owner`] or [`DecidedBy::Standby`].
    pub by: DecidedBy,
    /// Whether counts may be missing.
    pub degraded: bool,
}

/// What an owner answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To a check; [`read_verdict`] takes them off the rest of the body.
    Verdicts(Verdicts),
    /// To a check: a key of it is not this node's. Nothing was counted.
    NotOwner {
        /// The placement that this node goes by.
        placement: u64,
    },
    /// To a check: this node was paused while it waited. Nothing was counted.
    TooLate,
    /// To an amendment: it is done, now or before.
    Done,
    /// To a read: the counter, if there is one.
    Counter(Option<Verdict>),
    /// To a ping.
    Pong {
        /// The placement that this node goes by.
        placement: u64,
        /// Fingerprint of its policies.
        policies: u64,
    },
    /// The request could not be understood; nothing was done.
    Fault(String),
}

/// The bytes of a [`Reply`]; grows at the end only.
#[derive(Serialize, Deserialize)]
enum RawReply<'a> {
    Verdicts {
        count: u8,
    },
    NotOwner {
        placement: u64,
    },
    TooLate,
    Done,
    Counter(Option<RawVerdict>),
    Pong {
        placement: u64,
        policies: u64,
    },
    Fault(&'a str),
    VerdictsSaid {
        count: u8,
        #[serde(borrow)]
        said: RawSaid<'a>,
    },
}

/// The bytes of a [`Said`].
#[derive(Clone, Copy, Serialize, Deserialize)]
struct RawSaid<'a> {
    #[serde(deserialize_with = "codec::name")]
    node: &'a str,
    boot: BootId,
    by: RawBy,
    degraded: bool,
}

/// The bytes of what a node may have decided as; grows at the end only.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum RawBy {
    Owner,
    Standby,
}

impl From<RawSaid<'_>> for Said {
    fn from(raw: RawSaid<'_>) -> Self {
        Self {
            node: raw.node.to_owned(),
            boot: raw.boot,
            by: match raw.by {
                RawBy::Owner => DecidedBy::Owner,
                RawBy::Standby => DecidedBy::Standby,
            },
            degraded: raw.degraded,
        }
    }
}

/// Appends a reply to a body. Verdicts need [`put_verdicts`].
///
/// # Errors
/// [`CodecError::TooLarge`] if it does not fit into a frame.
#[inline]
pub fn put_reply(body: &mut Vec<u8>, reply: &Reply) -> Result<(), CodecError> {
    let raw = match reply {
        Reply::Verdicts(head) => raw_verdicts(head.count, head.said.as_ref())?,
        Reply::NotOwner { placement } => RawReply::NotOwner {
            placement: *placement,
        },
        Reply::TooLate => RawReply::TooLate,
        Reply::Done => RawReply::Done,
        Reply::Counter(verdict) => RawReply::Counter(verdict.as_ref().map(RawVerdict::from)),
        Reply::Pong {
            placement,
            policies,
        } => RawReply::Pong {
            placement: *placement,
            policies: *policies,
        },
        Reply::Fault(problem) => RawReply::Fault(problem),
    };
    codec::put(body, &raw)
}

/// Appends an answer to a check to a body; `said` as in [`Verdicts`].
///
/// # Errors
/// [`CodecError::TooLarge`] with more than 255 verdicts, or if `said` cannot be said: it names neither
/// owner nor standby, or no node.
#[inline]
pub fn put_verdicts(
    body: &mut Vec<u8>,
    said: Option<&Said>,
    verdicts: &[Verdict],
) -> Result<(), CodecError> {
    let count = u8::try_from(verdicts.len()).map_err(|_error| CodecError::TooLarge)?;
    codec::put(body, &raw_verdicts(count, said)?)?;
    verdicts
        .iter()
        .try_for_each(|verdict| codec::put(body, &RawVerdict::from(verdict)))
}

#[inline]
fn raw_verdicts(count: u8, said: Option<&Said>) -> Result<RawReply<'_>, CodecError> {
    let Some(said) = said else {
        return Ok(RawReply::Verdicts { count });
    };
    let by = match said.by {
        DecidedBy::Owner => RawBy::Owner,
        DecidedBy::Standby => RawBy::Standby,
        DecidedBy::Cached | DecidedBy::Fallback | DecidedBy::Switch => {
            return Err(CodecError::TooLarge);
        }
    };
    if said.node.len() > NodeId::MAX_LENGTH {
        return Err(CodecError::TooLarge);
    }
    Ok(RawReply::VerdictsSaid {
        count,
        said: RawSaid {
            node: &said.node,
            boot: said.boot,
            by,
            degraded: said.degraded,
        },
    })
}

/// Takes a reply off a body, which must end there unless it has verdicts.
///
/// # Errors
/// [`CodecError`]: the peer's fault.
#[inline]
pub fn read_reply(body: &mut &[u8]) -> Result<Reply, CodecError> {
    let reply = match codec::take(body)? {
        RawReply::Verdicts { count } => {
            return Ok(Reply::Verdicts(Verdicts { count, said: None }));
        }
        RawReply::VerdictsSaid { count, said } => {
            let said = Some(said.into());
            return Ok(Reply::Verdicts(Verdicts { count, said }));
        }
        RawReply::NotOwner { placement } => Reply::NotOwner { placement },
        RawReply::TooLate => Reply::TooLate,
        RawReply::Done => Reply::Done,
        RawReply::Counter(verdict) => Reply::Counter(verdict.map(Verdict::from)),
        RawReply::Pong {
            placement,
            policies,
        } => Reply::Pong {
            placement,
            policies,
        },
        RawReply::Fault(problem) => Reply::Fault(problem.to_owned()),
    };
    codec::end(body)?;
    Ok(reply)
}

/// Takes the next verdict off a body, which must be empty after the last.
///
/// # Errors
/// [`CodecError`]: the peer's fault.
#[inline]
pub fn read_verdict(body: &mut &[u8]) -> Result<Verdict, CodecError> {
    codec::take::<RawVerdict>(body).map(Verdict::from)
}
