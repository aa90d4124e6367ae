//! Accepting: handshakes, then each connection to the queue of its protocol, or out.
//!
//! Invariants: at most [`MAX_UNVALIDATED`] handshakes with addresses that may be forged and
//! [`MAX_HANDSHAKES`] in all are under way; a full queue closes the connection instead of waiting.

use std::{sync::Arc, time::Duration};

use quinn::{Connection, Endpoint, Incoming};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};
use tollgate_cluster::{ClusterName, Role};
use tollgate_limit::NodeId;
use tollgate_wire::{ALPN_CLIENT, ALPN_GOSSIP, ALPN_PEER};

use super::{
    ClientConnection, NodeConnection,
    close::CloseCode,
    refusal::{Refusal, RefusalLog, protocol_of, role_of_connection},
};
use crate::{config::Clients, tls::RoleError};

/// Handshakes with addresses that were not validated; above it the other side must prove its address.
pub(super) const MAX_UNVALIDATED: usize = 256;
/// Handshakes at a time; above it attempts are turned away.
pub(super) const MAX_HANDSHAKES: usize = 4_096;
/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Decides who comes in.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) cluster: ClusterName,
    pub(super) node: NodeId,
    /// The port of the own socket.
    pub(super) port: u16,
    pub(super) clients: Clients,
    pub(super) peers: mpsc::Sender<NodeConnection>,
    pub(super) gossip: mpsc::Sender<NodeConnection>,
    pub(super) client_connections: mpsc::Sender<ClientConnection>,
    pub(super) log: RefusalLog,
}

/// What a connection may be used for.
#[derive(Debug, PartialEq, Eq)]
enum Admitted {
    Peer(NodeId),
    Gossip(NodeId),
    Client(Option<String>),
}

/// Accepts until the endpoint is closed.
pub(super) async fn run(endpoint: Endpoint, gate: Arc<Gate>) {
    let all = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    let unvalidated = Arc::new(Semaphore::new(MAX_UNVALIDATED));
    while let Some(incoming) = endpoint.accept().await {
        let Ok(place) = all.clone().try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let mut places = vec![place];
        if !incoming.remote_address_validated() {
            let Ok(place) = unvalidated.clone().try_acquire_owned() else {
                if let Err(error) = incoming.retry() {
                    tracing::debug!(%error, "cannot ask for a proof of address");
                }
                continue;
            };
            places.push(place);
        }
        tokio::spawn(shake_hands(incoming, gate.clone(), places));
    }
}

async fn shake_hands(incoming: Incoming, gate: Arc<Gate>, places: Vec<OwnedSemaphorePermit>) {
    let remote = incoming.remote_address();
    let shaken = match incoming.accept() {
        Ok(connecting) => timeout(HANDSHAKE_TIMEOUT, connecting).await,
        Err(error) => Ok(Err(error)),
    };
    drop(places);
    match shaken {
        Ok(Ok(connection)) => gate.let_in(connection),
        Ok(Err(error)) => match Refusal::of_handshake(&error) {
            Some(refusal) => gate.log.tell(remote, &refusal),
            None => tracing::debug!(%remote, %error, "a handshake came to nothing"),
        },
        Err(_elapsed) => tracing::debug!(%remote, "a handshake took too long"),
    }
}

impl Gate {
    fn let_in(&self, connection: Connection) {
        let protocol = protocol_of(&connection);
        let role = role_of_connection(&connection);
        match self.admit(protocol.as_deref(), role) {
            Ok(Admitted::Peer(node)) => queue(&self.peers, NodeConnection { connection, node }),
            Ok(Admitted::Gossip(node)) => queue(&self.gossip, NodeConnection { connection, node }),
            Ok(Admitted::Client(name)) => {
                queue(
                    &self.client_connections,
                    ClientConnection { connection, name },
                );
            }
            // Its own address is among a node's seeds more often than not.
            Err(Refusal::OwnName(_)) if self.is_own(&connection) => {
                CloseCode::Replaced.close(&connection);
            }
            Err(refusal) => {
                self.log.tell(connection.remote_address(), &refusal);
                CloseCode::Refused.close_saying(&connection, refusal.words());
            }
        }
    }

    /// Whether this endpoint dialled itself.
    fn is_own(&self, connection: &Connection) -> bool {
        let remote = connection.remote_address();
        let is_here = connection
            .local_ip()
            .is_none_or(|ip| ip.to_canonical() == remote.ip().to_canonical());
        is_here && remote.port() == self.port
    }

    fn admit(
        &self,
        protocol: Option<&[u8]>,
        role: Result<(ClusterName, Role), RoleError>,
    ) -> Result<Admitted, Refusal> {
        match protocol {
            Some(ALPN_PEER) => self.node_of(role).map(Admitted::Peer),
            Some(ALPN_GOSSIP) => self.node_of(role).map(Admitted::Gossip),
            Some(ALPN_CLIENT) => self.client_of(role).map(Admitted::Client),
            Some(_) | None => Err(Refusal::UnknownProtocol),
        }
    }

    fn node_of(&self, role: Result<(ClusterName, Role), RoleError>) -> Result<NodeId, Refusal> {
        let (cluster, role) = role.map_err(Refusal::NoRole)?;
        if cluster != self.cluster {
            return Err(Refusal::OtherCluster(cluster));
        }
        match role {
            Role::Node(node) if node == self.node => Err(Refusal::OwnName(node)),
            Role::Node(node) => Ok(node),
            Role::Client(name) => Err(Refusal::ClientAsPeer(name)),
        }
    }

    fn client_of(
        &self,
        role: Result<(ClusterName, Role), RoleError>,
    ) -> Result<Option<String>, Refusal> {
        let open = match self.clients {
            Clients::Off => return Err(Refusal::ClientsOff),
            Clients::Certificate => false,
            Clients::Open => true,
        };
        match role {
            Ok((cluster, _role)) if cluster != self.cluster => Err(Refusal::OtherCluster(cluster)),
            Ok((_cluster, Role::Client(name))) => Ok(Some(name)),
            Ok((_cluster, Role::Node(node))) => Ok(Some(node.as_str().to_owned())),
            Err(RoleError::NoCertificate) if open => Ok(None),
            Err(error) => Err(Refusal::NoRole(error)),
        }
    }
}

fn queue<T: HasConnection>(queue: &mpsc::Sender<T>, accepted: T) {
    if let Err(error) = queue.try_send(accepted) {
        let refused = error.into_inner();
        tracing::debug!(remote = %refused.connection().remote_address(), "a queue of connections is full");
        CloseCode::Busy.close(refused.connection());
    }
}

trait HasConnection {
    fn connection(&self) -> &Connection;
}

impl HasConnection for NodeConnection {
    fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl HasConnection for ClientConnection {
    fn connection(&self) -> &Connection {
        &self.connection
    }
}
