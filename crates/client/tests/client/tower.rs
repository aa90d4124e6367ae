//! The layer before small services: what passes, what is refused, and what is told.

mod headers;
mod inner;

use std::{
    sync::atomic::AtomicUsize,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::time::timeout;
use tollgate_client::{
    Client, ClientConfig, Fault, FaultKind,
    tower::{
        Description, HeaderFamilies, LayerConfig, LayerError, Statistics, TollgateLayer, WallClock,
    },
};
use tollgate_limit::Nanos;
use tower_layer::Layer as _;
use tower_service::Service;

use self::inner::Inner;
use crate::{
    LONG,
    authority::Authority,
    config, connected,
    node::{Behaviour, Node},
};

/// A layer's settings that do not fail by its deadline, at a wall time a little after a second.
fn settings() -> LayerConfig {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_250);
    LayerConfig {
        deadline: LONG,
        wall_clock: WallClock::from_fn(move || time),
        ..LayerConfig::default()
    }
}

/// A layer before a node of this behaviour, which lives as long as the test's runtime.
async fn layer(behaviour: Behaviour, settings: LayerConfig) -> TollgateLayer {
    let authority = Authority::new();
    let node = Node::start(authority.node(), behaviour);
    let client = connected(config(&authority, &[&node])).await;
    TollgateLayer::new(client, settings).unwrap()
}

fn request() -> Request<Full<Bytes>> {
    Request::new(Full::default())
}

/// Calls a service once, when it is ready.
async fn call<S: Service<Request<Full<Bytes>>>>(service: &mut S) -> Result<S::Response, S::Error> {
    let called = async {
        std::future::poll_fn(|context| service.poll_ready(context)).await?;
        service.call(request()).await
    };
    timeout(LONG, called).await.expect("hangs")
}

/// The body as JSON.
async fn json(response: Response<Full<Bytes>>) -> serde_json::Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn an_admitted_request_passes_with_headers() {
    let layer = layer(Behaviour::Admit, settings()).await;
    let inner = Inner::default();
    let mut service = layer.layer(inner.clone());
    for calls in 1..=3 {
        let response = call(&mut service).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()["x-ratelimit-limit"], "100");
        assert_eq!(response.headers()["ratelimit"], "\"per-ip\";r=0");
        assert!(!response.headers().contains_key("retry-after"));
        assert_eq!(inner.calls(), calls);
    }
    let expected = Statistics {
        allowed: 3,
        ..Statistics::default()
    };
    assert_eq!(layer.statistics(), expected);
}

#[tokio::test]
async fn a_refused_request_never_reaches_the_service() {
    let wait = Some(Nanos::from_millis(1_234));
    let refuse = Behaviour::Refuse(AtomicUsize::new(1), wait);
    let question = Description::new("api").with_cost(|_| 7).into();
    let layer = layer(
        refuse,
        LayerConfig {
            question,
            ..settings()
        },
    )
    .await;
    let inner = Inner::default();
    let mut service = layer.layer(inner.clone());
    let response = call(&mut service).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let headers = response.headers();
    assert_eq!(headers["content-type"], "application/problem+json");
    assert_eq!(headers["retry-after"], "2");
    let expected = serde_json::json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota exceeded",
        "status": 429,
        "detail": "Limit per-ip: limit_exceeded, retry in 2 seconds",
        "violated-policies": ["per-ip"],
        "allowed": false,
        "reason": "limit_exceeded",
        "retry_after_ms": 1234,
        "limits": [{
            "name": "per-ip", "algorithm": "sliding-window", "limit": 100, "window_ms": 60_000,
            "used": 7, "remaining": 0, "allowed": false, "retry_after_ms": 1234,
            "reset_after_ms": 0,
        }],
    });
    assert_eq!(json(response).await, expected);
    assert_eq!(inner.calls(), 0);
    assert!(call(&mut service).await.unwrap().status().is_success());
    assert_eq!(inner.calls(), 1);
    let expected = Statistics {
        allowed: 1,
        refused: 1,
        ..Statistics::default()
    };
    assert_eq!(layer.statistics(), expected);
}

/// The client alone would wait for longer than the test does.
#[tokio::test]
async fn a_silent_node_is_waited_for_until_the_deadline() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Silence);
    let client = connected(ClientConfig {
        deadline: LONG * 3,
        ..config(&authority, &[&node])
    })
    .await;
    let layer = TollgateLayer::new(client, LayerConfig::default()).unwrap();
    passes_uncounted_by_the_node(&layer, 1).await;
}

#[tokio::test]
async fn a_dead_node_is_not_waited_for() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(config(&authority, &[&node])).await;
    node.stop().await;
    let layer = TollgateLayer::new(client, settings()).unwrap();
    passes_uncounted_by_the_node(&layer, 1).await;
}

