//! The encoding: bincode, little endian, variable-length integers. Nothing else names it.
//!
//! Invariant: a decode allocates at most a bounded multiple of the bytes it was given, whatever length
//! they claim: text and bytes are borrowed before they are owned, and no list is made in advance.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bytes::{Buf, BufMut};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use thiserror::Error;
use tollgate_limit::NodeId;

use crate::frame::{HEADER_LENGTH, MAX_PEER_FRAME};

/// The most bytes of one value, read or written: what fits into a frame.
const VALUE_LIMIT: usize = MAX_PEER_FRAME - HEADER_LENGTH;

type Config = Configuration<LittleEndian, Varint, Limit<VALUE_LIMIT>>;

const CONFIG: Config = bincode::config::standard().with_limit::<VALUE_LIMIT>();

/// Bytes that are not a message. The sender's fault; nothing was changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CodecError {
    /// The bytes do not decode.
    #[error("the message is malformed")]
    Malformed,
    /// Bytes were left over.
    #[error("the message has bytes after its end")]
    TrailingBytes,
    /// The value does not fit where it should be written.
    #[error("the message does not fit")]
    TooLarge,
}

/// Appends a value to a body.
#[inline]
pub(crate) fn put<T: Serialize>(out: &mut Vec<u8>, value: &T) -> Result<(), CodecError> {
    match bincode::serde::encode_into_std_write(value, out, CONFIG) {
        Ok(written) if written <= VALUE_LIMIT => Ok(()),
        Ok(_) | Err(_) => Err(CodecError::TooLarge),
    }
}

/// Takes one value off the front of a body.
#[inline]
pub(crate) fn take<'a, T: Deserialize<'a>>(body: &mut &'a [u8]) -> Result<T, CodecError> {
    let decoded = bincode::serde::borrow_decode_from_slice(body, CONFIG);
    let (value, read) = decoded.map_err(|_error| CodecError::Malformed)?;
    *body = body.get(read..).ok_or(CodecError::Malformed)?;
    Ok(value)
}

/// Reads text that a message owns. Borrowed first: a claimed length allocates nothing.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    <&str>::deserialize(deserializer).map(str::to_owned)
}

/// Reads the name of a node: what is longer than a name can be is refused.
pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de str, D::Error> {
    let name = <&str>::deserialize(deserializer)?;
    if name.len() > NodeId::MAX_LENGTH {
        return Err(D::Error::custom("a name is too long"));
    }
    Ok(name)
}

/// The same, of a message that owns it.
pub(crate) fn owned_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    name(deserializer).map(str::to_owned)
}

/// Fails if a body is longer than what fits into a frame.
pub(crate) const fn fits(body: usize) -> Result<(), CodecError> {
    if body <= VALUE_LIMIT {
        Ok(())
    } else {
        Err(CodecError::TooLarge)
    }
}

/// Fails if anything is left of a body.
#[inline]
pub(crate) const fn end(body: &[u8]) -> Result<(), CodecError> {
    if body.is_empty() {
        Ok(())
    } else {
        Err(CodecError::TrailingBytes)
    }
}

/// Encodes one part of a gossip packet; writes nothing if it does not fit.
///
/// # Errors
/// [`CodecError::TooLarge`] if the buffer has no room for it.
pub fn encode_gossip<T: Serialize>(value: &T, mut out: impl BufMut) -> Result<(), CodecError> {
    let bytes = bincode::serde::encode_to_vec(value, CONFIG);
    let bytes = bytes.map_err(|_error| CodecError::TooLarge)?;
    if bytes.len() > out.remaining_mut() {
        return Err(CodecError::TooLarge);
    }
    out.put_slice(&bytes);
    Ok(())
}

/// Takes one part off the front of a gossip packet. The packet must lie in one piece.
///
/// # Errors
/// [`CodecError::Malformed`] if there is none.
pub fn decode_gossip<T: DeserializeOwned>(mut packet: impl Buf) -> Result<T, CodecError> {
    let decoded = bincode::serde::borrow_decode_from_slice(packet.chunk(), CONFIG);
    let (value, read) = decoded.map_err(|_error| CodecError::Malformed)?;
    packet.advance(read);
    Ok(value)
}
