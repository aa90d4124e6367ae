//! Reading one counter, wherever it is.

use std::sync::Arc;

use thiserror::Error;
use tollgate_limit::{Ask, Cost, KeyHash, Nanos, NodeId, Outcome, Reason, Rule, Verdict};

use super::Node;
use crate::{link::Heard, routes::Routes, serve::Keeper};

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
        let standby = placement.standby(key.slot());
        let ask = Ask {
            key,
            rule,
            cost: Cost::ONE,
        };
        let (owner, counter) = match self.owner.keeper(routes, key.slot()) {
            Keeper::Here => (&self.config.node, self.owner.store.read(now, key, &rule)),
            Keeper::Nobody => return Err(CounterUnreachable),
            Keeper::Peer(link) => {
                let asked = link.read(now, deadline, &ask).ok_or(CounterUnreachable)?;
                match asked.heard.await {
                    Ok(Heard::Counter(counter)) => (link.peer(), counter),
                    Ok(Heard::Verdicts(..) | Heard::Failed(_)) | Err(_) => {
                        return Err(CounterUnreachable);
                    }
                }
            }
        };
        Ok(CounterReading {
            verdict: counter.unwrap_or_else(|| untouched(&rule)),
            owner: owner.clone(),
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
