//! What an owner answers.

use serde::{Deserialize, Serialize};
use tollgate_limit::Verdict;

use crate::{
    codec::{self, CodecError},
    verdict::RawVerdict,
};

/// The head of an answer to a check; the verdicts follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// How many follow: as many as were asked for, in that order.
    pub count: u8,
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
    Verdicts { count: u8 },
    NotOwner { placement: u64 },
    TooLate,
    Done,
    Counter(Option<RawVerdict>),
    Pong { placement: u64, policies: u64 },
    Fault(&'a str),
}

/// Appends a reply to a body. Verdicts need [`put_verdicts`].
///
/// # Errors
/// [`CodecError::TooLarge`] if it does not fit into a frame.
#[inline]
pub fn put_reply(body: &mut Vec<u8>, reply: &Reply) -> Result<(), CodecError> {
    let raw = match reply {
        Reply::Verdicts(head) => RawReply::Verdicts { count: head.count },
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

/// Appends an answer to a check to a body.
///
/// # Errors
/// [`CodecError::TooLarge`] with more than 255 verdicts.
#[inline]
pub fn put_verdicts(body: &mut Vec<u8>, verdicts: &[Verdict]) -> Result<(), CodecError> {
    let count = u8::try_from(verdicts.len()).map_err(|_error| CodecError::TooLarge)?;
    codec::put(body, &RawReply::Verdicts { count })?;
    verdicts
        .iter()
        .try_for_each(|verdict| codec::put(body, &RawVerdict::from(verdict)))
}

/// Takes a reply off a body, which must end there unless it has verdicts.
///
/// # Errors
/// [`CodecError`]: the peer's fault.
#[inline]
pub fn read_reply(body: &mut &[u8]) -> Result<Reply, CodecError> {
    let reply = match codec::take(body)? {
        RawReply::Verdicts { count } => return Ok(Reply::Verdicts(Verdicts { count })),
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
