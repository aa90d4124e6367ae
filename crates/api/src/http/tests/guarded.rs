//! Every call that can lift a limit needs the token, over a socket too.

use http::{Method, Request, header};
use http_body_util::Full;

use super::{Tester, sockets::Server};
use crate::{
    fakes::FakeChecker,
    http::{HttpConfig, Reach, Token},
    operator::Switches,
};

const TOKEN: &str = "a-long-enough-token";

/// Method, path, body, and the status of who is let in.
const CALLS: [(&str, &str, &str, u16); 9] = [
    ("POST", "/v1/reserve", "{}", 200),
    ("POST", "/v1/settle", "{\"id\":\"x\",\"cost\":1}", 404),
    ("POST", "/v1/refund", "{\"attributes\":{\"ip\":\"a\"}}", 200),
    (
        "POST",
        "/v1/report",
        "{\"id\":\"x\",\"outcome\":\"success\"}",
        404,
    ),
    ("POST", "/v1/acquire", "{}", 200),
    ("POST", "/v1/release", "{\"permit_id\":\"x\"}", 404),
    (
        "DELETE",
        "/v1/keys?policy=api&limit=per-key&attr.api_key=k",
        "",
        204,
    ),
    ("PUT", "/v1/switches/kill", "{\"on\":true}", 200),
    ("PUT", "/v1/switches/shadow", "{\"on\":true}", 200),
];

fn with_token() -> HttpConfig {
    HttpConfig {
        token: Some(Token::new(TOKEN).unwrap()),
        ..HttpConfig::default()
    }
}

/// Sends each call and says which were let in; the others must be 401 and must have changed nothing.
async fn let_in(
    tester: &Tester,
    reach: Reach,
    headers: &[(header::HeaderName, &str)],
) -> Vec<bool> {
    let mut let_in = Vec::new();
    for (method, path, body, status) in CALLS {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let answer = tester
            .send_from(reach, request.body(Full::from(body)).unwrap())
            .await;
        if answer.status == 401 {
            assert_eq!(answer.json()["status"], 401);
            assert!(
                answer
                    .header("www-authenticate")
                    .unwrap()
                    .starts_with("Bearer")
            );
        } else {
            assert_eq!(answer.status, status, "{path}: {}", answer.text);
        }
        let_in.push(answer.status != 401);
    }
    let_in
}

#[tokio::test]
async fn with_a_token_set_only_its_bearer_is_let_in() {
    let tester = Tester::with(with_token(), FakeChecker::new());
    let bearer = format!("Bearer {TOKEN}");
    let right = (header::AUTHORIZATION, bearer.as_str());
    let wrong = (header::AUTHORIZATION, "Bearer a-long-enough-tokem");
    let host = (header::HOST, "localhost");
    for (reach, headers) in [
        (Reach::Loopback, vec![host.clone()]),
        (Reach::Loopback, vec![host.clone(), wrong.clone()]),
        (Reach::Network, vec![host.clone()]),
        (Reach::Network, vec![wrong]),
    ] {
        assert_eq!(
            let_in(&tester, reach, &headers).await,
            [false; 9],
            "{headers:?}"
        );
    }
    assert!(tester.checker.refunds.lock().unwrap().is_empty());
    assert!(tester.operator.resets.lock().unwrap().is_empty());
    let off = Switches::default();
    assert_eq!(*tester.operator.switches.lock().unwrap(), off);
    assert_eq!(let_in(&tester, Reach::Network, &[right]).await, [true; 9]);
    assert_eq!(tester.operator.resets.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn without_a_token_only_this_machine_by_its_own_name_is_let_in() {
    let tester = Tester::new();
    let host = |host| [(header::HOST, host)];
    for (reach, headers, right) in [
        (Reach::Loopback, host("localhost:7600"), [true; 9]),
        (Reach::Loopback, host("a.example"), [false; 9]),
        (Reach::Network, host("localhost:7600"), [false; 9]),
    ] {
        assert_eq!(let_in(&tester, reach, &headers).await, right, "{headers:?}");
    }
    assert_eq!(let_in(&tester, Reach::Loopback, &[]).await, [false; 9]);
}

#[tokio::test]
async fn the_guard_stands_on_sockets() {
    let server = Server::start(with_token()).await;
    for (method, path, body, status) in CALLS {
        for (bearer, status) in [
            (String::new(), 401),
            (
                "Authorization: Bearer wrong-and-long-enough\r\n".to_owned(),
                401,
            ),
            (format!("Authorization: Bearer {TOKEN}\r\n"), status),
        ] {
            let length = body.len();
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}Connection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            );
            let answer = server.exchange(request.as_bytes()).await;
            let right = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&right), "{path} {bearer}: {answer}");
        }
    }
}
