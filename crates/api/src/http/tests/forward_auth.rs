//! What proxies ask: whose request it is, what decides it, and what the proxy is told.

use std::net::IpAddr;

use bytes::Bytes;
use http::{Method, Request, request::Builder};
use http_body_util::Full;
use tollgate_limit::{DecidedBy, LimitSpec, Nanos, Outcome, Reason, Verdict};

use super::{Answer, Tester};
use crate::{
    fakes::{ALLOWED, FakeChecker, REFUSED, spec},
    http::{HttpConfig, Origin, Reach},
};

const LOOPBACK: &str = "127.0.0.1";
const OUTSIDE: &str = "198.51.100.9";

fn one(name: &str, key: &[&str]) -> LimitSpec {
    spec(name, 1, 60_000, key)
}

fn matching(name: &str, attribute: &str, pattern: &str, key: &[&str]) -> LimitSpec {
    LimitSpec {
        matches: vec![(attribute.to_owned(), vec![pattern.to_owned()])],
        ..one(name, key)
    }
}

/// Policies whose limits admit one request for each value.
fn tester() -> Tester {
    let checker = FakeChecker::new()
        .and("ip", one("l", &["ip"]))
        .and("path", one("l", &["path"]))
        .and("method", one("l", &["method"]))
        .and("host", one("l", &["host"]))
        .and("agent", one("l", &["header.user-agent"]))
        .and("teapot", one("l", &["ip"]))
        .and(
            "needs",
            LimitSpec {
                required: true,
                ..one("l", &["header.x-user"])
            },
        )
        .and("v1", matching("l", "path", "/v1/*", &["ip"]))
        .and("v1path", matching("l", "path", "/v1/*", &["path"]));
    let config = HttpConfig {
        trusted_proxies: vec![
            "127.0.0.0/8".parse().unwrap(),
            "10.0.0.0/8".parse().unwrap(),
            "2001:db8:cafe::/48".parse().unwrap(),
        ],
        ..HttpConfig::default()
    };
    Tester::with(config, checker)
}

fn get(path: &str) -> Builder {
    Request::get(format!("/v1/forward-auth/{path}"))
}

async fn ask(tester: &Tester, peer: &str, request: Builder) -> Answer {
    let origin = Origin {
        reach: Reach::Network,
        peer: peer.parse::<IpAddr>().ok(),
    };
    let request = request.body(Full::<Bytes>::default()).unwrap();
    tester.send_by(origin, request).await
}

/// Asks twice: the second is refused exactly if both count as one.
async fn are_one(
    policy: &str,
    first: (&str, &[(&str, &str)]),
    second: (&str, &[(&str, &str)]),
) -> bool {
    let tester = tester();
    let mut statuses = Vec::new();
    for (peer, headers) in [first, second] {
        let mut request = get(policy);
        for (name, value) in headers {
            let value = value.as_bytes();
            request = request.header(*name, value);
        }
        statuses.push(ask(&tester, peer, request).await.status.as_u16());
    }
    assert_eq!(statuses[0], 200);
    statuses[1] == 429
}

const FOR: &str = "X-Forwarded-For";

/// What is left of the right-most untrusted hop is the client's own word.
#[tokio::test]
async fn the_right_most_untrusted_hop_is_the_client() {
    let client = (OUTSIDE, &[][..]);
    for lines in [
        &["198.51.100.9"][..],
        &["1.2.3.4, 198.51.100.9"],
        &["198.51.100.9, 10.0.0.1, 127.0.0.1"],
        &["1.1.1.1", "198.51.100.9 ,10.1.2.3"],
        &["1.1.1.1,198.51.100.9", "10.1.2.3", ""],
        &["garbage, unknown, 198.51.100.9:4711"],
        &["::ffff:198.51.100.9, [2001:db8:cafe::1]:80, ::ffff:10.0.0.1"],
        &[", 198.51.100.9,, ,10.0.0.1,"],
    ] {
        let headers: Vec<_> = lines.iter().map(|line| (FOR, *line)).collect();
        assert!(
            are_one("ip", client, (LOOPBACK, &headers)).await,
            "{lines:?}"
        );
        assert!(
            are_one("ip", client, ("::ffff:127.0.0.1", &headers)).await,
            "{lines:?}"
        );
    }
    let (mine, other) = (
        [(FOR, "1.2.3.4, 198.51.100.9")],
        [(FOR, "198.51.100.9, 1.2.3.4")],
    );
    assert!(!are_one("ip", (LOOPBACK, &mine), (LOOPBACK, &other)).await);
}

