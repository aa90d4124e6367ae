//! QUIC: one endpoint for all protocols, dialling and accepting.
//!
//! Hands out connections whose other side is known: by its certificate's role, not by its address. Must
//! not know what is said on them. Invariants: a connection that leaves here has passed
//! mutual TLS (clients may go without in [`Clients::Open`]) and its protocol fits its role; whoever is
//! refused costs one log line and gets a close code; every queue and every wait is bounded.

mod accept;
pub mod close;
mod keys;
mod refusal;
mod runtime;
mod settings;
mod socket;

#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use quinn::{Connection, Endpoint};
use thiserror::Error;
use tokio::{sync::mpsc, time::timeout};
use tollgate_cluster::{ClusterName, Role};
use tollgate_limit::NodeId;
use tollgate_wire::{ALPN_GOSSIP, ALPN_PEER, identity::Identity};

pub use self::socket::{BindError, SOCKET_BUFFER_BYTES, bind};
use self::{accept::Gate, refusal::role_of_connection};
use crate::{
    clock::TokioClock,
    config::{Clients, Surroundings},
    credentials::Credentials,
    tls::{self, TlsError},
};

/// How long dialling may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long closing connections may take to tell the other sides.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The most accepted connections of each kind that wait to be taken; above it new ones are closed.
pub const ACCEPT_QUEUE: usize = 256;

/// What is asked of a server as its name: nothing is proved by it.
const SERVER_NAME: &str = "tollgate";

/// A connection to another node, proved by its certificate.
#[derive(Clone, Debug)]
pub struct NodeConnection {
    /// The connection.
    pub connection: Connection,
    /// Who is at its other end.
    pub node: NodeId,
}

/// A connection of a client.
#[derive(Clone, Debug)]
pub struct ClientConnection {
    /// The connection.
    pub connection: Connection,
    /// The name in its certificate; `None` without a certificate.
    pub name: Option<String>,
}

/// Connections that were accepted, by protocol; each queue holds [`ACCEPT_QUEUE`].
#[derive(Debug)]
pub struct Accepted {
    /// Data connections of peers.
    pub peers: mpsc::Receiver<NodeConnection>,
    /// Gossip connections of peers.
    pub gossip: mpsc::Receiver<NodeConnection>,
    /// Connections of clients.
    pub clients: mpsc::Receiver<ClientConnection>,
}

