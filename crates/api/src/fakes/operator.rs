//! The operator: one node, one counter of policy `api`.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use tollgate_limit::{Cost, DecidedBy, HashKey, KeyHash, Limit, LimitDecision};
use tollgate_wire::identity::Phase;

use super::{REFUSED, node, spec};
use crate::{
    Breaker, ClusterView, CounterError, CounterQuery, CounterView, FollowerMetrics,
    LatencyHistogram, LimitMetrics, MemberView, MetricsSnapshot, MotionView, Operator,
    OwnerMetrics, PeerMetrics, PolicyMetrics, Readiness, ReplicaMetrics, StoreMetrics, Switch,
    Switches,
};

pub(crate) struct FakeOperator {
    pub(crate) readiness: Mutex<Readiness>,
    /// Counters that were reset.
    pub(crate) resets: Mutex<Vec<CounterQuery>>,
    pub(crate) switches: Mutex<Switches>,
}

impl FakeOperator {
    pub(crate) fn new() -> Self {
        Self {
            readiness: Mutex::new(Readiness::Ready),
            resets: Mutex::default(),
            switches: Mutex::default(),
        }
    }
}

impl Operator for FakeOperator {
    fn cluster(&self) -> ClusterView {
        ClusterView {
            this: node("n1"),
            placement: 0xabc,
            policies: 0xdef,
            policies_error: None,
            switches: *self.switches.lock().unwrap(),
            motion: MotionView {
                incoming: 20,
                outgoing: 21,
                is_warm: true,
            },
            members: vec![MemberView {
                id: node("n1"),
                boot: 1,
                phase: Phase::Active,
                reachable: true,
                peer: "127.0.0.1:7601".parse().unwrap(),
                api: "127.0.0.1:7600".parse().unwrap(),
                weight: 1,
                slots: 65_536,
                placement: Some(0xabc),
                policies: None,
                replication_lag_ms: Some(22),
            }],
        }
    }

    fn counter(
        &self,
        query: CounterQuery,
    ) -> Pin<Box<dyn Future<Output = Result<CounterView, CounterError>> + Send>> {
        let view = counter(&query);
        Box::pin(async move { view })
    }

    fn reset(
        &self,
        query: CounterQuery,
    ) -> Pin<Box<dyn Future<Output = Result<(), CounterError>> + Send>> {
        let reset = counter(&query).map(drop);
        if reset.is_ok() {
            self.resets.lock().unwrap().push(query);
        }
        Box::pin(async move { reset })
    }

    fn set_switch(&self, switch: Switch, on: bool) -> Switches {
        let mut switches = self.switches.lock().unwrap();
        match switch {
            Switch::Kill => switches.kill = on,
            Switch::Shadow => switches.shadow = on,
        }
        *switches
    }

    fn readiness(&self) -> Readiness {
        self.readiness.lock().unwrap().clone()
    }

    fn metrics(&self) -> MetricsSnapshot {
        let mut odd = LimitMetrics::new("we\"ird\\pol\nicy", "per-key");
        odd.skipped = 3;
        MetricsSnapshot {
            limits: vec![odd, LimitMetrics::inline()],
            store: StoreMetrics {
                keys: 5,
                bytes: 640,
                bytes_max: 1 << 28,
                ..StoreMetrics::default()
            },
            forward_latency: LatencyHistogram {
                buckets: vec![(0.001, 2), (0.01, 3)],
                sum_seconds: 0.5,
                count: 7,
            },
            peers: vec![PeerMetrics {
                node: node("n2"),
                breaker: Breaker::Open,
                forwarded: 7,
                timeouts: 1,
                openings: 4,
                connects: 5,
                follower: Some(FollowerMetrics {
                    lag_seconds: 0.25,
                    waiting_series: 31,
                    slots_to_copy: 32,
                }),
            }],
            owner: OwnerMetrics {
                decided: 11,
                repeated: 12,
                not_owner: 13,
                too_late: 14,
                given_back: 15,
            },
            policies: PolicyMetrics {
                reloads: 18,
                failures: 19,
                is_rejected: true,
            },
            replicas: ReplicaMetrics {
                incoming_slots: 20,
                outgoing_slots: 21,
                sent: 29,
                handed_over_slots: 22,
                taken_in: 23,
                reconciled: 24,
                lost: 25,
                owed_slots: 26,
                foreign_counters: 27,
            },
            known_denials: 28,
            switches: *self.switches.lock().unwrap(),
            degraded_admissions: 30,
            local_shares: 16,
            pauses: 17,
            members_joining: 0,
            members_active: 3,
            members_leaving: 0,
            version: "0.1.0",
        }
    }
}

fn counter(query: &CounterQuery) -> Result<CounterView, CounterError> {
    match (
        query.policy.as_str(),
        query.limit.as_str(),
        query.attributes.first(),
    ) {
        ("api", "per-key", Some((name, _))) if name == "api_key" => {
            let hash_key = HashKey::new([7; 16]);
            let spec = spec("per-key", 100, 60_000, &["api_key"]);
            let limit = Limit::new("api", spec, &hash_key).unwrap();
            Ok(CounterView {
                state: LimitDecision {
                    key: KeyHash::from_halves(0, 0),
                    rule: *limit.usual_rule().unwrap(),
                    charged: Cost::ZERO,
                    limit: Arc::new(limit),
                    verdict: REFUSED,
                    decided_by: DecidedBy::Owner,
                    node: node("n2"),
                    boot: 1,
                    degraded: false,
                },
                owner: Some(node("n2")),
                standby: None,
            })
        }
        ("api", "per-key", _) => Err(CounterError::MissingAttribute {
            attribute: "api_key".to_owned(),
        }),
        ("api", "gone", _) => Err(CounterError::Unreachable),
        ("api", "free", _) => Err(CounterError::Unlimited {
            name: query.limit.clone(),
        }),
        ("api", name, _) => Err(CounterError::UnknownLimit {
            name: name.to_owned(),
        }),
        (name, _, _) => Err(CounterError::UnknownPolicy {
            name: name.to_owned(),
        }),
    }
}
