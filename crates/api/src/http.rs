//! The HTTP interface: which call a request is, and the answer to it.
//!
//! `POST /v1/check` is matched first and answered by hand, then what proxies ask; all other calls go
//! through a router. Knows nothing of sockets but in `server`. Invariants: every answer is counted once, and no input, however
//! broken, makes one of 500 or above but for an undecided check (P8).

mod act;
mod answer;
mod ask;
mod body;
mod check;
mod config;
mod connection;
mod exposition;
mod forward_auth;
mod guard;
mod json;
mod openapi;
mod operate;
mod problem;
mod server;
mod switch;
mod tally;
#[cfg(test)]
mod tests;
mod token;
mod waiting;
mod whole;

use std::{error::Error, fmt, net::IpAddr, pin::Pin, sync::Arc};

use axum::{
    Router,
    extract::State,
    routing::{get, post, put},
};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::{body::Body, service::Service as _};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;
use tollgate_limit as limit;

use self::{
    body::Posted,
    check::Bounds,
    problem::Problem,
    tally::{Call, RequestTally},
    waiting::Waiting,
    whole::Whole,
};
pub use self::{
    config::HttpConfig,
    server::{ServeError, serve},
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

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    reach: Reach,
    /// The other end of the connection, where it has an address.
    peer: Option<IpAddr>,
}

/// The HTTP interface of one node, shared by all its listeners.
pub struct Http<C, O> {
    shared: Arc<Shared<C, O>>,
    router: TowerToHyperService<Router>,
    connections: Arc<Semaphore>,
}

/// What the calls need.
struct Shared<C, O> {
    config: HttpConfig,
    checker: Arc<C>,
    operator: Arc<O>,
    tally: RequestTally,
    waiting: Waiting,
}

/// What a request asks for: a check, or anything else, whose answer is boxed to keep checks small.
enum Asked<'h, B> {
    Check(Posted<B>),
    Other(Pin<Box<dyn Future<Output = Response<Whole>> + Send + 'h>>),
}

impl<C: Checker, O: Operator> Http<C, O> {
    /// The interface over these two.
    pub fn new(config: HttpConfig, checker: Arc<C>, operator: Arc<O>) -> Self {
        let most = config.max_connections.min(Semaphore::MAX_PERMITS);
        let shared = Arc::new(Shared {
            config,
            checker,
            operator,
            tally: RequestTally::default(),
            waiting: Waiting::default(),
        });
        Self {
            router: TowerToHyperService::new(router(&shared)),
            shared,
            connections: Arc::new(Semaphore::new(most)),
        }
    }

    /// Answers one request, whatever it came by.
    ///
    /// Of a check only what is needed goes on into the future: it is moved about for each request.
    fn handle<B>(
        &self,
        origin: Origin,
        request: Request<B>,
    ) -> impl Future<Output = Response<Whole>> + Send
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let call = Call::of(request.uri().path());
        let asked = match (call, request.method()) {
            (Call::Check, &Method::POST) => Asked::Check(Posted::new(request)),
            (Call::ForwardAuth, _) => {
                let Shared {
                    checker, config, ..
                } = &*self.shared;
                Asked::Other(Box::pin(forward_auth::answer(
                    &**checker,
                    config,
                    origin.peer,
                    request,
                )))
            }
            (_, _) => Asked::Other(Box::pin(self.route(origin.reach, request))),
        };
        async move {
            let response = match asked {
                Asked::Check(posted) => self.shared.check(posted).await,
                Asked::Other(answer) => answer.await,
            };
            self.shared.tally.count(call, response.status());
            response
        }
    }

    async fn route<B>(&self, reach: Reach, mut request: Request<B>) -> Response<Whole>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        request.extensions_mut().insert(reach);
        let routed = self.router.call(request).await;
        let (parts, body) = routed.unwrap_or_else(|never| match never {}).into_parts();
        // All of them are whole in memory already.
        match body.collect().await {
            Ok(body) => Response::from_parts(parts, Whole::new(body.to_bytes())),
            Err(_) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no answer").into_response(),
        }
    }
}

impl<C: Checker, O> Shared<C, O> {
    const fn bounds(&self) -> Bounds<'_> {
        Bounds {
            config: &self.config,
            waiting: &self.waiting,
        }
    }

    async fn check<B: Body<Data = Bytes>>(&self, posted: Posted<B>) -> Response<Whole> {
        let answered = check::one(limit::Call::Check, &*self.checker, self.bounds(), posted).await;
        answered.unwrap_or_else(Problem::into_response)
    }
}

/// All calls, `POST /v1/check` too, so that its path is known for what it is with another method.
fn router<C: Checker, O: Operator>(shared: &Arc<Shared<C, O>>) -> Router {
    Router::new()
        .route(Call::Check.path(), post(check_call::<C, O>))
        .route(Call::Checks.path(), post(checks_call::<C, O>))
        .route(Call::Reserve.path(), post(act::reserve::<C, O>))
        .route(Call::Settle.path(), post(act::settle::<C, O>))
        .route(Call::Refund.path(), post(act::refund::<C, O>))
        .route(Call::Report.path(), post(act::report::<C, O>))
        .route(Call::Acquire.path(), post(act::acquire::<C, O>))
        .route(Call::Release.path(), post(act::release::<C, O>))
        .route(Call::Cluster.path(), get(operate::cluster::<C, O>))
        .route(
            Call::Keys.path(),
            get(operate::keys::<C, O>).delete(operate::reset::<C, O>),
        )
        .route(Call::KillSwitch.path(), put(switch::kill::<C, O>))
        .route(Call::ShadowSwitch.path(), put(switch::shadow::<C, O>))
        .route(Call::Livez.path(), get(operate::livez))
        .route(Call::Readyz.path(), get(operate::readyz::<C, O>))
        .route(Call::Metrics.path(), get(operate::metrics::<C, O>))
        .route(Call::OpenApi.path(), get(openapi::openapi))
        .fallback(operate::not_found)
        .method_not_allowed_fallback(operate::method_not_allowed)
        .with_state(Arc::clone(shared))
}

async fn check_call<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Request<axum::body::Body>,
) -> axum::response::Response {
    let response = shared.check(Posted::new(request)).await;
    response.map(axum::body::Body::new)
}

async fn checks_call<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Request<axum::body::Body>,
) -> axum::response::Response {
    let answered = check::many(&*shared.checker, &shared.config, Posted::new(request)).await;
    let response = answered.unwrap_or_else(Problem::into_response);
    response.map(axum::body::Body::new)
}

impl<C, O> fmt::Debug for Http<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
