//! Tests of who gets in, over real sockets on loopback.

#![expect(clippy::print_stdout, reason = "the time that was measured")]

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use quinn::{ConnectionError, crypto::rustls::QuicClientConfig};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;
use tollgate_cluster::ClusterName;
use tollgate_limit::NodeId;
use tollgate_wire::{ALPN_CLIENT, ALPN_PEER, identity::Identity};

use super::{Accepted, DialError, Transport, close::CloseCode};
use crate::{
    certificates::{AUTHORITY_SPAN, Authority, LEAF_SPAN, Pem, Validity},
    clock::{Clock as _, TokioClock},
    config::{Clients, Surroundings},
    credentials::{CredentialPem, Credentials, Holder},
};

const SOON: Duration = Duration::from_secs(5);

struct Site {
    cluster: ClusterName,
    authority: Authority,
}

impl Site {
    fn new() -> Self {
        let cluster = ClusterName::new("prod").unwrap();
        let validity = Validity::new(unix_seconds(), AUTHORITY_SPAN);
        let authority = Authority::new(&cluster, validity).unwrap();
        Self { cluster, authority }
    }

    fn credentials(&self, name: &str) -> Credentials {
        let node = NodeId::new(name).unwrap();
        let leaf = self
            .authority
            .issue_node(&node, Validity::new(unix_seconds(), LEAF_SPAN));
        self.read(&node, &leaf.unwrap())
    }

    fn read(&self, node: &NodeId, leaf: &Pem) -> Credentials {
        let authority = self.authority.pem().certificate;
        let pem = CredentialPem {
            authority: &authority,
            certificate: &leaf.certificate,
            key: &leaf.key,
        };
        let holder = Holder {
            cluster: &self.cluster,
            node,
            unix_seconds: unix_seconds(),
        };
        Credentials::from_pem(&pem, &holder).unwrap()
    }

    /// A dialler that is no node: any protocol, no certificate, any server.
    fn stranger(&self, protocol: &[u8]) -> quinn::Endpoint {
        let mut roots = RootCertStore::empty();
        for root in self.credentials("any").roots().roots.iter().cloned() {
            roots.roots.push(root);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocol.to_vec()];
        let tls = QuicClientConfig::try_from(tls).unwrap();
        let mut endpoint = quinn::Endpoint::client(anywhere()).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
        endpoint
    }
}

fn unix_seconds() -> u64 {
    TokioClock::system_unix_seconds()
}

fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn start(
    credentials: &Credentials,
    clients: Clients,
    at: SocketAddr,
) -> (Arc<Transport>, Accepted) {
    let surroundings = Surroundings::system(at, 7).unwrap();
    Transport::start(credentials, clients, &surroundings).unwrap()
}

fn identity(node: &str, peer: SocketAddr) -> Identity {
    Identity {
        node: NodeId::new(node).unwrap(),
        boot: tollgate_wire::identity::BootId(1),
        generation: 1,
        peer,
        api: peer,
        weight: 1,
        newest_version: 1,
        oldest_version: 1,
        phase: tollgate_wire::identity::Phase::Active,
        tail: Vec::new(),
    }
}

/// How a stranger's connection ends.
async fn end(endpoint: &quinn::Endpoint, server: &Transport) -> ConnectionError {
    let connecting = endpoint
        .connect(server.local_address().unwrap(), "prod")
        .unwrap();
    match connecting.await {
        Ok(connection) => timeout(SOON, connection.closed()).await.unwrap(),
        Err(error) => error,
    }
}

#[tokio::test]
async fn peers_reach_each_other_and_learn_their_names() {
    let site = Site::new();
    let (n1, mut accepted) = start(&site.credentials("n1"), Clients::Off, anywhere());
    let (n2, _accepted) = start(&site.credentials("n2"), Clients::Off, anywhere());
    let address = n1.local_address().unwrap();
    n2.connect_peer(&identity("n1", address)).await.unwrap();
    assert_eq!(accepted.peers.recv().await.unwrap().node.as_str(), "n2");
    let dialled = n2.connect_gossip(address, None).await.unwrap();
    assert_eq!(dialled.node.as_str(), "n1");
    assert_eq!(accepted.gossip.recv().await.unwrap().node.as_str(), "n2");
}

