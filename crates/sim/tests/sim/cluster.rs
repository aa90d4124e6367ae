//! Shipped nodes on the simulated network: `n1`, `n2`, … at 10.0.0.1, 10.0.0.2, …
//!
//! Wall time, too, is made up, so that certificates are the same length and valid in every run.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use quinn::TokioRuntime;
use tokio::time::{sleep, timeout};
use tollgate_cluster::ClusterName;
use tollgate_limit::{
    AlgorithmSpec, Attributes, Call, Cost, Decision, Fallback, HashKey, Limit, LimitNumber,
    LimitSpec, Mode, Nanos, NodeId, Policies, Question, Subject,
};
use tollgate_node::{
    Clients, ControlHost, CounterReading, InlineLimits, Node, NodeConfig, Seed, Surroundings,
    Timeouts, TokioClock,
    certificates::{AUTHORITY_SPAN, Authority, LEAF_SPAN, Validity},
    credentials::{CredentialPem, Credentials, Holder},
    seeds::{LookUp, Resolve},
};
use tollgate_sim::Simulation;

use crate::mesh::address;

/// The policy of every check, its one limit, and the attribute that it counts by.
pub(crate) const POLICY: &str = "default";
const LIMIT: &str = "per-key";
const ATTRIBUTE: &str = "key";
/// Units for each window.
pub(crate) const LIMIT_UNITS: u64 = 1000;

/// Unix time at virtual time 0, in seconds.
const UNIX_SECONDS: u64 = 1_800_000_000;
const HASH_KEY: HashKey = HashKey::new(*b"sixteen of bytes");
/// How long, in virtual time, a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// Nodes that know each other.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Arc<Node>>,
}

impl Cluster {
    /// So many active nodes that reach each other. Randomness is the simulation's.
    pub(crate) async fn start(simulation: &Simulation, nodes: u8, timeouts: Timeouts) -> Self {
        Self::start_with(simulation, nodes, timeouts, Fallback::LocalFull).await
    }

    /// The same, with this fallback.
    pub(crate) async fn start_with(
        simulation: &Simulation,
        nodes: u8,
        timeouts: Timeouts,
        fallback: Fallback,
    ) -> Self {
        let spec = LimitSpec {
            key: vec![ATTRIBUTE.to_owned()],
            fallback,
            ..LimitSpec::new(
                LIMIT,
                LimitNumber::One(LIMIT_UNITS),
                AlgorithmSpec::SlidingWindow {
                    window: Nanos::from_millis(3_600_000),
                    slices: 10,
                    hard: true,
                },
            )
        };
        Self::start_limits(simulation, nodes, timeouts, &[spec]).await
    }

    /// The same, with these limits.
    pub(crate) async fn start_limits(
        simulation: &Simulation,
        nodes: u8,
        timeouts: Timeouts,
        limits: &[LimitSpec],
    ) -> Self {
        let name = ClusterName::new("sim").unwrap();
        let authority = Authority::new(&name, Validity::new(UNIX_SECONDS, AUTHORITY_SPAN)).unwrap();
        let nodes = (1..=nodes).map(|number| {
            let node = NodeId::new(&format!("n{number}")).unwrap();
            let credentials = credentials(&authority, &name, &node);
            let config = config(name.clone(), node, number, timeouts);
            let surroundings = surroundings(simulation, number);
            Node::start(
                config,
                credentials,
                Arc::new(policies(limits)),
                surroundings,
            )
            .unwrap()
        });
        let cluster = Self {
            nodes: nodes.collect(),
        };
        cluster.settle().await;
        cluster
    }

