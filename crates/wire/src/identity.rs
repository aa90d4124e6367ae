//! The identity of a member, as gossip and member copies carry it.
//!
//! Invariants: it ends in a length-prefixed tail, which a node that does not know its content carries
//! through unchanged; an identity that was read is in its bounds. It is read from bytes in one piece.

use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use tollgate_limit::NodeId;

use crate::codec::CodecError;

/// The longest tail, in bytes.
pub const MAX_TAIL: usize = 256;

/// Where a node is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It owns nothing yet.
    Joining,
    /// It owns its share.
    Active,
    /// It hands its share over.
    Leaving,
}

impl Phase {
    /// Its name in answers and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Active => "active",
            Self::Leaving => "leaving",
        }
    }
}

/// One start of a node process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BootId(pub u64);

/// Who a member is, where it is reached and what it may own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name, stable over restarts.
    pub node: NodeId,
    /// This start of it.
    pub boot: BootId,
    /// Grows with every start and every renewal: the larger one wins.
    pub generation: u64,
    /// Where peers reach it.
    pub peer: SocketAddr,
    /// Where its HTTP interface listens.
    pub api: SocketAddr,
    /// Its share of slots, relative to the others', at least 1.
    pub weight: u8,
    /// The newest protocol version it speaks.
    pub newest_version: u8,
    /// The oldest protocol version it understands.
    pub oldest_version: u8,
    /// Where it is in its life.
    pub phase: Phase,
    /// What newer nodes add; at most [`MAX_TAIL`] bytes.
    pub tail: Vec<u8>,
}

/// The bytes of an [`Identity`]; written from it and read without owning anything.
#[derive(Serialize, Deserialize)]
struct RawIdentity<'a> {
    node: &'a str,
    boot: BootId,
    generation: u64,
    peer: SocketAddr,
    api: SocketAddr,
    weight: u8,
    newest_version: u8,
    oldest_version: u8,
    phase: Phase,
    tail: &'a [u8],
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawIdentity {
            node: self.node.as_str(),
            boot: self.boot,
            generation: self.generation,
            peer: self.peer,
            api: self.api,
            weight: self.weight,
            newest_version: self.newest_version,
            oldest_version: self.oldest_version,
            phase: self.phase,
            tail: &self.tail,
        };
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawIdentity::deserialize(deserializer)?;
        raw.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<RawIdentity<'_>> for Identity {
    type Error = CodecError;

    fn try_from(raw: RawIdentity<'_>) -> Result<Self, CodecError> {
        let versions = raw.oldest_version <= raw.newest_version;
        if raw.weight == 0 || raw.tail.len() > MAX_TAIL || !versions {
            return Err(CodecError::Malformed);
        }
        Ok(Self {
            node: NodeId::new(raw.node).ok_or(CodecError::Malformed)?,
            boot: raw.boot,
            generation: raw.generation,
            peer: raw.peer,
            api: raw.api,
            weight: raw.weight,
            newest_version: raw.newest_version,
            oldest_version: raw.oldest_version,
            phase: raw.phase,
            tail: raw.tail.to_vec(),
        })
    }
}
