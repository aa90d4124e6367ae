//! HTTP/2 with prior knowledge, on the listener that speaks HTTP/1 too.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::sockets::{BODY, DEADLINE, Server};
use crate::http::HttpConfig;

#[tokio::test]
async fn checks_are_answered_over_http_2() {
    let mut server = Server::start(HttpConfig::default()).await;
    let io = TokioIo::new(server.connect().await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let asked = (0..8).map(|_| {
        let request = Request::builder()
            .method(Method::POST)
            .uri("http://localhost/v1/check")
            .body(Full::new(Bytes::from_static(BODY.as_bytes())));
        sender.send_request(request.unwrap())
    });
    let answers = timeout(DEADLINE, futures_util::future::join_all(asked));
    for answer in answers.await.unwrap() {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["x-ratelimit-limit"], "100");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["allowed"], true);
    }
    // A stop is told to the client, though it keeps its end open.
    drop(server.stop.take());
    let ended = timeout(DEADLINE, connection).await.unwrap();
    ended.unwrap().unwrap();
}

#[tokio::test]
async fn a_preface_in_pieces_is_one_preface() {
    let server = Server::start(HttpConfig::default()).await;
    let mut stream = server.connect().await;
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0" {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut frame = [0; 9];
    let read = timeout(DEADLINE, stream.read_exact(&mut frame)).await;
    read.unwrap().unwrap();
    assert_eq!((frame[3], &frame[5..]), (4, &[0; 4][..]), "settings first");
}
