//! Paths, methods, tokens, and the operators' calls.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::json;

use super::{Answer, Tester};
use crate::{
    fakes::FakeChecker,
    http::{HttpConfig, Reach, Token, TokenError},
    operator::{CounterQuery, Readiness},
};

const TOKEN: &str = "a-long-enough-token";

async fn call(tester: &Tester, method: &str, path: &str) -> Answer {
    let request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(path)
        .header(header::HOST, "127.0.0.1");
    tester.send(request.body(Full::default()).unwrap()).await
}

#[tokio::test]
async fn unknown_paths_and_methods_are_told() {
    let tester = Tester::new();
    for path in [
        "/",
        "/v1",
        "/v1/check/",
        "/v1/refunds",
        "/v2/check",
        "/CHECK",
        "/v1//check",
        "/v1/switches",
        "/v1/switches/on",
    ] {
        for method in ["GET", "POST"] {
            let answer = call(&tester, method, path).await;
            assert_eq!((answer.status.as_u16(), path), (404, path), "{method}");
            assert_eq!(answer.json()["status"], 404);
        }
    }
    for (method, path, allow) in [
        ("GET", "/v1/check", "POST"),
        ("PUT", "/v1/check", "POST"),
        ("BREW", "/v1/checks", "POST"),
        ("POST", "/v1/cluster", "GET,HEAD"),
        ("PUT", "/v1/keys", "GET,HEAD,DELETE"),
        ("GET", "/v1/reserve", "POST"),
        ("GET", "/v1/settle", "POST"),
        ("GET", "/v1/refund", "POST"),
        ("GET", "/v1/report", "POST"),
        ("GET", "/v1/acquire", "POST"),
        ("DELETE", "/v1/release", "POST"),
        ("GET", "/v1/switches/kill", "PUT"),
        ("POST", "/v1/switches/shadow", "PUT"),
        ("POST", "/livez", "GET,HEAD"),
        ("POST", "/readyz", "GET,HEAD"),
        ("POST", "/metrics", "GET,HEAD"),
    ] {
        let answer = call(&tester, method, path).await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
        assert_eq!(answer.json()["status"], 405);
    }
}

#[tokio::test]
async fn health_is_told() {
    let tester = Tester::new();
    assert_eq!(tester.get("/livez").await.status, 200);
    assert_eq!(tester.get("/readyz").await.status, 200);
    let why = "it is joining".to_owned();
    *tester.operator.readiness.lock().unwrap() = Readiness::NotReady { why };
    let answer = tester.get("/readyz").await;
    assert_eq!(
        (answer.status.as_u16(), answer.text.as_str()),
        (503, "it is joining\n")
    );
    assert_eq!(tester.get("/livez").await.status, 200);
}

#[tokio::test]
async fn the_cluster_is_told() {
    let answer = Tester::new().get("/v1/cluster").await;
    assert_eq!(answer.status, 200);
    let member = json!({
        "id": "n1", "boot": "0000000000000001", "phase": "active", "reachable": true,
        "peer": "127.0.0.1:7601", "api": "127.0.0.1:7600", "weight": 1, "slots": 65536,
        "placement": "0000000000000abc", "policies": null, "replication_lag_ms": 22
    });
    let view = json!({
        "self": "n1", "placement": "0000000000000abc", "policies": "0000000000000def",
        "policies_error": null,
        "switches": {"kill": false, "shadow": false},
        "motion": {"slots_in": 20, "slots_out": 21, "warm": true}, "members": [member]
    });
    assert_eq!(answer.json(), view);
}

#[tokio::test]
async fn a_counter_is_told_with_its_owner() {
    let tester = Tester::new();
    let answer = tester
        .get("/v1/keys?policy=api&limit=per-key&attr.api_key=k%2F1")
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let counter = json!({
        "policy": "api", "owner": "n2", "standby": null, "reason": "limit_exceeded",
        "name": "per-key", "algorithm": "sliding-window", "limit": 100, "window_ms": 60000, "used": 100,
        "remaining": 0, "allowed": false, "retry_after_ms": 1234, "reset_after_ms": 41234,
        "decided_by": "owner", "node": "n2", "degraded": false, "shadow": false
    });
    assert_eq!(answer.json(), counter);
    for (query, status, field) in BROKEN {
        let answer = tester.get(&format!("/v1/keys?{query}")).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text);
        assert_eq!(answer.json()["field"], field, "{query}");
    }
    let gone = tester.get("/v1/keys?policy=api&limit=gone").await;
    assert_eq!(
        (gone.status.as_u16(), gone.header("retry-after")),
        (503, Some("1"))
    );
}

/// Queries for a counter that is none: status and field.
const BROKEN: [(&str, u16, &str); 9] = [
    ("policy=api", 400, "limit"),
    ("policy=api&limit=per-key", 400, "attr.api_key"),
    ("policy=api&limit=nope&attr.a=1", 404, "limit"),
    ("policy=api&limit=free&attr.plan=pro", 404, "limit"),
    ("policy=nope&limit=per-key&attr.api_key=1", 404, "policy"),
    ("policy=api&limit=per-key&key=1", 400, "key"),
    ("policy=api&policy=b&limit=l", 400, "policy"),
    ("policy=api&limit=l&attr.a=1&attr.a=2", 400, "attr.a"),
    ("policy=api&limit=l&attr.=1", 400, "attr."),
];

