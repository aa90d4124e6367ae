//! What an owner decides, and what it must not: the invariants of its side, one by one, over a stream.

use std::sync::Arc;

use tollgate_limit::{
    Algorithm, Ask, Change, Cost, DecidedBy, Fallback, KeyHash, Mode, Nanos, OldestSlice, Rule,
    SlidingWindow, Window,
};
use tollgate_wire::{
    frame,
    peer::{
        Amend, CheckHead, Hello, PeerAsk, Reply, Request, Verdicts, Way, put_check, read_reply,
        read_verdict,
    },
};

use super::{Got, hello, reply, request};
use crate::{
    clock::Clock as _,
    node::{
        Node,
        tests::cluster::{Cluster, limit},
    },
};

fn rule(limit: u64) -> Rule {
    Rule::new(Algorithm::SlidingWindow(SlidingWindow {
        limit,
        window: Window::new(Nanos::from_millis(3_600_000)).unwrap(),
        slices: 10,
        oldest: OldestSlice::Full,
    }))
}

/// A key that the node owns, or does not.
fn key(node: &Node, owned: bool) -> KeyHash {
    (0_u64..)
        .map(|high| KeyHash::from_halves(high << 48, 1))
        .find(|key| node.routes.load().is_own(key.slot()) == owned)
        .unwrap()
}

fn check(number: u64, key: KeyHash) -> Vec<u8> {
    check_by(Way::Owner, number, key)
}

fn check_by(way: Way, number: u64, key: KeyHash) -> Vec<u8> {
    let head = CheckHead {
        budget_micros: 5_000_000,
        mode: Mode::Consume,
        asks: 1,
        way,
    };
    let mut bytes = Vec::new();
    let asks = [PeerAsk::new(0, key, Cost::ONE)];
    frame::put(&mut bytes, number, |body| put_check(body, &head, asks)).unwrap();
    bytes
}

fn give_back(sequence: u64, key: KeyHash, slice: u64) -> Vec<u8> {
    let ask = PeerAsk::new(0, key, Cost::ONE);
    request(&Request::Amend(Amend {
        sequence,
        ask,
        change: Change::GiveBack { slice },
    }))
}

fn shape() -> Vec<u8> {
    request(&Request::Shape {
        number: 0,
        rule: rule(5),
    })
}

fn used(node: &Arc<Node>, key: KeyHash) -> u64 {
    let verdict = node.owner.store.read(node.clock.now(), key, &rule(5));
    verdict.map_or(0, |verdict| verdict.used)
}

/// Says frames behind a hello of this link and returns the bodies of the replies.
async fn ask(cluster: &Cluster, link: u64, frames: &[Vec<u8>], replies: usize) -> Vec<Vec<u8>> {
    let hello = Hello {
        link,
        ..hello(cluster)
    };
    let bytes = [request(&Request::Hello(hello)), shape(), frames.concat()].concat();
    match super::say(cluster, &bytes, replies).await {
        Got::Replies(bodies) => bodies,
        Got::Closed(code) => panic!("closed: {code:?}"),
    }
}

/// What a check's only limit says it has used.
fn verdict_used(body: &[u8]) -> u64 {
    let body = &mut &*body;
    assert!(matches!(read_reply(body).unwrap(), Reply::Verdicts(_)));
    read_verdict(body).unwrap().used
}

#[tokio::test]
async fn inv_one_owner_a_key_of_another_is_not_decided() {
    let cluster = Cluster::start(2, Vec::new()).await;
    let [other, asked] = &*cluster.nodes else {
        panic!("two nodes")
    };
    let key = key(asked, false);
    // What was passed on once is not passed on again.
    let way = Way::Relayed {
        boot: other.boot,
        link: 7,
        number: 7,
    };
    let replies = ask(&cluster, 99, &[check_by(way, 1, key)], 1).await;
    let placement = asked.view().placement.fingerprint();
    assert_eq!(reply(&replies[0]), Reply::NotOwner { placement });
    assert_eq!(used(other, key), 0);
    // A check that went astray is decided by who holds the slot, once, and it is told who that is.
    let frames = [check(1, key), check(1, key), check(2, key)];
    let replies = ask(&cluster, 99, &frames, 3).await;
    for body in &replies {
        let Reply::Verdicts(Verdicts {
            said: Some(said), ..
        }) = read_reply(&mut &**body).unwrap()
        else {
            panic!("{body:?}")
        };
        assert_eq!(said.node, other.config().node.as_str());
        assert_eq!(
            (said.boot, said.by, said.degraded),
            (other.boot, DecidedBy::Owner, false)
        );
    }
    assert_eq!(used(other, key), 2);
    assert_eq!(asked.report().decided_for_peers, 0);
}

