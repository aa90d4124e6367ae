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
    Ask, Attributes, CheckError, Cost, KeyHash, Limit, Mode, Nanos, Policies, Rule, Store,
    StoreConfig, StoreStats, Verdict,
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
    /// What it said.
    pub(super) verdict: Verdict,
}

impl Engine {
    /// An engine with nothing counted.
    pub(super) fn new(policies: Policies) -> Self {
        let config = StoreConfig {
            max_bytes: STORE_BYTES,
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
        let applied = policy.select(&attributes)?;
        let mut asks = Vec::with_capacity(applied.len());
        let mut numbers = Vec::with_capacity(applied.len());
        for applied in &applied {
            let same = |limit: &Arc<Limit>| Arc::ptr_eq(limit, &applied.limit);
            let number = policy.limits().iter().position(same);
            let Some(number) = number.filter(|_| is_counted(&applied.limit)) else {
                continue;
            };
            numbers.push(number);
            asks.push(Ask {
                key: applied.key,
                rule: *applied.limit.rule(),
                cost,
            });
        }
        let mut verdicts: Vec<Verdict> = Vec::with_capacity(asks.len());
        self.store
            .decide_all(now, &asks, Mode::Consume, &mut verdicts);
        let all = numbers.into_iter().zip(asks).zip(verdicts);
        said.extend(all.map(|((limit, ask), verdict)| Said {
            limit,
            key: ask.key,
            verdict,
        }));
        Ok(())
    }

    /// What the store holds and lost.
    pub(super) fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}

/// Whether a log says all that a limit counts: not where permits are given back.
pub(super) const fn is_counted(limit: &Limit) -> bool {
    match limit.rule() {
        Rule::SlidingWindow(_) => true,
    }
}

#[cfg(test)]
mod tests;
