//! A rig whose nodes all run, and which is asked by index.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use tollgate_limit::{
    AlgorithmSpec, Attributes, Call, Cost, Decision, Fallback, LimitNumber, LimitSpec, Mode, Nanos,
    Question, Subject,
};
use tollgate_node::{CounterReading, Node, Timeouts};
use tollgate_sim::{
    Simulation,
    rig::{POLICY, Rig, Settings},
};

/// The one limit, and the attribute that it counts by.
const LIMIT: &str = "per-key";
const ATTRIBUTE: &str = "key";
/// Units for each window.
pub(crate) const LIMIT_UNITS: u64 = 1000;

/// How long, in virtual time, a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// Nodes that know each other.
pub(crate) struct Cluster {
    pub(crate) rig: Rig,
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
        let settings = Settings {
            limits: limits.to_vec(),
            timeouts,
        };
        let rig = Rig::new(simulation, settings).unwrap();
        rig.start_all(nodes).unwrap();
        let nodes = rig.nodes().into_iter().map(|(_, node)| node).collect();
        let cluster = Self { rig, nodes };
        cluster.settle().await;
        cluster
    }

    /// Where a node is, by its index in `nodes`.
    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        self.nodes[node].config().peer_address
    }

    /// Waits until all nodes go by one placement and reach each other.
    pub(crate) async fn settle(&self) {
        self.rig.settle(PATIENCE).await.unwrap();
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
