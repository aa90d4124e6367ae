//! A layer that asks the local node before each request of a service.
//!
//! [`TollgateLayer`] wraps any service of `http` requests. An admitted request goes on, and its
//! response tells the limits in its headers. A refused one is answered here with 429, or 503 where
//! nobody could decide, and the service never sees it. Must not know of a server or of a body: what
//! is asked comes from the request's head by a [`Question`], the refusal's body is made from bytes.
//!
//! Invariants: a request waits at most [`LayerConfig::deadline`] for the node; without an answer it
//! passes; each request whose question ended is counted once; nothing in a request's head opens its
//! limits: values are made to fit, and where the node still finds an attribute wrong, such as a cost that
//! is no number or one that a limit requires and that is absent, the request is answered with 400. Other
//! faults are the service's own and pass. No request is held back for the delay of an answer.
//!
//! ```no_run
//! # use std::net::SocketAddr;
//! # use axum::{Router, extract::ConnectInfo, routing::get};
//! use tollgate_client::{
//!     Client,
//!     tower::{Description, LayerConfig, TollgateLayer},
//! };
//!
//! # fn serve(client: Client) -> Result<Router, Box<dyn std::error::Error>> {
//! let described = Description::new("api")
//!     .with_headers([http::HeaderName::from_static("x-api-key")])?
//!     .with_peer(|extensions| {
//!         let peer = extensions.get::<ConnectInfo<SocketAddr>>()?;
//!         Some(peer.0.ip())
//!     })
//!     .with_cost(|request| if request.uri.path() == "/export" { 10 } else { 1 });
//! let config = LayerConfig { question: described.into(), ..LayerConfig::default() };
//! let layer = TollgateLayer::new(client, config)?;
//! let router = Router::new().route("/", get(|| async { "served" })).layer(layer.clone());
//! let statistics = layer.statistics(); // allowed, refused, passed without an answer
//! # drop(statistics);
//! # Ok(router)
//! # }
//! ```

mod clock;
mod config;
mod families;
mod gate;
mod problem;
mod question;
mod rates;
mod refusal;
mod service;
mod statistics;

use std::sync::Arc;

use tower_layer::Layer;

use self::gate::Gate;
pub use self::{
    clock::WallClock,
    config::{LayerConfig, LayerError},
    families::HeaderFamilies,
    question::{Description, DescriptionError, Question},
    service::TollgateService,
    statistics::Statistics,
};
use crate::Client;

/// Puts a [`TollgateService`] before a service. Cheap to clone; all clones, and all services that
/// they made, share one client and one set of [`Statistics`].
#[derive(Clone, Debug)]
pub struct TollgateLayer(Arc<Gate>);

impl TollgateLayer {
    /// A layer that asks by this client. It need not be connected: until it is, requests pass.
    ///
    /// # Errors
    /// [`LayerError`] names the setting that is out of range. The caller's fault.
    pub fn new(client: Client, config: LayerConfig) -> Result<Self, LayerError> {
        config.validate()?;
        Ok(Self(Arc::new(Gate::new(client, config))))
    }

    /// How the requests so far ended.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

impl<S> Layer<S> for TollgateLayer {
    type Service = TollgateService<S>;

    fn layer(&self, inner: S) -> TollgateService<S> {
        TollgateService::new(inner, Arc::clone(&self.0))
    }
}
