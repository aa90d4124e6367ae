//! Closed-loop load: a fixed number of requests in flight, the next one sent when one is answered.
//!
//! Built to cost the machine little, so that it measures the server and not itself: requests are
//! encoded beforehand, one clock reading serves all answers of one read.
//!
//! Closed-loop latencies are those of a server that is never asked more than it can answer; they say
//! nothing of a queue that grows.

mod clock;
mod http;
mod latencies;
mod quic;
mod tally;

use std::{io, time::Duration};

use thiserror::Error;
use tollgate_wire::{CodecError, frame::FrameError};

pub use self::{
    http::{HttpLoad, MAX_HTTP_ANSWER, http_request, run_http, whole_answer},
    latencies::{Latencies, LatencySummary},
    quic::{Answers, QuicLoad, one_answer, put_frame, raw_answer, run_quic},
    tally::Report,
};

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// After about so many requests: none is sent once so many were sent.
    Requests(u64),
    /// After so long.
    For(Duration),
}

/// A load that could not be carried out. What was answered before is lost.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The TCP connection failed. The server's fault, or the network's.
    #[error("the connection failed")]
    Transport(#[from] io::Error),
    /// The server ended a connection. Its fault.
    #[error("the server ended the connection before its answer")]
    Ended,
    /// What came is no HTTP answer. The server's fault.
    #[error("the answer is not HTTP")]
    NotHttp(#[from] httparse::Error),
    /// An HTTP answer without `Content-Length`. The server is none that this load is for.
    #[error("the answer does not say how long it is")]
    NoLength,
    /// An HTTP answer above [`MAX_HTTP_ANSWER`].
    #[error("the answer is too long")]
    TooLong,
    /// A status other than that of a decision. The request's fault, or the server's.
    #[error("the server answered with status {status}")]
    Status {
        /// The status.
        status: u16,
    },
    /// The QUIC connection could not be started. The caller's fault.
    #[error("the QUIC connection cannot be started")]
    Connect(#[from] quinn::ConnectError),
    /// The QUIC connection failed. The server's fault, or the network's.
    #[error("the QUIC connection failed")]
    Connection(#[from] quinn::ConnectionError),
    /// The QUIC stream could not be written.
    #[error("the QUIC stream cannot be written")]
    Write(#[from] quinn::WriteError),
    /// The QUIC stream could not be read.
    #[error("the QUIC stream cannot be read")]
    Read(#[from] quinn::ReadError),
    /// What came is no frame. The server's fault.
    #[error("the answer is not a frame")]
    Frame(#[from] FrameError),
    /// The frame is no answer. The server's fault.
    #[error("the frame is not an answer")]
    Codec(#[from] CodecError),
    /// The server said that it cannot answer.
    #[error("the server answered: {0}")]
    Fault(String),
    /// An answer to what was not asked, or was answered before. The server's fault.
    #[error("an answer to request {id}, which is not in flight")]
    NotAsked {
        /// The request id.
        id: u64,
    },
}
