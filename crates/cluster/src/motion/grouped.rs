//! Slots by a member's place in a placement: what is made of all slots at once, without a look-up for each.
//!
//! Knows nothing of names or views.

use tollgate_limit::{NodeId, SlotId, SlotSet};

use super::by_member::ByMember;
use crate::placement::MemberIndex;

/// A set of slots for each of some places.
#[derive(Debug, Default)]
pub(super) struct Grouped(Vec<Option<SlotSet>>);

impl Grouped {
    pub(super) fn add(&mut self, member: MemberIndex, slot: SlotId) {
        let at = member.index();
        if at >= self.0.len() {
            self.0.resize_with(at.saturating_add(1), || None);
        }
        if let Some(slots) = self.0.get_mut(at) {
            slots.get_or_insert_default().insert(slot);
        }
    }

    /// Adds them to a set by name; those that have no name are left out.
    pub(super) fn add_to(self, named: &mut ByMember, name: impl Fn(usize) -> Option<NodeId>) {
        for (at, slots) in self.0.into_iter().enumerate() {
            if let Some((name, slots)) = slots.and_then(|slots| Some((name(at)?, slots))) {
                named.add(&name, &slots);
            }
        }
    }
}
