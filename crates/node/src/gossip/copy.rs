//! Copying a member's whole state over a stream.
//!
//! Asked: the asker's cluster fingerprint. Answered: the answerer's, then members in the gossip
//! encoding, the answerer first. Invariants: a copy takes at most [`COPY_TIMEOUT`] and
//! [`MAX_STATE`] bytes; the first member is the node of the certificate; nothing is taken from a node whose
//! cluster has other settings.

use std::time::Duration;

use bytes::Buf as _;
use foca::{Codec as _, Member, State};
use quinn::{
    Connection, ReadError, ReadExactError, ReadToEndError, RecvStream, SendStream, WriteError,
};
use thiserror::Error;
use tokio::time::timeout;
use tollgate_wire::{CodecError, identity::Identity};

use super::{codec::GossipCodec, identity::Gossiped};
use crate::transport::{DialError, NodeConnection, close::CloseCode, may_heal};

/// How long a copy may take.
pub(super) const COPY_TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of a state: a few thousand members.
pub(super) const MAX_STATE: usize = 1 << 20;
/// The bytes of a fingerprint.
const FINGERPRINT: usize = 8;

/// A member's state, and the connection that it came on.
#[derive(Debug)]
pub(super) struct Copied {
    /// Where it came.
    pub(super) from: NodeConnection,
    /// Who it came from.
    pub(super) answerer: Identity,
    /// All that it knows, itself first.
    pub(super) members: Vec<Member<Gossiped>>,
}

/// A state that was not copied. Nothing was changed.
#[derive(Clone, Debug, Error, PartialEq)]
pub(super) enum CopyError {
    /// The member was not reached.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The stream broke.
    #[error("the stream broke: {0}")]
    Stream(String),
    /// The connection was closed.
    #[error("the connection was closed: {0}")]
    Closed(quinn::ConnectionError),
    /// It took too long.
    #[error("the copy took too long")]
    TimedOut,
    /// It is no state.
    #[error(transparent)]
    Malformed(#[from] CodecError),
    /// The node at the other end is not the one that it says it is.
    #[error("the state is not the state of the node of the certificate")]
    OtherSender,
    /// The cluster there has another hash key or number of slots.
    #[error("the node has other cluster settings (name, slots or hash key)")]
    OtherCluster,
}

impl CopyError {
    /// Whether it may go away by itself.
    pub(super) fn may_heal(&self) -> bool {
        match self {
            Self::Dial(error) => error.may_heal(),
            Self::Closed(error) => may_heal(error),
            Self::Stream(_) | Self::TimedOut => true,
            Self::Malformed(_) | Self::OtherSender | Self::OtherCluster => false,
        }
    }
}

impl CopyError {
    /// What an operator compares between both nodes when it does not go away.
    pub(super) fn to_compare(&self) -> &'static str {
        match self {
            Self::Dial(DialError::SameName | DialError::Itself) => {
                "the node ids: no two processes may have one"
            }
            Self::OtherCluster => CLUSTER_SETTINGS,
            Self::Closed(error) if CloseCode::of(error).is_some() => CLUSTER_SETTINGS,
            Self::Dial(DialError::Handshake(_)) | Self::Closed(_) => {
                "the authority and the cluster name of both certificates, and the clocks"
            }
            Self::Dial(_)
            | Self::Stream(_)
            | Self::TimedOut
            | Self::Malformed(_)
            | Self::OtherSender => "the addresses of the seeds, and the versions of the program",
        }
    }
}

const CLUSTER_SETTINGS: &str =
    "the name, the slots and the hash key of the cluster, and the log of that node";

/// Asks for the state of the node at the other end.
pub(super) async fn fetch(from: NodeConnection, fingerprint: u64) -> Result<Copied, CopyError> {
    let fetched = timeout(COPY_TIMEOUT, fetch_bytes(&from.connection, fingerprint)).await;
    let bytes = fetched.map_err(|_elapsed| CopyError::TimedOut)??;
    let (theirs, mut rest) = split_fingerprint(&bytes).ok_or(CodecError::Malformed)?;
    if theirs != fingerprint {
        return Err(CopyError::OtherCluster);
    }
    let mut members = Vec::new();
    while rest.has_remaining() {
        members.push(GossipCodec.decode_member(&mut rest)?);
    }
    let answerer = members.first().ok_or(CodecError::Malformed)?.id().0.clone();
    if answerer.node != from.node {
        return Err(CopyError::OtherSender);
    }
    Ok(Copied {
        from,
        answerer,
        members,
    })
}

async fn fetch_bytes(connection: &Connection, fingerprint: u64) -> Result<Vec<u8>, CopyError> {
    let (mut ask, mut answer) = connection.open_bi().await.map_err(CopyError::Closed)?;
    let written = ask.write_all(&fingerprint.to_le_bytes()).await;
    written.map_err(|error| {
        if let WriteError::ConnectionLost(error) = error {
            CopyError::Closed(error)
        } else {
            CopyError::Stream(error.to_string())
        }
    })?;
    ask.finish()
        .map_err(|error| CopyError::Stream(error.to_string()))?;
    let read = answer.read_to_end(MAX_STATE + FINGERPRINT).await;
    read.map_err(|error| {
        if let ReadToEndError::Read(ReadError::ConnectionLost(error)) = error {
            CopyError::Closed(error)
        } else {
            CopyError::Stream(error.to_string())
        }
    })
}

/// Reads what the asker says of its cluster.
pub(super) async fn read_ask(ask: &mut RecvStream) -> Result<u64, CopyError> {
    let mut bytes = [0; FINGERPRINT];
    let read = timeout(COPY_TIMEOUT, ask.read_exact(&mut bytes)).await;
    let read: Result<(), ReadExactError> = read.map_err(|_elapsed| CopyError::TimedOut)?;
    read.map_err(|error| CopyError::Stream(error.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The answer: this node's fingerprint, this node, then the others, active ones first, as many as fit.
pub(super) fn answer<'a>(
    fingerprint: u64,
    own: &'a Member<Gossiped>,
    others: impl Iterator<Item = &'a Member<Gossiped>>,
) -> Vec<u8> {
    let mut bytes = fingerprint.to_le_bytes().to_vec();
    let (up, down): (Vec<_>, Vec<_>) = others.partition(|member| member.state() != State::Down);
    for member in std::iter::once(own).chain(up).chain(down) {
        let length = bytes.len();
        let written = GossipCodec.encode_member(member, &mut bytes);
        if written.is_err() || bytes.len() > MAX_STATE {
            bytes.truncate(length);
            break;
        }
    }
    bytes
}

/// Writes the answer.
pub(super) async fn write_answer(mut stream: SendStream, bytes: Vec<u8>) {
    let written = timeout(COPY_TIMEOUT, stream.write_all(&bytes)).await;
    let finished = matches!(written, Ok(Ok(()))) && stream.finish().is_ok();
    if !finished {
        tracing::debug!("a member did not take the member state");
    }
}

fn split_fingerprint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (fingerprint, rest) = bytes.split_first_chunk::<FINGERPRINT>()?;
    Some((u64::from_le_bytes(*fingerprint), rest))
}
