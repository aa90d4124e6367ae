//! The HTTP interface against fakes: without sockets where bytes do not matter, else over loopback.

mod actions;
mod answers;
mod bodies;
mod calls;
mod forward_auth;
mod guarded;
mod headers;
mod ids;
mod inline;
mod metrics;
mod permits;
mod proxies;
mod shadow;
mod sockets;
mod switches;
mod versions;

use std::{net::Ipv4Addr, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tollgate_limit::Receipt;
use tollgate_wire::receipt;

use super::{Http, HttpConfig, Origin, Reach, openapi::held};
use crate::{
    checker::Checker as _,
    fakes::{FakeChecker, FakeOperator},
};

pub(super) struct Tester {
    http: Arc<Http<FakeChecker, FakeOperator>>,
    pub(super) checker: Arc<FakeChecker>,
    operator: Arc<FakeOperator>,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: http::HeaderMap,
    pub(super) text: String,
}

impl Tester {
    pub(super) fn new() -> Self {
        Self::with(HttpConfig::default(), FakeChecker::new())
    }

    pub(super) fn with(config: HttpConfig, checker: FakeChecker) -> Self {
        let (checker, operator) = (Arc::new(checker), Arc::new(FakeOperator::new()));
        let http = Http::new(config, Arc::clone(&checker), Arc::clone(&operator));
        Self {
            http: Arc::new(http),
            checker,
            operator,
        }
    }

    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        self.send_from(Reach::Loopback, request).await
    }

    async fn send_from(&self, reach: Reach, request: Request<Full<Bytes>>) -> Answer {
        let peer = Some(Ipv4Addr::LOCALHOST.into());
        self.send_by(Origin { reach, peer }, request).await
    }

    pub(super) async fn send_by(&self, origin: Origin, request: Request<Full<Bytes>>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response: Response<_> = self.http.handle(origin, request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        held::to_the_document(&method, &path, &parts, &body);
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    pub(super) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send_json(Method::POST, path, body.into()).await
    }

    pub(super) async fn put(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send_json(Method::PUT, path, body.into()).await
    }

    async fn send_json(&self, method: Method, path: &str, body: Bytes) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost:7600")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .unwrap();
        self.send(request).await
    }

    pub(super) async fn check(&self, body: &str) -> Answer {
        self.post("/v1/check", body.to_owned()).await
    }

    /// What an id holds; panics if it is no receipt.
    fn open(&self, id: &Value) -> Receipt {
        let id = id.as_str().unwrap();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        assert!(id.bytes().all(legal), "{id}");
        receipt::open(id, self.checker.receipt_key()).unwrap()
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        let request = Request::builder()
            .uri(path)
            .header(header::HOST, "localhost:7600");
        self.send(request.body(Full::default()).unwrap()).await
    }
}

impl Answer {
    /// The body without the id, which must be a receipt.
    fn without_id(&self, tester: &Tester) -> Value {
        let mut said = self.json();
        let id = said.as_object_mut().unwrap().remove("id").unwrap();
        tester.open(&id);
        said
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        assert!(
            self.headers.get_all(name).iter().count() <= 1,
            "{name} stands once"
        );
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
