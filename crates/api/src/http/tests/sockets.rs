//! Raw bytes over loopback TCP.

use std::{net::SocketAddr, sync::atomic::Ordering, time::Duration};

use proptest::{prelude::*, test_runner::TestRunner};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

use super::Tester;
use crate::{
    fakes::FakeChecker,
    http::{HttpConfig, ServeError, serve, whole::MAX_PIECE},
};

/// The longest that anything here may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
pub(super) const BODY: &str = "{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k\"}}";

pub(super) struct Server {
    tester: Tester,
    address: SocketAddr,
    pub(super) stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    pub(super) async fn start(config: HttpConfig) -> Self {
        let tester = Tester::with(config, FakeChecker::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, tester.http.clone(), async {
            drop(stopped.await);
        }));
        Self {
            tester,
            address,
            stop: Some(stop),
            served,
        }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `bytes` and reads until the server closes.
    pub(super) async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        to_end(&mut stream).await
    }
}

async fn to_end(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let ended = timeout(DEADLINE, stream.read_to_end(&mut read)).await;
    ended.expect("the server closes in time").unwrap();
    String::from_utf8_lossy(&read).into_owned()
}

/// Reads until `count` answers have come.
async fn answers(stream: &mut TcpStream, count: usize) -> String {
    let (mut read, mut chunk) = (Vec::new(), [0; 4096]);
    let all = async {
        while String::from_utf8_lossy(&read)
            .matches("\"limits\":[")
            .count()
            < count
        {
            let length = stream.read(&mut chunk).await.unwrap();
            assert_ne!(length, 0, "closed after {}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&chunk[..length]);
        }
    };
    timeout(DEADLINE, all)
        .await
        .expect("the answers come in time");
    String::from_utf8(read).unwrap()
}

fn post(more: &str) -> String {
    format!(
        "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    )
}

fn short() -> HttpConfig {
    HttpConfig {
        header_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(400),
        ..HttpConfig::default()
    }
}

#[tokio::test]
async fn pipelined_checks_are_answered_in_order() {
    let server = Server::start(HttpConfig::default()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(post("").repeat(20).as_bytes())
        .await
        .unwrap();
    let read = answers(&mut stream, 20).await;
    assert_eq!(read.matches("HTTP/1.1 200 OK\r\n").count(), 20);
    let used: Vec<_> = read
        .split("\"used\":")
        .skip(1)
        .map(|rest| rest.split(',').next().unwrap())
        .collect();
    let right: Vec<_> = (1..=20).map(|number| number.to_string()).collect();
    assert_eq!(used, right);
    assert!(read.contains("\r\ndate: "), "{read}");
    assert!(!read.to_lowercase().contains("transfer-encoding"), "{read}");
}

#[tokio::test]
async fn a_body_in_pieces_is_one_body() {
    let server = Server::start(HttpConfig::default()).await;
    let mut stream = server.connect().await;
    let request = post("");
    for (place, byte) in request.bytes().enumerate() {
        stream.write_all(&[byte]).await.unwrap();
        if place % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert!(answers(&mut stream, 1).await.starts_with("HTTP/1.1 200 OK"));
    let head = "POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (one, two) = BODY.split_at(9);
    let chunked = format!(
        "{head}{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    stream.write_all(chunked.as_bytes()).await.unwrap();
    assert!(answers(&mut stream, 1).await.contains("\"used\":2"));
}

#[tokio::test]
async fn a_large_body_gets_its_answer() {
    let server = Server::start(HttpConfig::default()).await;
    let head = "POST /v1/check HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let body = "x".repeat(2 << 20);
    let sized = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let answer = server.exchange(sized.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer:.200}");
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let answer = server.exchange(chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer:.200}");
    // All of it was read, so the connection goes on.
    let mut stream = server.connect().await;
    let head = head.replace("Connection: close\r\n", "");
    let sized = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(sized.as_bytes()).await.unwrap();
    stream.write_all(post("").as_bytes()).await.unwrap();
    let both = answers(&mut stream, 1).await;
    assert!(
        both.starts_with("HTTP/1.1 413 ") && both.contains("HTTP/1.1 200 OK"),
        "{both}"
    );
    // One that asks first is not even let begin.
    let asking = format!("{head}Expect: 100-continue\r\nContent-Length: 2097152\r\n\r\n");
    let answer = server.exchange(asking.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer:.200}");
}

#[tokio::test]
async fn a_long_answer_comes_whole() {
    let server = Server::start(HttpConfig::default()).await;
    let body = format!("{{\"checks\":[{BODY}{}]}}", format!(",{BODY}").repeat(199));
    let head = "POST /v1/checks HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let asked = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let answer = server.exchange(asked.as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(body.len() > 4 * MAX_PIECE, "{}", body.len());
    let length = format!("content-length: {}", body.len());
    assert!(head.lines().any(|line| line == length), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["results"].as_array().unwrap().len(), 200);
}

#[tokio::test]
async fn a_wrong_method_and_a_broken_head_are_told() {
    let server = Server::start(HttpConfig::default()).await;
    let get = "GET /v1/check HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = server.exchange(get.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: POST\r\n"),
        "{answer}"
    );
    let answer = server.exchange(b"what is this\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let huge = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(1 << 17));
    let mut stream = server.connect().await;
    // The server may close before all is written.
    drop(stream.write_all(huge.as_bytes()).await);
    let mut read = [0; 12];
    timeout(DEADLINE, stream.read_exact(&mut read))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&read, b"HTTP/1.1 431");
}

#[tokio::test]
async fn who_dawdles_is_let_go() {
    let server = Server::start(short()).await;
    for head in ["", "P", "POST /v1/check HTTP/1.1\r\nHost: a\r\nX-Slow: "] {
        let mut stream = server.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        drop(to_end(&mut stream).await);
    }
    // Bytes that go on coming do not make a head.
    let mut stream = server.connect().await;
    let dribble = async {
        while stream.write_all(b"P").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, dribble).await.expect("it is let go");
    let mut stream = server.connect().await;
    let head = "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    // An idle one had its answer.
    let mut stream = server.connect().await;
    stream.write_all(post("").as_bytes()).await.unwrap();
    assert!(to_end(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_request_in_flight_is_not_idle() {
    let server = Server::start(short()).await;
    let mut stream = server.connect().await;
    let later = post("")
        .replace("\"api\"", "\"later\"")
        .replace("api_key", "ip")
        .replace(
            &format!("Content-Length: {}", BODY.len()),
            &format!("Content-Length: {}", BODY.len() + 2 - 5),
        );
    stream.write_all(later.as_bytes()).await.unwrap();
    // Longer than an idle connection lives.
    let waited = timeout(Duration::from_millis(800), stream.readable()).await;
    assert!(waited.is_err(), "it is neither answered nor closed");
    server.tester.checker.gate.add_permits(1);
    assert!(answers(&mut stream, 1).await.contains("\"far\""));
}

#[tokio::test]
async fn connections_are_bounded() {
    let server = Server::start(HttpConfig {
        max_connections: 1,
        ..HttpConfig::default()
    })
    .await;
    let mut first = server.connect().await;
    first.write_all(post("").as_bytes()).await.unwrap();
    answers(&mut first, 1).await;
    let mut second = server.connect().await;
    second.write_all(post("").as_bytes()).await.unwrap();
    let waited = timeout(Duration::from_millis(100), second.readable()).await;
    assert!(waited.is_err(), "there is room for one");
    drop(first);
    answers(&mut second, 1).await;
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight() {
    let mut server = Server::start(HttpConfig::default()).await;
    let mut idle = server.connect().await;
    idle.write_all(post("").as_bytes()).await.unwrap();
    answers(&mut idle, 1).await;
    let mut busy = server.connect().await;
    let body = "{\"policy\":\"later\",\"attributes\":{\"ip\":\"k\"}}";
    let head = format!(
        "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    busy.write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    let taken = async {
        while server.tester.checker.taken.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, taken).await.unwrap();
    drop(server.stop.take());
    assert_eq!(to_end(&mut idle).await, "");
    assert!(!server.served.is_finished(), "a check is in flight");
    server.tester.checker.gate.add_permits(1);
    assert!(to_end(&mut busy).await.contains("\"far\""));
    timeout(DEADLINE, server.served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    TcpStream::connect(server.address).await.unwrap_err();
}

#[tokio::test]
async fn a_connection_of_a_leaving_node_ends_with_its_next_answer() {
    let server = Server::start(HttpConfig::default()).await;
    let ask = format!(
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let mut stream = server.connect().await;
    for _ in 0..2 {
        stream.write_all(ask.as_bytes()).await.unwrap();
        let answer = answers(&mut stream, 1).await;
        assert!(!answer.contains("connection: close"), "{answer}");
    }
    server.tester.http.leave();
    stream.write_all(ask.as_bytes()).await.unwrap();
    let last = to_end(&mut stream).await;
    assert!(last.starts_with("HTTP/1.1 200"), "{last}");
    assert!(last.contains("connection: close"), "{last}");
    // Whoever comes is still answered, once.
    let again = server.exchange(ask.as_bytes()).await;
    assert!(again.starts_with("HTTP/1.1 200"), "{again}");
    assert!(again.contains("connection: close"), "{again}");
}

#[tokio::test]
async fn a_stop_waits_only_so_long() {
    let shutdown_timeout = Duration::from_millis(50);
    let mut server = Server::start(HttpConfig {
        shutdown_timeout,
        ..HttpConfig::default()
    })
    .await;
    let mut stuck = server.connect().await;
    stuck
        .write_all(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        .await
        .unwrap();
    stuck.writable().await.unwrap();
    drop(server.stop.take());
    timeout(DEADLINE, server.served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    // What it had sent was never read, so it may see a reset.
    let mut read = Vec::new();
    drop(
        timeout(DEADLINE, stuck.read_to_end(&mut read))
            .await
            .expect("it is closed"),
    );
}

#[test]
fn random_bytes_break_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(Server::start(short()));
    let config = ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let bytes = proptest::collection::vec(any::<u8>(), 1..200);
    let input = (0..4_u8, bytes);
    let outcome = TestRunner::new(config).run(&input, |(kind, bytes)| {
        let mut sent = match kind {
            0 => Vec::new(),
            1 => b"POST /v1/check HTTP/1.1\r\nHost: ".to_vec(),
            2 => b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n".to_vec(),
            _ => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        };
        sent.extend_from_slice(&bytes);
        let answer = runtime.block_on(async {
            let mut stream = server.connect().await;
            // Any of these may fail once the server has had enough.
            drop(stream.write_all(&sent).await);
            drop(stream.shutdown().await);
            let mut read = Vec::new();
            let ended = timeout(DEADLINE, stream.read_to_end(&mut read)).await;
            assert!(ended.is_ok(), "the server closes in time");
            read
        });
        prop_assert!(
            !answer.starts_with(b"HTTP/1.1 5"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        Ok(())
    });
    outcome.unwrap();
    let alive = runtime.block_on(async {
        let mut stream = server.connect().await;
        stream.write_all(post("").as_bytes()).await.unwrap();
        answers(&mut stream, 1).await
    });
    assert!(alive.starts_with("HTTP/1.1 200 OK"));
}