#[tokio::test]
async fn what_an_untrusted_peer_says_is_ignored() {
    for (policy, name, value) in [
        ("ip", FOR, "1.2.3.4"),
        ("method", "X-Forwarded-Method", "PUT"),
        ("method", "X-Original-Method", "PUT"),
        ("path/p", "X-Forwarded-Uri", "/free"),
        ("path/p", "X-Original-URI", "/free"),
        ("path/p", "X-Original-URL", "http://a/free"),
        ("host", "X-Forwarded-Host", "b"),
    ] {
        let host = ("Host", "a");
        for (peer, right) in [(OUTSIDE, true), (LOOPBACK, false)] {
            let one = are_one(policy, (peer, &[host]), (peer, &[host, (name, value)])).await;
            assert_eq!(one, right, "{name} by {peer}");
        }
    }
}

#[tokio::test]
async fn a_hop_that_is_no_address_ends_the_walk() {
    let headers = |value| [(FOR, value)];
    for (first, second, one) in [
        ("9.9.9.9, unknown", "8.8.8.8, unknown, 10.0.0.1", true),
        ("unknown", "_hidden", false),
        ("9.9.9.9, 10.0.0.300", "8.8.8.8, 10.0.0.300", true),
        ("\"[2001:db8::1]\"", "\"[2001:db8::2]\"", false),
    ] {
        let (a, b) = (headers(first), headers(second));
        let counted = are_one("ip", (LOOPBACK, &a), (LOOPBACK, &b)).await;
        assert_eq!(counted, one, "{first} and {second}");
    }
    // All are trusted: the call is one of our own, and the left-most made it.
    let own = headers("10.0.0.7, 10.0.0.8");
    assert!(are_one("ip", ("10.0.0.7", &[]), (LOOPBACK, &own)).await);
    let long = format!("{}, 10.0.0.1", "x".repeat(4000));
    assert!(
        are_one(
            "ip",
            (LOOPBACK, &headers(&long)),
            (LOOPBACK, &headers(&long))
        )
        .await
    );
}

#[tokio::test]
async fn without_an_address_of_the_peer_nothing_is_believed_and_there_is_no_ip() {
    let tester = tester();
    for _ in 0..3 {
        let answer = ask(&tester, "none", get("ip").header(FOR, "1.2.3.4")).await;
        assert_eq!((answer.status.as_u16(), answer.headers.len()), (200, 0));
    }
    let path = |header| get("path/p").header("X-Forwarded-Uri", header);
    assert_eq!(ask(&tester, "none", path("/a")).await.status, 200);
    assert_eq!(ask(&tester, "none", path("/b")).await.status, 429);
}

#[tokio::test]
async fn the_path_has_no_query_and_no_authority() {
    const URI: &str = "X-Forwarded-Uri";
    for (first, second, one) in [
        ((URI, "/a?x=1"), (URI, "/a?y=2"), true),
        ((URI, "/a"), ("X-Original-URI", "/a?z"), true),
        (
            (URI, "/a"),
            ("X-Original-URL", "https://h:1/a?b=://c"),
            true,
        ),
        ((URI, "/"), ("X-Original-URL", "https://h"), true),
        ((URI, "/a"), (URI, "/a/"), false),
        ((URI, "/a://b"), (URI, "/c://b"), false),
        ((URI, "/a%3Fb"), (URI, "/a"), false),
    ] {
        let counted = are_one("path", (LOOPBACK, &[first]), (LOOPBACK, &[second])).await;
        assert_eq!(counted, one, "{first:?} and {second:?}");
    }
    let both = [
        ("X-Original-URI", "/free"),
        (URI, "/a"),
        ("X-Original-URL", "/free"),
    ];
    assert!(are_one("path", (LOOPBACK, &[(URI, "/a")]), (LOOPBACK, &both)).await);
    // A proxy that adds a line instead of replacing the client's: the last is its own.
    let lines = [(URI, "/free"), (URI, "/a")];
    assert!(are_one("path", (LOOPBACK, &[(URI, "/a")]), (LOOPBACK, &lines)).await);
}

#[tokio::test]
async fn a_path_below_the_policy_is_the_clients() {
    let tester = tester();
    for (path, status) in [
        ("v1/v1/search?deny_status=200", 200),
        ("v1/other", 200),
        ("v1/v1x", 200),
        ("v1", 200),
        ("v1/v1/any/thing?a=b&deny_status=403", 429),
        ("v1//v1/search", 200),
    ] {
        let answer = ask(&tester, OUTSIDE, get(path)).await;
        assert_eq!(answer.status, status, "{path}");
    }
    // A trusted proxy that tells the path does not mean the one below.
    let told = get("v1/other").header("X-Forwarded-Uri", "/v1/a");
    let told = told.header(FOR, OUTSIDE);
    assert_eq!(ask(&tester, LOOPBACK, told).await.status, 429);
}

