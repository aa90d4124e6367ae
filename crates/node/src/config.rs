//! What a node is told at its start, checked and typed. Files and arguments are the program's affair.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tollgate_cluster::ClusterName;
use tollgate_limit::{HashKey, NodeId};

use crate::{
    clock::TokioClock,
    seeds::{Resolve, SystemResolver},
    transport::{self, BindError},
};

/// The settings of one node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The cluster's name.
    pub cluster: ClusterName,
    /// The cluster's secret for hashing keys.
    pub hash_key: HashKey,
    /// This node's name, stable over restarts.
    pub node: NodeId,
    /// Its share of slots relative to the others', at least 1.
    pub weight: u8,
    /// Where peers reach this node (what gossip tells; the socket is handed in).
    pub peer_address: SocketAddr,
    /// Where this node's HTTP interface listens (what gossip tells).
    pub api_address: SocketAddr,
    /// Where other members may be found. Empty: this node is the cluster's first.
    pub seeds: Vec<Seed>,
    /// The largest generation that this node is known to have had; 0 if none is known.
    pub last_generation: u64,
    /// The counters' memory, in bytes.
    pub max_memory_bytes: u64,
    /// Whether checks may bring their own limit.
    pub inline_limits: InlineLimits,
    /// Who may use the client protocol over QUIC.
    pub clients: Clients,
    /// How long things may take.
    pub timeouts: Timeouts,
}

/// Where another member may be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seed {
    /// An address.
    Address(SocketAddr),
    /// A name that is looked up again while this node is alone.
    Name {
        /// The host name.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Whether checks may bring their own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineLimits {
    /// They may.
    Allow,
    /// They are refused.
    Refuse,
}

/// Who may use the client protocol over QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Nobody.
    Off,
    /// Holders of a client certificate of this cluster.
    Certificate,
    /// Anyone who reaches the port.
    Open,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A check is answered within this.
    pub check_deadline: Duration,
    /// An owner that has not answered by then is passed by.
    pub forward: Duration,
    /// A standby that has not answered by then is passed by.
    pub standby: Duration,
    /// How long a joining node looks for others.
    pub join: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            check_deadline: Duration::from_millis(50),
            forward: Duration::from_millis(20),
            standby: Duration::from_millis(20),
            join: Duration::from_secs(3),
        }
    }
}

/// What a node gets from outside: everything that differs between production and simulation.
#[derive(Debug)]
pub struct Surroundings {
    /// What time it is.
    pub clock: TokioClock,
    /// The UDP socket, bound.
    pub socket: Arc<dyn quinn::AsyncUdpSocket>,
    /// Timers and tasks of quinn.
    pub runtime: Arc<dyn quinn::Runtime>,
    /// All randomness of the node comes from this; logged at start.
    pub seed: u64,
    /// Where control runs.
    pub control: ControlHost,
    /// Looks up the names of seeds.
    pub resolver: Arc<dyn Resolve>,
}

impl Surroundings {
    /// Those of production: the system's clock and resolver, a UDP socket of `address`. Must be called
    /// in a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// [`BindError`] if the address is taken or not this machine's.
    pub fn system(address: SocketAddr, seed: u64) -> Result<Self, BindError> {
        Ok(Self {
            clock: TokioClock::system(),
            socket: transport::bind(address)?,
            runtime: Arc::new(quinn::TokioRuntime),
            seed,
            control: ControlHost::OwnThread,
            resolver: Arc::new(SystemResolver),
        })
    }
}

/// Where control (gossip, membership) runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlHost {
    /// On a thread of its own: it must not wait behind checks.
    OwnThread,
    /// On the runtime that the node is started on: the simulator's.
    Shared,
}
