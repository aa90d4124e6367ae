//! Reading one counter, wherever it is.

use std::sync::Arc;

use thiserror::Error;
use tollgate_limit::{Ask, Cost, KeyHash, Nanos, NodeId, Outcome, Reason, Rule, Verdict};

use super::Node;
use crate::{link::Heard, routes::Routes};

/// The state of one counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterReading {
    /// What a peek for one unit says.
    pub verdict: Verdict,
    /// The key's owner, which told it.
    pub owner: NodeId,
    /// The key's standby; `None` if there is no second active member.
    pub standby: Option<NodeId>,
}

/// The counter's owner did not tell. Nobody's fault: ask again.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the counter's owner did not answer in time")]
pub struct CounterUnreachable;

impl Node {
    /// Reads a counter at its owner.
    ///
    /// # Errors
    /// [`CounterUnreachable`] within the check deadline.
    pub async fn counter(
        self: &Arc<Self>,
        key: KeyHash,
        rule: Rule,
    ) -> Result<CounterReading, CounterUnreachable> {
        let deadline = self
            .now()
            .saturating_add(self.config.timeouts.check_deadline.into());
        let cost = Cost::ONE;
        let routes = self.routes.load_full();
        self.read_counter(&routes, deadline, Ask { key, rule, cost })
            .await
    }

    /// The same by these routes, until an instant.
    pub(crate) async fn read_counter(
        &self,
        routes: &Routes,
        deadline: Nanos,
        Ask { key, rule, .. }: Ask,
    ) -> Result<CounterReading, CounterUnreachable> {
        let now = self.now();
        let placement = &routes.view.placement;
        let owner = placement.owner(key.slot()).ok_or(CounterUnreachable)?;
        let standby = placement.standby(key.slot());
        let counter = if routes.is_own(key.slot()) {
            self.owner.store.read(now, key, &rule)
        } else {
            let link = routes.link(owner).ok_or(CounterUnreachable)?;
            let ask = Ask {
                key,
                rule,
                cost: Cost::ONE,
            };
            let asked = link.read(now, deadline, &ask).ok_or(CounterUnreachable)?;
            match asked.heard.await {
                Ok(Heard::Counter(counter)) => counter,
                Ok(Heard::Verdicts(..) | Heard::Failed(_)) | Err(_) => {
                    return Err(CounterUnreachable);
                }
            }
        };
        Ok(CounterReading {
            verdict: counter.unwrap_or_else(|| untouched(&rule)),
            owner: placement.member(owner).cloned().ok_or(CounterUnreachable)?,
            standby: standby
                .and_then(|standby| placement.member(standby))
                .cloned(),
        })
    }
}

/// What a counter says that nothing was counted in.
const fn untouched(rule: &Rule) -> Verdict {
    let (outcome, retry_after) = match rule.open_capacity() {
        0 => (Outcome::Refuse(Reason::LimitIsZero), None),
        _ => (Outcome::Allow, Some(Nanos::ZERO)),
    };
    Verdict {
        outcome,
        used: 0,
        remaining: rule.open_capacity(),
        retry_after,
        more_after: Nanos::ZERO,
        reset_after: Nanos::ZERO,
        delay: Nanos::ZERO,
        charged_slice: 0,
    }
}
