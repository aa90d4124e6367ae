//! Real nodes on loopback sockets, in one process.

use std::{sync::Arc, time::Duration};

use tollgate_cluster::ClusterName;
use tollgate_limit::{
    AlgorithmSpec, Attributes, Call, Cost, Decision, Fallback, HashKey, KeyHash, Limit,
    LimitNumber, LimitSpec, Mode, Nanos, NodeId, Policies, Question, Subject,
};

use crate::{
    Clients, Clock as _, ControlHost, InlineLimits, Node, NodeConfig, Seed, Surroundings, Timeouts,
    TokioClock,
    certificates::{AUTHORITY_SPAN, Authority, LEAF_SPAN, Validity},
    credentials::{CredentialPem, Credentials, Holder},
    seeds::SystemResolver,
    transport::bind,
};

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const HASH_KEY: HashKey = HashKey::new(*b"sixteen of bytes");

/// Nodes that know each other.
pub(crate) struct Cluster {
    name: ClusterName,
    authority: Authority,
    timeouts: Timeouts,
    limits: Vec<LimitSpec>,
    pub(crate) nodes: Vec<Arc<Node>>,
}

pub(crate) fn limit(name: &str, limit: u64, fallback: Fallback) -> LimitSpec {
    LimitSpec {
        matches: vec![(name.to_owned(), vec!["*".to_owned()])],
        key: vec![name.to_owned()],
        fallback,
        ..LimitSpec::new(
            name,
            LimitNumber::One(limit),
            AlgorithmSpec::SlidingWindow {
                window: Nanos::from_millis(3_600_000),
                slices: 10,
                hard: true,
            },
        )
    }
}

impl Cluster {
    /// So many active nodes; a check is never late by accident.
    pub(crate) async fn start(nodes: usize, limits: Vec<LimitSpec>) -> Self {
        let name = ClusterName::new("test").unwrap();
        let clock = TokioClock::system();
        let unix_seconds = clock.unix_seconds(clock.now());
        let authority = Authority::new(&name, Validity::new(unix_seconds, AUTHORITY_SPAN)).unwrap();
        let timeouts = Timeouts {
            check_deadline: Duration::from_secs(5),
            forward: Duration::from_secs(4),
            standby: Duration::from_secs(4),
            ..Timeouts::default()
        };
        let mut cluster = Self {
            name,
            authority,
            timeouts,
            limits,
            nodes: Vec::new(),
        };
        for number in 1..=nodes {
            cluster.join(&format!("n{number}"));
            cluster.settle(number).await;
        }
        cluster
    }

    pub(crate) fn join(&mut self, id: &str) {
        let node = NodeId::new(id).unwrap();
        let clock = TokioClock::system();
        let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let unix_seconds = clock.unix_seconds(clock.now());
        let pem = self
            .authority
            .issue_node(&node, Validity::new(unix_seconds, LEAF_SPAN))
            .unwrap();
        let authority = self.authority.pem().certificate;
        let credentials = Credentials::from_pem(
            &CredentialPem {
                authority: &authority,
                certificate: &pem.certificate,
                key: &pem.key,
            },
            &Holder {
                cluster: &self.name,
                node: &node,
                unix_seconds,
            },
        );
        let seeds = self
            .nodes
            .first()
            .map(|node| Seed::Address(node.config().peer_address));
        let config = NodeConfig {
            cluster: self.name.clone(),
            hash_key: HASH_KEY,
            node,
            weight: 1,
            peer_address: socket.local_addr().unwrap(),
            api_address: "127.0.0.1:1".parse().unwrap(),
            seeds: seeds.into_iter().collect(),
            last_generation: 0,
            max_memory_bytes: 16 << 20,
            inline_limits: InlineLimits::Allow,
            clients: Clients::Off,
            timeouts: self.timeouts,
        };
        let policies = policies(&self.limits);
        let surroundings = Surroundings {
            clock,
            socket,
            runtime: Arc::new(quinn::TokioRuntime),
            seed: u64::try_from(self.nodes.len()).unwrap(),
            control: ControlHost::Shared,
            resolver: Arc::new(SystemResolver),
        };
        let started = Node::start(
            config,
            credentials.unwrap(),
            Arc::new(policies),
            surroundings,
        );
        self.nodes.push(started.unwrap());
    }

