//! Shipped nodes on the simulated network: `n1`, `n2`, … at 10.0.0.1, 10.0.0.2, …
//!
//! Starts, stops and restarts them; asks them as any client would ([`ask`](self::ask::ask)), and tells
//! what they say of themselves. Must not reach into a node.
//!
//! Invariants: a boot's randomness is a function of the run's seed, its seat and its number; wall time, too,
//! is made up, so that certificates are of one length and valid in every run; a seat has at most one
//! running node, and a seat's name and address never change.

pub mod ask;
mod boot;
mod state;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use thiserror::Error;
use tollgate_cluster::ClusterName;
use tollgate_limit::{Limit, LimitSpec, Nanos, NodeId, Policies, PolicyError, SpecError};
use tollgate_node::{
    Node, StartError, Timeouts,
    certificates::{AUTHORITY_SPAN, Authority, IssueError, Validity},
    credentials::{Credentials, CredentialsError},
};

use self::boot::{HASH_KEY, UNIX_SECONDS};
use crate::{BindError, Network, Simulation};

/// The policy of every limit of a rig.
pub const POLICY: &str = "default";

/// The cluster's name.
const CLUSTER: &str = "sim";

/// What all nodes of a rig have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits of [`POLICY`].
    pub limits: Vec<LimitSpec>,
    /// How long things may take.
    pub timeouts: Timeouts,
}

/// The place of a node: its name and address are made of it. From 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(pub u8);

/// Nodes that can be started and stopped. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub struct Rig {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    network: Network,
    seed: u64,
    settings: Settings,
    cluster: ClusterName,
    authority: Authority,
    seats: Mutex<BTreeMap<Seat, Occupant>>,
}

/// What a seat has had and has.
#[derive(Debug)]
struct Occupant {
    /// The same over restarts, as its keys on disk are.
    credentials: Credentials,
    boots: u64,
    /// The one that runs.
    node: Option<Arc<Node>>,
    /// The one that leaves: it is asked no more, but may still be heard.
    leaving: Option<Arc<Node>>,
    is_suspended: bool,
}

/// A rig that cannot do what it was told. The scenario's fault, or the tested code's.
#[derive(Debug, Error)]
pub enum RigError {
    /// A name is no name.
    #[error("'{0}' is no name")]
    Name(String),
    /// A certificate cannot be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// A certificate is not taken.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// A limit is wrong.
    #[error(transparent)]
    Limit(#[from] SpecError),
    /// The limits do not go together.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The address is taken.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The node does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The seat has a node that runs.
    #[error("{0} runs already")]
    Running(Seat),
    /// Something did not come true.
    #[error("not within {patience:?}: {what}")]
    NotInTime {
        /// What was waited for.
        what: String,
        /// How long.
        patience: Duration,
    },
}

impl Seat {
    /// Where its node is.
    #[must_use]
    pub fn address(self) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, self.0], 7601))
    }

    /// Its node's name.
    #[must_use]
    pub fn name(self) -> String {
        format!("n{}", self.0)
    }

    /// The seat of the node of that name.
    #[must_use]
    pub fn of(node: &NodeId) -> Option<Self> {
        node.as_str().strip_prefix('n')?.parse().ok().map(Self)
    }

    fn node_id(self) -> Result<NodeId, RigError> {
        NodeId::new(&self.name()).ok_or_else(|| RigError::Name(self.name()))
    }
}

impl std::fmt::Display for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl Rig {
    /// A rig without nodes. Randomness is the simulation's.
    ///
    /// # Errors
    /// [`RigError`]: a limit is wrong.
    pub fn new(simulation: &Simulation, settings: Settings) -> Result<Self, RigError> {
        policies(&settings.limits)?;
        let cluster =
            ClusterName::new(CLUSTER).ok_or_else(|| RigError::Name(CLUSTER.to_owned()))?;
        let validity = Validity::new(UNIX_SECONDS, AUTHORITY_SPAN);
        let authority = Authority::new(&cluster, validity)?;
        Ok(Self {
            shared: Arc::new(Shared {
                network: simulation.network().clone(),
                seed: simulation.seed(),
                settings,
                cluster,
                authority,
                seats: Mutex::default(),
            }),
        })
    }

    /// Starts the seats from 1 to `last`, the others with the first as their seed.
    ///
    /// # Errors
    /// [`RigError`].
    pub fn start_all(&self, last: u8) -> Result<(), RigError> {
        for number in 1..=last {
            self.start(Seat(number))?;
        }
        Ok(())
    }

