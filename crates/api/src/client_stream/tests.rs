//! The client protocol over in-memory streams.

mod inline;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::stream::FuturesUnordered;
use proptest::{prelude::*, test_runner::TestRunner};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    task::JoinHandle,
    time::timeout,
};
use tollgate_limit::{CheckId, DecidedBy};
use tollgate_wire::{
    client::{self, Answer, Check, Fault, FaultKind, Pairs, Subject},
    frame::{self, MAX_CLIENT_FRAME},
};

use self::inline::inline;
use super::{MAX_OUTPUT, MAX_WAITING, StreamError, batch::Batch, serve_stream};
use crate::fakes::{FakeChecker, REFUSED};

const DEADLINE: Duration = Duration::from_secs(10);

struct Client {
    stream: DuplexStream,
    buffer: Vec<u8>,
    checker: Arc<FakeChecker>,
    served: JoinHandle<Result<(), StreamError>>,
}

impl Client {
    /// A client whose stream holds `room` bytes each way.
    fn new(room: usize) -> Self {
        let (stream, node) = duplex(room);
        let (reader, writer) = tokio::io::split(node);
        let checker = Arc::new(FakeChecker::new());
        let served = tokio::spawn(serve_stream(reader, writer, Arc::clone(&checker)));
        Self {
            stream,
            buffer: Vec::new(),
            checker,
            served,
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        timeout(DEADLINE, self.stream.write_all(bytes))
            .await
            .unwrap()
            .unwrap();
    }

    /// The next answer and its id; `None` at the end.
    async fn next(&mut self) -> Option<(u64, Result<Answer, Fault>)> {
        loop {
            if let Some((frame, length)) = frame::split(&self.buffer, MAX_CLIENT_FRAME).unwrap() {
                let answer = (frame.id, client::read_answer(frame.body).unwrap());
                self.buffer.drain(..length);
                return Some(answer);
            }
            let read = timeout(DEADLINE, self.stream.read_buf(&mut self.buffer)).await;
            if read.expect("an answer in time").unwrap() == 0 {
                assert!(self.buffer.is_empty());
                return None;
            }
        }
    }

    async fn fault(&mut self, bytes: &[u8]) -> (u64, Fault) {
        self.send(bytes).await;
        let (id, answer) = self.next().await.expect("an error frame");
        (id, answer.expect_err("a fault"))
    }

    async fn end(mut self) -> Result<(), StreamError> {
        self.stream.shutdown().await.unwrap();
        assert!(self.next().await.is_none());
        timeout(DEADLINE, self.served).await.unwrap().unwrap()
    }
}

fn pairs(pairs: &[(&'static str, &'static str)]) -> Pairs<'static> {
    pairs.iter().copied().collect()
}