#[tokio::test]
async fn a_counter_is_reset_without_a_word() {
    let tester = Tester::new();
    let path = "/v1/keys?policy=api&limit=per-key&attr.api_key=k%2F1&attr.plan=pro";
    let answer = call(&tester, "DELETE", path).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    let resets = tester.operator.resets.lock().unwrap().clone();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let right = CounterQuery {
        policy: "api".to_owned(),
        limit: "per-key".to_owned(),
        attributes: vec![pair("api_key", "k/1"), pair("plan", "pro")],
    };
    assert_eq!(resets, [right]);
    for (query, status, field) in BROKEN {
        let answer = call(&tester, "DELETE", &format!("/v1/keys?{query}")).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text);
        assert_eq!(answer.json()["field"], field, "{query}");
    }
    let gone = call(&tester, "DELETE", "/v1/keys?policy=api&limit=gone").await;
    assert_eq!(
        (gone.status.as_u16(), gone.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(tester.operator.resets.lock().unwrap().len(), 1);
}

/// The status of every call from there, with this token and this host.
async fn statuses(
    tester: &Tester,
    reach: Reach,
    token: Option<&str>,
    host: Option<&str>,
) -> [u16; 5] {
    let mut statuses = Vec::new();
    for path in [
        "/v1/cluster",
        "/v1/keys?policy=x&limit=y",
        "/livez",
        "/readyz",
        "/metrics",
    ] {
        let mut request = Request::builder().uri(path);
        if let Some(host) = host {
            request = request.header(header::HOST, host);
        }
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let answer = tester
            .send_from(reach, request.body(Full::default()).unwrap())
            .await;
        if answer.status == 401 {
            assert!(
                answer
                    .header("www-authenticate")
                    .unwrap()
                    .starts_with("Bearer")
            );
            assert!(!answer.json()["detail"].as_str().unwrap().is_empty());
        }
        statuses.push(answer.status.as_u16());
    }
    statuses.try_into().unwrap()
}

const OPEN: [u16; 5] = [200, 404, 200, 200, 200];
const SHUT: [u16; 5] = [401, 401, 200, 200, 200];

#[tokio::test]
async fn a_token_opens_the_operators_calls_and_nothing_else_does() {
    let token = Some(Token::new(TOKEN).unwrap());
    let config = HttpConfig {
        token,
        ..HttpConfig::default()
    };
    let tester = Tester::with(config, FakeChecker::new());
    let right = format!("Bearer {TOKEN}");
    let host = Some("localhost");
    assert_eq!(
        statuses(&tester, Reach::Network, Some(&right), Some("a.example")).await,
        OPEN
    );
    assert_eq!(
        statuses(
            &tester,
            Reach::Network,
            Some(&right.replace('B', "b")),
            host
        )
        .await,
        OPEN
    );
    let mut wrong = right.clone();
    wrong.pop();
    for shut in [
        None,
        Some(wrong.as_str()),
        Some("Bearer a-long-enough-tokem"),
        Some("Bearer"),
        Some("Bearer "),
        Some("Basic YTpi"),
        Some(TOKEN),
        Some("Bearera-long-enough-token"),
    ] {
        assert_eq!(
            statuses(&tester, Reach::Loopback, shut, host).await,
            SHUT,
            "{shut:?}"
        );
    }
    assert_eq!(tester.check("{}").await.status, 200, "checks need no token");
    let listed = tester.post("/v1/checks", "{\"checks\":[]}").await;
    assert_eq!(listed.status, 200, "checks need no token");
}

#[tokio::test]
async fn without_a_token_only_this_machine_by_its_own_name_is_let_in() {
    let tester = Tester::new();
    for host in [
        "localhost",
        "LocalHost:7600",
        "127.0.0.1",
        "127.9.9.9:1",
        "[::1]:7600",
        "[::1]",
    ] {
        assert_eq!(
            statuses(&tester, Reach::Loopback, None, Some(host)).await,
            OPEN,
            "{host}"
        );
        assert_eq!(
            statuses(&tester, Reach::Network, None, Some(host)).await,
            SHUT,
            "{host}"
        );
    }
    for host in [
        "a.example",
        "localhost.a.example",
        "10.0.0.1",
        "127.0.0.1.a.example",
        "",
        "[::2]",
        "a b",
    ] {
        assert_eq!(
            statuses(&tester, Reach::Loopback, None, Some(host)).await,
            SHUT,
            "{host}"
        );
    }
    assert_eq!(statuses(&tester, Reach::Loopback, None, None).await, SHUT);
    assert_eq!(tester.check("{}").await.status, 200, "checks need no host");
}

#[test]
fn tokens_are_bounded_and_secret() {
    assert_eq!(Token::new("short"), Err(TokenError::Length));
    assert_eq!(Token::new(&"x".repeat(1025)), Err(TokenError::Length));
    assert_eq!(Token::new("has a space in it"), Err(TokenError::Characters));
    let token = Token::new(TOKEN).unwrap();
    assert!(!format!("{token:?}").contains(TOKEN));
    assert!(token.is(TOKEN.as_bytes()) && !token.is(b"") && !token.is(b"a-long-enough-tokem"));
}
