//! The link: what ends a connection, and what comes after.

use std::time::Duration;

use quinn::ConnectionError;
use tokio::time::timeout;
use tollgate_client::{CheckError, Client, ClientConfig};

use crate::{
    LONG,
    authority::Authority,
    check, config, connected,
    node::{Behaviour, Node},
};

/// Asks until there is an answer.
async fn answered(client: &Client) {
    let asked = async {
        while client.check(&check(1)).await.is_err() {
            client.connected(LONG).await.unwrap();
        }
    };
    timeout(LONG, asked).await.expect("no answer");
}

#[tokio::test]
async fn a_restarted_node_is_found_again() {
    let authority = Authority::new();
    let mut node = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(config(&authority, &[&node])).await;
    for _ in 0..3 {
        answered(&client).await;
        let port = node.stop().await;
        node = Node::start_on(port, authority.node(), Behaviour::Admit).await;
    }
    answered(&client).await;
}

#[tokio::test]
async fn the_next_node_takes_over() {
    let authority = Authority::new();
    let first = Node::start(authority.node(), Behaviour::Admit);
    let second = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(config(&authority, &[&first, &second])).await;
    answered(&client).await;
    first.stop().await;
    answered(&client).await;
}

#[tokio::test]
async fn calls_in_flight_end_with_their_connection() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Silence);
    let client = connected(config(&authority, &[&node])).await;
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.check(&check(1)).await }
    });
    // The node has the call once it has a stream; it ends both.
    tokio::task::yield_now().await;
    node.stop().await;
    let end = timeout(LONG / 2, call).await.expect("hangs").unwrap();
    let error = end.unwrap_err();
    assert!(
        matches!(&error, CheckError::ConnectionLost { cause } if cause.contains("closed")),
        "{error}"
    );
    assert!(error.is_transient());
}

#[tokio::test]
async fn without_a_connection_calls_fail_at_once_and_say_so() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let config = config(&authority, &[&node]);
    node.stop().await;
    let client = Client::start(config).unwrap();
    let end = timeout(LONG / 4, client.check(&check(1)))
        .await
        .expect("waits");
    let error = end.unwrap_err();
    assert!(matches!(error, CheckError::Disconnected { .. }), "{error}");
    let waited = client.connected(Duration::from_millis(20)).await;
    assert!(matches!(waited, Err(CheckError::Disconnected { .. })));
}

#[tokio::test]
async fn a_node_that_says_nothing_is_left() {
    let authority = Authority::new();
    let mut mute = Node::start(authority.node(), Behaviour::Silence);
    let other = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(ClientConfig {
        deadline: Duration::from_millis(30),
        ..config(&authority, &[&mute, &other])
    })
    .await;
    let ends = async {
        let mut ends = Vec::new();
        while ends.len() < 3 {
            ends.push(client.check(&check(1)).await);
        }
        ends
    };
    let deadline = Duration::from_millis(30);
    let ends = timeout(LONG, ends).await.unwrap();
    assert_eq!(
        ends,
        vec![Err(CheckError::DeadlineExceeded { deadline }); 3]
    );
    assert_closed(mute.closed().await, 2);
    answered(&client).await;
}

#[tokio::test]
async fn a_client_that_is_dropped_closes_its_connection() {
    let authority = Authority::new();
    let mut node = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(config(&authority, &[&node])).await;
    let clone = client.clone();
    answered(&client).await;
    drop(client);
    answered(&clone).await;
    drop(clone);
    assert_closed(timeout(LONG, node.closed()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_malformed_reply_ends_the_connection_and_all_calls() {
    let frames = [
        (
            "a malformed reply",
            vec![10, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0xff],
        ),
        ("above the cap", vec![0xff, 0xff, 0xff, 0xff]),
        ("shorter than its header", vec![0, 0, 0, 0]),
        (
            "a version that",
            vec![9, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0],
        ),
        // A fault, well written: to what was never asked, and to the stream itself.
        (
            "never asked",
            vec![13, 0, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        ),
        (
            "a fault",
            vec![13, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        ),
    ];
    for (what, bytes) in frames {
        malformed(what, Behaviour::Raw(bytes), 1).await;
    }
    malformed("the end of the stream", Behaviour::Finish, 1).await;
}

async fn malformed(what: &str, behaviour: Behaviour, code: u32) {
    let authority = Authority::new();
    let mut node = Node::start(authority.node(), behaviour);
    let client = connected(config(&authority, &[&node])).await;
    let (one, two) = (check(1), check(2));
    let calls = async { tokio::join!(client.check(&one), client.check(&two)) };
    let (one, two) = timeout(LONG / 2, calls).await.expect("hangs");
    for end in [one, two] {
        let error = end.unwrap_err();
        assert!(
            matches!(&error, CheckError::ConnectionLost { cause } if cause.contains(what)),
            "{what}: {error}"
        );
    }
    assert_closed(node.closed().await, code);
}

#[track_caller]
fn assert_closed(how: ConnectionError, code: u32) {
    let ConnectionError::ApplicationClosed(close) = &how else {
        panic!("{how}");
    };
    assert_eq!(close.error_code, code.into(), "{how}");
}
