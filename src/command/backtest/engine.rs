//! The limits of a policies file, and what they say in virtual time.
//!
//! The only part of a backtest that decides: the policies and a store, no cluster, no clock. Times are
//! those of the log, in nanoseconds since 1970, so that windows aligned to the epoch are aligned here.
//! Must not know of logs or reports.
//!
//! Bounds: [`STORE_BYTES`] for all counters, [`plan::MAX_WANTED`] attributes.

mod plan;

use std::sync::Arc;

use tollgate_limit::{
    Applied, Ask, Attributes, Call, CheckError, Cost, KeyHash, Limit, Mode, Nanos, Policies, Rule,
    Store, StoreConfig, StoreStats, Verdict,
};

pub(super) use self::plan::{Plan, Plans};

/// Memory for all counters.
pub(super) const STORE_BYTES: u64 = 256 << 20;

/// The policies of a file and their counters.
#[derive(Debug)]
pub(super) struct Engine {
    policies: Policies,
    store: Store,
}

/// What one limit said to one check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// Which limit of the policy.
    pub(super) limit: usize,
    /// The counter.
    pub(super) key: KeyHash,
    /// What the check costs on this limit.
    pub(super) cost: Cost,
    /// Whether the limit admits it.
    pub(super) is_admitted: bool,
    /// Whether it is refused for it: not by a limit in shadow.
    pub(super) refuses: bool,
}

impl Engine {
    /// An engine with nothing counted.
    pub(super) fn new(policies: Policies) -> Self {
        let config = StoreConfig {
            // The times are those since 1970 already.
            unix_origin: Nanos::ZERO,
            max_bytes: STORE_BYTES,
            ..StoreConfig::default()
        };
        Self {
            policies,
            store: Store::new(&config),
        }
    }

    /// One check of a policy, all or nothing: adds to `said` what each limit said that applies. `values`
    /// are those of the wanted attributes. Times must not go back.
    pub(super) fn check(
        &self,
        plan: &Plan,
        now: Nanos,
        (values, cost): (&[&str], Cost),
        said: &mut Vec<Said>,
    ) -> Result<(), CheckError> {
        let mut attributes = Attributes::new();
        for (name, value) in plan.attributes(values) {
            attributes.insert(name, value)?;
        }
        let unknown = || CheckError::UnknownPolicy {
            name: plan.policy().to_owned(),
        };
        let policy = self.policies.policy(plan.policy()).ok_or_else(unknown)?;
        let applied = match policy.select(&attributes, cost, Call::Check) {
            // What a log cannot tell of is passed over, as a check passes it by.
            Err(CheckError::OnlyConcurrency) => return Ok(()),
            other => other?,
        };
        let asks: Vec<Ask> = applied.iter().map(Applied::ask).collect();
        let mut verdicts: Vec<Verdict> = Vec::with_capacity(asks.len());
        self.store
            .decide_all(now, &asks, Mode::Consume, &mut verdicts);
        for (applied, verdict) in applied.iter().zip(verdicts) {
            let same = |limit: &Arc<Limit>| Arc::ptr_eq(limit, &applied.limit);
            if let Some(limit) = policy.limits().iter().position(same) {
                said.push(Said {
                    limit,
                    key: applied.key,
                    cost: applied.cost,
                    is_admitted: verdict.is_allowed(),
                    refuses: !verdict.is_allowed() && applied.rule.is_enforced(),
                });
            }
        }
        Ok(())
    }

    /// What the store holds and lost.
    pub(super) fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}

/// The rule that a limit is told by; `None` where a log does not say what it counts, or where it limits
/// nothing.
pub(super) fn counted_rule(limit: &Limit) -> Option<&Rule> {
    limit.usual_rule().filter(|_| !limit.is_concurrency())
}

#[cfg(test)]
mod tests;