    /// Where a node is, by its index in `nodes`.
    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        self.nodes[node].config().peer_address
    }

    /// Waits until all nodes go by one placement and reach each other.
    pub(crate) async fn settle(&self) {
        let settled = |node: &Arc<Node>| {
            let report = node.report();
            let placement = report.placement;
            node.is_active()
                && report.members.len() == self.nodes.len()
                && report.members.iter().all(|member| {
                    member.is_reachable && member.slots > 0 && member.placement == Some(placement)
                })
        };
        await_that("one placement", || self.nodes.iter().all(settled)).await;
    }

    /// The first key that a node owns.
    pub(crate) async fn key_of(&self, owner: usize) -> String {
        for number in 0.. {
            let key = format!("k{number}");
            if self.counter(owner, &key).await.owner == self.nodes[owner].config().node {
                return key;
            }
        }
        unreachable!("a node owns a third of all keys");
    }

    /// A key's counter, as that node reads it.
    pub(crate) async fn counter(&self, reader: usize, key: &str) -> CounterReading {
        let node = &self.nodes[reader];
        let policies = node.policies();
        let [limit] = policies.policy(POLICY).unwrap().limits() else {
            panic!("one limit")
        };
        let key = limit.key_of(&attributes(key)).unwrap().unwrap();
        node.counter(key, *limit.usual_rule().unwrap())
            .await
            .unwrap()
    }
}

/// Asks a node to admit one unit of a key.
pub(crate) async fn check(node: &Arc<Node>, key: &str) -> Decision {
    let question = Question {
        subject: Subject::Policy {
            name: POLICY,
            attributes: attributes(key),
        },
        cost: Cost::ONE,
        mode: Mode::Consume,
        call: Call::Check,
    };
    node.check(node.now(), &question).unwrap().decision().await
}

/// Waits, in virtual time, until something is true.
pub(crate) async fn await_that(what: &str, is_true: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !is_true() {
            sleep(POLL).await;
        }
    });
    assert!(waited.await.is_ok(), "not in time: {what}");
}

fn attributes(key: &str) -> Attributes<'_> {
    let mut attributes = Attributes::new();
    attributes.insert(ATTRIBUTE, key).unwrap();
    attributes
}

pub(crate) fn policies(limits: &[LimitSpec]) -> Policies {
    let mut policies = Policies::new();
    for spec in limits {
        let limit = Limit::new(POLICY, spec.clone(), &HASH_KEY).unwrap();
        policies.add(POLICY, limit).unwrap();
    }
    policies
}

fn credentials(authority: &Authority, cluster: &ClusterName, node: &NodeId) -> Credentials {
    let pem = authority
        .issue_node(node, Validity::new(UNIX_SECONDS, LEAF_SPAN))
        .unwrap();
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
    Credentials::from_pem(&pem, &holder).unwrap()
}

fn config(cluster: ClusterName, node: NodeId, number: u8, timeouts: Timeouts) -> NodeConfig {
    let first = (number > 1).then(|| Seed::Address(address(1)));
    NodeConfig {
        cluster,
        hash_key: HASH_KEY,
        node,
        weight: 1,
        peer_address: address(number),
        api_address: SocketAddr::from(([127, 0, 0, 1], 1)),
        seeds: first.into_iter().collect(),
        last_generation: 0,
        max_memory_bytes: 16 << 20,
        inline_limits: InlineLimits::Allow,
        clients: Clients::Off,
        timeouts,
    }
}

fn surroundings(simulation: &Simulation, number: u8) -> Surroundings {
    Surroundings {
        clock: TokioClock::new(UNIX_SECONDS * 1000),
        socket: simulation.network().bind(address(number)).unwrap(),
        runtime: Arc::new(TokioRuntime),
        seed: simulation.seed_of_part(number.into()),
        control: ControlHost::Shared,
        resolver: Arc::new(NoNames),
    }
}

/// Finds no name: the simulation goes by addresses.
#[derive(Debug)]
struct NoNames;

impl Resolve for NoNames {
    fn look_up<'a>(&'a self, _host: &'a str, _port: u16) -> LookUp<'a> {
        Box::pin(async { Err(io::ErrorKind::NotFound.into()) })
    }
}
