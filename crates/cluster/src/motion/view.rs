//! What a view says of this node: which slots ought to be its own, and which it keeps a copy of.
//!
//! A pure reading of one [`MotionView`]. Knows nothing of what this node holds.

use std::{collections::BTreeMap, sync::Arc};

use tollgate_limit::{NodeId, SLOT_COUNT, SlotId, SlotSet};
use tollgate_wire::identity::{BootId, Phase};

use super::{MotionView, by_member::ByMember, grouped::Grouped};
use crate::{
    placement::Placement,
    sabotage::{self, Sabotage},
};

/// A view, read.
#[derive(Debug)]
pub(super) struct Reading {
    placement: Arc<Placement>,
    members: BTreeMap<NodeId, (BootId, Phase)>,
    pub(super) phase: Phase,
    /// Whether it is of an active node.
    is_active: bool,
    /// Whether it says what a joining node is going to own, and who owns it now.
    pub(super) knows_what_comes: bool,
    /// The slots that this node owns.
    pub(super) own: SlotSet,
    /// The slots to be copied, by their owners: those that this node is standby of, or joins for.
    pub(super) copies: ByMember,
}

impl Reading {
    pub(super) fn new(view: &MotionView) -> Self {
        let members = view.members.iter().cloned();
        let members = members.map(|(node, boot, phase)| (node, (boot, phase)));
        let mut reading = Self {
            placement: Arc::clone(&view.placement),
            members: members.collect(),
            phase: view.phase,
            is_active: view.own.is_some(),
            knows_what_comes: if view.placement.members().is_empty() {
                // Who leaves hands over to somebody, of whom this node has not heard yet.
                view.members.iter().all(|member| member.2 != Phase::Leaving)
            } else {
                view.prospective.is_some()
            },
            own: SlotSet::new(),
            copies: ByMember::default(),
        };
        let to_come = prospective_own(view);
        let mut copies = Grouped::default();
        for slot in all_slots() {
            let owner = view.placement.owner(slot);
            if owner.is_some() && owner == view.own {
                reading.own.insert(slot);
                continue;
            }
            let standby = view.placement.standby(slot);
            let copied = match (&to_come, view.own) {
                (Some(to_come), _) => to_come.contains(slot),
                (None, own) => own.is_some() && own == standby,
            };
            if let Some(owner) = owner.filter(|_| copied) {
                copies.add(owner, slot);
            }
        }
        copies.add_to(&mut reading.copies, |at| name_at(&view.placement, at));
        if let Some(to_come) = to_come.filter(|_| sabotage::is(Sabotage::JoiningNodeOwns)) {
            reading.own = to_come;
        }
        reading
    }

    /// The slots of which this node is to keep what it has.
    pub(super) fn near(&self) -> SlotSet {
        let mut near = self.copies.all();
        near.extend(&self.own);
        near
    }

    /// Some slots by their owners; those that nobody owns are left out.
    pub(super) fn by_owner(&self, slots: &SlotSet) -> ByMember {
        let (mut by_owner, mut named) = (Grouped::default(), ByMember::default());
        for slot in slots.iter() {
            if let Some(owner) = self.placement.owner(slot) {
                by_owner.add(owner, slot);
            }
        }
        by_owner.add_to(&mut named, |at| name_at(&self.placement, at));
        named
    }

    /// Those of some slots that a member owns, or nobody.
    pub(super) fn owned_by(&self, member: &NodeId, slots: &SlotSet) -> SlotSet {
        let member = self.placement.index_of(member);
        let owned = |slot: &SlotId| {
            let owner = self.placement.owner(*slot);
            owner.is_none() || owner == member
        };
        slots.iter().filter(owned).collect()
    }

    /// Whom this node must have the counts of slots from that it has just come to own: who owned them
    /// before and is still there. The rest is nobody's.
    pub(super) fn sources(&self, before: Option<&Self>, slots: &SlotSet) -> ByMember {
        let was_active = before.is_some_and(|before| before.is_active);
        let still_there = before.map_or_else(Vec::new, |before| before.still_there(self));
        let (mut previous, mut next) = (Grouped::default(), Grouped::default());
        for slot in slots.iter() {
            let owner = before.and_then(|before| before.placement.owner(slot));
            let owner = owner.filter(|owner| still_there.get(owner.index()) == Some(&true));
            match owner {
                Some(owner) => previous.add(owner, slot),
                // Who would own it without this node.
                None if !was_active => {
                    if let Some(standby) = self.placement.standby(slot) {
                        next.add(standby, slot);
                    }
                }
                None => {}
            }
        }
        let mut sources = ByMember::default();
        if let Some(before) = before {
            previous.add_to(&mut sources, |at| name_at(&before.placement, at));
        }
        next.add_to(&mut sources, |at| name_at(&self.placement, at));
        sources
    }

    /// Whether anybody owns anything, or is about to.
    pub(super) fn has_owners(&self) -> bool {
        let mut members = self.members.values();
        !self.placement.members().is_empty() || members.any(|m| m.1 == Phase::Joining)
    }

    /// The boot of another member.
    pub(super) fn boot(&self, member: &NodeId) -> Option<BootId> {
        self.members.get(member).map(|(boot, _)| *boot)
    }

    /// Whether a member has not taken up its slots, or put them down again.
    pub(super) fn is_joining(&self, member: &NodeId) -> bool {
        let member = self.members.get(member);
        member.is_some_and(|(_, phase)| *phase == Phase::Joining)
    }

    /// The members of which this view knew a start that is over in another one: gone, started again, or
    /// back to joining. What they held they hold no more.
    pub(super) fn lost(&self, after: &Self) -> Vec<(NodeId, BootId)> {
        let was = self.members.iter();
        let lost = was.filter(|(node, (boot, phase))| match after.members.get(*node) {
            None => true,
            Some((boot_after, phase_after)) => {
                let renewed = *phase != Phase::Joining && *phase_after == Phase::Joining;
                boot_after != boot || renewed
            }
        });
        lost.map(|(node, (boot, _))| (node.clone(), *boot))
            .collect()
    }

    /// By place in this view's placement: whether another one still knows that start of the member as there.
    fn still_there(&self, after: &Self) -> Vec<bool> {
        let members = self.placement.members().iter();
        let is_there = |node: &NodeId| {
            let (boot, _) = self.members.get(node)?;
            let (boot_after, phase_after) = after.members.get(node)?;
            Some(boot == boot_after && *phase_after != Phase::Joining)
        };
        members
            .map(|member| is_there(&member.node) == Some(true))
            .collect()
    }
}

/// What a joining node is going to own.
fn prospective_own(view: &MotionView) -> Option<SlotSet> {
    let prospective = view.prospective.as_ref()?;
    if view.phase != Phase::Joining {
        return None;
    }
    // Of the members to come it is the one that is no other.
    let is_other = |node: &NodeId| view.members.iter().any(|(other, ..)| other == node);
    let mut members = prospective.members().iter();
    let own = members.find(|member| !is_other(&member.node))?;
    let own = prospective.index_of(&own.node);
    Some(
        all_slots()
            .filter(|slot| prospective.owner(*slot) == own)
            .collect(),
    )
}

/// The member at a place.
fn name_at(placement: &Placement, at: usize) -> Option<NodeId> {
    Some(placement.members().get(at)?.node.clone())
}

fn all_slots() -> impl Iterator<Item = SlotId> {
    let last = u16::try_from(SLOT_COUNT.saturating_sub(1)).unwrap_or(u16::MAX);
    (0..=last).map(SlotId::new)
}