#[tokio::test]
async fn a_node_that_never_was_is_not_waited_for() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let client = Client::start(ClientConfig {
        servers: vec![([127, 0, 0, 1], 1).into()],
        ..config(&authority, &[&node])
    });
    let layer = TollgateLayer::new(client.unwrap(), settings()).unwrap();
    passes_uncounted_by_the_node(&layer, 1).await;
    passes_uncounted_by_the_node(&layer, 2).await;
}

/// The request passes without a header, and is counted as one that got no answer.
async fn passes_uncounted_by_the_node(layer: &TollgateLayer, so_far: u64) {
    let inner = Inner::default();
    let response = call(&mut layer.layer(inner.clone())).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    assert!(response.headers().is_empty(), "{:?}", response.headers());
    assert_eq!(inner.calls(), 1);
    let expected = Statistics {
        passed_unanswered: so_far,
        ..Statistics::default()
    };
    assert_eq!(layer.statistics(), expected);
}

#[tokio::test]
async fn faults_pass_and_are_counted() {
    let fault = Fault {
        kind: FaultKind::UnknownPolicy,
        field: Some("policy".to_owned()),
        message: "not configured".to_owned(),
    };
    let faulty = layer(Behaviour::Fault(fault), settings()).await;
    let unsendable = LayerConfig {
        question: Description::new("p".repeat(1 << 18)).into(),
        ..settings()
    };
    let unsendable = layer(Behaviour::Admit, unsendable).await;
    for layer in [faulty, unsendable] {
        let inner = Inner::default();
        let response = call(&mut layer.layer(inner.clone())).await.unwrap();
        assert_eq!((response.status(), inner.calls()), (StatusCode::CREATED, 1));
        let expected = Statistics {
            faults: 1,
            ..Statistics::default()
        };
        assert_eq!(layer.statistics(), expected);
    }
}

#[tokio::test]
async fn a_request_with_a_wrong_attribute_does_not_escape() {
    let fault = Fault {
        kind: FaultKind::BadRequest,
        field: Some("attributes.header.x-cost".to_owned()),
        message: "not a \"whole\" number".to_owned(),
    };
    let layer = layer(Behaviour::Fault(fault), settings()).await;
    let inner = Inner::default();
    let response = call(&mut layer.layer(inner.clone())).await.unwrap();
    assert_eq!(
        (response.status(), inner.calls()),
        (StatusCode::BAD_REQUEST, 0)
    );
    let expected = Statistics {
        faults: 1,
        ..Statistics::default()
    };
    assert_eq!(layer.statistics(), expected);
    assert_eq!(json(response).await["detail"], "not a \"whole\" number");
}

#[tokio::test]
async fn the_service_that_was_ready_is_the_one_called() {
    let layer = layer(Behaviour::Admit, settings()).await;
    let mut service = layer.layer(Inner::strict());
    for _ in 0..2 {
        assert!(
            call(&mut service).await.is_ok(),
            "called before it was ready"
        );
    }
}

#[tokio::test]
async fn an_error_of_the_service_is_its_own() {
    let layer = layer(Behaviour::Admit, settings()).await;
    let mut service = layer.layer(Inner::strict());
    let end = timeout(LONG, service.call(request())).await.expect("hangs");
    assert_eq!(end.unwrap_err(), inner::NotReady);
    assert_eq!(layer.statistics().allowed, 1);
}

#[tokio::test]
async fn a_router_of_axum_takes_the_layer() {
    let refuse = Behaviour::Refuse(AtomicUsize::new(1), None);
    let layer = layer(refuse, settings()).await;
    let mut router = axum::Router::<()>::new()
        .route("/", axum::routing::get(|| async { "served" }))
        .layer(layer);
    let statuses = [call(&mut router).await, call(&mut router).await];
    let statuses = statuses.map(|response| response.unwrap().status());
    assert_eq!(statuses, [StatusCode::TOO_MANY_REQUESTS, StatusCode::OK]);
}

#[tokio::test]
async fn a_deadline_out_of_range_is_refused() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let client = Client::start(config(&authority, &[&node])).unwrap();
    for (millis, ends) in [(0, false), (1, true), (60_000, true), (60_001, false)] {
        let config = LayerConfig {
            deadline: Duration::from_millis(millis),
            headers: HeaderFamilies::NONE,
            ..LayerConfig::default()
        };
        let end = TollgateLayer::new(client.clone(), config).map(|_| ());
        assert_eq!(
            end,
            if ends {
                Ok(())
            } else {
                Err(LayerError::Deadline)
            }
        );
    }
}