#[tokio::test]
async fn whoever_else_answers_is_not_taken_for_the_one_that_was_dialled() {
    let site = Site::new();
    let (n1, _accepted) = start(&site.credentials("n1"), Clients::Off, anywhere());
    let (n2, _accepted) = start(&site.credentials("n2"), Clients::Off, anywhere());
    let (twin, _accepted) = start(&site.credentials("n1"), Clients::Off, anywhere());
    let address = n1.local_address().unwrap();
    let refused = n2.connect_peer(&identity("n3", address)).await.unwrap_err();
    assert_eq!(
        refused,
        DialError::OtherNode {
            found: NodeId::new("n1").unwrap()
        }
    );
    assert_eq!(
        n1.connect_gossip(address, None).await.unwrap_err(),
        DialError::Itself
    );
    assert_eq!(
        twin.connect_gossip(address, None).await.unwrap_err(),
        DialError::SameName
    );
}

#[tokio::test]
async fn a_server_of_another_cluster_or_authority_is_not_spoken_to() {
    let site = Site::new();
    let (n1, _accepted) = start(&site.credentials("n1"), Clients::Off, anywhere());
    let foreign = Site::new();
    let other = ClusterName::new("other").unwrap();
    let pretending = Authority::from_pem(&site.authority.pem())
        .unwrap()
        .pretending(other);
    let node = NodeId::new("n2").unwrap();
    let leaf = pretending
        .issue_node(&node, Validity::new(unix_seconds(), LEAF_SPAN))
        .unwrap();
    let authority = site.authority.pem().certificate;
    let pem = CredentialPem {
        authority: &authority,
        certificate: &leaf.certificate,
        key: &leaf.key,
    };
    let stray = Credentials::unchecked(&pem, &site.cluster, &node);
    for credentials in [stray, foreign.credentials("n2")] {
        let (n2, _accepted) = start(&credentials, Clients::Off, anywhere());
        let dialled = n1.connect_gossip(n2.local_address().unwrap(), None).await;
        let Err(DialError::Handshake(error)) = dialled else {
            panic!("{dialled:?}");
        };
        assert!(!super::may_heal(&error), "{error}");
    }
}

#[tokio::test]
async fn nobody_there_is_told_in_time() {
    let site = Site::new();
    let (n1, _accepted) = start(&site.credentials("n1"), Clients::Off, anywhere());
    let silent = std::net::UdpSocket::bind(anywhere()).unwrap();
    let dialled = n1.connect_gossip(silent.local_addr().unwrap(), None);
    assert_eq!(
        timeout(SOON, dialled).await.unwrap().unwrap_err(),
        DialError::TimedOut
    );
}

#[tokio::test]
async fn clients_come_in_as_the_setting_says() {
    let site = Site::new();
    for clients in [Clients::Off, Clients::Certificate, Clients::Open] {
        let (n1, mut accepted) = start(&site.credentials("n1"), clients, anywhere());
        let stranger = site.stranger(ALPN_CLIENT);
        let connecting = stranger
            .connect(n1.local_address().unwrap(), "prod")
            .unwrap();
        let connected = connecting.await;
        if clients == Clients::Open {
            let connection = connected.unwrap();
            let came = accepted.clients.recv().await.unwrap();
            assert_eq!(came.name, None);
            drop((connection, came));
        } else {
            // A missing certificate is found out after the client believes that it is connected.
            let end = match connected {
                Ok(connection) => timeout(SOON, connection.closed()).await.unwrap(),
                Err(error) => error,
            };
            assert!(matches!(end, ConnectionError::ConnectionClosed(_)), "{end}");
        }
    }
}

#[tokio::test]
async fn open_to_clients_is_not_open_to_peers() {
    let site = Site::new();
    let (n1, _accepted) = start(&site.credentials("n1"), Clients::Open, anywhere());
    let end = end(&site.stranger(ALPN_PEER), &n1).await;
    assert_eq!(CloseCode::of(&end), Some(CloseCode::Refused), "{end}");
}

