//! What a node has counted, as `api` shows it.

use tollgate_api::{
    Breaker, FollowerMetrics, LatencyHistogram, LimitMetrics, MetricsSnapshot, OwnerMetrics,
    PeerMetrics, PolicyMetrics, ReplicaMetrics, StoreMetrics,
};
use tollgate_limit::StoreStats;
use tollgate_node::{
    FollowerReport, LATENCY_BOUNDS_MICROS, LatencyReading, MemberReport, Node, PeerReport,
    ReplicaReport,
};
use tollgate_wire::identity::Phase;

/// All numbers as of now.
pub(super) fn snapshot(node: &Node) -> MetricsSnapshot {
    let report = node.report();
    let members = |phase| count(&report.members, phase);
    MetricsSnapshot {
        limits: limits(node),
        store: store(report.store),
        forward_latency: forward_latency(&report.peers),
        members_joining: members(Phase::Joining),
        members_active: members(Phase::Active),
        members_leaving: members(Phase::Leaving),
        owner: OwnerMetrics {
            decided: report.decided_for_peers,
            repeated: report.repeated,
            not_owner: report.not_owner,
            too_late: report.too_late,
            given_back: report.given_back,
        },
        replicas: replicas(&report.replicas, report.store.foreign),
        known_denials: number(report.known_denials),
        switches: super::switches(node),
        degraded_admissions: report.degraded_admissions,
        local_shares: report.local_shares,
        pauses: report.pauses,
        peers: report.peers.into_iter().map(peer).collect(),
        // Kept by those that know of files.
        policies: PolicyMetrics::default(),
        version: env!("CARGO_PKG_VERSION"),
    }
}

fn limits(node: &Node) -> Vec<LimitMetrics> {
    let policies = node.policies();
    let mut limits: Vec<_> = policies
        .iter()
        .flat_map(|(_, policy)| policy.limits())
        .map(|limit| {
            let mut metrics = LimitMetrics::new(limit.policy(), limit.name());
            metrics.add(limit.tally());
            metrics
        })
        .collect();
    let mut all_inline = LimitMetrics::inline();
    all_inline.add(node.inline_tally());
    limits.push(all_inline);
    limits
}

fn store(stats: StoreStats) -> StoreMetrics {
    StoreMetrics {
        keys: stats.keys,
        bytes: stats.bytes,
        bytes_max: stats.max_bytes,
        expired: stats.expired,
        evicted_live: stats.evicted,
        evicted_at_limit: stats.evicted_at_limit,
    }
}

fn count(members: &[MemberReport], phase: Phase) -> u64 {
    members
        .iter()
        .map(|member| u64::from(member.identity.phase == phase))
        .sum()
}

fn peer(report: PeerReport) -> PeerMetrics {
    PeerMetrics {
        node: report.node,
        breaker: if report.is_usable {
            Breaker::Closed
        } else {
            Breaker::Open
        },
        forwarded: answered(&report.latencies).saturating_add(report.timeouts),
        timeouts: report.timeouts,
        openings: report.openings,
        connects: report.connects,
        follower: report.follower.as_ref().map(follower),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a lag of months needs no nanosecond"
)]
fn follower(report: &FollowerReport) -> FollowerMetrics {
    FollowerMetrics {
        lag_seconds: report.lag.as_nanos() as f64 / 1e9,
        waiting_series: number(report.waiting_series),
        slots_to_copy: number(report.slots_to_copy),
    }
}

fn replicas(report: &ReplicaReport, foreign: u64) -> ReplicaMetrics {
    ReplicaMetrics {
        incoming_slots: number(report.incoming_slots),
        outgoing_slots: number(report.outgoing_slots),
        sent: report.sent,
        handed_over_slots: report.handed_over_slots,
        taken_in: report.taken_in,
        reconciled: report.reconciled,
        lost: report.lost,
        owed_slots: number(report.owed_slots),
        foreign_counters: foreign,
    }
}

/// A number as metrics have it.
pub(super) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn answered(latencies: &LatencyReading) -> u64 {
    latencies.buckets.iter().sum()
}

/// The latencies of all peers together.
#[expect(
    clippy::cast_precision_loss,
    reason = "a sum of latencies needs no nanosecond after months"
)]
fn forward_latency(peers: &[PeerReport]) -> LatencyHistogram {
    let of_bucket = |at: usize| {
        peers
            .iter()
            .filter_map(|peer| peer.latencies.buckets.get(at))
            .sum()
    };
    let bounds = LATENCY_BOUNDS_MICROS.iter().enumerate();
    let sum_nanos: u64 = peers.iter().map(|peer| peer.latencies.sum_nanos).sum();
    LatencyHistogram {
        buckets: bounds
            .map(|(at, bound)| (*bound as f64 / 1e6, of_bucket(at)))
            .collect(),
        sum_seconds: sum_nanos as f64 / 1e9,
        count: peers.iter().map(|peer| answered(&peer.latencies)).sum(),
    }
}
