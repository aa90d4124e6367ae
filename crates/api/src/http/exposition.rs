//! Metrics as OpenMetrics text.
//!
//! Names are `tollgate_<subsystem>_<noun>_<unit>`; the encoder adds `_total` to counters. Labels come
//! from policies, members and enums alone.

mod replicas;

use std::fmt;

use http::HeaderValue;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::Registry,
};

use crate::operator::{Breaker, LimitMetrics, MetricsSnapshot, PeerMetrics};

/// The media type of the text.
pub(super) const MEDIA: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Name, help and number of one counter of a peer.
type PeerCounter = (&'static str, &'static str, fn(&PeerMetrics) -> u64);

/// The counters of each peer.
const PEER_COUNTERS: [PeerCounter; 4] = [
    (
        "tollgate_peer_forwarded",
        "Checks sent to a peer, by peer",
        |peer| peer.forwarded,
    ),
    (
        "tollgate_peer_timeouts",
        "Checks that a peer did not answer in time, by peer",
        |peer| peer.timeouts,
    ),
    (
        "tollgate_peer_breaker_openings",
        "Times that the breaker of a peer opened, by peer",
        |peer| peer.openings,
    ),
    (
        "tollgate_peer_connects",
        "Connections made to a peer, by peer",
        |peer| peer.connects,
    ),
];

/// Requests by call, status and count.
type Requests = Vec<(&'static str, String, u64)>;

/// Renders all metrics.
pub(super) fn render(node: MetricsSnapshot, requests: Requests) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { node, requests }));
    let mut out = String::new();
    let written = text::encode(&mut out, &registry);
    debug_assert!(written.is_ok(), "a String takes all that is written");
    out
}

/// What one scrape tells.
#[derive(Debug)]
struct Scrape {
    node: MetricsSnapshot,
    requests: Requests,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_limits(&mut encoder)?;
        self.encode_store(&mut encoder)?;
        self.encode_cluster(&mut encoder)?;
        self.encode_policies(&mut encoder)?;
        self.encode_owner(&mut encoder)?;
        replicas::encode(&self.node, &mut encoder)?;
        self.encode_peers(&mut encoder)?;
        self.encode_forwarding(&mut encoder)?;
        let mut requests = Family::counter(
            &mut encoder,
            "tollgate_http_requests",
            "Requests answered over HTTP, by call and status",
        )?;
        for (call, status, count) in &self.requests {
            requests.value(&[("call", *call), ("status", status)], *count)?;
        }
        let mut build = Family::gauge(
            &mut encoder,
            "tollgate_build_info",
            "The program's version, the value is always 1",
        )?;
        build.value(&[("version", self.node.version)], 1)
    }
}

impl Scrape {
    fn encode_limits(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut checks = Family::counter(
            encoder,
            "tollgate_limit_checks",
            "Verdicts of limits, by policy, limit, outcome and who decided",
        )?;
        for limit in &self.node.limits {
            let outcomes = [("allowed", &limit.allowed), ("refused", &limit.refused)];
            for (outcome, counts) in outcomes {
                for (decided_by, count) in counts {
                    let decided_by = ("decided_by", decided_by.as_str());
                    let [policy, name] = labels_of(limit);
                    checks.value(&[policy, name, ("outcome", outcome), decided_by], *count)?;
                }
            }
        }
        let mut refusals = Family::counter(
            encoder,
            "tollgate_limit_refusals",
            "Refusals of limits, by policy, limit and reason",
        )?;
        for limit in &self.node.limits {
            for (reason, count) in &limit.reasons {
                let [policy, name] = labels_of(limit);
                refusals.value(&[policy, name, ("reason", reason.as_str())], *count)?;
            }
        }
        let mut skipped = Family::counter(
            encoder,
            "tollgate_limit_skipped",
            "Checks that a limit did not apply to since a key attribute was absent",
        )?;
        for limit in &self.node.limits {
            skipped.value(&labels_of(limit), limit.skipped)?;
        }
        Ok(())
    }

    fn encode_store(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let store = &self.node.store;
        for (name, help, value) in [
            ("tollgate_store_keys", "Counters held", store.keys),
            (
                "tollgate_store_used_bytes",
                "Bytes that counters take",
                store.bytes,
            ),
            (
                "tollgate_store_limit_bytes",
                "The most bytes that counters may take",
                store.bytes_max,
            ),
        ] {
            Family::gauge(encoder, name, help)?.value(&[], value)?;
        }
        let mut dropped = Family::counter(
            encoder,
            "tollgate_store_evictions",
            "Counters dropped, by kind: expired, live under pressure, at_limit under pressure",
        )?;
        dropped.value(&[("kind", "expired")], store.expired)?;
        dropped.value(&[("kind", "live")], store.evicted_live)?;
        dropped.value(&[("kind", "at_limit")], store.evicted_at_limit)
    }

