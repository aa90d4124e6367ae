//! Placement: which member owns a slot, and which stands by.
//!
//! Rendezvous hashing: for every slot the members are ranked by a hash of (slot, node id), a member of
//! weight k by the best of k draws, and the first two ranks are kept. The death of rank 0 so makes
//! rank 1 the owner, and a change moves only the slots of the member that changed.
//!
//! INV-SAME-PLACEMENT: a placement is a pure function of the set of (node id, weight): the same on
//! every node and platform, by whatever order of events it came to be. Hence fixed keys, whole
//! numbers, and ties by node id. Knows nothing of addresses, phases or time.

mod score;

use tollgate_limit::{NodeId, SLOT_COUNT, SlotId};

use self::score::{Draws, Weighted, fingerprint_of};

/// The most members of a placement.
pub const MAX_MEMBERS: usize = 1_000;

/// A member's place in a placement, in the order of node ids. Means nothing in another placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIndex(u16);

impl MemberIndex {
    /// Stands for nobody in the table.
    const NOBODY: Self = Self(u16::MAX);

    /// The place in a list of all members of the placement.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    fn at(index: usize) -> Self {
        u16::try_from(index).map_or(Self::NOBODY, Self)
    }

    fn known(self) -> Option<Self> {
        (self != Self::NOBODY).then_some(self)
    }
}

/// A member and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its share of slots, relative to the others', at least 1.
    pub weight: u8,
}

/// The first two ranks of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranks {
    owner: MemberIndex,
    standby: MemberIndex,
}

impl Ranks {
    const EMPTY: Self = Self {
        owner: MemberIndex::NOBODY,
        standby: MemberIndex::NOBODY,
    };
}

/// Who owns what: the immutable table slot -> (owner, standby), 256 KiB.
///
/// A look-up is one read of the table, whatever the number of members. A build costs one hash for
/// each slot and draw; [`with_member`](Self::with_member) three for each slot,
/// [`without_member`](Self::without_member) one for each draw in the slots that the member had.
#[derive(Clone, Debug)]
pub struct Placement {
    members: Vec<Member>,
    /// In the order of `members`.
    weighted: Vec<Weighted>,
    /// In the order of `members`.
    slots_owned: Vec<usize>,
    ranks: Box<[Ranks]>,
    fingerprint: u64,
}

impl Placement {
    /// The placement of these members, in any order; of one node that is named twice the first counts,
    /// a weight of 0 is 1, and of more than [`MAX_MEMBERS`] the first by node id count.
    #[must_use]
    pub fn new(members: &[(NodeId, u8)]) -> Self {
        let mut members: Vec<Member> = members
            .iter()
            .map(|(node, weight)| Member {
                node: node.clone(),
                weight: (*weight).max(1),
            })
            .collect();
        // Stable, so that the first of equals stays.
        members.sort_by(|one, other| one.node.cmp(&other.node));
        members.dedup_by(|later, first| later.node == first.node);
        members.truncate(MAX_MEMBERS);
        let weighted: Vec<Weighted> = members.iter().map(Weighted::from).collect();
        let ranks = (0..=u16::MAX).map(|slot| first_two(&weighted, slot));
        let ranks = ranks.collect();
        Self::of(members, weighted, ranks)
    }

    /// The placement with one member more, or with another weight for a member. Unchanged if that
    /// would make more than [`MAX_MEMBERS`].
    #[must_use]
    pub fn with_member(&self, node: &NodeId, weight: u8) -> Self {
        let weight = weight.max(1);
        let place = match self.find(node) {
            Ok(at) if self.members.get(at).is_some_and(|m| m.weight == weight) => {
                return self.clone();
            }
            Ok(_other_weight) => return self.without_member(node).with_member(node, weight),
            Err(_place) if self.members.len() >= MAX_MEMBERS => return self.clone(),
            Err(place) => place,
        };
        let member = Member {
            node: node.clone(),
            weight,
        };
        let mut members = self.members.clone();
        let mut weighted = self.weighted.clone();
        weighted.insert(place, Weighted::from(&member));
        members.insert(place, member);
        let joiner = MemberIndex::at(place);
        let moved = |index: MemberIndex| match index.known() {
            Some(index) if index >= joiner => MemberIndex::at(index.index().saturating_add(1)),
            Some(index) => index,
            None => MemberIndex::NOBODY,
        };
        let ranks = (0..=u16::MAX).zip(&self.ranks).map(|(slot, ranks)| {
            let ranks = Ranks {
                owner: moved(ranks.owner),
                standby: moved(ranks.standby),
            };
            insert(&weighted, slot, ranks, joiner)
        });
        let ranks = ranks.collect();
        Self::of(members, weighted, ranks)
    }

