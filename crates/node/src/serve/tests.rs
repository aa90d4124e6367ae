//! What a peer with a right certificate may send by mistake or by malice: it is told or cut off, and the
//! owner serves on.

mod decide;

use std::time::Duration;

use quinn::Connection;
use tollgate_limit::{
    Algorithm, Cost, Fallback, KeyHash, Mode, Nanos, OldestSlice, Rule, SlidingWindow, Window,
};
use tollgate_wire::{
    frame::{self, HEADER_LENGTH, MAX_PEER_FRAME, split},
    peer::{CheckHead, Hello, PeerAsk, Reply, Request, Way, put_check, put_request, read_reply},
};

use crate::{
    node::tests::cluster::{Cluster, limit},
    transport::close::CloseCode,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// What a stream is answered with: the bodies of replies, or the end of the connection.
#[derive(Debug, PartialEq)]
enum Got {
    Replies(Vec<Vec<u8>>),
    Closed(CloseCode),
}

/// Sends frames on a new connection and waits for so many replies.
async fn say(cluster: &Cluster, bytes: &[u8], replies: usize) -> Got {
    let [caller, owner] = &*cluster.nodes else {
        panic!("two nodes")
    };
    let peer = owner.view().identity.clone();
    let connection = caller.transport.connect_peer(&peer).await.unwrap();
    let said = tokio::time::timeout(PATIENCE, converse(&connection, bytes, replies)).await;
    let got = said.expect("an answer in time");
    connection.close(0_u32.into(), b"");
    got
}

async fn converse(connection: &Connection, bytes: &[u8], replies: usize) -> Got {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    let (mut unread, mut got) = (Vec::new(), Vec::new());
    while got.len() < replies {
        let Ok(Some(chunk)) = receive.read_chunk(usize::MAX, true).await else {
            let error = connection.closed().await;
            return Got::Closed(CloseCode::of(&error).expect("a close code"));
        };
        unread.extend_from_slice(&chunk.bytes);
        while let Some((frame, length)) = split(&unread, MAX_PEER_FRAME).unwrap() {
            got.push(frame.body.to_vec());
            unread.drain(..length);
        }
    }
    Got::Replies(got)
}

fn hello(cluster: &Cluster) -> Hello {
    let [caller, owner] = &*cluster.nodes else {
        panic!("two nodes")
    };
    Hello {
        cluster: "test".to_owned(),
        cluster_fingerprint: owner.owner.cluster_fingerprint,
        node: caller.config().node.as_str().to_owned(),
        boot: caller.boot,
        link: 99,
    }
}

fn request(request: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put(&mut bytes, 7, |body| put_request(body, request)).unwrap();
    bytes
}

fn reply(body: &[u8]) -> Reply {
    read_reply(&mut &*body).unwrap()
}

fn raw(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let put = |to: &mut Vec<u8>| {
        to.extend_from_slice(body);
        Ok::<(), ()>(())
    };
    frame::put(&mut bytes, 7, put).unwrap();
    bytes
}

fn check(asks: u8, shape: u16, given: usize) -> Vec<u8> {
    let head = CheckHead {
        budget_micros: 1000,
        mode: Mode::Consume,
        asks,
        way: Way::Owner,
    };
    let ask = PeerAsk::new(shape, KeyHash::from_halves(1, 2), Cost::ONE);
    let mut bytes = Vec::new();
    let asks = std::iter::repeat_n(ask, given);
    frame::put(&mut bytes, 7, |body| put_check(body, &head, asks)).unwrap();
    bytes
}

#[tokio::test]
async fn a_peer_that_does_not_speak_the_protocol_is_cut_off() {
    let cluster = Cluster::start(2, vec![limit("user", 5, Fallback::LocalFull)]).await;
    let hello_frame = request(&Request::Hello(hello(&cluster)));
    let malformed: [(&str, Vec<u8>); 9] = [
        ("no hello", request(&Request::Ping)),
        ("a length of 2^32-1", u32::MAX.to_le_bytes().to_vec()),
        ("a length below the header", 1_u32.to_le_bytes().to_vec()),
        ("a body of nothing", raw(&[])),
        ("a body of noise", raw(&[0xee; 1000])),
        ("no asks", check(0, 0, 0)),
        ("too many asks", check(65, 0, 65)),
        ("an unknown shape", check(1, 3, 1)),
        ("fewer asks than told", check(2, 0, 1)),
    ];
    for (what, bytes) in malformed {
        let first = match what {
            "no hello" => bytes,
            _ => [hello_frame.clone(), bytes].concat(),
        };
        let got = say(&cluster, &first, 1).await;
        assert_eq!(got, Got::Closed(CloseCode::Malformed), "{what}");
    }
    let twice = [hello_frame.clone(), hello_frame.clone()].concat();
    assert_eq!(
        say(&cluster, &twice, 1).await,
        Got::Closed(CloseCode::Malformed)
    );
    // The owner serves on, on this connection and on the others.
    let ping = [hello_frame, request(&Request::Ping)].concat();
    let Got::Replies(replies) = say(&cluster, &ping, 1).await else {
        panic!("cut off")
    };
    assert!(matches!(reply(&replies[0]), Reply::Pong { .. }));
    let key = cluster.owned_by(1, "user", 0);
    assert!(cluster.check(0, &[("user", &key)]).await.is_allowed());
}

#[tokio::test]
async fn a_peer_of_another_cluster_or_name_is_refused() {
    let cluster = Cluster::start(2, Vec::new()).await;
    let right = hello(&cluster);
    let wrong = [
        Hello {
            cluster: "other".to_owned(),
            ..right.clone()
        },
        Hello {
            node: "n9".to_owned(),
            ..right.clone()
        },
        Hello {
            cluster_fingerprint: right.cluster_fingerprint ^ 1,
            ..right
        },
    ];
    for hello in wrong {
        let got = say(&cluster, &request(&Request::Hello(hello.clone())), 1).await;
        assert_eq!(got, Got::Closed(CloseCode::Refused), "{hello:?}");
    }
}

#[tokio::test]
async fn an_unknown_version_and_a_key_of_another_are_told() {
    let cluster = Cluster::start(2, Vec::new()).await;
    let owner = &cluster.nodes[1];
    let mut strange = request(&Request::Ping);
    strange[HEADER_LENGTH - 9] = 99;
    let rule = Rule::new(Algorithm::SlidingWindow(SlidingWindow {
        limit: 5,
        window: Window::new(Nanos::from_millis(1000)).unwrap(),
        slices: 1,
        oldest: OldestSlice::Weighted,
    }));
    let not_its = (0_u64..)
        .map(|high| KeyHash::from_halves(high << 48, 1))
        .find(|key| !owner.routes.load().is_own(key.slot()))
        .unwrap();
    let ask = PeerAsk::new(0, not_its, Cost::ONE);
    let bytes = [
        request(&Request::Hello(hello(&cluster))),
        strange,
        request(&Request::Shape { number: 0, rule }),
        request(&Request::Read(ask)),
    ];
    let Got::Replies(replies) = say(&cluster, &bytes.concat(), 2).await else {
        panic!("cut off")
    };
    let placement = owner.view().placement.fingerprint();
    assert!(matches!(reply(&replies[0]), Reply::Fault(_)));
    assert_eq!(reply(&replies[1]), Reply::NotOwner { placement });
}