#[tokio::test]
async fn a_host_is_one_however_it_is_written() {
    let host = |value| [("Host", value)];
    for (first, second, one) in [
        ("Example.com", "example.COM:443", true),
        ("example.com", "example.com.", true),
        ("[2001:db8::1]", "[2001:DB8::1]:80", true),
        ("example.com", "example.org", false),
    ] {
        let (a, b) = (host(first), host(second));
        let counted = are_one("host", (OUTSIDE, &a), (OUTSIDE, &b)).await;
        assert_eq!(counted, one, "{first} and {second}");
    }
}

/// An over-long path with control characters, by its hash and without an error.
#[tokio::test]
async fn a_long_and_illegal_path_counts_and_still_matches() {
    let long = format!("/v1/%00%0a\u{e9}{}", "%7f".repeat(2048));
    let raw = [b"/v1/\t\xff".as_slice(), &[b'x'; 2048]].concat();
    let tester = tester();
    let below = |policy: &str| get(&format!("{policy}{}", long.replace('\u{e9}', "%e9")));
    for policy in ["path", "v1", "v1path"] {
        let peer = if policy == "v1" { "192.0.2.1" } else { OUTSIDE };
        assert_eq!(ask(&tester, peer, below(policy)).await.status, 200);
        assert_eq!(
            ask(&tester, peer, below(policy)).await.status,
            429,
            "{policy}"
        );
    }
    for told in [long.as_bytes(), &raw] {
        let asked = |last: u8| {
            let told = [told, &[last]].concat();
            get("v1path").header("X-Original-URI", told.as_slice())
        };
        assert_eq!(ask(&tester, LOOPBACK, asked(b'a')).await.status, 200);
        assert_eq!(ask(&tester, LOOPBACK, asked(b'a')).await.status, 429);
        assert_eq!(ask(&tester, LOOPBACK, asked(b'b')).await.status, 200);
        assert_eq!(ask(&tester, LOOPBACK, asked(0xfe)).await.status, 200);
        assert_eq!(ask(&tester, LOOPBACK, asked(0xff)).await.status, 200);
        assert_eq!(ask(&tester, LOOPBACK, asked(0xff)).await.status, 429);
    }
}

#[tokio::test]
async fn a_client_cannot_push_a_header_out_by_sending_others() {
    let tester = tester();
    let crowd = |user: &str| {
        let mut request = get("agent");
        for number in 0..100 {
            request = request.header(format!("X-Crowd-{number}"), "v");
        }
        request
            .header("User-Agent", user)
            .header("USER-AGENT", "second")
    };
    assert_eq!(ask(&tester, OUTSIDE, crowd("a")).await.status, 200);
    assert_eq!(ask(&tester, OUTSIDE, crowd("b")).await.status, 200);
    assert_eq!(ask(&tester, OUTSIDE, crowd("a")).await.status, 429);
    let joined = get("agent").header("user-agent", "a, second");
    assert_eq!(ask(&tester, OUTSIDE, joined).await.status, 429);
}

/// The bound is on what the policy names: the first of it always count.
#[tokio::test]
async fn of_too_many_headers_the_first_that_the_policy_names_count() {
    let mut checker = FakeChecker::new();
    for number in 0..62 {
        let key = format!("header.h{number}");
        checker = checker.and("many", one(&format!("l{number}"), &[&key]));
    }
    let tester = Tester::with(HttpConfig::default(), checker);
    let mut request = get("many");
    for number in (0..100).rev() {
        request = request.header(format!("h{number}"), "v");
    }
    let answer = ask(&tester, OUTSIDE, request.header("Host", "h")).await;
    let told = answer.header("ratelimit").unwrap();
    let limits: Vec<_> = told.split(", ").collect();
    // Beside ip, method and host; the path is not known.
    assert_eq!(limits.len(), 61, "{told}");
    assert!(limits[0].starts_with("\"l0\"") && limits[60].starts_with("\"l60\""));
}

#[tokio::test]
async fn an_admitted_request_is_told_by_headers_alone() {
    let tester = tester();
    tester.checker.can("l", ALLOWED, DecidedBy::Fallback);
    let answer = ask(&tester, OUTSIDE, get("ip")).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""));
    assert_eq!(answer.header("content-type"), None);
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("99"));
    assert_eq!(answer.header("ratelimit"), Some("\"l\";r=99;t=7"));
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(answer.header("tollgate-degraded"), Some("fallback"));
}

