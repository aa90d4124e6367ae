//! A checker and an operator for tests: real policies and keys, counters in a map, canned verdicts.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Semaphore;
use tollgate_limit::{
    AlgorithmSpec, Applied, CheckError, CheckId, Cost, DecidedBy, Decision, Fallback, HashKey,
    KeyHash, Limit, LimitDecision, LimitNumber, LimitSpec, Mode, Nanos, NodeId, Outcome, Policies,
    Question, Reason, Subject, Verdict,
};
use tollgate_wire::identity::Phase;

use crate::{
    Breaker, Checked, Checker, ClusterView, CounterError, CounterQuery, CounterView,
    HeaderFamilies, LatencyHistogram, LimitMetrics, MemberView, MetricsSnapshot, Operator,
    OwnerMetrics, PeerMetrics, Readiness, StoreMetrics, Switches,
};

/// Unix time at the origin of the fake clock, half a second past a whole one.
const ORIGIN_MILLIS: u64 = 1_700_000_000_500;

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub(crate) fn spec(name: &str, limit: u64, window_ms: u64, key: &[&str]) -> LimitSpec {
    LimitSpec {
        key: key.iter().map(|&name| name.to_owned()).collect(),
        required: name == "required",
        ..LimitSpec::new(
            name,
            LimitNumber::One(limit),
            AlgorithmSpec::SlidingWindow {
                window: Nanos::from_millis(window_ms),
                slices: 10,
                hard: false,
            },
        )
    }
}

/// What a fresh limit of 100 says to a check of one unit.
pub(crate) const ALLOWED: Verdict = Verdict {
    outcome: Outcome::Allow,
    used: 1,
    remaining: 99,
    retry_after: Some(Nanos::ZERO),
    more_after: Nanos::from_millis(6001),
    reset_after: Nanos::from_millis(60_000),
    delay: Nanos::ZERO,
    charged_slice: 0,
};

/// What a used-up limit of 100 says.
pub(crate) const REFUSED: Verdict = Verdict {
    outcome: Outcome::Refuse(Reason::LimitExceeded),
    used: 100,
    remaining: 0,
    retry_after: Some(Nanos::from_millis(1234)),
    more_after: Nanos::from_millis(1000),
    reset_after: Nanos::from_millis(41_234),
    delay: Nanos::ZERO,
    charged_slice: 0,
};

pub(crate) struct FakeChecker {
    hash_key: HashKey,
    policies: Policies,
    used: Mutex<HashMap<KeyHash, u64>>,
    canned: Mutex<HashMap<String, (Verdict, DecidedBy)>>,
    families: HeaderFamilies,
    number: AtomicU64,
    /// Clock readings that were taken.
    pub(crate) readings: AtomicU64,
    /// Checks of policy `later` that wait; each takes one permit of the gate.
    pub(crate) gate: Arc<Semaphore>,
    /// Checks that were taken, of all policies.
    pub(crate) taken: AtomicU64,
}

impl FakeChecker {
    pub(crate) fn new() -> Self {
        let hash_key = HashKey::new([7; 16]);
        let mut policies = Policies::new();
        for (policy, spec) in [
            ("default", spec("per-ip", 100, 60_000, &["ip"])),
            ("api", spec("per-key", 100, 60_000, &["api_key"])),
            ("both", spec("burst", 10, 500, &["ip"])),
            ("both", spec("daily", 100, 86_400_000, &["ip"])),
            ("later", spec("far", 100, 60_000, &["ip"])),
            ("strict", spec("required", 100, 60_000, &["user"])),
        ] {
            policies
                .add(policy, Limit::new(policy, spec, &hash_key).unwrap())
                .unwrap();
        }
        Self {
            hash_key,
            policies,
            used: Mutex::default(),
            canned: Mutex::default(),
            families: HeaderFamilies::default(),
            number: AtomicU64::new(0),
            readings: AtomicU64::new(0),
            gate: Arc::new(Semaphore::new(0)),
            taken: AtomicU64::new(0),
        }
    }

    pub(crate) fn with_families(families: HeaderFamilies) -> Self {
        Self {
            families,
            ..Self::new()
        }
    }

    /// From now on the limit says this.
    pub(crate) fn can(&self, limit: &str, verdict: Verdict, decided_by: DecidedBy) {
        self.canned
            .lock()
            .unwrap()
            .insert(limit.to_owned(), (verdict, decided_by));
    }

    /// What the counters have taken in all.
    pub(crate) fn used(&self) -> u64 {
        self.used.lock().unwrap().values().sum()
    }

    fn decide(&self, applied: &Applied, cost: Cost, mode: Mode) -> LimitDecision {
        let canned = self
            .canned
            .lock()
            .unwrap()
            .get(applied.limit.name())
            .copied();
        let (verdict, decided_by) = canned.unwrap_or_else(|| {
            let mut used = self.used.lock().unwrap();
            let used = used.entry(applied.key).or_default();
            (
                count(used, applied.limit.rule().capacity(), cost, mode),
                DecidedBy::Owner,
            )
        });
        LimitDecision {
            limit: Arc::clone(&applied.limit),
            verdict,
            decided_by,
            node: node("n2"),
            degraded: decided_by == DecidedBy::Fallback,
        }
    }
}

