//! Metrics of counts on their way between nodes, and of known denials.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::Family;
use crate::operator::{FollowerMetrics, MetricsSnapshot};

/// Name, help and number of one gauge of a follower.
type FollowerGauge = (&'static str, &'static str, fn(&FollowerMetrics) -> u64);

/// The gauges of each follower but for its lag.
const FOLLOWER_GAUGES: [FollowerGauge; 2] = [
    (
        "tollgate_replication_waiting_series",
        "Series that wait to be told to a peer, by peer",
        |follower| follower.waiting_series,
    ),
    (
        "tollgate_replication_waiting_slots",
        "Slots that wait to be copied to a peer as a whole, by peer",
        |follower| follower.slots_to_copy,
    ),
];

/// Encodes them.
pub(super) fn encode(
    node: &MetricsSnapshot,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    encode_motion(node, encoder)?;
    encode_followers(node, encoder)?;
    let name = "tollgate_known_denials_keys";
    let help = "Keys whose denial this node knows and answers with";
    Family::gauge(encoder, name, help)?.value(&[], node.known_denials)
}

fn encode_motion(
    node: &MetricsSnapshot,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let replicas = &node.replicas;
    let name = "tollgate_cluster_moving_slots";
    let help = "Slots on their way to this node and away from it, by direction";
    let mut moving = Family::gauge(encoder, name, help)?;
    moving.value(&[("direction", "in")], replicas.incoming_slots)?;
    moving.value(&[("direction", "out")], replicas.outgoing_slots)?;
    for (name, help, count) in [
        (
            "tollgate_replica_sent_series",
            "Series sent to other nodes: to standbys, next owners and owners",
            replicas.sent,
        ),
        (
            "tollgate_replica_handed_over_slots",
            "Slots on which the last word was sent to their next owner",
            replicas.handed_over_slots,
        ),
        (
            "tollgate_replica_taken_in_series",
            "Series taken in from other nodes that were new here",
            replicas.taken_in,
        ),
        (
            "tollgate_replica_reconciled_series",
            "Series taken in that others had counted without holding the slot",
            replicas.reconciled,
        ),
        (
            "tollgate_replica_lost_series",
            "Series of other nodes that could not be kept",
            replicas.lost,
        ),
    ] {
        Family::counter(encoder, name, help)?.value(&[], count)?;
    }
    let name = "tollgate_replica_owed_slots";
    let help = "Slots in which this node counted what their owner has not confirmed";
    Family::gauge(encoder, name, help)?.value(&[], replicas.owed_slots)?;
    let name = "tollgate_store_foreign_series";
    let help = "Series of other nodes held: copies, and parts of counters";
    Family::gauge(encoder, name, help)?.value(&[], replicas.foreign_counters)
}

fn encode_followers(
    node: &MetricsSnapshot,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let followers = || {
        let peers = node.peers.iter();
        peers.filter_map(|peer| Some((peer.node.as_str(), peer.follower.as_ref()?)))
    };
    let name = "tollgate_replication_lag_seconds";
    let help = "For how long the oldest change has waited that a peer was not told, by peer";
    let mut lag = Family::gauge(encoder, name, help)?;
    for (peer, follower) in followers() {
        lag.fraction(&[("peer", peer)], follower.lag_seconds)?;
    }
    for (name, help, gauge_of) in FOLLOWER_GAUGES {
        let mut gauge = Family::gauge(encoder, name, help)?;
        for (peer, follower) in followers() {
            gauge.value(&[("peer", peer)], gauge_of(follower))?;
        }
    }
    Ok(())
}
