//! Telling the owner of a counter of a change, and asking for the state behind it.

use std::sync::Arc;

use futures_util::future::join_all;
use tollgate_cluster::Amendment;
use tollgate_limit::{AmendedLimit, Ask, ChargedAt, Nanos, NodeId, Verdict};

use super::{Changes, Told};
use crate::node::{CounterUnreachable, Node};

impl Node {
    /// Tells all owners at once.
    pub(super) async fn tell_all(self: &Arc<Self>, now: Nanos, told: Changes) -> Vec<AmendedLimit> {
        join_all(told.into_iter().map(|told| self.tell_one(now, told))).await
    }

    async fn tell_one(self: &Arc<Self>, now: Nanos, told: Told) -> AmendedLimit {
        let Told {
            limit,
            at,
            amendment,
            ask,
        } = told;
        let (state, node) = match at {
            ChargedAt::Local => {
                if let Some(amendment) = amendment {
                    self.shares.amend(now, &amendment);
                }
                (None, None)
            }
            ChargedAt::Owner => match self.tell(now, amendment, ask).await {
                Ok((verdict, node)) => (Some(verdict), Some(node)),
                Err(CounterUnreachable) => (None, None),
            },
        };
        AmendedLimit {
            limit,
            rule: ask.rule,
            now: state,
            node,
        }
    }

    /// Tells the owner of a counter, and waits for the state behind the change.
    pub(super) async fn tell(
        self: &Arc<Self>,
        now: Nanos,
        amendment: Option<Amendment>,
        ask: Ask,
    ) -> Result<(Verdict, NodeId), CounterUnreachable> {
        let routes = self.routes.load_full();
        if let Some(amendment) = amendment {
            if routes.is_own(ask.key.slot()) {
                self.owner
                    .store
                    .amend(now, &amendment.ask, amendment.change);
            } else {
                let owner = routes.owner(ask.key.slot()).ok_or(CounterUnreachable)?;
                let link = routes.link(owner).ok_or(CounterUnreachable)?;
                if !link.amend(now, amendment) {
                    return Err(CounterUnreachable);
                }
            }
        }
        // On the stream that the change went by: what is read is behind it.
        let reading = self.counter(ask.key, ask.rule).await?;
        Ok((reading.verdict, reading.owner))
    }
}
