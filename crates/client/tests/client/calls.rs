//! Calls in flight: each gets its own end.

use std::time::Duration;

use tokio::{task::JoinSet, time::timeout};
use tollgate_client::{CheckError, ClientConfig, Fault, FaultKind, Pairs, Subject};

use crate::{
    LONG,
    authority::Authority,
    check, config, connected,
    node::{Behaviour, Node},
    now,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_get_their_own_answers() {
    const CALLS: usize = 1_000;
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Gather(CALLS));
    let client = connected(config(&authority, &[&node])).await;
    let mut calls = JoinSet::new();
    for cost in 0..u64::try_from(CALLS).unwrap() {
        let client = client.clone();
        calls.spawn(async move { (cost, client.check(&check(cost)).await) });
    }
    let ends = timeout(LONG, calls.join_all()).await.expect("hangs");
    assert_eq!(ends.len(), CALLS);
    for (cost, answer) in ends {
        assert_eq!(answer.unwrap().limits[0].verdict.used, cost);
    }
}

#[tokio::test]
async fn a_lone_call_waits_for_nobody() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(config(&authority, &[&node])).await;
    for cost in 0..20 {
        let answer = client.check(&check(cost)).await.unwrap();
        assert!(answer.is_allowed());
        assert_eq!(answer.limits[0].verdict.used, cost);
    }
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_deadline() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Silence);
    let deadline = Duration::from_millis(60);
    let client = connected(ClientConfig {
        deadline,
        ..config(&authority, &[&node])
    })
    .await;
    let mut calls = JoinSet::new();
    let began = now();
    for cost in 0..50 {
        let client = client.clone();
        calls.spawn(async move { client.check(&check(cost)).await });
    }
    for end in timeout(LONG, calls.join_all()).await.expect("hangs") {
        assert_eq!(end, Err(CheckError::DeadlineExceeded { deadline }));
    }
    let took = began.elapsed();
    assert!(deadline <= took && took < LONG / 4, "{took:?}");
}

#[tokio::test]
async fn a_fault_is_an_error_of_its_call_alone() {
    let authority = Authority::new();
    let fault = Fault {
        kind: FaultKind::UnknownPolicy,
        field: Some("policy".to_owned()),
        message: "not configured".to_owned(),
    };
    let node = Node::start(authority.node(), Behaviour::Fault(fault.clone()));
    let client = connected(config(&authority, &[&node])).await;
    for cost in 0..3 {
        let error = client.check(&check(cost)).await.unwrap_err();
        assert_eq!(error, CheckError::Fault(fault.clone()));
        assert!(!error.is_transient());
    }
    assert!(client.connected(Duration::ZERO).await.is_ok());
}

#[tokio::test]
async fn more_calls_than_the_bound_fail_at_once() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Gather(3));
    let client = connected(ClientConfig {
        max_in_flight: 2,
        ..config(&authority, &[&node])
    })
    .await;
    let (one, two) = (check(1), check(2));
    let (one, two, three) = tokio::join!(
        biased;
        timeout(Duration::from_millis(50), client.check(&one)),
        timeout(Duration::from_millis(50), client.check(&two)),
        async { client.check(&check(3)).await },
    );
    assert!(one.is_err() && two.is_err());
    assert_eq!(three, Err(CheckError::TooManyInFlight { max: 2 }));
}

#[tokio::test]
async fn a_check_that_cannot_be_written_harms_no_other() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(config(&authority, &[&node])).await;
    let mut large = check(1);
    large.subject = Subject::Policy {
        name: "p".repeat(1 << 18).into(),
        attributes: Pairs::new(),
    };
    let error = client.check(&large).await.unwrap_err();
    assert!(matches!(error, CheckError::Unsendable(_)), "{error}");
    assert!(client.check(&check(2)).await.is_ok());
}