    /// Starts a seat's node: for the first time, or as a new boot with the seat's name, address and keys.
    /// It looks for members at the addresses of nodes that run.
    ///
    /// # Errors
    /// [`RigError`].
    pub fn start(&self, seat: Seat) -> Result<Arc<Node>, RigError> {
        let mut seats = self.shared.seats.lock();
        let seeds = boot::seeds(&seats, seat);
        let occupant = match seats.entry(seat) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(Occupant {
                credentials: self.credentials(seat)?,
                boots: 0,
                node: None,
                leaving: None,
                is_suspended: false,
            }),
        };
        if occupant.node.is_some() || occupant.leaving.is_some() {
            return Err(RigError::Running(seat));
        }
        occupant.boots += 1;
        let node = self.boot(seat, occupant, seeds)?;
        occupant.node = Some(Arc::clone(&node));
        Ok(node)
    }

    /// Takes a seat's node off the network without a word, as if its machine had died; returns it.
    pub fn crash(&self, seat: Seat) -> Option<Arc<Node>> {
        self.shared.network.unplug(seat.address());
        self.take(seat)
    }

    /// Lets a seat's node leave as it does when it is told to stop.
    pub async fn leave(&self, seat: Seat) {
        let Some(node) = self.take(seat) else {
            return;
        };
        self.set_leaving(seat, Some(Arc::clone(&node)));
        node.leave().await;
        self.set_leaving(seat, None);
        self.shared.network.unplug(seat.address());
    }

    /// Suspends a seat's node, as far as the network shows: what arrives waits, what it sends is lost.
    pub fn suspend(&self, seat: Seat) {
        self.set_suspended(seat, true);
        self.shared.network.suspend(seat.address());
    }

    /// Ends [`suspend`](Self::suspend).
    pub fn resume(&self, seat: Seat) {
        self.set_suspended(seat, false);
        self.shared.network.resume(seat.address());
    }

    /// Unix time at virtual time 0.
    #[must_use]
    pub const fn unix_origin() -> Nanos {
        Nanos::from_millis(UNIX_SECONDS * 1000)
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.shared.network
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The nodes that run, suspended ones included, by seat.
    #[must_use]
    pub fn nodes(&self) -> Vec<(Seat, Arc<Node>)> {
        let seats = self.shared.seats.lock();
        let running = |(seat, occupant): (&Seat, &Occupant)| Some((*seat, occupant.node.clone()?));
        seats.iter().filter_map(running).collect()
    }

    /// The node of a seat, if it runs.
    #[must_use]
    pub fn node(&self, seat: Seat) -> Option<Arc<Node>> {
        let seats = self.shared.seats.lock();
        seats.get(&seat).and_then(|occupant| occupant.node.clone())
    }

    /// The nodes that run and those that leave.
    #[must_use]
    pub(crate) fn heard(&self) -> Vec<(Seat, Arc<Node>)> {
        let seats = self.shared.seats.lock();
        let nodes = seats.iter().flat_map(|(seat, occupant)| {
            let nodes = occupant.node.iter().chain(&occupant.leaving);
            nodes.map(|node| (*seat, Arc::clone(node)))
        });
        nodes.collect()
    }

    /// The seats whose nodes are ready and not suspended: a client may ask them.
    #[must_use]
    pub fn entries(&self) -> Vec<Seat> {
        let seats = self.shared.seats.lock();
        let is_ready = |occupant: &Occupant| {
            let node = occupant.node.as_ref();
            node.is_some_and(|node| node.is_active()) && !occupant.is_suspended
        };
        let seats = seats.iter().filter(|(_, occupant)| is_ready(occupant));
        seats.map(|(seat, _)| *seat).collect()
    }

    /// Whether this is the node that a seat has, and may be heard.
    pub(crate) fn hears(&self, seat: Seat, node: &Arc<Node>) -> bool {
        let seats = self.shared.seats.lock();
        seats.get(&seat).is_some_and(|occupant| {
            let mut heard = occupant.node.iter().chain(&occupant.leaving);
            heard.any(|heard| Arc::ptr_eq(heard, node))
        })
    }

    fn take(&self, seat: Seat) -> Option<Arc<Node>> {
        let mut seats = self.shared.seats.lock();
        let occupant = seats.get_mut(&seat)?;
        occupant.is_suspended = false;
        occupant.node.take()
    }

    fn set_leaving(&self, seat: Seat, node: Option<Arc<Node>>) {
        if let Some(occupant) = self.shared.seats.lock().get_mut(&seat) {
            occupant.leaving = node;
        }
    }

    fn set_suspended(&self, seat: Seat, is_suspended: bool) {
        if let Some(occupant) = self.shared.seats.lock().get_mut(&seat) {
            occupant.is_suspended = is_suspended;
        }
    }
}

/// These limits as [`POLICY`].
fn policies(limits: &[LimitSpec]) -> Result<Policies, RigError> {
    let mut policies = Policies::new();
    for spec in limits {
        let limit = Limit::new(POLICY, spec.clone(), &HASH_KEY)?;
        policies.add(POLICY, limit)?;
    }
    Ok(policies)
}
