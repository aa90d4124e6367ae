//! What the nodes of a rig say of themselves, and waiting until they say it.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use tollgate_limit::{KeyHash, Limit, Rule, SlotId, Verdict};
use tollgate_node::{CounterUnreachable, Node};

use super::{POLICY, Rig, RigError, Seat, ask};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(5);

impl Rig {
    /// Whether all nodes that run are active, go by one placement, reach each other, and each decides in just
    /// the slots that it owns.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let nodes = self.nodes();
        let is_settled = |node: &Arc<Node>| {
            let report = node.report();
            let placement = report.placement;
            node.is_active()
                && report.members.len() == nodes.len()
                && report.members.iter().all(|member| {
                    member.is_reachable && member.slots > 0 && member.placement == Some(placement)
                })
        };
        nodes.iter().all(|(_, node)| is_settled(node))
            && nodes.iter().all(|(_, node)| node.is_settled())
    }

    /// Waits until [`is_settled`](Self::is_settled); how long it took.
    ///
    /// # Errors
    /// [`RigError::NotInTime`].
    pub async fn settle(&self, patience: Duration) -> Result<Duration, RigError> {
        self.wait_until("one placement", patience, || self.is_settled())
            .await
    }

    /// Waits, in virtual time, until something is true; how long it took.
    ///
    /// # Errors
    /// [`RigError::NotInTime`].
    pub async fn wait_until(
        &self,
        what: &str,
        patience: Duration,
        is_true: impl Fn() -> bool,
    ) -> Result<Duration, RigError> {
        let begun = self.network().now();
        let waited = timeout(patience, async {
            while !is_true() {
                sleep(POLL).await;
            }
        });
        let missed = |_elapsed| RigError::NotInTime {
            what: what.to_owned(),
            patience,
        };
        waited.await.map_err(missed)?;
        Ok(self.network().now().saturating_sub(begun))
    }

    /// A limit by its name.
    #[must_use]
    pub fn limit(&self, name: &str) -> Option<Arc<Limit>> {
        let (_, node) = self.nodes().into_iter().next()?;
        let policies = node.policies();
        let policy = policies.policy(POLICY)?;
        policy.limit(name).cloned()
    }

    /// The counter of a limit for one value of the attribute of its name, and the limit's rule.
    #[must_use]
    pub fn counter(&self, limit: &str, value: &str) -> Option<(KeyHash, Rule)> {
        let limit = self.limit(limit)?;
        let values = &[(limit.name(), value)];
        let key = limit.key_of(&ask::attributes(values).ok()?).ok()??;
        Some((key, *limit.usual_rule()?))
    }

    /// The seat that owns a slot by the view of some node.
    #[must_use]
    pub fn owner(&self, viewer: Seat, slot: SlotId) -> Option<Seat> {
        let view = self.node(viewer)?.view();
        let owner = view.placement.owner(slot)?;
        Seat::of(view.placement.member(owner)?)
    }

    /// The same for its standby.
    #[must_use]
    pub fn standby(&self, viewer: Seat, slot: SlotId) -> Option<Seat> {
        let view = self.node(viewer)?.view();
        let standby = view.placement.standby(slot)?;
        Seat::of(view.placement.member(standby)?)
    }

    /// The first value of the limit's attribute, from that number on, whose key that seat owns by the
    /// view of its own node.
    #[must_use]
    pub fn value_at(&self, owner: Seat, limit: &str, from: usize) -> Option<String> {
        (from..from.saturating_add(MAX_VALUES))
            .map(|number| format!("v{number}"))
            .find(|value| {
                let key = self.counter(limit, value).map(|(key, _)| key);
                key.is_some_and(|key| self.owner(owner, key.slot()) == Some(owner))
            })
    }

    /// What a peek would say, as the key's owner tells that seat's node.
    ///
    /// # Errors
    /// [`CounterUnreachable`].
    pub async fn read(
        &self,
        reader: Seat,
        limit: &str,
        value: &str,
    ) -> Result<Verdict, CounterUnreachable> {
        let counter = self.node(reader).zip(self.counter(limit, value));
        let (node, (key, rule)) = counter.ok_or(CounterUnreachable)?;
        Ok(node.counter(key, rule).await?.verdict)
    }
}

/// The most values that are tried for one of a seat: with a hundred seats one in a hundred fits.
const MAX_VALUES: usize = 100_000;