    /// Waits until all nodes go by one placement of so many members, and reach each other.
    pub(crate) async fn settle(&self, members: usize) {
        await_that("one placement", || {
            self.nodes.iter().all(|node| {
                let routes = node.routes.load();
                routes.view.placement.members().len() == members
                    && routes.view.own.is_some()
                    && routes.links().all(|link| link.is_usable())
                    && routes.links().count() + 1 == members
                    && node.is_settled()
            })
        })
        .await;
    }

    /// Asks a node to admit one unit of these keys.
    pub(crate) async fn check(&self, node: usize, keys: &[(&str, &str)]) -> Decision {
        check(&self.nodes[node], keys).await
    }

    /// The first value of `attribute` whose key that node owns.
    pub(crate) fn owned_by(&self, node: usize, attribute: &str, from: usize) -> String {
        let policies = self.nodes[0].policies();
        let limits = policies.policy("default").unwrap().limits();
        let limit = limits
            .iter()
            .find(|limit| limit.name() == attribute)
            .unwrap();
        let routes = self.nodes[node].routes.load();
        let values = (from..).map(|number| format!("v{number}"));
        let owned = |value: &String| routes.is_own(key_of(limit, attribute, value).slot());
        values.into_iter().find(owned).unwrap()
    }

    /// Whether that node owns the key of a value.
    pub(crate) fn is_at(&self, node: usize, attribute: &str, value: &str) -> bool {
        let policies = self.nodes[0].policies();
        let limits = policies.policy("default").unwrap().limits();
        let mut limits = limits.iter();
        let limit = limits.find(|limit| limit.name() == attribute).unwrap();
        let routes = self.nodes[node].routes.load();
        routes.is_own(key_of(limit, attribute, value).slot())
    }

    /// The first value of `attribute` whose key these nodes have: owner and standby.
    pub(crate) fn kept_by(
        &self,
        (owner, standby): (usize, usize),
        attribute: &str,
        from: usize,
    ) -> String {
        let policies = self.nodes[0].policies();
        let limits = policies.policy("default").unwrap().limits();
        let limit = limits
            .iter()
            .find(|limit| limit.name() == attribute)
            .unwrap();
        let view = self.nodes[0].view();
        let of = |node: usize| view.placement.index_of(&self.nodes[node].config().node);
        let values = (from..).map(|number| format!("v{number}"));
        let is_kept = |value: &String| {
            let slot = key_of(limit, attribute, value).slot();
            let placement = &view.placement;
            (placement.owner(slot), placement.standby(slot)) == (of(owner), of(standby))
        };
        values.into_iter().find(is_kept).unwrap()
    }

    /// What a limit has used for a key, as a node has it.
    pub(crate) fn used(&self, node: usize, attribute: &str, value: &str) -> u64 {
        let policies = self.nodes[node].policies();
        let limits = policies.policy("default").unwrap().limits();
        let limit = limits
            .iter()
            .find(|limit| limit.name() == attribute)
            .unwrap();
        let node = &self.nodes[node];
        let key = key_of(limit, attribute, value);
        node.owner
            .store
            .read(node.now(), key, limit.usual_rule().unwrap())
            .map_or(0, |verdict| verdict.used)
    }
}

/// The default policy of these limits.
pub(crate) fn policies(limits: &[LimitSpec]) -> Policies {
    let mut policies = Policies::new();
    for spec in limits {
        let limit = Limit::new("default", spec.clone(), &HASH_KEY).unwrap();
        policies.add("default", limit).unwrap();
    }
    policies
}

pub(crate) async fn check(node: &Arc<Node>, keys: &[(&str, &str)]) -> Decision {
    let mut attributes = Attributes::new();
    for (name, value) in keys {
        attributes.insert(*name, *value).unwrap();
    }
    let question = Question {
        subject: Subject::Policy {
            name: "default",
            attributes,
        },
        cost: Cost::ONE,
        mode: Mode::Consume,
        call: Call::Check,
    };
    let checked = node.check(node.now(), &question).unwrap();
    checked.decision().await
}

pub(crate) fn key_of(limit: &Limit, attribute: &str, value: &str) -> KeyHash {
    let mut attributes = Attributes::new();
    attributes.insert(attribute, value).unwrap();
    limit.key_of(&attributes).unwrap().unwrap()
}

/// Waits until something is true.
pub(crate) async fn await_that(what: &str, is_true: impl Fn() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "not in time: {what}");
}
