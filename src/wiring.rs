//! The node as the edges see it: `api`'s two traits over `tollgate-node`'s [`Node`].
//!
//! The only file that knows both sides. It translates and decides nothing.

mod metrics;
mod policies;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::StatusCode;
use tollgate_api::{
    Acted, Checked, Checker, ClusterView, CounterError, CounterQuery, CounterView, HeaderFamilies,
    MemberView, MetricsSnapshot, MotionView, Operator, Readiness, Switch, Switches,
};
use tollgate_limit::{
    Action, Attributes, CheckError, Cost, DecidedBy, HashKey, KeyHash, Limit, LimitDecision,
    LimitSpec, Nanos, Policies, Question, Receipt, Rule,
};
use tollgate_node::{Clock as _, MemberReport, Node, PeerReport};
use tracing::{error, info};

use self::policies::InForce;
use crate::config::{ConfigError, PolicyFile, Settings};

/// A running node, and what the edges need beside it.
#[derive(Debug)]
pub(crate) struct Edge {
    node: Arc<Node>,
    policies: InForce,
    leaving: AtomicBool,
}

impl Edge {
    pub(crate) fn new(node: Arc<Node>, settings: Settings) -> Self {
        Self {
            node,
            policies: InForce::new(settings),
            leaving: AtomicBool::new(false),
        }
    }

    /// Answers `/readyz` with "leaving" from now on.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// What keys are hashed with.
    pub(crate) fn hash_key(&self) -> &HashKey {
        &self.node.config().hash_key
    }

    /// Puts other policies in force; counters and tallies go on.
    pub(crate) fn replace_policies(&self, file: PolicyFile) {
        let old = self.node.policies().fingerprint();
        let new = file.policies.fingerprint();
        // A policy that is new is never answered with another's settings.
        self.policies.replace(file.settings);
        self.node.replace_policies(file.policies);
        let (old, new) = (format!("{old:016x}"), format!("{new:016x}"));
        info!(%old, %new, "new policies are in force");
    }

    /// Tells of policies that cannot be put in force.
    pub(crate) fn reject_policies(&self, error: &ConfigError) {
        self.policies.reject(error);
        error!(%error, "the new policies are wrong: the last good ones stay in force");
    }

    /// The limit that a query names, and the query's attributes.
    fn counter_of(&self, query: &CounterQuery) -> Result<Arc<Limit>, CounterError> {
        let policies = self.node.policies();
        let policy = policies
            .policy(&query.policy)
            .ok_or_else(|| CounterError::UnknownPolicy {
                name: query.policy.clone(),
            })?;
        let limit = policy
            .limits()
            .iter()
            .find(|limit| limit.name() == query.limit);
        limit.cloned().ok_or_else(|| CounterError::UnknownLimit {
            name: query.limit.clone(),
        })
    }
}

impl Checker for Edge {
    fn now(&self) -> Nanos {
        self.node.now()
    }

    fn wall_seconds(&self, now: Nanos) -> u64 {
        self.node.clock().unix_seconds(now)
    }

    fn check(&self, now: Nanos, question: &Question<'_>) -> Result<Checked, CheckError> {
        Ok(match self.node.check(now, question)? {
            tollgate_node::Checked::Now(decision) => Checked::Now(decision),
            tollgate_node::Checked::Later(decision) => Checked::Later(decision),
        })
    }

    fn inline_limit(&self, spec: LimitSpec) -> Result<Arc<Limit>, CheckError> {
        self.node.inline_limit(spec)
    }

    fn receipt_key(&self) -> &HashKey {
        &self.node.config().hash_key
    }

    fn act(&self, now: Nanos, receipt: Receipt, action: Action) -> Acted {
        let node = Arc::clone(&self.node);
        Box::pin(async move { node.act(now, receipt, action).await })
    }

    fn refund(&self, now: Nanos, question: &Question<'_>) -> Result<Acted, CheckError> {
        let refund = Arc::clone(&self.node).refund(now, question)?;
        Ok(Box::pin(refund))
    }

    fn policies(&self) -> Arc<Policies> {
        self.node.policies()
    }

    fn deny_status(&self, policy: &str) -> StatusCode {
        self.policies.settings_of(policy).deny_status
    }

    fn headers(&self, policy: &str) -> HeaderFamilies {
        self.policies.settings_of(policy).headers
    }
}

