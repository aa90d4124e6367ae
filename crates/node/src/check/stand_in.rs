//! Who is asked instead of an owner that does not answer.

use std::sync::Arc;

use tollgate_cluster::{MemberIndex, stand_in};
use tollgate_limit::{Ask, NodeId, SlotId};

use crate::{link::Link, node::Node, routes::Routes};

/// Who stands in for an owner.
pub(super) enum StandIn {
    /// This node.
    Here,
    /// A peer that can be asked.
    Peer(Arc<Link>),
    /// Nobody, or nobody for all of the keys, or nobody who can be asked.
    Nobody,
}

impl Node {
    /// Who stands in for the peer that failed, for all of these keys.
    pub(super) fn stand_in(&self, routes: &Routes, asks: &[Ask], failed: &NodeId) -> StandIn {
        let failed = routes.view.placement.index_of(failed);
        let mut members = asks
            .iter()
            .map(|ask| member_for(routes, ask.key.slot(), failed));
        let Some(Some(first)) = members.next() else {
            return StandIn::Nobody;
        };
        if members.any(|member| member != Some(first)) {
            return StandIn::Nobody;
        }
        stand_in_of(routes, first)
    }
}

/// Who stands in for a slot's owner, which failed: of the owner and the standby by these routes the first
/// that did not fail and can be asked.
pub(super) fn member_for(
    routes: &Routes,
    slot: SlotId,
    failed: Option<MemberIndex>,
) -> Option<MemberIndex> {
    let placement = &routes.view.placement;
    let (owner, standby) = (placement.owner(slot), placement.standby(slot));
    match failed {
        Some(failed) => {
            let first = stand_in(&failed, owner, standby)?;
            let can_be_asked = !matches!(stand_in_of(routes, first), StandIn::Nobody);
            if can_be_asked {
                Some(first)
            } else {
                stand_in(&failed, None, standby)
            }
        }
        // It owns nothing any more by these routes.
        None => owner,
    }
}

/// How that member is asked.
pub(super) fn stand_in_of(routes: &Routes, member: MemberIndex) -> StandIn {
    if routes.view.own == Some(member) {
        return StandIn::Here;
    }
    match routes.link(member) {
        Some(link) if link.is_usable() => StandIn::Peer(Arc::clone(link)),
        Some(_) | None => StandIn::Nobody,
    }
}