    fn encode_cluster(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut members = Family::gauge(
            encoder,
            "tollgate_cluster_members",
            "Members of the cluster as this node sees it, by phase",
        )?;
        members.value(&[("phase", "joining")], self.node.members_joining)?;
        members.value(&[("phase", "active")], self.node.members_active)?;
        members.value(&[("phase", "leaving")], self.node.members_leaving)?;
        let switches = self.node.switches;
        let name = "tollgate_switch_on";
        let help = "Whether a switch of the cluster is on, by switch: 1 is on";
        let mut on = Family::gauge(encoder, name, help)?;
        on.value(&[("switch", "kill")], switches.kill.into())?;
        on.value(&[("switch", "shadow")], switches.shadow.into())
    }

    fn encode_policies(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let policies = &self.node.policies;
        let name = "tollgate_policies_reloads";
        let help = "Changed policies that were put in force";
        Family::counter(encoder, name, help)?.value(&[], policies.reloads)?;
        let name = "tollgate_policies_reload_failures";
        let help = "Changed policies that were refused";
        Family::counter(encoder, name, help)?.value(&[], policies.failures)?;
        let name = "tollgate_policies_rejected";
        let help = "Whether the newest policies are refused: 1 if older ones are in force";
        Family::gauge(encoder, name, help)?.value(&[], policies.is_rejected.into())
    }

    fn encode_owner(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let owner = &self.node.owner;
        let name = "tollgate_owner_checks";
        let help = "Checks that peers sent to this node as the owner, by outcome";
        let mut checks = Family::counter(encoder, name, help)?;
        for (outcome, count) in [
            ("decided", owner.decided),
            ("repeated", owner.repeated),
            ("not_owner", owner.not_owner),
            ("too_late", owner.too_late),
        ] {
            checks.value(&[("outcome", outcome)], count)?;
        }
        let name = "tollgate_owner_refunds";
        let help = "Charges that were given back to their counters";
        Family::counter(encoder, name, help)?.value(&[], owner.given_back)?;
        let name = "tollgate_degraded_admissions";
        let help = "Verdicts of limits that admitted although counts may have been missing";
        Family::counter(encoder, name, help)?.value(&[], self.node.degraded_admissions)?;
        let name = "tollgate_fallback_keys";
        let help = "Counters of local shares held: keys decided without their owner";
        Family::gauge(encoder, name, help)?.value(&[], self.node.local_shares)?;
        let name = "tollgate_node_pauses";
        let help = "Times that the process was paused";
        Family::counter(encoder, name, help)?.value(&[], self.node.pauses)
    }

    fn encode_peers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let peers = &self.node.peers;
        let name = "tollgate_peer_breaker_open";
        let help = "Whether the breaker of a peer is open, by peer: 1 is open";
        let mut breakers = Family::gauge(encoder, name, help)?;
        for peer in peers {
            let open = match peer.breaker {
                Breaker::Closed => 0,
                Breaker::Open => 1,
            };
            breakers.value(&[("peer", peer.node.as_str())], open)?;
        }
        for (name, help, count_of) in PEER_COUNTERS {
            let mut counter = Family::counter(encoder, name, help)?;
            for peer in peers {
                counter.value(&[("peer", peer.node.as_str())], count_of(peer))?;
            }
        }
        Ok(())
    }

    fn encode_forwarding(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let name = "tollgate_forward_latency_seconds";
        let help = "Time from queueing a check for a peer to reading its reply";
        let kind = MetricType::Histogram;
        let mut encoder = encoder.encode_descriptor(name, help, None, kind)?;
        let latency = &self.node.forward_latency;
        let told: u64 = latency.buckets.iter().map(|(_, count)| count).sum();
        let mut buckets = latency.buckets.clone();
        buckets.push((f64::INFINITY, latency.count.saturating_sub(told)));
        let count = latency.count.max(told);
        encoder.encode_histogram::<NoLabelSet>(latency.sum_seconds, count, &buckets, None)
    }
}

fn labels_of(limit: &LimitMetrics) -> [(&str, &str); 2] {
    [("policy", &limit.policy), ("limit", &limit.limit)]
}

/// One metric with its HELP and TYPE, and a value for each set of labels.
struct Family<'e> {
    encoder: prometheus_client::encoding::MetricEncoder<'e>,
    kind: Kind,
}

enum Kind {
    Counter,
    Gauge,
}

impl<'e> Family<'e> {
    fn counter(
        encoder: &'e mut DescriptorEncoder<'_>,
        name: &'e str,
        help: &str,
    ) -> Result<Self, fmt::Error> {
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        let kind = Kind::Counter;
        Ok(Self { encoder, kind })
    }

    fn gauge(
        encoder: &'e mut DescriptorEncoder<'_>,
        name: &'e str,
        help: &str,
    ) -> Result<Self, fmt::Error> {
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let kind = Kind::Gauge;
        Ok(Self { encoder, kind })
    }

    /// A gauge that is no whole number.
    fn fraction(&mut self, labels: &[(&str, &str)], value: f64) -> Result<(), fmt::Error> {
        self.encoder.encode_family(&labels)?.encode_gauge(&value)
    }

    fn value(&mut self, labels: &[(&str, &str)], value: u64) -> Result<(), fmt::Error> {
        let mut encoder = self.encoder.encode_family(&labels)?;
        match self.kind {
            Kind::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
            Kind::Gauge => encoder.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX)),
        }
    }
}