fn policy(name: &'static str, attributes: &[(&'static str, &'static str)]) -> Check<'static> {
    let attributes = pairs(attributes);
    Check {
        subject: Subject::Policy {
            name: name.into(),
            attributes,
        },
        cost: 1,
        peek: false,
    }
}

fn framed(id: u64, check: &Check<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put(&mut bytes, id, |body| client::put_check(body, check)).unwrap();
    bytes
}

fn raw(length: u32, version: u8, id: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.push(version);
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

#[tokio::test]
async fn a_batch_is_decided_in_order_with_one_clock_reading() {
    let mut client = Client::new(1 << 20);
    let check = policy("api", &[("api_key", "k")]);
    let batch: Vec<u8> = (0..100).flat_map(|id| framed(id, &check)).collect();
    client.send(&batch).await;
    for id in 0..100 {
        let (answered, answer) = client.next().await.unwrap();
        let answer = answer.unwrap();
        assert_eq!((answered, answer.limits[0].verdict.used), (id, id + 1));
        assert_eq!(
            answer.id,
            CheckId {
                boot: 0xb007,
                number: id
            }
        );
        assert!(answer.is_allowed());
    }
    assert_eq!(client.checker.readings.load(Ordering::Relaxed), 1);
    client.checker.can("per-key", REFUSED, DecidedBy::Owner);
    client.send(&framed(7, &check)).await;
    let (id, answer) = client.next().await.unwrap();
    assert_eq!((id, answer.unwrap().is_allowed()), (7, false));
    client.end().await.unwrap();
}

#[tokio::test]
async fn frames_in_pieces_are_frames() {
    let mut client = Client::new(1 << 16);
    let frame = framed(3, &policy("api", &[("api_key", "k")]));
    for byte in frame.iter().chain(&frame) {
        client.send(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    for used in 1..=2 {
        let (id, answer) = client.next().await.unwrap();
        assert_eq!((id, answer.unwrap().limits[0].verdict.used), (3, used));
    }
    client.end().await.unwrap();
}

#[tokio::test]
async fn what_waits_for_a_peer_holds_up_nothing_else() {
    let mut client = Client::new(1 << 16);
    let mut batch = framed(1, &policy("later", &[("ip", "a")]));
    batch.extend(framed(2, &policy("api", &[("api_key", "k")])));
    client.send(&batch).await;
    assert_eq!(client.next().await.unwrap().0, 2);
    client.checker.gate.add_permits(1);
    let (id, answer) = client.next().await.unwrap();
    assert_eq!((id, answer.unwrap().limits[0].name.as_str()), (1, "far"));
    // One that waits is answered even if the client has nothing more to say.
    client
        .send(&framed(3, &policy("later", &[("ip", "a")])))
        .await;
    client.stream.shutdown().await.unwrap();
    client.checker.gate.add_permits(1);
    assert_eq!(client.next().await.unwrap().0, 3);
    assert!(client.next().await.is_none());
}

#[tokio::test]
async fn costs_and_key_orders_mean_what_they_mean_over_http() {
    let mut client = Client::new(1 << 16);
    let key = [("api_key", "k")];
    for (cost, peek, used) in [(0, false, 0), (3, true, 0), (3, false, 3), (0, true, 3)] {
        client
            .send(&framed(
                1,
                &Check {
                    cost,
                    peek,
                    ..policy("api", &key)
                },
            ))
            .await;
        let answer = client.next().await.unwrap().1.unwrap();
        assert_eq!(answer.limits[0].verdict.used, used, "{cost} {peek}");
    }
    client
        .send(&framed(1, &inline(&[("a", "1"), ("b", "2")], |_| ())))
        .await;
    client
        .send(&framed(2, &inline(&[("b", "2"), ("a", "1")], |_| ())))
        .await;
    for used in 1..=2 {
        let answer = client.next().await.unwrap().1.unwrap();
        assert_eq!(answer.limits[0].verdict.used, used);
    }
    client.end().await.unwrap();
}

#[tokio::test]
async fn an_unknown_version_or_message_gets_an_error_frame_and_the_stream_goes_on() {
    let mut client = Client::new(1 << 16);
    let frame = framed(4, &policy("api", &[("api_key", "k")]));
    for version in [0, 2, 255] {
        let mut other = frame.clone();
        other[4] = version;
        let (id, fault) = client.fault(&other).await;
        assert_eq!((id, fault.kind), (4, FaultKind::UnsupportedVersion));
    }
    for body in [&b""[..], &[250, 1, 2, 3], &[0; 1000]] {
        let length = u32::try_from(9 + body.len()).unwrap();
        let (id, fault) = client.fault(&raw(length, 1, 5, body)).await;
        assert_eq!((id, fault.kind), (5, FaultKind::Malformed), "{body:?}");
    }
    client.send(&frame).await;
    assert!(client.next().await.unwrap().1.is_ok());
    client.end().await.unwrap();
}

#[tokio::test]
async fn what_is_no_frame_gets_an_error_frame_and_the_end() {
    let too_long = u32::try_from(MAX_CLIENT_FRAME).unwrap() - 3;
    for (length, kind) in [
        (u32::MAX, FaultKind::TooLarge),
        (too_long, FaultKind::TooLarge),
        (8, FaultKind::Malformed),
        (0, FaultKind::Malformed),
    ] {
        let mut client = Client::new(1 << 16);
        client
            .send(&framed(1, &policy("later", &[("ip", "a")])))
            .await;
        let (id, fault) = client.fault(&raw(length, 1, 77, b"")).await;
        assert_eq!((id, fault.kind), (77, kind), "{length}");
        // What was taken before is answered still.
        client.checker.gate.add_permits(1);
        assert_eq!(client.next().await.unwrap().0, 1);
        assert!(client.next().await.is_none());
        let ended = timeout(DEADLINE, client.served).await.unwrap().unwrap();
        assert!(matches!(ended, Err(StreamError::Frame(_))), "{ended:?}");
    }
    let mut client = Client::new(1 << 16);
    client.send(&framed(1, &policy("api", &[]))[..20]).await;
    assert!(matches!(client.end().await, Err(StreamError::Truncated)));
}

#[tokio::test]
async fn at_most_so_many_checks_wait_for_a_peer() {
    let mut client = Client::new(64);
    let check = policy("later", &[("ip", "a")]);
    let frames: Vec<u8> = (0..u64::MAX)
        .take(3 * MAX_WAITING)
        .flat_map(|id| framed(id, &check))
        .collect();
    // Nobody reads on, so that not all can be sent.
    let sent = timeout(Duration::from_millis(300), client.stream.write_all(&frames)).await;
    assert!(sent.is_err(), "the node must stop reading");
    let taken = client.checker.taken.load(Ordering::Relaxed);
    assert_eq!(usize::try_from(taken).unwrap(), MAX_WAITING);
    client.checker.gate.add_permits(1);
    assert!(
        client.next().await.is_some(),
        "and goes on when one is answered"
    );
}

#[tokio::test]
async fn a_batch_ends_at_its_bounds() {
    let checker = FakeChecker::new();
    for (name, taken) in [("later", Some(MAX_WAITING)), ("api", None)] {
        let frame = framed(1, &policy(name, &[("ip", "a"), ("api_key", "a")]));
        let (mut output, waiting) = (Vec::new(), FuturesUnordered::new());
        let batch = Batch::decide(&checker, &frame.repeat(20_000), &mut output, &waiting);
        let decided = batch.taken / frame.len();
        match taken {
            Some(taken) => assert_eq!(decided, taken),
            None => assert!(decided < 20_000, "{decided} were decided"),
        }
        assert!(
            output.len() < MAX_OUTPUT + 1024,
            "{} bytes wait",
            output.len()
        );
    }
}

#[tokio::test]
async fn a_client_that_never_reads_is_read_no_longer() {
    let mut client = Client::new(4096);
    let frame = framed(1, &policy("api", &[("api_key", "k")]));
    let frames = frame.repeat(50_000);
    let sent = timeout(Duration::from_millis(300), client.stream.write_all(&frames)).await;
    assert!(sent.is_err(), "the node must stop reading");
    // An answer is longer than 16 bytes, so more cannot have been made than fit the output's bound.
    let taken = client.checker.taken.load(Ordering::Relaxed);
    assert!(
        taken <= (2 * MAX_OUTPUT as u64) / 16,
        "{taken} were decided"
    );
    assert!(taken >= 10, "{taken} were decided");
}

#[test]
fn random_bytes_break_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    let input = (any::<bool>(), bytes);
    let outcome = TestRunner::new(config).run(&input, |(as_frame, bytes)| {
        runtime.block_on(async {
            let mut client = Client::new(1 << 16);
            let sent = if as_frame {
                raw(u32::try_from(9 + bytes.len()).unwrap(), 1, 6, &bytes)
            } else {
                bytes
            };
            client.send(&sent).await;
            client.stream.shutdown().await.unwrap();
            while let Some((_, answer)) = client.next().await {
                drop(answer);
            }
            // It ends one way or the other, and without a panic.
            let ended = timeout(DEADLINE, client.served).await.unwrap();
            assert!(ended.is_ok(), "{ended:?}");
        });
        Ok(())
    });
    outcome.unwrap();
}