#[tokio::test]
async fn inv_decided_once_a_number_of_one_link_is_decided_once() {
    let cluster = Cluster::start(2, Vec::new()).await;
    let owner = &cluster.nodes[1];
    let key = key(owner, true);
    let replies = ask(
        &cluster,
        99,
        &[check(1, key), check(1, key), check(2, key)],
        3,
    )
    .await;
    let said: Vec<_> = replies.iter().map(|body| verdict_used(body)).collect();
    assert_eq!(said, [1, 1, 2]);
    // Also on another connection of the same link.
    let again = ask(&cluster, 99, &[check(2, key)], 1).await;
    assert_eq!((verdict_used(&again[0]), used(owner, key)), (2, 2));
    // A new link of the same boot counts its asks from the start: they are other checks.
    let fresh = ask(&cluster, 100, &[check(1, key)], 1).await;
    assert_eq!((verdict_used(&fresh[0]), used(owner, key)), (3, 3));
}

#[tokio::test]
async fn inv_given_back_once_a_sequence_of_one_link_is_given_back_once() {
    let cluster = Cluster::start(2, Vec::new()).await;
    let owner = &cluster.nodes[1];
    let key = key(owner, true);
    let charge = Ask {
        key,
        rule: rule(5),
        cost: Cost::ONE,
    };
    let mut slice = 0;
    for _ in 0..4 {
        let verdict = owner
            .owner
            .store
            .decide(owner.clock.now(), &charge, Mode::Consume);
        slice = verdict.charged_slice;
    }
    let twice = [give_back(0, key, slice), give_back(0, key, slice)];
    let replies = ask(&cluster, 99, &twice, 2).await;
    assert!(replies.iter().all(|body| reply(body) == Reply::Done));
    assert_eq!(used(owner, key), 3);
    ask(&cluster, 100, &[give_back(0, key, slice)], 1).await;
    assert_eq!(used(owner, key), 2, "another link's first");
}

#[tokio::test]
async fn inv_one_owner_an_amendment_for_the_key_of_another_is_refused_each_time() {
    let cluster = Cluster::start(2, Vec::new()).await;
    let owner = &cluster.nodes[1];
    let theirs = key(owner, false);
    let charge = |sequence, key| {
        request(&Request::Amend(Amend {
            sequence,
            ask: PeerAsk::new(0, key, Cost::ONE),
            change: Change::Charge,
        }))
    };
    let placement = owner.view().placement.fingerprint();
    let refused = Reply::NotOwner { placement };
    let twice = [charge(0, theirs), charge(0, theirs)];
    let replies = ask(&cluster, 99, &twice, 2).await;
    assert!(replies.iter().all(|body| reply(body) == refused));
    // What was refused is never done later, as if it were this node's by then.
    let own = key(owner, true);
    let replies = ask(&cluster, 99, &[charge(0, own), charge(1, own)], 2).await;
    assert_eq!(
        [reply(&replies[0]), reply(&replies[1])],
        [refused, Reply::Done]
    );
    assert_eq!((used(owner, theirs), used(owner, own)), (0, 1));
}

#[tokio::test]
async fn inv_late_counts_nothing_what_waited_through_a_pause_is_too_late() {
    let cluster = Cluster::start(2, vec![limit("user", 5, Fallback::LocalFull)]).await;
    let owner = &cluster.nodes[1];
    let key = key(owner, true);
    // As if this process had not run for ten seconds.
    let now = owner.clock.now();
    owner
        .owner
        .pause
        .beat(now.saturating_add(Nanos::from_millis(10_000)));
    let replies = ask(&cluster, 99, &[check(1, key)], 1).await;
    assert_eq!(reply(&replies[0]), Reply::TooLate);
    assert_eq!(used(owner, key), 0);
    // Its own checks fall back, too: others may have decided meanwhile.
    let own = cluster.owned_by(1, "user", 0);
    let decision = cluster.check(1, &[("user", &own)]).await;
    assert!(decision.is_degraded(), "{decision:?}");
    assert_eq!(cluster.used(1, "user", &own), 0);
}
