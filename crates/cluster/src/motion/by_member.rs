//! Slots by member: what is asked of whom, and the like.
//!
//! Knows nothing of what it means. Invariant: no set in it is empty.

use std::collections::BTreeMap;

use tollgate_limit::{NodeId, SlotSet};

/// A set of slots for each of some members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ByMember(BTreeMap<NodeId, SlotSet>);

impl ByMember {
    pub(super) fn add(&mut self, member: &NodeId, slots: &SlotSet) {
        if slots.is_empty() {
            return;
        }
        match self.0.get_mut(member) {
            Some(known) => known.extend(slots),
            None => {
                self.0.insert(member.clone(), slots.clone());
            }
        }
    }

    /// Takes slots out of what one member has.
    pub(super) fn take_of(&mut self, member: &NodeId, slots: &SlotSet) {
        if let Some(known) = self.0.get_mut(member) {
            known.subtract(slots);
            if known.is_empty() {
                self.0.remove(member);
            }
        }
    }

    /// Takes slots out of what each member has.
    pub(super) fn take(&mut self, slots: &SlotSet) {
        self.0.retain(|_, known| {
            known.subtract(slots);
            !known.is_empty()
        });
    }

    /// Keeps only these slots, of each member.
    pub(super) fn keep(&mut self, slots: &SlotSet) {
        self.0.retain(|_, known| {
            known.intersect(slots);
            !known.is_empty()
        });
    }

    pub(super) fn remove(&mut self, member: &NodeId) -> SlotSet {
        self.0.remove(member).unwrap_or_default()
    }

    pub(super) fn of(&self, member: &NodeId) -> SlotSet {
        self.0.get(member).cloned().unwrap_or_default()
    }

    /// The slots of all members.
    pub(super) fn all(&self) -> SlotSet {
        let mut all = SlotSet::new();
        for slots in self.0.values() {
            all.extend(slots);
        }
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&NodeId, &SlotSet)> {
        self.0.iter()
    }
}

impl FromIterator<(NodeId, SlotSet)> for ByMember {
    fn from_iter<T: IntoIterator<Item = (NodeId, SlotSet)>>(members: T) -> Self {
        let mut all = Self::default();
        for (member, slots) in members {
            all.add(&member, &slots);
        }
        all
    }
}
