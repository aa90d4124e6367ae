//! P8, over the real program: any input, however broken, gets a clear error and never a panic.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, UdpSocket},
    time::Duration,
};

use http::Method;
use tollgate::http_client::Call;

use crate::harness::{Dev, DevOptions, Node};

const PER_IP: &str = r#"
[[limit]]
name = "per-ip"
key = ["ip"]
limit = 1000
window = "1h"
"#;

/// A body, the status that it must get, and a word that the answer must have: the field.
const BODIES: [(&str, u16, &str); 16] = [
    ("", 400, "body"),
    ("not JSON", 400, "body"),
    ("[]", 400, ""),
    (r#"{"attributes": {"ip": "a"}, "costs": 1}"#, 400, "costs"),
    (
        r#"{"policy": "none", "attributes": {"ip": "a"}}"#,
        404,
        "none",
    ),
    (r#"{"attributes": {"ip": "a"}, "cost": -1}"#, 400, "cost"),
    (
        r#"{"attributes": {"ip": "a"}, "cost": 9223372036854775808}"#,
        400,
        "cost",
    ),
    (r#"{"attributes": {"ip": "a"}, "cost": 1.5}"#, 400, "cost"),
    (r#"{"attributes": {"ip": "a"}, "cost": "1"}"#, 400, "cost"),
    (
        r#"{"limit": {"name": "l", "limit": -1, "window": "1m"}, "key": {"u": "1"}}"#,
        400,
        "limit",
    ),
    (
        r#"{"limit": {"name": "l", "limit": 5, "window": "0s"}, "key": {"u": "1"}}"#,
        400,
        "window",
    ),
    (
        r#"{"limit": {"name": "l", "limit": 5, "window": 0}, "key": {"u": "1"}}"#,
        400,
        "window",
    ),
    (
        r#"{"limit": {"name": "l", "limit": 5, "window": "7 parsecs"}, "key": {"u": "1"}}"#,
        400,
        "window",
    ),
    (
        r#"{"limit": {"name": "l", "limit": 5, "window": "1m"}, "key": {"u": ""}}"#,
        400,
        "u",
    ),
    (
        r#"{"limit": {"name": "l", "limit": 5, "window": "1m"}}"#,
        400,
        "key",
    ),
    (r#"{"attributes": {"ip": "a\u0000b"}}"#, 400, "ip"),
];

#[test]
fn broken_input_is_told_and_harms_nothing() {
    let cluster = Dev::start(&DevOptions {
        nodes: 1,
        policies: PER_IP,
        more: &[],
    });
    let mut node = cluster.node(0);
    for (body, status, word) in BODIES {
        let answer = node.call(json_call(body.as_bytes())).unwrap();
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert_eq!(
            answer.headers["content-type"], "application/problem+json",
            "{body}"
        );
        assert!(answer.text.contains(word), "{body}: {}", answer.text);
    }
    sizes_methods_and_types(&mut node);
    raw_bytes(&cluster);
    assert!(node.check("192.0.2.1").unwrap().is_allowed());
    assert_eq!(cluster.end(), Some(0));
}

fn sizes_methods_and_types(node: &mut Node) {
    let large = format!(r#"{{"attributes": {{"ip": "{}"}}}}"#, "a".repeat(2 << 20));
    // The node may refuse before it has read all of it: then the connection breaks.
    if let Ok(answer) = node.call(json_call(large.as_bytes())) {
        assert_eq!(answer.status, 413, "{}", answer.text);
    }
    let wrong_method = node.get("/v1/check").unwrap();
    assert_eq!(wrong_method.status, 405);
    let no_such_call = node.get("/v1/nothing").unwrap();
    assert_eq!(no_such_call.status, 404);
}

fn json_call(body: &[u8]) -> Call<'_> {
    Call {
        method: Method::POST,
        path: "/v1/check",
        token: None,
        body: body.to_vec(),
    }
}

/// What no client library would send: to the HTTP port, and to the QUIC port.
fn raw_bytes(cluster: &Dev) {
    let http = cluster.nodes[0].http.strip_prefix("http://").unwrap();
    let typed = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n\
                 content-length: 2\r\nconnection: close\r\n\r\n{}";
    assert!(exchange(http, typed.as_bytes()).starts_with("HTTP/1.1 415"));
    let random = random_bytes(1000);
    let answer = exchange(http, &random);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
        "{answer}"
    );
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, 20, 1200] {
        socket
            .send_to(&random_bytes(length), &cluster.nodes[0].quic)
            .unwrap();
    }
}

/// Sends bytes and reads to the end of the connection.
fn exchange(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // The node may have closed the connection already; what it said before that is still read.
    drop(stream.write_all(bytes));
    drop(stream.shutdown(std::net::Shutdown::Write));
    let mut answer = Vec::new();
    // A reset after the answer is an end, too.
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

/// Bytes that look random and are the same in each run.
pub(crate) fn random_bytes(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| byte()).collect()
}