/// An endpoint that cannot be started.
#[derive(Debug, Error)]
pub enum TransportError {
    /// TLS cannot be configured.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The socket does not work.
    #[error("the UDP socket does not work")]
    Socket(#[from] std::io::Error),
}

/// A node that was not reached. Nothing was changed; dial again, with a pause.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DialError {
    /// The address cannot be dialled from this socket, or the endpoint is closed.
    #[error("cannot dial: {0}")]
    Cannot(#[from] quinn::ConnectError),
    /// Nobody answered within [`CONNECT_TIMEOUT`].
    #[error("nobody answered")]
    TimedOut,
    /// The handshake failed: wrong authority, wrong cluster, or the other side refused us.
    #[error("the handshake failed: {0}")]
    Handshake(#[from] quinn::ConnectionError),
    /// Another node is at that address.
    #[error("the node '{found}' answered")]
    OtherNode {
        /// Who answered.
        found: NodeId,
    },
    /// This node is at that address.
    #[error("this node itself answered")]
    Itself,
    /// Another process with this node's name is at that address: the operator's fault.
    #[error("another node with this node's name answered")]
    SameName,
}

impl DialError {
    /// Whether it may go away by itself: a network, a restart, an overload. What does not is told once.
    #[must_use]
    pub fn may_heal(&self) -> bool {
        match self {
            Self::TimedOut | Self::Cannot(_) => true,
            Self::Handshake(error) => may_heal(error),
            Self::OtherNode { .. } | Self::Itself | Self::SameName => false,
        }
    }
}

/// Whether the reason for the end of a connection may go away by itself.
pub(crate) fn may_heal(error: &quinn::ConnectionError) -> bool {
    match error {
        quinn::ConnectionError::TimedOut
        | quinn::ConnectionError::Reset
        | quinn::ConnectionError::LocallyClosed
        | quinn::ConnectionError::CidsExhausted => true,
        quinn::ConnectionError::ApplicationClosed(_) => {
            let code = close::CloseCode::of(error);
            code != Some(close::CloseCode::Refused) && code != Some(close::CloseCode::Malformed)
        }
        quinn::ConnectionError::ConnectionClosed(closed) => {
            NOBODY_REFUSES.contains(&closed.error_code)
        }
        quinn::ConnectionError::TransportError(_) | quinn::ConnectionError::VersionMismatch => {
            false
        }
    }
}

/// How the other side ends a handshake when it is overloaded or ends itself.
const NOBODY_REFUSES: [quinn::TransportErrorCode; 4] = [
    quinn::TransportErrorCode::NO_ERROR,
    quinn::TransportErrorCode::INTERNAL_ERROR,
    quinn::TransportErrorCode::CONNECTION_REFUSED,
    quinn::TransportErrorCode::APPLICATION_ERROR,
];

/// One QUIC endpoint. Cheap to share; the last one dropped ends nothing, [`Transport::close`] does.
#[derive(Debug)]
pub struct Transport {
    endpoint: Endpoint,
    peer: quinn::ClientConfig,
    gossip: quinn::ClientConfig,
    cluster: ClusterName,
    node: NodeId,
}

impl Transport {
    /// Starts the endpoint on the surroundings' socket, and accepting on the current runtime.
    ///
    /// # Errors
    /// [`TransportError`]: nothing was started.
    pub fn start(
        credentials: &Credentials,
        clients: Clients,
        surroundings: &Surroundings,
    ) -> Result<(Arc<Self>, Accepted), TransportError> {
        let clock = &surroundings.clock;
        let endpoint = Endpoint::new_with_abstract_socket(
            settings::endpoint(credentials, surroundings.seed),
            Some(settings::server(
                tls::server(credentials, clients, clock)?,
                credentials,
                clock,
            )),
            surroundings.socket.clone(),
            Arc::new(runtime::Pinned::new(surroundings.runtime.clone())),
        )?;
        let transport = Arc::new(Self {
            endpoint,
            peer: settings::peer_client(tls::client(credentials, ALPN_PEER, clock)?),
            gossip: settings::gossip_client(tls::client(credentials, ALPN_GOSSIP, clock)?),
            cluster: credentials.cluster().clone(),
            node: credentials.node().clone(),
        });
        let port = transport.local_address()?.port();
        let accepted = transport.accept(port, clients, clock);
        Ok((transport, accepted))
    }

    /// Dials a peer's data connection and makes sure that it is that peer.
    ///
    /// # Errors
    /// [`DialError`], within [`CONNECT_TIMEOUT`].
    pub async fn connect_peer(&self, peer: &Identity) -> Result<Connection, DialError> {
        let dialled = self.dial(&self.peer, peer.peer).await?;
        let dialled = self.expect(dialled, Some(&peer.node)).await?;
        Ok(dialled.connection)
    }

    /// Dials a gossip connection; without `expected` any node of the cluster will do but this one.
    ///
    /// # Errors
    /// [`DialError`], within [`CONNECT_TIMEOUT`].
    pub async fn connect_gossip(
        &self,
        address: SocketAddr,
        expected: Option<&NodeId>,
    ) -> Result<NodeConnection, DialError> {
        let dialled = self.dial(&self.gossip, address).await?;
        self.expect(dialled, expected).await
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// What the socket says.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Closes all connections with a code and accepts no more; returns when all are told, at the
    /// latest after [`CLOSE_TIMEOUT`].
    pub async fn close(&self, code: close::CloseCode) {
        self.endpoint.close(code.code(), code.reason());
        if timeout(CLOSE_TIMEOUT, self.endpoint.wait_idle())
            .await
            .is_err()
        {
            tracing::debug!("not every connection could be told of the close");
        }
    }

    async fn dial(
        &self,
        config: &quinn::ClientConfig,
        address: SocketAddr,
    ) -> Result<NodeConnection, DialError> {
        let connecting = self
            .endpoint
            .connect_with(config.clone(), address, SERVER_NAME)?;
        let connection = match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected?,
            Err(_elapsed) => return Err(DialError::TimedOut),
        };
        match role_of_connection(&connection) {
            Ok((_cluster, Role::Node(node))) => Ok(NodeConnection { connection, node }),
            // The verifier lets nobody through who is no node.
            Ok((_, Role::Client(_))) | Err(_) => {
                close::CloseCode::Refused.close(&connection);
                Err(DialError::Handshake(quinn::ConnectionError::LocallyClosed))
            }
        }
    }

    async fn expect(
        &self,
        dialled: NodeConnection,
        expected: Option<&NodeId>,
    ) -> Result<NodeConnection, DialError> {
        let found = dialled.node.clone();
        if found == self.node {
            return Err(own_name(&dialled.connection).await);
        }
        if expected.is_some_and(|expected| *expected != found) {
            close::CloseCode::Refused.close(&dialled.connection);
            return Err(DialError::OtherNode { found });
        }
        Ok(dialled)
    }

    fn accept(&self, port: u16, clients: Clients, clock: &TokioClock) -> Accepted {
        let (peers_in, peers) = mpsc::channel(ACCEPT_QUEUE);
        let (gossip_in, gossip) = mpsc::channel(ACCEPT_QUEUE);
        let (clients_in, clients_out) = mpsc::channel(ACCEPT_QUEUE);
        let gate = Gate {
            cluster: self.cluster.clone(),
            node: self.node.clone(),
            port,
            clients,
            peers: peers_in,
            gossip: gossip_in,
            client_connections: clients_in,
            log: refusal::RefusalLog::new(clock.clone()),
        };
        tokio::spawn(accept::run(self.endpoint.clone(), Arc::new(gate)));
        Accepted {
            peers,
            gossip,
            clients: clients_out,
        }
    }
}

/// Who has this node's name at the other end: it knows where the connection comes from, and says so.
async fn own_name(connection: &Connection) -> DialError {
    match timeout(CLOSE_TIMEOUT, connection.closed()).await {
        Ok(end) if close::CloseCode::of(&end) == Some(close::CloseCode::Refused) => {
            DialError::SameName
        }
        Ok(_end) => DialError::Itself,
        Err(_elapsed) => {
            close::CloseCode::Replaced.close(connection);
            DialError::Itself
        }
    }
}
