//! One log line for each change of a member's state.

use tollgate_cluster::{Change, Gone};

/// Tells of a change.
pub(super) fn tell(change: &Change) {
    match change {
        Change::MemberUp(is) => {
            tracing::info!(node_id = %is.node, phase = is.phase.as_str(), peer = %is.peer, "a member is up");
        }
        Change::MemberChanged { was, is } => tracing::info!(
            node_id = %is.node,
            was = was.phase.as_str(),
            phase = is.phase.as_str(),
            new_boot = was.boot != is.boot,
            "a member has changed"
        ),
        Change::MemberDoubted(node) => tracing::info!(node_id = %node, "a member is doubted"),
        Change::MemberVetoed(node) => {
            tracing::info!(node_id = %node, "a member is said to be down, but it is heard");
        }
        Change::MemberBack(node) => tracing::info!(node_id = %node, "a member is back"),
        Change::MemberGone { was, why } => {
            let why = match why {
                Gone::Down => "down",
                Gone::Left => "left",
                Gone::AddressTaken => "address taken",
            };
            tracing::info!(node_id = %was.node, why, "a member is gone");
        }
        Change::MembersFull(node) => {
            tracing::warn!(node_id = %node, "there are too many members: one was left out");
        }
        Change::PlacementChanged { fingerprint } => {
            tracing::info!(
                placement = format_args!("{fingerprint:016x}"),
                "a new placement is in force"
            );
        }
    }
}
