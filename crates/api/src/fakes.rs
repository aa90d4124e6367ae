//! A checker and an operator for tests: real policies and keys, counters in a map, canned verdicts.

mod operator;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use http::StatusCode;
use tokio::sync::Semaphore;
use tollgate_limit::{
    Action, ActionError, AlgorithmSpec, AmendedLimit, Applied, AppliedLimits, Call, ChargedAt,
    CheckError, CheckId, Cost, CostSource, DecidedBy, Decision, HashKey, KeyHash, Limit,
    LimitDecision, LimitNumber, LimitSpec, MAX_LIMITS_PER_POLICY, Mode, Nanos, NodeId, Outcome,
    Policies, Question, Reason, Receipt, Subject, Verdict,
};

pub(crate) use self::operator::FakeOperator;
use crate::{Acted, Checked, Checker, HeaderFamilies};

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

/// A limit of that algorithm, counted by `ip`.
pub(crate) fn spec_of(name: &str, limit: u64, algorithm: AlgorithmSpec) -> LimitSpec {
    LimitSpec {
        key: vec!["ip".to_owned()],
        ..LimitSpec::new(name, LimitNumber::One(limit), algorithm)
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
    policies: Arc<Policies>,
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
    /// What was done with receipts.
    pub(crate) acts: Mutex<Vec<(Receipt, Action)>>,
    /// What was given back without one: the name of each limit, and the cost.
    pub(crate) refunds: Mutex<Vec<(String, u64)>>,
    /// What all actions fail by.
    pub(crate) fails: Mutex<Option<ActionError>>,
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
        let permits = AlgorithmSpec::Concurrency {
            ttl: Nanos::from_millis(30_000),
        };
        let trial = LimitSpec {
            shadow: true,
            ..spec("trial", 100, 60_000, &["ip"])
        };
        let tokens = LimitSpec {
            cost: CostSource::Attribute("tokens".to_owned()),
            ..spec("tokens", 1000, 60_000, &["ip"])
        };
        for (policy, spec) in [
            ("jobs", spec_of("running", 2, permits.clone())),
            ("jobs", spec("starts", 100, 60_000, &["ip"])),
            ("permits", spec_of("running", 2, permits)),
            ("trial", trial.clone()),
            ("mixed", trial),
            ("mixed", spec("per-ip", 100, 60_000, &["ip"])),
            ("llm", tokens),
            ("llm", spec("requests", 100, 60_000, &["ip"])),
        ] {
            let limit = Limit::new(policy, spec, &hash_key).unwrap();
            policies.add(policy, limit).unwrap();
        }
        for number in 0..MAX_LIMITS_PER_POLICY {
            let spec = spec(&format!("limit-{number}"), 100, 60_000, &["ip"]);
            let limit = Limit::new("wide", spec, &hash_key).unwrap();
            policies.add("wide", limit).unwrap();
        }
        Self {
            hash_key,
            policies: Arc::new(policies),
            used: Mutex::default(),
            canned: Mutex::default(),
            families: HeaderFamilies::default(),
            number: AtomicU64::new(0),
            readings: AtomicU64::new(0),
            gate: Arc::new(Semaphore::new(0)),
            taken: AtomicU64::new(0),
            acts: Mutex::default(),
            refunds: Mutex::default(),
            fails: Mutex::default(),
        }
    }

    /// With one more limit.
    pub(crate) fn and(mut self, policy: &str, spec: LimitSpec) -> Self {
        let limit = Limit::new(policy, spec, &self.hash_key).unwrap();
        let policies = Arc::get_mut(&mut self.policies).unwrap();
        policies.add(policy, limit).unwrap();
        self
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

    /// What a limit says now.
    pub(crate) fn decided(&self, policy: &str, limit: &str) -> LimitDecision {
        let policy = self.policies.policy(policy).unwrap();
        let limit = policy.limit(limit).unwrap();
        let applied = Applied {
            limit: Arc::clone(limit),
            key: KeyHash::from_halves(0, 0),
            rule: *limit.usual_rule().unwrap(),
            cost: Cost::ONE,
        };
        self.decide(&applied, Mode::Consume)
    }

    fn applied(&self, question: &Question<'_>) -> Result<AppliedLimits, CheckError> {
        match &question.subject {
            Subject::Policy { name, attributes } => {
                let policy = self.policies.policy(name);
                let unknown = || CheckError::UnknownPolicy {
                    name: (*name).to_owned(),
                };
                let policy = policy.ok_or_else(unknown)?;
                policy.select(attributes, question.cost, question.call)
            }
            Subject::Inline { limit, key } => {
                if question.call == Call::Check && limit.is_concurrency() {
                    return Err(CheckError::OnlyConcurrency);
                }
                let application = limit.apply(key, question.cost)?.unwrap();
                let applied = Applied {
                    limit: Arc::clone(limit),
                    key: application.key,
                    rule: application.rule,
                    cost: application.cost,
                };
                Ok([applied].into_iter().collect())
            }
        }
    }

    fn decide(&self, applied: &Applied, mode: Mode) -> LimitDecision {
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
                count(used, applied.rule.capacity(), applied.cost, mode),
                DecidedBy::Owner,
            )
        });
        let is_charged = verdict.is_allowed() && mode == Mode::Consume;
        LimitDecision {
            limit: Arc::clone(&applied.limit),
            key: applied.key,
            rule: applied.rule,
            charged: if is_charged { applied.cost } else { Cost::ZERO },
            verdict,
            decided_by,
            node: node("n2"),
            boot: 1,
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
        let applied = self.applied(question)?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        let limits = applied.iter().map(|one| self.decide(one, question.mode));
        let decision = Decision {
            id: CheckId {
                boot: 0xb007,
                number: self.number.fetch_add(1, Ordering::Relaxed),
            },
            limits: limits.collect(),
        };
        if !matches!(question.subject, Subject::Policy { name: "later", .. }) {
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

    fn receipt_key(&self) -> &HashKey {
        &self.hash_key
    }

    fn act(&self, _now: Nanos, receipt: Receipt, action: Action) -> Acted {
        let fails = *self.fails.lock().unwrap();
        // What was charged to a local share is pending.
        let amended = receipt.items.iter().map(|item| {
            let is_told = item.at == ChargedAt::Owner;
            AmendedLimit {
                limit: item.limit.as_str().into(),
                rule: item.charge.rule,
                now: is_told.then_some(ALLOWED),
                node: is_told.then(|| node("n2")),
            }
        });
        let acted = fails.map_or_else(|| Ok(amended.collect()), Err);
        if acted.is_ok() {
            self.acts.lock().unwrap().push((receipt, action));
        }
        Box::pin(async move { acted })
    }

    fn refund(&self, _now: Nanos, question: &Question<'_>) -> Result<Acted, CheckError> {
        let applied = self.applied(question)?;
        let mut refunds = self.refunds.lock().unwrap();
        let amended = applied.iter().map(|one| {
            refunds.push((one.limit.name().to_owned(), one.cost.units()));
            AmendedLimit {
                limit: one.limit.name().into(),
                rule: one.rule,
                now: Some(ALLOWED),
                node: Some(node("n2")),
            }
        });
        let amended: Vec<_> = amended.collect();
        Ok(Box::pin(async move { Ok(amended) }))
    }

    fn policies(&self) -> Arc<Policies> {
        Arc::clone(&self.policies)
    }

    fn deny_status(&self, policy: &str) -> StatusCode {
        if policy == "teapot" {
            StatusCode::IM_A_TEAPOT
        } else {
            StatusCode::TOO_MANY_REQUESTS
        }
    }

    fn headers(&self, _policy: &str) -> HeaderFamilies {
        self.families
    }
}
