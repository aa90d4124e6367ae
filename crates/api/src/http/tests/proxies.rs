//! Proxies over loopback TCP: the address of the peer, bodies, and answers without one.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::sockets::{DEADLINE, Server};
use crate::http::HttpConfig;

const POLICY: &str = "/v1/forward-auth/default";

/// Sends a request and reads the head of its answer.
async fn head(stream: &mut TcpStream, method: &str, more: &str) -> String {
    let request = format!("{method} {POLICY} HTTP/1.1\r\nHost: a\r\n{more}");
    let mut read = Vec::new();
    let exchange = async {
        stream.write_all(request.as_bytes()).await.unwrap();
        while !read.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "closed");
        }
    };
    timeout(DEADLINE, exchange)
        .await
        .expect("it is answered in time");
    String::from_utf8(read).unwrap()
}

fn remaining(head: &str) -> &str {
    let (_, rest) = head.split_once("x-ratelimit-remaining: ").unwrap();
    rest.split("\r\n").next().unwrap()
}

#[tokio::test]
async fn the_peer_of_a_connection_is_known() {
    let trusting = Server::start(HttpConfig::default()).await;
    let wary = HttpConfig {
        trusted_proxies: Vec::new(),
        ..HttpConfig::default()
    };
    let wary = Server::start(wary).await;
    for (server, left) in [(trusting, ["99", "99", "98"]), (wary, ["99", "98", "97"])] {
        let mut stream = server.connect().await;
        let hop = "X-Forwarded-For: 203.0.113.7\r\n\r\n";
        for (more, left) in ["\r\n", hop, hop].into_iter().zip(left) {
            let answer = head(&mut stream, "GET", more).await;
            assert_eq!(remaining(&answer), left);
        }
        // Every connection of this machine has its address.
        let answer = head(&mut server.connect().await, "GET", "\r\n").await;
        assert_eq!(
            remaining(&answer),
            if left[1] == "98" { "96" } else { "98" }
        );
    }
}

/// The connection goes on after a body, whatever it is.
#[tokio::test]
async fn bodies_are_read_over() {
    let server = Server::start(HttpConfig::default()).await;
    let mut stream = server.connect().await;
    let long = "x".repeat(100_000);
    for (number, more) in [
        format!("Content-Length: 100000\r\n\r\n{long}"),
        format!("Transfer-Encoding: chunked\r\n\r\n186a0\r\n{long}\r\n0\r\n\r\n"),
        "Content-Length: 0\r\n\r\n".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let answer = head(&mut stream, "PUT", more).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert_eq!(remaining(&answer), (99 - number).to_string());
    }
}

/// A body that is broken, or that does not come, is no error either.
#[tokio::test]
async fn a_body_that_does_not_come_delays_an_answer_for_a_bounded_time() {
    let config = HttpConfig {
        body_timeout: std::time::Duration::from_millis(50),
        ..HttpConfig::default()
    };
    let server = Server::start(config).await;
    for more in [
        "Content-Length: 9\r\n\r\nhalf",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let answer = head(&mut server.connect().await, "POST", more).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_head_has_no_body() {
    let server = Server::start(HttpConfig::default()).await;
    let mut stream = server.connect().await;
    for number in 0..102 {
        // Were there a body, the next head would not start where it does.
        let answer = head(&mut stream, "HEAD", "\r\n").await;
        let status = if number < 100 {
            "200 OK"
        } else {
            "429 Too Many Requests"
        };
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{answer}"
        );
    }
}