#[tokio::test]
async fn a_certified_client_is_known_by_name_and_turned_away_when_clients_are_off() {
    let site = Site::new();
    let validity = Validity::new(unix_seconds(), LEAF_SPAN);
    let leaf = site.authority.issue_client("billing", validity).unwrap();
    let authority = site.authority.pem().certificate;
    let pem = CredentialPem {
        authority: &authority,
        certificate: &leaf.certificate,
        key: &leaf.key,
    };
    let node = NodeId::new("billing").unwrap();
    let client = Credentials::unchecked(&pem, &site.cluster, &node);
    let clock = TokioClock::system();
    let tls = crate::tls::client(&client, ALPN_CLIENT, &clock).unwrap();
    let mut endpoint = quinn::Endpoint::client(anywhere()).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
    let (n1, mut accepted) = start(&site.credentials("n1"), Clients::Certificate, anywhere());
    let connecting = endpoint
        .connect(n1.local_address().unwrap(), "prod")
        .unwrap();
    let _connection = connecting.await.unwrap();
    assert_eq!(
        accepted.clients.recv().await.unwrap().name.as_deref(),
        Some("billing")
    );
    let (n2, _accepted) = start(&site.credentials("n2"), Clients::Off, anywhere());
    let end = end(&endpoint, &n2).await;
    assert_eq!(CloseCode::of(&end), Some(CloseCode::Refused), "{end}");
}

#[tokio::test]
async fn an_unknown_protocol_is_turned_away() {
    let site = Site::new();
    let (n1, _accepted) = start(&site.credentials("n1"), Clients::Open, anywhere());
    let end = end(&site.stranger(b"h3"), &n1).await;
    assert!(matches!(end, ConnectionError::ConnectionClosed(_)), "{end}");
}

#[tokio::test]
async fn a_planned_end_is_told() {
    let site = Site::new();
    let (n1, mut accepted) = start(&site.credentials("n1"), Clients::Off, anywhere());
    let (n2, _accepted) = start(&site.credentials("n2"), Clients::Off, anywhere());
    let to = identity("n1", n1.local_address().unwrap());
    let connection = n2.connect_peer(&to).await.unwrap();
    // Before that the close code would be the handshake's.
    let _served = accepted.peers.recv().await.unwrap();
    n1.close(CloseCode::Leaving).await;
    let end = timeout(SOON, connection.closed()).await.unwrap();
    assert_eq!(CloseCode::of(&end), Some(CloseCode::Leaving), "{end}");
}

#[test]
fn a_restart_is_noticed_by_the_next_packet() {
    let site = Site::new();
    let credentials = site.credentials("n1");
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (first, dialling) = (runtime(), runtime());
    let (n1, accepted) = first.block_on(async { start(&credentials, Clients::Off, anywhere()) });
    let address = n1.local_address().unwrap();
    let (n2, _accepted) =
        dialling.block_on(async { start(&site.credentials("n2"), Clients::Off, anywhere()) });
    let connection = dialling
        .block_on(n2.connect_gossip(address, None))
        .unwrap()
        .connection;
    // The first process ends without a word: its tasks go first, then its handles and its socket.
    first.shutdown_timeout(SOON);
    drop((n1, accepted));
    let second = runtime();
    let (_n1, _accepted) = second.block_on(async { start(&credentials, Clients::Off, address) });
    let ended = dialling.block_on(async {
        connection
            .send_datagram(bytes::Bytes::from_static(b"are you there"))
            .unwrap();
        let clock = TokioClock::system();
        let asked = clock.now();
        let end = timeout(SOON, connection.closed()).await.unwrap();
        (end, Duration::from(clock.now().saturating_sub(asked)))
    });
    assert_eq!(ended.0, ConnectionError::Reset);
    println!("a restart is noticed {:?} after the next packet", ended.1);
    assert!(ended.1 < Duration::from_secs(1), "{:?}", ended.1);
}
