//! One boot of a node: what it is told, and what it gets from outside.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc};

use quinn::TokioRuntime;
use tollgate_limit::HashKey;
use tollgate_node::{
    Clients, ControlHost, InlineLimits, Node, NodeConfig, Seed, Surroundings, TokioClock,
    certificates::{LEAF_SPAN, Validity},
    credentials::{CredentialPem, Credentials, Holder},
    seeds::{LookUp, Resolve},
};

use super::{Occupant, Rig, RigError, Seat, policies};
use crate::simulation::part_seed;

/// Unix time at virtual time 0, in seconds.
pub(super) const UNIX_SECONDS: u64 = 1_800_000_000;
/// The cluster's secret.
pub(super) const HASH_KEY: HashKey = HashKey::new(*b"sixteen of bytes");
/// Addresses that a node is given to find others at.
const MAX_SEEDS: usize = 3;
/// Each node's memory for counters.
const MEMORY_BYTES: u64 = 16 << 20;

impl Rig {
    /// Starts the boot of a seat.
    pub(super) fn boot(
        &self,
        seat: Seat,
        occupant: &Occupant,
        seeds: Vec<Seed>,
    ) -> Result<Arc<Node>, RigError> {
        let shared = &*self.shared;
        let unix_millis = UNIX_SECONDS * 1000 + milliseconds(shared.network.now());
        let config = NodeConfig {
            cluster: shared.cluster.clone(),
            hash_key: HASH_KEY,
            node: seat.node_id()?,
            weight: 1,
            peer_address: seat.address(),
            api_address: SocketAddr::from(([127, 0, 0, 1], 1)),
            seeds,
            last_generation: 0,
            max_memory_bytes: MEMORY_BYTES,
            inline_limits: InlineLimits::Allow,
            clients: Clients::Off,
            timeouts: shared.settings.timeouts,
        };
        let surroundings = Surroundings {
            clock: TokioClock::new(unix_millis),
            socket: shared.network.bind(seat.address())?,
            runtime: Arc::new(TokioRuntime),
            seed: part_seed(shared.seed, u64::from(seat.0) | occupant.boots << 8),
            control: ControlHost::Shared,
            resolver: Arc::new(NoNames),
        };
        let policies = Arc::new(policies(&shared.settings.limits)?);
        let credentials = occupant.credentials.clone();
        Ok(Node::start(config, credentials, policies, surroundings)?)
    }

    /// The certificate and keys of a seat.
    pub(super) fn credentials(&self, seat: Seat) -> Result<Credentials, RigError> {
        let (cluster, authority) = (&self.shared.cluster, &self.shared.authority);
        let node = &seat.node_id()?;
        let pem = authority.issue_node(node, Validity::new(UNIX_SECONDS, LEAF_SPAN))?;
        let authority = authority.pem().certificate;
        let pem = CredentialPem {
            authority: &authority,
            certificate: &pem.certificate,
            key: &pem.key,
        };
        let holder = Holder {
            cluster,
            node,
            unix_seconds: UNIX_SECONDS,
        };
        Ok(Credentials::from_pem(&pem, &holder)?)
    }
}

/// Where a seat's node looks for others: at the first that run.
pub(super) fn seeds(seats: &BTreeMap<Seat, Occupant>, seat: Seat) -> Vec<Seed> {
    let others = seats
        .iter()
        .filter(|(other, occupant)| **other != seat && occupant.node.is_some());
    let addresses = others.map(|(other, _)| Seed::Address(other.address()));
    addresses.take(MAX_SEEDS).collect()
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Finds no name: the simulation goes by addresses.
#[derive(Debug)]
struct NoNames;

impl Resolve for NoNames {
    fn look_up<'a>(&'a self, _host: &'a str, _port: u16) -> LookUp<'a> {
        Box::pin(async { Err(io::ErrorKind::NotFound.into()) })
    }
}
