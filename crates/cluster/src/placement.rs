//! Placement skeleton.
use tollgate_limit::{NodeId, SlotId};

/// The most members of a placement.
pub const MAX_MEMBERS: usize = 1_000;

/// A member's place in a placement, in the order of node ids. Means nothing in another placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIndex(u16);

/// A member and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its share of slots, relative to the others', at least 1.
    pub weight: u8,
}

/// Who owns what: the immutable table slot -> (owner, standby).
#[derive(Debug)]
pub struct Placement {}

impl Placement {
    /// The placement of these members.
    #[must_use]
    pub fn new(_members: &[(NodeId, u8)]) -> Self {
        todo!()
    }
    /// The placement with one member more, or with another weight for a member.
    #[must_use]
    pub fn with_member(&self, _node: &NodeId, _weight: u8) -> Self {
        todo!()
    }
    /// The placement with one member less.
    #[must_use]
    pub fn without_member(&self, _node: &NodeId) -> Self {
        todo!()
    }
    /// Rank 0 of a slot; `None` without members.
    #[must_use]
    pub fn owner(&self, _slot: SlotId) -> Option<MemberIndex> {
        todo!()
    }
    /// Rank 1 of a slot; `None` with fewer than two members.
    #[must_use]
    pub fn standby(&self, _slot: SlotId) -> Option<MemberIndex> {
        todo!()
    }
    /// The node at an index of this placement.
    #[must_use]
    pub fn member(&self, _index: MemberIndex) -> &NodeId {
        todo!()
    }
    /// The members, in the order of node ids.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        todo!()
    }
    /// Where a node stands.
    #[must_use]
    pub fn index_of(&self, _node: &NodeId) -> Option<MemberIndex> {
        todo!()
    }
    /// A hash of the set of (node id, weight).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        todo!()
    }
    /// How many slots a member owns.
    #[must_use]
    pub fn slots_owned(&self, _index: MemberIndex) -> usize {
        todo!()
    }
}
