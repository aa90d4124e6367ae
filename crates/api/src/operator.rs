//! What runs the cluster, as the operators' calls see it: plain structs, filled by the node.
//!
//! Knows nothing of how the node comes by them.

use std::{net::SocketAddr, pin::Pin};

use thiserror::Error;
use tollgate_limit::{AttributeError, LimitDecision, NodeId};
use tollgate_wire::identity::Phase;

pub use self::metrics::{
    Breaker, FollowerMetrics, LatencyHistogram, LimitMetrics, MetricsSnapshot, OwnerMetrics,
    PeerMetrics, PolicyMetrics, ReplicaMetrics, StoreMetrics,
};

mod metrics;

/// Answers what operators ask.
pub trait Operator: Send + Sync + 'static {
    /// The cluster as this node sees it: `GET /v1/cluster`.
    fn cluster(&self) -> ClusterView;

    /// The state of one counter: `GET /v1/keys`. Bounded by the check deadline.
    fn counter(
        &self,
        query: CounterQuery,
    ) -> Pin<Box<dyn Future<Output = Result<CounterView, CounterError>> + Send>>;

    /// Resets one counter, its ban too: `DELETE /v1/keys`. Bounded by the check deadline.
    fn reset(
        &self,
        query: CounterQuery,
    ) -> Pin<Box<dyn Future<Output = Result<(), CounterError>> + Send>>;

    /// Sets a switch of the whole cluster: `PUT /v1/switches/*`. At once in force on this node, and on the
    /// others within a second; how both stand then.
    fn set_switch(&self, switch: Switch, on: bool) -> Switches;

    /// Whether the node takes checks: `GET /readyz`.
    fn readiness(&self) -> Readiness;

    /// What the node has counted: `GET /metrics`.
    fn metrics(&self) -> MetricsSnapshot;
}

/// The cluster as one node sees it.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// This node.
    pub this: NodeId,
    /// Fingerprint of its placement.
    pub placement: u64,
    /// Fingerprint of its policies.
    pub policies: u64,
    /// Why the newest policies are not in force, in one line; `None` if they are.
    pub policies_error: Option<String>,
    /// The cluster's switches.
    pub switches: Switches,
    /// Slots on their way to and from this node.
    pub motion: MotionView,
    /// All members, this node too.
    pub members: Vec<MemberView>,
}

/// Slots on their way to and from one node, as it sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MotionView {
    /// Slots that are to be its own and whose counts have not all come.
    pub incoming: u64,
    /// Slots that it decides in and that another is to own.
    pub outgoing: u64,
    /// Whether nothing is left to be copied before it can own its share; true but for a node that joins.
    pub is_warm: bool,
}

/// One of the cluster's switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Admit all, count nothing.
    Kill,
    /// Decide as if enforced, deny nothing.
    Shadow,
}

/// How the cluster's switches stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Admit all, count nothing.
    pub kill: bool,
    /// Decide as if enforced, deny nothing.
    pub shadow: bool,
}

/// A member as one node sees it.
#[derive(Clone, Debug)]
pub struct MemberView {
    /// Its name.
    pub id: NodeId,
    /// This start of it.
    pub boot: u64,
    /// Where it is in its life.
    pub phase: Phase,
    /// Whether checks can be sent to it now.
    pub reachable: bool,
    /// Where peers reach it.
    pub peer: SocketAddr,
    /// Where its HTTP interface listens.
    pub api: SocketAddr,
    /// Its share of slots, relative to the others'.
    pub weight: u8,
    /// Slots that it owns.
    pub slots: usize,
    /// Fingerprint of its placement, as far as it is known.
    pub placement: Option<u64>,
    /// Fingerprint of its policies, as far as it is known.
    pub policies: Option<u64>,
    /// For how long the oldest change has waited that this node has not told it yet, in milliseconds; `None`
    /// if it follows nothing of this node.
    pub replication_lag_ms: Option<u64>,
}

/// Names one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterQuery {
    /// The policy.
    pub policy: String,
    /// The limit in it.
    pub limit: String,
    /// Attributes by name: those that the limit counts by, and those that choose its numbers. Others are
    /// ignored.
    pub attributes: Vec<(String, String)>,
}

/// One counter.
#[derive(Clone, Debug)]
pub struct CounterView {
    /// What a peek for one unit says, and who said it.
    pub state: LimitDecision,
    /// The owner by this node's placement; `None` if no member is active.
    pub owner: Option<NodeId>,
    /// The standby, if there is a second member.
    pub standby: Option<NodeId>,
}

/// A counter that cannot be told. The caller's fault, but for [`CounterError::Unreachable`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CounterError {
    /// No such policy is configured.
    #[error("policy `{name}` is not configured")]
    UnknownPolicy {
        /// The name asked for.
        name: String,
    },
    /// The policy has no such limit.
    #[error("the policy has no limit `{name}`")]
    UnknownLimit {
        /// The name asked for.
        name: String,
    },
    /// The limit is unlimited for these attributes, so it counts nothing.
    #[error("limit `{name}` is unlimited for these attributes: it counts nothing")]
    Unlimited {
        /// The limit.
        name: String,
    },
    /// A key attribute of the limit has no value.
    #[error("the limit counts by attribute `{attribute}`, which has no value")]
    MissingAttribute {
        /// The attribute.
        attribute: String,
    },
    /// An attribute breaks a bound.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
    /// Neither the owner nor the standby answered in time; nobody's fault, ask again.
    #[error("neither the owner nor the standby of the key answered in time")]
    Unreachable,
}

/// Whether the node takes checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// Not now.
    NotReady {
        /// Why, in one line.
        why: String,
    },
}
