//! A stream whose reads are counted, and whose first bytes tell the version of HTTP.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::activity::Activity;

/// What a client of HTTP/2 sends first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    /// With prior knowledge: there is no TLS to agree on it.
    Http2,
}

/// A stream whose reads are counted.
#[derive(Debug)]
pub(super) struct Watched {
    stream: TcpStream,
    activity: Arc<Activity>,
    /// Bytes that were read to know the version, and are yet to be read again; at most a preface.
    unread: Vec<u8>,
}

impl Watched {
    pub(super) const fn new(stream: TcpStream, activity: Arc<Activity>) -> Self {
        Self {
            stream,
            activity,
            unread: Vec::new(),
        }
    }

    /// The version that the client speaks: HTTP/1 as soon as a byte differs from the preface of HTTP/2.
    /// What was read for it is read again. To be called once; if cancelled, bytes are lost.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) async fn version(&mut self) -> io::Result<Version> {
        let mut read = [0; PREFACE.len()];
        let mut length: usize = 0;
        let version = loop {
            let more = self.stream.read(&mut read[length..]).await?;
            if more == 0 {
                break Version::Http1;
            }
            self.activity.note_read();
            length = length.saturating_add(more);
            if !PREFACE.starts_with(&read[..length]) {
                break Version::Http1;
            }
            if length == PREFACE.len() {
                break Version::Http2;
            }
        };
        self.unread.extend_from_slice(&read[..length]);
        Ok(version)
    }

    /// Reads again what told the version.
    #[cold]
    fn read_again(&mut self, buffer: &mut ReadBuf<'_>) {
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..length]);
        self.unread.drain(..length);
        if self.unread.is_empty() {
            self.unread = Vec::new();
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            self.read_again(buffer);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.note_read();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