fn count(used: &mut u64, capacity: u64, cost: Cost, mode: Mode) -> Verdict {
    let fits = *used + cost.units() <= capacity;
    if fits && mode == Mode::Consume {
        *used += cost.units();
    }
    let outcome = match (fits, capacity, cost.units() > capacity) {
        (true, _, _) => Outcome::Allow,
        (false, 0, _) => Outcome::Refuse(Reason::LimitIsZero),
        (false, _, true) => Outcome::Refuse(Reason::CostExceedsLimit),
        (false, _, false) => Outcome::Refuse(Reason::LimitExceeded),
    };
    let retry_after = match outcome {
        Outcome::Allow => Some(Nanos::ZERO),
        Outcome::Refuse(Reason::LimitExceeded) => Some(Nanos::from_millis(1234)),
        Outcome::Refuse(_) => None,
    };
    let remaining = capacity.saturating_sub(*used);
    Verdict {
        outcome,
        used: *used,
        remaining,
        retry_after,
        ..ALLOWED
    }
}

impl Checker for FakeChecker {
    fn now(&self) -> Nanos {
        self.readings.fetch_add(1, Ordering::Relaxed);
        Nanos::from_millis(10_000)
    }

    fn wall_seconds(&self, now: Nanos) -> u64 {
        (ORIGIN_MILLIS * 1_000_000 + now.as_nanos()) / 1_000_000_000
    }

    fn check(&self, _now: Nanos, question: &Question<'_>) -> Result<Checked, CheckError> {
        let (name, applied) = match &question.subject {
            Subject::Policy { name, attributes } => {
                let policy = self.policies.policy(name);
                let unknown = || CheckError::UnknownPolicy {
                    name: (*name).to_owned(),
                };
                (*name, policy.ok_or_else(unknown)?.select(attributes)?)
            }
            Subject::Inline { limit, key } => {
                let counter = limit.key_of(key)?.unwrap();
                let applied = Applied {
                    limit: Arc::clone(limit),
                    key: counter,
                };
                ("", [applied].into_iter().collect())
            }
        };
        self.taken.fetch_add(1, Ordering::Relaxed);
        let limits = applied
            .iter()
            .map(|one| self.decide(one, question.cost, question.mode));
        let decision = Decision {
            id: CheckId {
                boot: 0xb007,
                number: self.number.fetch_add(1, Ordering::Relaxed),
            },
            limits: limits.collect(),
        };
        if name != "later" {
            return Ok(Checked::Now(decision));
        }
        let gate = Arc::clone(&self.gate);
        Ok(Checked::Later(Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            decision
        })))
    }

    fn inline_limit(&self, spec: LimitSpec) -> Result<Arc<Limit>, CheckError> {
        if spec.name == "off" {
            return Err(CheckError::InlineOff);
        }
        Ok(Arc::new(Limit::inline(spec, &self.hash_key)?))
    }

    fn headers(&self, _policy: &str) -> HeaderFamilies {
        self.families
    }
}

pub(crate) struct FakeOperator {
    pub(crate) readiness: Mutex<Readiness>,
}

impl FakeOperator {
    pub(crate) fn new() -> Self {
        Self {
            readiness: Mutex::new(Readiness::Ready),
        }
    }
}

impl Operator for FakeOperator {
    fn cluster(&self) -> ClusterView {
        ClusterView {
            this: node("n1"),
            placement: 0xabc,
            policies: 0xdef,
            switches: Switches::default(),
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
            }],
        }
    }

    fn counter(
        &self,
        query: CounterQuery,
    ) -> Pin<Box<dyn Future<Output = Result<CounterView, CounterError>> + Send>> {
        Box::pin(async move {
            match (
                query.policy.as_str(),
                query.limit.as_str(),
                query.attributes.first(),
            ) {
                ("api", "per-key", Some((name, _))) if name == "api_key" => {
                    let spec = spec("per-key", 100, 60_000, &["api_key"]);
                    let limit = Limit::new("api", spec, &HashKey::new([7; 16])).unwrap();
                    Ok(CounterView {
                        state: LimitDecision {
                            limit: Arc::new(limit),
                            verdict: REFUSED,
                            decided_by: DecidedBy::Owner,
                            node: node("n2"),
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
                ("api", name, _) => Err(CounterError::UnknownLimit {
                    name: name.to_owned(),
                }),
                (name, _, _) => Err(CounterError::UnknownPolicy {
                    name: name.to_owned(),
                }),
            }
        })
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
            }],
            owner: OwnerMetrics {
                decided: 11,
                repeated: 12,
                not_owner: 13,
                too_late: 14,
                given_back: 15,
            },
            local_shares: 16,
            pauses: 17,
            members_joining: 0,
            members_active: 3,
            members_leaving: 0,
            version: "0.1.0",
        }
    }
}
