//! How each slot is held, for those who read it with every check.
//!
//! One word for each slot: how it is held, by whom if it was given away, and whose copy is complete. Knows
//! nothing of why. Invariant: a slot is seen as held only while the store is open there, as
//! [`Motion`](super::Motion) writes it after the one and before the other.

use std::sync::atomic::{AtomicU32, Ordering};

use tollgate_limit::{NodeId, SLOT_COUNT, SlotId, SlotSet};
use tollgate_wire::identity::BootId;

use super::peers::{PeerIndex, Peers};

/// How this node holds a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It decides here.
    Yes,
    /// It does not.
    No,
    /// It is to decide, as soon as the counts have come: a check waits for [`HOLD`](super::HOLD) at most.
    Awaiting,
    /// The counts have not come in time: it decides on its copy, degraded.
    Overdue,
    /// It was handed over to a member, which checks are relayed to.
    Given(NodeId),
}

/// How each slot is held. Read by all threads, written by [`Motion`](super::Motion) alone.
pub struct SlotStates {
    words: Box<[AtomicU32]>,
    peers: Peers,
}

/// What [`Motion`](super::Motion) says of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Yes,
    No,
    Awaiting,
    Given(NodeId, BootId),
}

impl SlotStates {
    /// Whether this node decides in a slot: one atomic read.
    #[must_use]
    pub fn holds(&self, slot: SlotId) -> bool {
        self.word(slot) & HOW == YES
    }

    /// How a slot is held.
    #[must_use]
    pub fn hold(&self, slot: SlotId) -> Hold {
        let word = self.word(slot);
        match word & HOW {
            YES => Hold::Yes,
            AWAITING => Hold::Awaiting,
            OVERDUE => Hold::Overdue,
            GIVEN => {
                let to = self.peers.node(PeerIndex::from_bits(word >> TO_SHIFT));
                to.map_or(Hold::No, Hold::Given)
            }
            _no => Hold::No,
        }
    }

    /// A check has waited for a slot in vain.
    pub fn handle_overdue(&self, slot: SlotId) {
        let Some(word) = self.words.get(slot.index()) else {
            return;
        };
        let overdue = |word: u32| (word & HOW == AWAITING).then_some(word & !HOW | OVERDUE);
        // Whoever was faster has told more: then there is nothing to do.
        let _known = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, overdue);
    }

    /// Whether this node's copy of a slot is complete since that boot of its owner.
    #[must_use]
    pub fn has_copy(&self, slot: SlotId, owner: BootId) -> bool {
        let of = PeerIndex::from_bits(self.word(slot) >> COPY_SHIFT);
        self.peers.boot(of) == Some(owner)
    }

    /// Tells how slots are held. A slot that is overdue is not awaited again.
    pub(super) fn show(&self, slots: &SlotSet, shown: &Shown) {
        let (how, to) = match shown {
            Shown::Yes => (YES, PeerIndex::NOBODY),
            Shown::No => (NO, PeerIndex::NOBODY),
            Shown::Awaiting => (AWAITING, PeerIndex::NOBODY),
            Shown::Given(node, boot) => match self.peers.insert(node, *boot) {
                // Nobody to relay to: the caller is told that this node is not the owner.
                PeerIndex::NOBODY => (NO, PeerIndex::NOBODY),
                to => (GIVEN, to),
            },
        };
        self.update(slots, |word| {
            let stays = how == AWAITING && word & HOW == OVERDUE;
            if stays {
                return word;
            }
            word & !(HOW | PEER << TO_SHIFT) | how | to.bits() << TO_SHIFT
        });
    }

    /// Tells that the copy of slots is complete since that boot of their owner.
    pub(super) fn show_copy(&self, slots: &SlotSet, node: &NodeId, boot: BootId) {
        let of = self.peers.insert(node, boot);
        self.update(slots, |word| {
            word & !(PEER << COPY_SHIFT) | of.bits() << COPY_SHIFT
        });
    }

    /// Tells that it is not any more.
    pub(super) fn show_no_copy(&self, slots: &SlotSet) {
        self.update(slots, |word| word & !(PEER << COPY_SHIFT));
    }

    /// Nothing is told of a member any more.
    pub(super) fn drop_peer(&self, node: &NodeId, boot: BootId) {
        let Some(peer) = self.peers.find(node, boot) else {
            return;
        };
        for word in &self.words {
            let drop = |mut word: u32| {
                if word & HOW == GIVEN && PeerIndex::from_bits(word >> TO_SHIFT) == peer {
                    word &= !(HOW | PEER << TO_SHIFT);
                }
                if PeerIndex::from_bits(word >> COPY_SHIFT) == peer {
                    word &= !(PEER << COPY_SHIFT);
                }
                word
            };
            change(word, drop);
        }
        self.peers.remove(peer);
    }

    fn word(&self, slot: SlotId) -> u32 {
        let word = self.words.get(slot.index());
        word.map_or(NO, |word| word.load(Ordering::Acquire))
    }

    fn update(&self, slots: &SlotSet, with: impl Fn(u32) -> u32) {
        for slot in slots.iter() {
            if let Some(word) = self.words.get(slot.index()) {
                change(word, &with);
            }
        }
    }
}

impl std::fmt::Debug for SlotStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = self
            .words
            .iter()
            .filter(|word| word.load(Ordering::Relaxed) & HOW == YES);
        write!(f, "SlotStates({} held)", held.count())
    }
}

impl Default for SlotStates {
    fn default() -> Self {
        Self {
            words: (0..SLOT_COUNT).map(|_| AtomicU32::new(NO)).collect(),
            peers: Peers::default(),
        }
    }
}

/// Changes a word that others may set overdue meanwhile; writes only what is new.
fn change(word: &AtomicU32, with: impl Fn(u32) -> u32) {
    let change = |old: u32| {
        let new = with(old);
        (new != old).then_some(new)
    };
    let _same = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
}

/// The bits that say how a slot is held.
const HOW: u32 = 0b111;
const NO: u32 = 0;
const YES: u32 = 1;
const AWAITING: u32 = 2;
const OVERDUE: u32 = 3;
const GIVEN: u32 = 4;

/// The bits of a peer, and where those of the taker and of the copied owner lie.
const PEER: u32 = PeerIndex::MASK;
const TO_SHIFT: u32 = 3;
const COPY_SHIFT: u32 = 16;
