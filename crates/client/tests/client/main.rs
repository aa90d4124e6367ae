//! The client against small nodes on loopback: real QUIC, real certificates.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod authority;
mod calls;
mod link;
mod node;
mod retry;
mod tower;
mod trust;

use std::time::Duration;

use tokio::time::Instant;
use tollgate_client::{Check, Client, ClientConfig, Pairs, Subject};

use crate::{authority::Authority, node::Node};

/// The cluster of all tests.
const CLUSTER: &str = "test";
/// A time that no test needs unless it fails.
const LONG: Duration = Duration::from_secs(20);

/// A check that its answer is told by: the node sends the cost back.
fn check(cost: u64) -> Check<'static> {
    Check {
        subject: Subject::Policy {
            name: "default".into(),
            attributes: Pairs::from_iter([("ip", "203.0.113.7")]),
        },
        cost,
        peek: false,
    }
}

/// A client of these nodes that does not fail by its deadline.
fn config(authority: &Authority, nodes: &[&Node]) -> ClientConfig {
    let servers = nodes.iter().map(|node| node.address()).collect();
    let mut config = ClientConfig::new(CLUSTER, servers, authority.trust());
    config.deadline = LONG;
    config.seed = Some(7);
    config
}

async fn connected(config: ClientConfig) -> Client {
    let client = Client::start(config).unwrap();
    client.connected(LONG).await.unwrap();
    client
}

#[expect(clippy::disallowed_methods, reason = "tests measure real time")]
fn now() -> Instant {
    Instant::now()
}