    /// The placement with one member less.
    #[must_use]
    pub fn without_member(&self, node: &NodeId) -> Self {
        let Ok(place) = self.find(node) else {
            return self.clone();
        };
        let mut members = self.members.clone();
        let mut weighted = self.weighted.clone();
        members.remove(place);
        weighted.remove(place);
        let leaver = MemberIndex::at(place);
        let moved = |index: MemberIndex| match index.known() {
            Some(index) if index > leaver => MemberIndex::at(index.index().saturating_sub(1)),
            Some(index) => index,
            None => MemberIndex::NOBODY,
        };
        let ranks = (0..=u16::MAX).zip(&self.ranks).map(|(slot, ranks)| {
            if ranks.owner == leaver || ranks.standby == leaver {
                return first_two(&weighted, slot);
            }
            Ranks {
                owner: moved(ranks.owner),
                standby: moved(ranks.standby),
            }
        });
        let ranks = ranks.collect();
        Self::of(members, weighted, ranks)
    }

    /// Rank 0 of a slot; `None` without members.
    #[must_use]
    pub fn owner(&self, slot: SlotId) -> Option<MemberIndex> {
        self.ranks.get(slot.index())?.owner.known()
    }

    /// Rank 1 of a slot; `None` with fewer than two members.
    #[must_use]
    pub fn standby(&self, slot: SlotId) -> Option<MemberIndex> {
        self.ranks.get(slot.index())?.standby.known()
    }

    /// The node at an index of this placement; `None` only if the index is of another one.
    #[must_use]
    pub fn member(&self, index: MemberIndex) -> Option<&NodeId> {
        Some(&self.members.get(index.index())?.node)
    }

    /// The members, in the order of node ids, that is of [`MemberIndex`].
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Where a node stands; `None` if it is no member.
    #[must_use]
    pub fn index_of(&self, node: &NodeId) -> Option<MemberIndex> {
        self.find(node).ok().map(MemberIndex::at)
    }

    /// A hash of the set of (node id, weight).
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// How many slots a member owns.
    #[must_use]
    pub fn slots_owned(&self, index: MemberIndex) -> usize {
        self.slots_owned.get(index.index()).copied().unwrap_or(0)
    }

    fn find(&self, node: &NodeId) -> Result<usize, usize> {
        self.members
            .binary_search_by(|member| member.node.cmp(node))
    }

    fn of(members: Vec<Member>, weighted: Vec<Weighted>, ranks: Box<[Ranks]>) -> Self {
        debug_assert_eq!(ranks.len(), SLOT_COUNT, "every slot has its ranks");
        let mut slots_owned = vec![0_usize; members.len()];
        for rank in &ranks {
            if let Some(owned) = slots_owned.get_mut(rank.owner.index()) {
                *owned = owned.saturating_add(1);
            }
        }
        let fingerprint = fingerprint_of(&members);
        Self {
            members,
            weighted,
            slots_owned,
            ranks,
            fingerprint,
        }
    }
}

/// The first two ranks of a slot among all members.
fn first_two(members: &[Weighted], slot: u16) -> Ranks {
    let draws = Draws::of(slot);
    let mut ranks = Ranks::EMPTY;
    let (mut owner, mut standby) = (0, 0);
    for (index, member) in (0..).map(MemberIndex).zip(members) {
        let score = member.score(&draws);
        // Strictly: of equal scores the smaller node id, which came before, stays.
        if ranks.owner == MemberIndex::NOBODY || score > owner {
            (ranks.standby, standby) = (ranks.owner, owner);
            (ranks.owner, owner) = (index, score);
        } else if ranks.standby == MemberIndex::NOBODY || score > standby {
            (ranks.standby, standby) = (index, score);
        }
    }
    ranks
}

/// The first two ranks of a slot, given those without the joiner.
fn insert(members: &[Weighted], slot: u16, ranks: Ranks, joiner: MemberIndex) -> Ranks {
    let draws = Draws::of(slot);
    let score = |index: MemberIndex| members.get(index.index()).map(|m| m.score(&draws));
    let joiner_score = score(joiner);
    let wins = |over: MemberIndex| {
        let over_score = score(over);
        joiner_score > over_score || (joiner_score == over_score && joiner < over)
    };
    if wins(ranks.owner) {
        return Ranks {
            owner: joiner,
            standby: ranks.owner,
        };
    }
    if wins(ranks.standby) {
        return Ranks {
            standby: joiner,
            ..ranks
        };
    }
    ranks
}

#[cfg(test)]
mod tests;
