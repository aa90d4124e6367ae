//! What the node has counted, as plain numbers.
//!
//! Invariant: the number of series depends on policies and members, never on keys: all inline limits
//! are one [`LimitMetrics`].

use tollgate_limit::{DecidedBy, NodeId, Reason, Tally};

use super::Switches;

/// All deciders, in the order of the metrics.
const DECIDERS: [DecidedBy; 5] = [
    DecidedBy::Owner,
    DecidedBy::Standby,
    DecidedBy::Cached,
    DecidedBy::Fallback,
    DecidedBy::Switch,
];

/// What a node has counted since it started.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    /// By limit.
    pub limits: Vec<LimitMetrics>,
    /// The counter store.
    pub store: StoreMetrics,
    /// From a check's frame being queued to its reply being read.
    pub forward_latency: LatencyHistogram,
    /// By peer.
    pub peers: Vec<PeerMetrics>,
    /// What this node did for its peers as the owner of keys.
    pub owner: OwnerMetrics,
    /// Counts on their way between nodes.
    pub replicas: ReplicaMetrics,
    /// Keys whose denial this node knows and answers with, without asking the owner.
    pub known_denials: u64,
    /// How the switches stand.
    pub switches: Switches,
    /// Verdicts of limits that admitted although counts may have been missing, by standby or fallback.
    pub degraded_admissions: u64,
    /// Counters of local shares held: keys that were decided without their owner.
    pub local_shares: u64,
    /// Times that the process was paused.
    pub pauses: u64,
    /// Members that are joining.
    pub members_joining: u64,
    /// Members that are active.
    pub members_active: u64,
    /// Members that are leaving.
    pub members_leaving: u64,
    /// The policies' file.
    pub policies: PolicyMetrics,
    /// The program's version.
    pub version: &'static str,
}

/// What became of one limit's checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitMetrics {
    /// The policy; empty of the inline limits, as no policy's name is.
    pub policy: String,
    /// The limit; `inline` of the inline limits.
    pub limit: String,
    /// Checks admitted, by decider.
    pub allowed: Vec<(DecidedBy, u64)>,
    /// Checks refused, by decider.
    pub refused: Vec<(DecidedBy, u64)>,
    /// Checks refused, by reason.
    pub reasons: Vec<(Reason, u64)>,
    /// Checks that it did not apply to, since a key attribute was absent.
    pub skipped: u64,
}

impl LimitMetrics {
    /// The series of a configured limit, at zero.
    #[must_use]
    pub fn new(policy: &str, limit: &str) -> Self {
        Self {
            policy: policy.to_owned(),
            limit: limit.to_owned(),
            allowed: DECIDERS.map(|decided_by| (decided_by, 0)).to_vec(),
            refused: DECIDERS.map(|decided_by| (decided_by, 0)).to_vec(),
            reasons: Reason::ALL.map(|reason| (reason, 0)).to_vec(),
            skipped: 0,
        }
    }

    /// The one series of all inline limits, at zero.
    #[must_use]
    pub fn inline() -> Self {
        Self::new("", "inline")
    }

    /// Adds what a limit has tallied.
    pub fn add(&mut self, tally: &Tally) {
        for (decided_by, count) in &mut self.allowed {
            *count = count.saturating_add(tally.allowed(*decided_by));
        }
        for (decided_by, count) in &mut self.refused {
            *count = count.saturating_add(tally.refused(*decided_by));
        }
        for (reason, count) in &mut self.reasons {
            *count = count.saturating_add(tally.refused_because(*reason));
        }
        self.skipped = self.skipped.saturating_add(tally.skipped());
    }
}

/// The counter store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMetrics {
    /// Counters held.
    pub keys: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// The most bytes that they may take.
    pub bytes_max: u64,
    /// Counters dropped since their window had passed.
    pub expired: u64,
    /// Live counters dropped under pressure, none of them at its limit.
    pub evicted_live: u64,
    /// Counters dropped under pressure although they were at their limit (P7).
    pub evicted_at_limit: u64,
}

/// Counts on their way between nodes: handed over with their slots, copied to standbys, reported to owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaMetrics {
    /// Slots that are to be this node's own and whose counts have not all come.
    pub incoming_slots: u64,
    /// Slots that it decides in and that another is to own.
    pub outgoing_slots: u64,
    /// Series that were sent to others, whatever for.
    pub sent: u64,
    /// Slots on which the last word was sent to their next owner.
    pub handed_over_slots: u64,
    /// Series that were taken in from others and were new here, whatever they came with.
    pub taken_in: u64,
    /// Of these, those that others had counted while they did not hold the slot.
    pub reconciled: u64,
    /// Series that came and could not be kept: what they counted is lost here.
    pub lost: u64,
    /// Slots in which this node has counted what their owner has not confirmed yet.
    pub owed_slots: u64,
    /// Series of other writers held: copies and parts of totals.
    pub foreign_counters: u64,
}

/// What became of changes of the policies' file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyMetrics {
    /// Contents that were put in force after the first.
    pub reloads: u64,
    /// Contents that were refused.
    pub failures: u64,
    /// Whether the newest content is not in force.
    pub is_rejected: bool,
}

/// A histogram of seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyHistogram {
    /// Upper bound of each bucket in seconds, ascending, and what fell in it (not cumulative). What is
    /// above the last bound is told by `count` alone.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all values, in seconds.
    pub sum_seconds: f64,
    /// Number of all values.
    pub count: u64,
}

/// One peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerMetrics {
    /// The peer.
    pub node: NodeId,
    /// Its breaker.
    pub breaker: Breaker,
    /// Checks that were sent to it.
    pub forwarded: u64,
    /// Of these, those that it did not answer in time.
    pub timeouts: u64,
    /// Times that its breaker opened.
    pub openings: u64,
    /// Connections made to it.
    pub connects: u64,
    /// What it is still to be told; `None` if it follows nothing of this node.
    pub follower: Option<FollowerMetrics>,
}

/// What one follower is still to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FollowerMetrics {
    /// For how long the oldest change of it has waited, in seconds.
    pub lag_seconds: f64,
    /// Series that wait.
    pub waiting_series: u64,
    /// Slots that are to be copied as a whole.
    pub slots_to_copy: u64,
}

/// Checks that peers sent to this node as the owner of their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerMetrics {
    /// Those that it decided.
    pub decided: u64,
    /// Those that it answered from what it had decided before.
    pub repeated: u64,
    /// Those whose key it does not own.
    pub not_owner: u64,
    /// Those that waited while it was paused.
    pub too_late: u64,
    /// Charges that were given back.
    pub given_back: u64,
}

/// Whether checks are sent to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// They are.
    Closed,
    /// They are not, until it answers a ping.
    Open,
}