impl Operator for Edge {
    fn cluster(&self) -> ClusterView {
        let report = self.node.report();
        ClusterView {
            this: self.node.config().node.clone(),
            placement: report.placement,
            policies: report.policies,
            policies_error: self.policies.rejection(),
            switches: switches(&self.node),
            motion: MotionView {
                incoming: metrics::number(report.replicas.incoming_slots),
                outgoing: metrics::number(report.replicas.outgoing_slots),
                is_warm: report.replicas.is_warm,
            },
            members: report
                .members
                .iter()
                .map(|member| member_view(member, &report.peers))
                .collect(),
        }
    }

    fn counter(
        &self,
        query: CounterQuery,
    ) -> Pin<Box<dyn Future<Output = Result<CounterView, CounterError>> + Send>> {
        let limit = self.counter_of(&query);
        let node = Arc::clone(&self.node);
        Box::pin(async move { counter(&node, limit?, query).await })
    }

    fn reset(
        &self,
        query: CounterQuery,
    ) -> Pin<Box<dyn Future<Output = Result<(), CounterError>> + Send>> {
        let limit = self.counter_of(&query);
        let node = Arc::clone(&self.node);
        Box::pin(async move {
            let (key, rule) = counter_key(&*limit?, query)?;
            let reset = node.reset(key, rule).await;
            reset.map_err(|_unreachable| CounterError::Unreachable)
        })
    }

    fn set_switch(&self, switch: Switch, on: bool) -> Switches {
        let switch = match switch {
            Switch::Kill => tollgate_cluster::Switch::Kill,
            Switch::Shadow => tollgate_cluster::Switch::Shadow,
        };
        self.node.set_switch(switch, on);
        switches(&self.node)
    }

    fn readiness(&self) -> Readiness {
        let why = if self.leaving.load(Ordering::Relaxed) {
            "the node is leaving"
        } else if self.node.is_active() {
            return Readiness::Ready;
        } else {
            "the node is joining"
        };
        Readiness::NotReady {
            why: why.to_owned(),
        }
    }

    fn metrics(&self) -> MetricsSnapshot {
        MetricsSnapshot {
            policies: self.policies.metrics(),
            ..metrics::snapshot(&self.node)
        }
    }
}

/// The key and the rule of the counter that a query names.
fn counter_key(limit: &Limit, query: CounterQuery) -> Result<(KeyHash, Rule), CounterError> {
    let mut attributes = Attributes::new();
    for (name, value) in query.attributes {
        attributes.insert(name, value)?;
    }
    let absent = limit
        .key()
        .iter()
        .find(|name| attributes.value(name).is_none());
    if let Some(attribute) = absent {
        return Err(CounterError::MissingAttribute {
            attribute: attribute.clone(),
        });
    }
    let unlimited = || CounterError::Unlimited {
        name: limit.name().to_owned(),
    };
    // All key attributes have a value, so there is a key.
    let key = limit.key_of(&attributes).ok().flatten();
    let rule = limit.rule_of(&attributes).ok_or_else(unlimited)?;
    Ok((key.ok_or_else(unlimited)?, rule))
}

async fn counter(
    node: &Arc<Node>,
    limit: Arc<Limit>,
    query: CounterQuery,
) -> Result<CounterView, CounterError> {
    let (key, rule) = counter_key(&limit, query)?;
    let reading = node.counter(key, rule).await;
    let reading = reading.map_err(|_unreachable| CounterError::Unreachable)?;
    Ok(CounterView {
        state: LimitDecision {
            limit,
            key,
            rule,
            charged: Cost::ZERO,
            verdict: reading.verdict,
            decided_by: DecidedBy::Owner,
            // Nothing is charged.
            boot: 0,
            node: reading.owner.clone(),
            degraded: false,
        },
        owner: Some(reading.owner),
        standby: reading.standby,
    })
}

/// How the switches stand, as the node knows it.
fn switches(node: &Node) -> Switches {
    Switches {
        kill: node.is_switched(tollgate_cluster::Switch::Kill),
        shadow: node.is_switched(tollgate_cluster::Switch::Shadow),
    }
}

fn member_view(member: &MemberReport, peers: &[PeerReport]) -> MemberView {
    let identity = &member.identity;
    let peer = peers.iter().find(|peer| peer.node == identity.node);
    let follower = peer.and_then(|peer| peer.follower);
    MemberView {
        id: identity.node.clone(),
        boot: identity.boot.0,
        phase: identity.phase,
        reachable: member.is_reachable,
        peer: identity.peer,
        api: identity.api,
        weight: identity.weight,
        slots: member.slots,
        placement: member.placement,
        policies: member.policies,
        replication_lag_ms: follower.map(|follower| follower.lag.ceil_millis()),
    }
}
