//! The service that asks before the one inside it.

use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use super::gate::{Gate, Passage};

/// Asks before each request of the service inside it. Made by a [`TollgateLayer`](super::TollgateLayer).
///
/// It is ready when the inner service is. The body of a refusal is made from [`Bytes`], which the
/// bodies of axum and of `http-body-util` can be.
#[derive(Clone, Debug)]
pub struct TollgateService<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S> TollgateService<S> {
    pub(super) const fn new(inner: S, gate: Arc<Gate>) -> Self {
        Self { inner, gate }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for TollgateService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    ReqBody: Send + 'static,
    ResBody: From<Bytes>,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResBody>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        // The instance that said it was ready is the one to call; its clone may not be.
        let clone = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, clone);
        let gate = Arc::clone(&self.gate);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let rates = match gate.ask(&parts).await {
                Passage::Pass(rates) => rates,
                Passage::Refuse(response) => return Ok(response.map(ResBody::from)),
            };
            let mut response = ready.call(Request::from_parts(parts, body)).await?;
            rates.put(response.headers_mut());
            Ok(response)
        })
    }
}