#[tokio::test]
async fn a_refusal_has_the_status_that_was_asked_for() {
    let tester = tester();
    tester.checker.can("l", REFUSED, DecidedBy::Owner);
    for (path, status) in [
        ("ip", 429),
        ("teapot", 418),
        ("teapot?deny_status=403", 403),
        ("ip?deny_status=400", 400),
        ("ip?deny_status=599", 599),
        ("teapot/p?deny_status=403", 418),
        ("ip/?deny_status=403", 429),
    ] {
        let answer = ask(&tester, OUTSIDE, get(path)).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("retry-after"), Some("2"));
        assert_eq!(answer.header("ratelimit"), Some("\"l\";r=0;t=2"));
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        let said = answer.json();
        assert_eq!(said["status"], status);
        assert_eq!(said["reason"], "limit_exceeded");
        assert_eq!(said["violated-policies"][0], "l");
    }
    let undecided = Verdict {
        outcome: Outcome::Refuse(Reason::Undecided),
        retry_after: Some(Nanos::from_millis(1000)),
        ..REFUSED
    };
    tester.checker.can("l", undecided, DecidedBy::Fallback);
    let answer = ask(&tester, OUTSIDE, get("ip?deny_status=403")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["status"], 503);
}

#[tokio::test]
async fn what_a_limit_requires_and_the_request_lacks_is_a_refusal() {
    let tester = tester();
    for (path, status) in [
        ("needs", 429),
        ("needs?deny_status=401", 401),
        ("needs?deny_status=503", 503),
    ] {
        let answer = ask(&tester, OUTSIDE, get(path)).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.json()["status"], status);
        assert_eq!(answer.json()["field"], "attributes.header.x-user");
        // Neither time nor a token would help.
        assert_eq!(answer.header("retry-after"), None);
        assert_eq!(answer.header("www-authenticate"), None);
    }
    let named = get("needs").header("X-User", "7");
    assert_eq!(ask(&tester, OUTSIDE, named).await.status, 200);
}

#[tokio::test]
async fn a_proxy_that_is_configured_wrongly_is_told() {
    let tester = tester();
    for (path, status, field) in [
        ("nope", 404, "policy"),
        ("", 404, "policy"),
        ("nope/a?deny_status=1", 404, "policy"),
        ("ip?deny_status=200", 400, "deny_status"),
        ("ip?deny_status=399", 400, "deny_status"),
        ("ip?deny_status=600", 400, "deny_status"),
        ("ip?deny_status=", 400, "deny_status"),
        ("ip?deny_status=403&deny_status=403", 400, "deny_status"),
        ("ip?denystatus=403", 400, "denystatus"),
    ] {
        let answer = ask(&tester, OUTSIDE, get(path)).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.json()["field"], field, "{path}");
    }
    assert_eq!(tester.checker.used(), 0);
    for path in ["/v1/forward-auth", "/v1/forward-authx/ip"] {
        assert_eq!(tester.get(path).await.status, 404);
    }
}

#[tokio::test]
async fn a_policy_of_permits_alone_names_acquire() {
    let permits = LimitSpec {
        algorithm: tollgate_limit::AlgorithmSpec::Concurrency {
            ttl: Nanos::from_millis(60_000),
        },
        ..one("l", &["ip"])
    };
    let tester = Tester::with(
        HttpConfig::default(),
        FakeChecker::new().and("permits", permits),
    );
    let answer = ask(&tester, OUTSIDE, get("permits")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text.contains("/v1/acquire"), "{}", answer.text);
}

#[tokio::test]
async fn any_method_is_taken_and_its_body_ignored() {
    let tester = tester();
    for method in ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PURGE"] {
        for (status, body) in [(200, "{}"), (429, "\u{0}")] {
            let request = Request::builder()
                .method(Method::from_bytes(method.as_bytes()).unwrap())
                .uri("/v1/forward-auth/method/any")
                .header("Content-Type", "image/png")
                .body(Full::from(body))
                .unwrap();
            let answer = tester.send(request).await;
            assert_eq!(answer.status, status, "{method}");
            let empty = status == 200 || method == "HEAD";
            assert_eq!(answer.text.is_empty(), empty, "{method}");
        }
    }
    let metrics = tester.get("/metrics").await.text;
    let line = "http_requests_total{call=\"forward_auth\",status=\"429\"} 7";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn a_decision_that_takes_a_while_is_awaited() {
    let tester = Tester::new();
    tester.checker.gate.add_permits(1);
    let answer = ask(&tester, OUTSIDE, get("later")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-ratelimit-limit"), Some("100"));
}
