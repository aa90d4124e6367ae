//! Asking again.

use std::{sync::atomic::AtomicUsize, time::Duration};

use tokio::time::timeout;
use tollgate_client::{CheckError, Client, Fault, FaultKind, RetryPolicy};
use tollgate_limit::Nanos;

use crate::{
    LONG,
    authority::Authority,
    check, config, connected,
    node::{Behaviour, Node},
    now,
};

const POLICY: RetryPolicy = RetryPolicy {
    max_attempts: 3,
    max_total: LONG,
    first_wait: Duration::from_millis(5),
    max_wait: Duration::from_millis(10),
};

#[tokio::test]
async fn a_refusal_is_waited_for() {
    let authority = Authority::new();
    let wait = Some(Nanos::from_millis(30));
    let node = Node::start(
        authority.node(),
        Behaviour::Refuse(AtomicUsize::new(2), wait),
    );
    let client = connected(config(&authority, &[&node])).await;
    let began = now();
    let answer = client.check_with_retry(&check(1), POLICY).await.unwrap();
    assert!(answer.is_allowed());
    assert_eq!(answer.id.number, 3);
    assert!(began.elapsed() >= Duration::from_millis(60));
}

#[tokio::test]
async fn a_last_refusal_is_the_answer() {
    let authority = Authority::new();
    let wait = Some(Nanos::from_millis(1));
    let node = Node::start(
        authority.node(),
        Behaviour::Refuse(AtomicUsize::new(9), wait),
    );
    let client = connected(config(&authority, &[&node])).await;
    let answer = client.check_with_retry(&check(1), POLICY).await.unwrap();
    assert!(!answer.is_allowed());
    assert_eq!(answer.id.number, 3);
}

#[tokio::test]
async fn what_waiting_does_not_cure_is_asked_once() {
    let authority = Authority::new();
    let node = Node::start(
        authority.node(),
        Behaviour::Refuse(AtomicUsize::new(9), None),
    );
    let client = connected(config(&authority, &[&node])).await;
    let answer = client.check_with_retry(&check(1), POLICY).await.unwrap();
    assert_eq!((answer.is_allowed(), answer.id.number), (false, 1));
}

#[tokio::test]
async fn a_fault_of_the_caller_is_not_repeated() {
    let authority = Authority::new();
    let fault = Fault {
        kind: FaultKind::BadRequest,
        field: None,
        message: "no".to_owned(),
    };
    let node = Node::start(authority.node(), Behaviour::Fault(fault));
    let client = connected(config(&authority, &[&node])).await;
    let endless = RetryPolicy {
        max_attempts: u32::MAX,
        ..POLICY
    };
    let check = check(1);
    let asked = timeout(LONG / 4, client.check_with_retry(&check, endless));
    let end = asked.await.expect("asks again");
    assert!(matches!(end, Err(CheckError::Fault(_))));
}

#[tokio::test]
async fn a_client_that_is_not_yet_connected_gets_its_answer_by_asking_again() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let client = Client::start(config(&authority, &[&node])).unwrap();
    let patient = RetryPolicy {
        max_attempts: u32::MAX,
        ..POLICY
    };
    let answer = client.check_with_retry(&check(4), patient).await.unwrap();
    assert_eq!(answer.limits[0].verdict.used, 4);
}
