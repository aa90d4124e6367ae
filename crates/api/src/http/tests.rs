//! The HTTP interface against fakes: without sockets where bytes do not matter, else over loopback.

mod actions;
mod answers;
mod bodies;
mod calls;
mod guarded;
mod headers;
mod ids;
mod inline;
mod metrics;
mod permits;
mod shadow;
mod sockets;
mod versions;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tollgate_limit::Receipt;
use tollgate_wire::receipt;

use super::{Http, HttpConfig, Reach};
use crate::{
    checker::Checker as _,
    fakes::{FakeChecker, FakeOperator},
};

struct Tester {
    http: Arc<Http<FakeChecker, FakeOperator>>,
    checker: Arc<FakeChecker>,
    operator: Arc<FakeOperator>,
}

struct Answer {
    status: StatusCode,
    headers: http::HeaderMap,
    text: String,
}

impl Tester {
    fn new() -> Self {
        Self::with(HttpConfig::default(), FakeChecker::new())
    }

    fn with(config: HttpConfig, checker: FakeChecker) -> Self {
        let (checker, operator) = (Arc::new(checker), Arc::new(FakeOperator::new()));
        let http = Http::new(config, Arc::clone(&checker), Arc::clone(&operator));
        Self {
            http: Arc::new(http),
            checker,
            operator,
        }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        self.send_from(Reach::Loopback, request).await
    }

    async fn send_from(&self, reach: Reach, request: Request<Full<Bytes>>) -> Answer {
        let response: Response<_> = self.http.handle(reach, request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, "localhost:7600")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.into()))
            .unwrap();
        self.send(request).await
    }

    async fn check(&self, body: &str) -> Answer {
        self.post("/v1/check", body.to_owned()).await
    }

    /// What an id holds; panics if it is no receipt.
    fn open(&self, id: &Value) -> Receipt {
        let id = id.as_str().unwrap();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        assert!(id.bytes().all(legal), "{id}");
        receipt::open(id, self.checker.receipt_key()).unwrap()
    }

    async fn get(&self, path: &str) -> Answer {
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

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn header(&self, name: &str) -> Option<&str> {
        assert!(
            self.headers.get_all(name).iter().count() <= 1,
            "{name} stands once"
        );
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
