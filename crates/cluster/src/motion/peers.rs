//! The members that slot states name, each by a small number.
//!
//! Knows nothing of slots. Bounded by [`MAX_PEERS`]: beyond, a member has no number, and what would name it
//! says less. A number is used again when its member is gone; who reads a state meanwhile may be sent to the
//! wrong member, which says that it does not own the slot.

use std::sync::{PoisonError, RwLock};

use tollgate_limit::NodeId;
use tollgate_wire::identity::BootId;

use crate::placement::MAX_MEMBERS;

/// The most members named at once: each that is there, and as many that are about to be forgotten.
pub(super) const MAX_PEERS: usize = 4 * MAX_MEMBERS;

/// A member's number, from 1; 0 is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerIndex(u32);

impl PeerIndex {
    pub(super) const NOBODY: Self = Self(0);
    /// The bits that a number may have.
    pub(super) const MASK: u32 = 0x1fff;

    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::MASK)
    }

    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    fn at(place: usize) -> Self {
        let number = u32::try_from(place).ok().and_then(|at| at.checked_add(1));
        match number {
            Some(number) if number <= Self::MASK => Self(number),
            Some(_) | None => Self::NOBODY,
        }
    }

    fn place(self) -> Option<usize> {
        usize::try_from(self.0.checked_sub(1)?).ok()
    }
}

/// One start of a member.
type Peer = (NodeId, BootId);

/// Who has which number.
#[derive(Debug, Default)]
pub(super) struct Peers {
    places: RwLock<Vec<Option<Peer>>>,
}

impl Peers {
    /// The number of a member, a new one if it has none; nobody's if there are too many.
    pub(super) fn insert(&self, node: &NodeId, boot: BootId) -> PeerIndex {
        if let Some(known) = self.find(node, boot) {
            return known;
        }
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let free = places.iter().position(Option::is_none);
        let free = free.unwrap_or(places.len());
        if free >= MAX_PEERS {
            return PeerIndex::NOBODY;
        }
        let peer = Some((node.clone(), boot));
        match places.get_mut(free) {
            Some(place) => *place = peer,
            None => places.push(peer),
        }
        PeerIndex::at(free)
    }

    pub(super) fn find(&self, node: &NodeId, boot: BootId) -> Option<PeerIndex> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let is = |peer: &Option<Peer>| peer.as_ref().is_some_and(|p| p.0 == *node && p.1 == boot);
        places.iter().position(is).map(PeerIndex::at)
    }

    pub(super) fn remove(&self, peer: PeerIndex) {
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = peer.place().and_then(|place| places.get_mut(place)) {
            *place = None;
        }
    }

    pub(super) fn node(&self, peer: PeerIndex) -> Option<NodeId> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let (node, _) = places.get(peer.place()?)?.as_ref()?;
        Some(node.clone())
    }

    pub(super) fn boot(&self, peer: PeerIndex) -> Option<BootId> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let (_, boot) = places.get(peer.place()?)?.as_ref()?;
        Some(*boot)
    }
}

const _: () = assert!(MAX_PEERS < 0x1fff, "each number has its bits");
