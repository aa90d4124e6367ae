//! Frames: `u32` length, version byte, `u64` request id, body; little endian.
//!
//! The length counts what follows it. This header is for ever. Invariant: a length above the cap is
//! refused before anything is allocated for it.

use thiserror::Error;

use crate::PROTOCOL_VERSION;

/// Bytes before the body.
pub const HEADER_LENGTH: usize = LENGTH_BYTES + AFTER_LENGTH;
/// The most bytes of a frame between peers, length field included.
pub const MAX_PEER_FRAME: usize = 1 << 20;
/// The most bytes of a frame between client and node, length field included.
pub const MAX_CLIENT_FRAME: usize = 1 << 17;

const LENGTH_BYTES: usize = 4;
const AFTER_LENGTH: usize = 9;

/// One frame, borrowed from the buffer that it was read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The version that the body is written in.
    pub version: u8,
    /// The request that it is, or answers.
    pub id: u64,
    /// The message.
    pub body: &'a [u8],
}

/// Bytes that are not a frame. The sender's fault: the stream cannot be read on.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// Shorter than a header.
    #[error("a frame of {length} bytes is shorter than its header")]
    TooShort {
        /// The length it claims.
        length: u32,
    },
    /// Above the cap.
    #[error("a frame of {length} bytes is above the cap")]
    TooLong {
        /// The length it claims.
        length: u32,
    },
}

/// The first frame of `buffer` and the bytes that it takes; `None` if it is not all there yet.
///
/// # Errors
/// [`FrameError`] if the length cannot be right for a cap of `max` bytes.
#[inline]
pub fn split(buffer: &[u8], max: usize) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((length, rest)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length);
    let Ok(after) = usize::try_from(length) else {
        return Err(FrameError::TooLong { length });
    };
    if after < AFTER_LENGTH {
        return Err(FrameError::TooShort { length });
    }
    if after > max.saturating_sub(LENGTH_BYTES) {
        return Err(FrameError::TooLong { length });
    }
    let Some(frame) = rest.get(..after) else {
        return Ok(None);
    };
    let Some((version, rest)) = frame.split_first() else {
        return Ok(None);
    };
    let Some((id, body)) = rest.split_first_chunk::<8>() else {
        return Ok(None);
    };
    let frame = Frame {
        version: *version,
        id: u64::from_le_bytes(*id),
        body,
    };
    Ok(Some((frame, after.saturating_add(LENGTH_BYTES))))
}

/// Appends a frame; `body` appends the message. On an error `out` is as it was.
///
/// # Errors
/// What `body` returns.
#[inline]
pub fn put<E>(
    out: &mut Vec<u8>,
    id: u64,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(PROTOCOL_VERSION);
    out.extend_from_slice(&id.to_le_bytes());
    if let Err(error) = body(out) {
        out.truncate(start);
        return Err(error);
    }
    let length = out.len().saturating_sub(start).saturating_sub(LENGTH_BYTES);
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *field = length.to_le_bytes();
    }
    Ok(())
}
