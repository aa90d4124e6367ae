//! A service that counts its calls and knows whether it may be called.

use std::{
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use tower_service::Service;

/// The service. It answers 201, with the headers that it was given.
#[derive(Debug, Default)]
pub(super) struct Inner {
    calls: Arc<AtomicUsize>,
    headers: HeaderMap,
    strict: bool,
    ready: bool,
}

/// It was called before it was ready.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotReady;

impl Inner {
    /// One that fails when it is called before it was ready.
    pub(super) fn strict() -> Self {
        Self {
            strict: true,
            ..Self::default()
        }
    }

    /// One that sends a header of its own.
    pub(super) fn with_header(name: &'static str, value: &'static str) -> Self {
        let mut inner = Self::default();
        inner.headers.insert(name, value.parse().unwrap());
        inner
    }

    /// Calls so far, of all clones.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

/// A clone is not ready because the original is.
impl Clone for Inner {
    fn clone(&self) -> Self {
        Self {
            calls: Arc::clone(&self.calls),
            headers: self.headers.clone(),
            strict: self.strict,
            ready: false,
        }
    }
}

impl Service<Request<Full<Bytes>>> for Inner {
    type Response = Response<Full<Bytes>>;
    type Error = NotReady;
    type Future = Ready<Result<Self::Response, NotReady>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), NotReady>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Full<Bytes>>) -> Self::Future {
        if self.strict && !std::mem::take(&mut self.ready) {
            return ready(Err(NotReady));
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::CREATED;
        *response.headers_mut() = self.headers.clone();
        ready(Ok(response))
    }
}
