//! Waiting until all nodes report one placement with all of them active, and hold their slots.

use std::time::Duration;

use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::layout::NodePlan;
use crate::{
    command::answers::ClusterAnswer,
    http_client::{Call, Connection},
};

/// How long a cluster may take to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a node is asked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A cluster that did not settle.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum NotSettled {
    /// A URL of ours is not one: a bug.
    #[error("{0} cannot be asked")]
    Url(String),
    /// It takes too long.
    #[error("the nodes did not report one placement within {} s", SETTLE_TIMEOUT.as_secs())]
    Timeout,
}

/// Waits until every node names every node as active, all name one placement, and no slot is on its way.
pub(super) async fn wait(nodes: &[NodePlan]) -> Result<(), NotSettled> {
    let mut connections = Vec::new();
    for node in nodes {
        let url = format!("http://{}", node.ports.http);
        let parsed = url.parse().map_err(|_error| NotSettled::Url(url))?;
        connections.push(Connection::new(parsed));
    }
    timeout(SETTLE_TIMEOUT, async {
        while !is_settled(&mut connections).await {
            sleep(POLL_INTERVAL).await;
        }
    })
    .await
    .map_err(|_elapsed| NotSettled::Timeout)
}

async fn is_settled(nodes: &mut [Connection]) -> bool {
    let wanted = nodes.len();
    let mut placement = None;
    for node in nodes {
        let Ok(answer) = node.call(Call::read("/v1/cluster")).await else {
            return false;
        };
        let Ok(cluster) = serde_json::from_slice::<ClusterAnswer>(&answer.body) else {
            return false;
        };
        let same = placement.get_or_insert_with(|| cluster.placement.clone());
        let is_moving = cluster.motion.slots_in + cluster.motion.slots_out > 0;
        if cluster.active() != wanted || *same != cluster.placement || is_moving {
            return false;
        }
    }
    true
}
