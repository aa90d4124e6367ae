//! Whom the client lets be a node, and whom a node lets be a client.

use std::time::Duration;

use tollgate_client::{CheckError, Client, ClientConfig, ConfigError, Credentials};

use crate::{
    authority::Authority,
    check, config, connected,
    node::{Behaviour, Node},
};

/// A client is not connected, and says why.
#[track_caller]
fn refused(waited: Result<(), CheckError>, why: &str) {
    let error = waited.expect_err("connected").to_string();
    assert!(error.contains(why), "{error}");
}

async fn dial(authority: &Authority, own: Credentials) -> Result<(), CheckError> {
    let node = Node::start(own, Behaviour::Admit);
    let client = Client::start(config(authority, &[&node])).unwrap();
    client.connected(Duration::from_millis(400)).await
}

#[tokio::test]
async fn a_node_of_another_authority_is_refused() {
    let ours = Authority::new();
    let theirs = Authority::new();
    refused(dial(&ours, theirs.node()).await, "invalid peer certificate");
    assert_eq!(dial(&ours, ours.node()).await, Ok(()));
}

#[tokio::test]
async fn a_certificate_of_another_role_is_refused() {
    let authority = Authority::new();
    let (not_a_node, not_one) = (
        "not of a node of this cluster",
        "no tollgate:// name, or more",
    );
    let roles: [(&str, &[&str]); 6] = [
        (not_a_node, &["tollgate://test/client/c1"]),
        (not_a_node, &["tollgate://other/node/n1"]),
        (not_a_node, &["tollgate://test/node/"]),
        (not_a_node, &["tollgate://test/node/n1/x"]),
        (not_one, &["https://test/node/n1"]),
        (
            not_one,
            &["tollgate://test/node/n1", "tollgate://test/client/c1"],
        ),
    ];
    for (why, uris) in roles {
        refused(dial(&authority, authority.issue(uris)).await, why);
    }
}

#[tokio::test]
async fn a_client_proves_itself_by_its_certificate() {
    let authority = Authority::new();
    let mut node = Node::start_closed(&authority, Behaviour::Admit);
    let mut with = config(&authority, &[&node]);
    with.credentials = Some(authority.issue(&["tollgate://test/client/c1"]));
    let with = connected(with).await;
    assert!(with.check(&check(1)).await.unwrap().is_allowed());

    let without = Client::start(config(&authority, &[&node])).unwrap();
    drop(without.connected(Duration::from_millis(100)).await);
    let error = without.check(&check(1)).await.unwrap_err();
    let lost = matches!(
        error,
        CheckError::ConnectionLost { .. } | CheckError::Disconnected { .. }
    );
    assert!(lost, "{error}");
    drop(with);
    node.closed().await;
}

#[tokio::test]
async fn a_name_in_no_certificate_is_only_a_name() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let client = connected(ClientConfig {
        server_name: Some("somewhere.example".to_owned()),
        ..config(&authority, &[&node])
    })
    .await;
    assert!(client.check(&check(1)).await.is_ok());
}

#[tokio::test]
async fn a_faulty_configuration_does_not_start() {
    let authority = Authority::new();
    let node = Node::start(authority.node(), Behaviour::Admit);
    let with = |change: fn(&mut ClientConfig)| {
        let mut config = config(&authority, &[&node]);
        change(&mut config);
        Client::start(config).expect_err("started")
    };
    assert!(matches!(with(|c| c.servers.clear()), ConfigError::Servers));
    assert!(matches!(
        with(|c| c.deadline = Duration::ZERO),
        ConfigError::Deadline
    ));
    assert!(matches!(
        with(|c| c.max_in_flight = 0),
        ConfigError::InFlight
    ));
    assert!(matches!(
        with(|c| c.trust.authorities.clear()),
        ConfigError::Tls(_)
    ));
    let name = with(|c| c.server_name = Some("no name".to_owned()));
    assert!(matches!(name, ConfigError::ServerName { .. }));
}

#[test]
fn outside_a_runtime_it_does_not_start() {
    let authority = Authority::new();
    let servers = vec!["127.0.0.1:1".parse().unwrap()];
    let error = Client::start(ClientConfig::new("test", servers, authority.trust()));
    assert!(matches!(error, Err(ConfigError::NoRuntime)));
}
