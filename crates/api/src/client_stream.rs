//! The client protocol over any byte stream: frames in, answers out, in any order.
//!
//! What has come in is one batch: one clock reading, everything that is decided at once straight into
//! one buffer, one write. Knows nothing of the transport. Invariants: at most [`MAX_WAITING`] checks
//! wait for a peer, about [`MAX_OUTPUT`] bytes wait to be written and one frame more than
//! [`READ_LENGTH`] to be decided: a client that never reads is no longer read from.

mod batch;
#[cfg(test)]
mod tests;

use std::{io, pin::Pin, sync::Arc};

use bytes::{Buf as _, BytesMut};
use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tollgate_limit::Decision;
use tollgate_wire::frame::FrameError;

use self::batch::Batch;
use crate::checker::Checker;

/// The most checks of one stream that wait for a peer; then nothing more is decided or read.
pub const MAX_WAITING: usize = 1024;
/// Bytes of answers after which a batch is written before the next check is decided.
const MAX_OUTPUT: usize = 1 << 17;
/// The most bytes of one read.
const READ_LENGTH: usize = 1 << 16;

/// A stream that ended early. Every check that was taken before was answered, where the transport let it.
#[derive(Debug, Error)]
pub enum StreamError {
    /// The transport failed.
    #[error("the client's stream failed")]
    Transport(#[from] io::Error),
    /// What came is no frame; the client was told so. Its fault.
    #[error("the client's stream has no frame where one must begin")]
    Frame(#[from] FrameError),
    /// It ended within a frame. The client's fault.
    #[error("the client's stream ended within a frame")]
    Truncated,
}

/// A check that waits for a peer, and the id of its frame.
type Waiting = Pin<Box<dyn Future<Output = (u64, Decision)> + Send>>;

/// Answers the checks of one client stream until it ends.
///
/// # Errors
/// [`StreamError`] if it did not end between two frames.
pub async fn serve_stream<C: Checker>(
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    checker: Arc<C>,
) -> Result<(), StreamError> {
    let mut input = BytesMut::new();
    let mut output = Vec::new();
    let mut waiting = FuturesUnordered::<Waiting>::new();
    let mut end = None;
    loop {
        let mut open = true;
        while open && end.is_none() {
            let batch = Batch::decide(&*checker, &input, &mut output, &waiting);
            input.advance(batch.taken);
            end = batch.error.map(|error| Err(StreamError::Frame(error)));
            // A full buffer is the only reason to go on after a write; all else needs news.
            open = output.len() >= MAX_OUTPUT;
            write(&mut writer, &mut output).await?;
        }
        if end.is_some() && waiting.is_empty() {
            break;
        }
        let reading = end.is_none() && waiting.len() < MAX_WAITING;
        tokio::select! {
            biased;
            Some((id, decision)) = waiting.next(), if !waiting.is_empty() => {
                batch::answer(&mut output, id, &decision);
                while output.len() < MAX_OUTPUT
                    && let Some(Some((id, decision))) = waiting.next().now_or_never()
                {
                    batch::answer(&mut output, id, &decision);
                }
                write(&mut writer, &mut output).await?;
            }
            read = read(&mut reader, &mut input), if reading => {
                if read? == 0 {
                    let whole = input.is_empty();
                    end = Some(if whole { Ok(()) } else { Err(StreamError::Truncated) });
                }
            }
        }
    }
    writer.shutdown().await?;
    end.unwrap_or(Ok(()))
}

async fn read(reader: &mut (impl AsyncRead + Unpin), input: &mut BytesMut) -> io::Result<usize> {
    input.reserve(READ_LENGTH);
    let mut bounded = bytes::BufMut::limit(input, READ_LENGTH);
    reader.read_buf(&mut bounded).await
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), output: &mut Vec<u8>) -> io::Result<()> {
    if output.is_empty() {
        return Ok(());
    }
    writer.write_all(output).await?;
    writer.flush().await?;
    output.clear();
    Ok(())
}
