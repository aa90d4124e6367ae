//! What of a view the motion goes by, and what tells one view from another.

use std::sync::Arc;

use tollgate_cluster::MotionView;
use tollgate_wire::identity::Phase;

use crate::view::View;

/// What tells one view from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    generation: u64,
    placement: u64,
}

impl Seen {
    pub(super) fn of(view: &View) -> Self {
        Self {
            generation: view.identity.generation,
            placement: view.placement.fingerprint(),
        }
    }
}

/// The part of a view that the motion goes by.
pub(super) fn motion_view(view: &View) -> MotionView {
    let phase = view.phase();
    let prospective = (phase == Phase::Joining).then(|| {
        let identity = &view.identity;
        let placement = &view.placement;
        Arc::new(placement.with_member(&identity.node, identity.weight))
    });
    let members = view.members.iter();
    MotionView {
        placement: Arc::clone(&view.placement),
        own: view.own,
        phase,
        prospective,
        members: members
            .map(|member| (member.node.clone(), member.boot, member.phase))
            .collect(),
    }
}
