//! The body of a request: bounded in bytes and in time.
//!
//! A body that came in one piece is not copied, and one that is there already costs no timer.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use thiserror::Error;

use crate::{
    fault::Fault,
    http::{MAX_BODY, problem::Problem},
};

/// The most bytes of a body above the bound that are read before it is refused: a client that writes
/// all before it reads would see a reset instead of the answer.
const MAX_DRAINED: usize = 4 * MAX_BODY;

/// A body that was not taken. The client's fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(super) enum BodyError {
    /// Above [`MAX_BODY`].
    #[error("the body must have at most 1 MiB")]
    TooLarge,
    /// It did not come in time.
    #[error("the body did not come in time")]
    TooSlow,
    /// The connection failed, or what came is no HTTP.
    #[error("the body ended early")]
    Broken,
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let status = match error {
            BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::Broken => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

/// A value of `wait` that is neither `true` nor `false`. The client's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoTruth;

impl From<NoTruth> for Problem {
    fn from(_: NoTruth) -> Self {
        Fault::new("wait", "neither true nor false", "`wait=true`, or nothing").into()
    }
}

/// What a query says of `wait`; the last counts, as do no other parameters.
fn waits(query: &str) -> Result<bool, NoTruth> {
    let mut waits = Ok(false);
    for pair in query.split('&') {
        waits = match pair.strip_prefix("wait=") {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(NoTruth),
            None => continue,
        };
    }
    waits
}

/// A body that was posted, and what its head says of it.
#[derive(Debug)]
pub(super) struct Posted<B> {
    body: B,
    /// Whether it may be read as JSON: it says so, or says nothing.
    pub(super) is_json: bool,
    /// Whether the answer is to be held back for as long as the request should be; the fault of a query
    /// that does not say.
    pub(super) waits: Result<bool, NoTruth>,
    /// Whether it was announced to be too large to be read at all.
    is_too_large: bool,
}

impl<B: Body<Data = Bytes>> Posted<B> {
    pub(super) fn new(request: Request<B>) -> Self {
        let (head, body) = request.into_parts();
        let claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let asks_first = || head.headers.contains_key(header::EXPECT);
        Self {
            is_json: is_json(&head.headers),
            waits: head.uri.query().map_or(Ok(false), waits),
            is_too_large: claimed > MAX_DRAINED || (claimed > MAX_BODY && asks_first()),
            body,
        }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// [`BodyError`]: the client's fault.
    pub(super) async fn collect(self, limit: Duration) -> Result<Bytes, BodyError> {
        if self.is_too_large {
            return Err(BodyError::TooLarge);
        }
        let mut reading = pin!(read(self.body));
        match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            Poll::Ready(read) => read,
            Poll::Pending => tokio::time::timeout(limit, reading)
                .await
                .unwrap_or(Err(BodyError::TooSlow)),
        }
    }
}

/// Reads a body to its end and drops it, so that the connection can go on. What is wrong with it does not
/// matter: of one that is too large or too slow the rest is left, and the connection ends.
pub(super) async fn discard<B: Body<Data = Bytes>>(body: B, limit: Duration) {
    if body.is_end_stream() {
        return;
    }
    let mut body = pin!(body);
    let discarding = async {
        let mut length: usize = 0;
        while let Some(Ok(frame)) = body.frame().await {
            length = length.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            if length > MAX_DRAINED {
                return;
            }
        }
    };
    // It makes no difference whether it came to its end.
    drop(tokio::time::timeout(limit, discarding).await);
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(media) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let media = media.as_bytes();
    if media == b"application/json" {
        return true;
    }
    let essence = media.split(|byte| *byte == b';').next().unwrap_or_default();
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
}

async fn read<B: Body<Data = Bytes>>(body: B) -> Result<Bytes, BodyError> {
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    let mut length: usize = 0;
    // Its end is asked first: to wait for a frame that will not come costs as much as one that does.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|_error| BodyError::Broken)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(data.len());
        if length > MAX_DRAINED {
            return Err(BodyError::TooLarge);
        }
        if length > MAX_BODY {
            continue;
        }
        if first.is_empty() {
            first = data;
            continue;
        }
        if more.is_empty() {
            more.extend_from_slice(&first);
        }
        more.extend_from_slice(&data);
    }
    match (length > MAX_BODY, more.is_empty()) {
        (true, _) => Err(BodyError::TooLarge),
        (false, true) => Ok(first),
        (false, false) => Ok(more.freeze()),
    }
}
