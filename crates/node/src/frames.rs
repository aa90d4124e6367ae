//! Frames off a QUIC stream: read what is there, hand out one frame after the other.
//!
//! Knows nothing of messages. Invariant: the buffer never grows beyond one frame of the cap and one
//! read.

use quinn::{ReadError, RecvStream};
use thiserror::Error;
use tollgate_wire::frame::{self, Frame, FrameError, MAX_PEER_FRAME};

/// Bytes asked of the stream at once.
const READ_LENGTH: usize = 16 * 1024;

/// Frames of one stream between peers.
#[derive(Debug)]
pub(crate) struct FrameReader {
    stream: RecvStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Why no more frames come. The peer's fault or the connection's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum FramesError {
    /// The stream or its connection ended.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bytes are not frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Whether the stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Bytes came.
    More,
    /// The peer has finished the stream.
    Finished,
}

impl FrameReader {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            start: 0,
            end: 0,
        }
    }

    /// Waits for bytes and reads what is there. Cancel safe.
    pub(crate) async fn fill(&mut self) -> Result<Filled, FramesError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < self.end + READ_LENGTH {
            self.buffer.resize(self.end + READ_LENGTH, 0);
        }
        match self.stream.read(&mut self.buffer[self.end..]).await? {
            Some(read) => {
                self.end += read;
                Ok(Filled::More)
            }
            None => Ok(Filled::Finished),
        }
    }

    /// The next whole frame that was read.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let found = frame::split(&self.buffer[self.start..self.end], MAX_PEER_FRAME)?;
        Ok(found.map(|(frame, length)| {
            self.start += length;
            frame
        }))
    }
}
