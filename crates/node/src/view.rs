//! What control publishes and checks read: one immutable picture of the cluster.

use std::sync::Arc;

use tollgate_cluster::{MemberIndex, Placement};
use tollgate_wire::identity::{BootId, Identity, Phase};

/// The cluster as this node sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// Who owns which slot: the active members.
    pub placement: Arc<Placement>,
    /// This node in the placement; `None` while it is not active.
    pub own: Option<MemberIndex>,
    /// This node's identity as it is gossiped now, with its phase.
    pub identity: Identity,
    /// All other members known, whatever their phase, by name.
    pub members: Arc<[Identity]>,
}

impl View {
    /// The boot of a member of the placement; `None` for this node, or one that is not known.
    pub(crate) fn boot_of(&self, member: MemberIndex) -> Option<BootId> {
        let node = self.placement.member(member)?;
        let members = &self.members;
        let at = members.binary_search_by(|known| known.node.cmp(node));
        at.ok()
            .and_then(|at| members.get(at))
            .map(|known| known.boot)
    }

    /// This node's phase.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.identity.phase
    }
}
