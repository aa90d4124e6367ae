//! What control publishes and checks read: one immutable picture of the cluster.

use std::sync::Arc;

use tollgate_cluster::{MemberIndex, Placement};
use tollgate_wire::identity::{Identity, Phase};

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
    /// This node's phase.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.identity.phase
    }
}
