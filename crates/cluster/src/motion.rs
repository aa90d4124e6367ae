//! Slots in motion: in which slots this node decides, and how they come and go.
//!
//! A view says who ought to decide in a slot; who does is another matter. A holder decides until it has handed
//! over: whoever comes to own a slot orders it from who owned it before (`Take`), that one stops, says its last
//! word (`Final`) and relays from then on, and only what is acknowledged is ever forgotten. A holder that is
//! not the owner offers (`Offer`), and the owner takes. Who owned a slot and is gone is not waited for: the new
//! owner opens with its copy. Orders are repeated while they are unanswered, and each is idempotent.
//!
//! INV-ONE-HOLDER: of a slot that is handed over the giver has stopped before the taker starts; two hold a slot
//! only if one of them took the other for gone, or as long as their views differ. INV-ACK-BEFORE-FORGET: what a
//! node held is forgotten by it only when another has acknowledged it. Both are tested over several nodes.
//!
//! A pure state machine: knows nothing of stores, streams and clocks. After each event call
//! [`poll_action`](Motion::poll_action) until `None` and carry out each action before the next, then look at
//! [`poll_timeout`](Motion::poll_timeout).

mod by_member;
mod follow;
mod forgetting;
mod grouped;
mod moves;
mod passed;
mod peers;
mod queue;
mod states;
mod view;
mod wanted;

use std::{collections::BTreeMap, sync::Arc};

use tollgate_limit::{Nanos, NodeId, SlotSet};
use tollgate_wire::identity::{BootId, Phase};

use self::{
    by_member::ByMember, forgetting::Forgetting, passed::Passed, queue::Queue, states::Shown,
    view::Reading, wanted::Wanted,
};
pub use self::{
    forgetting::FORGET_AFTER,
    states::{Hold, SlotStates},
};
use crate::placement::{MAX_MEMBERS, MemberIndex, Placement};

/// How long a check waits for the counts of a slot that has just come to this node.
pub const HOLD: Nanos = Nanos::from_millis(5);

/// How often an order is repeated that was not answered.
pub const RETRY: Nanos = Nanos::from_millis(100);

/// How long who does not hold a slot lets its new owner wait, if another one seems to hold it.
const PATIENCE: Nanos = Nanos::from_millis(1_000);

/// What was handed over and not acknowledged for so long is offered and given again.
const ACK_WAIT: Nanos = Nanos::from_millis(1_000);

/// How long checks of a slot are relayed that was handed over and is another's by the view too.
const RELAY: Nanos = Nanos::from_millis(1_000);

/// Who handed a slot over takes it back if its own view still says after this that it is the owner.
const RECLAIM: Nanos = Nanos::from_millis(2_000);

/// The most members that have taken slots, or wait for some; what others order is not heard.
const MAX_FOLLOWERS: usize = 2 * MAX_MEMBERS;

/// The cluster as this node sees it.
#[derive(Clone, Debug)]
pub struct MotionView {
    /// Who owns what: the active members.
    pub placement: Arc<Placement>,
    /// This node in it; `None` while it is not active.
    pub own: Option<MemberIndex>,
    /// This node's phase.
    pub phase: Phase,
    /// While joining: the placement with this node in it.
    pub prospective: Option<Arc<Placement>>,
    /// The other members, whatever their phase, in the order of their names.
    pub members: Vec<(NodeId, BootId, Phase)>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MotionAction {
    /// Let the store decide in these slots.
    Open(SlotSet),
    /// Do not let it any more; what it counted is kept.
    Close(SlotSet),
    /// Forget the counters of these slots.
    Forget(SlotSet),
    /// Order from a source to be kept up to date on just these slots.
    Subscribe(NodeId, SlotSet),
    /// Order a source to hand these slots over.
    Take(NodeId, SlotSet),
    /// Tell a source that its last word was taken in.
    Acked(NodeId, SlotSet),
    /// Offer a member slots that it owns and this node has counts of that it must have.
    Offer(NodeId, SlotSet),
    /// Hand slots over to a follower: [`Source::give`](crate::Source::give), then `SlotStates` says so.
    Give(NodeId, SlotSet),
}

impl MotionAction {
    /// The slots that it is about.
    #[must_use]
    pub const fn slots(&self) -> &SlotSet {
        match self {
            Self::Open(slots) | Self::Close(slots) | Self::Forget(slots) => slots,
            Self::Subscribe(_, slots)
            | Self::Take(_, slots)
            | Self::Acked(_, slots)
            | Self::Offer(_, slots)
            | Self::Give(_, slots) => slots,
        }
    }
}

/// Where each slot is in its way to or from this node.
#[derive(Debug, Default)]
pub struct Motion {
    states: Arc<SlotStates>,
    queue: Queue,
    view: Option<Reading>,
    /// The sources that this node has a stream to.
    connected: BTreeMap<NodeId, BootId>,
    /// The followers that have a stream to this node.
    followers: BTreeMap<NodeId, BootId>,
    /// Where this node decides.
    held: SlotSet,
    /// Where it does not, and has counts that nobody has acknowledged.
    kept: SlotSet,
    /// Own slots that are not held, by who must hand them over.
    awaiting: ByMember,
    /// What was ordered on the streams that are up and is not held: a last word on it makes it so.
    asked: ByMember,
    /// What was handed over.
    passed: BTreeMap<NodeId, Passed>,
    /// What this node waited for in vain until its view changed, and when: another one holds it.
    elsewhere: (Nanos, SlotSet),
    /// What followers have ordered.
    wanted: BTreeMap<NodeId, Wanted>,
    /// What was offered at least once since it is another's.
    offered: SlotSet,
    /// What the sources were told that this node wants copied.
    subscribed: ByMember,
    /// What is copied of which start of an owner.
    copied: BTreeMap<NodeId, (BootId, SlotSet)>,
    /// Of what something is still to be reported.
    owed: SlotSet,
    forgetting: Forgetting,
    /// When to repeat what was not answered.
    repeat_at: Option<Nanos>,
}

impl Motion {
    /// A node that holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where readers see how each slot is held.
    #[must_use]
    pub fn states(&self) -> Arc<SlotStates> {
        Arc::clone(&self.states)
    }

    /// The view has changed.
    pub fn handle_view(&mut self, now: Nanos, view: &MotionView) {
        let before = self.view.replace(Reading::new(view));
        self.follow_view(now, before.as_ref());
        self.settle(now);
    }

    /// The replica stream to a member is up: orders can be sent.
    pub fn handle_connected(&mut self, now: Nanos, source: &NodeId, boot: BootId) {
        if self.copied.get(source).is_some_and(|(of, _)| *of != boot) {
            self.drop_copy(source);
        }
        self.asked.remove(source);
        self.subscribed.remove(source);
        self.connected.insert(source.clone(), boot);
        let awaited = self.awaiting.of(source);
        self.ask(source, &awaited);
        let astray = self.astray();
        self.offer(&astray, Some(source));
        self.settle(now);
    }

    /// It is gone; what was ordered is forgotten by the source.
    pub fn handle_disconnected(&mut self, now: Nanos, source: &NodeId) {
        self.connected.remove(source);
        self.asked.remove(source);
        self.subscribed.remove(source);
        self.settle(now);
    }

    /// A follower's replica stream to this node is up, for the first time or again: what it ordered and was
    /// told on another is forgotten.
    pub fn handle_followed(&mut self, now: Nanos, follower: &NodeId, boot: BootId) {
        if self.followers.len() >= MAX_FOLLOWERS && !self.followers.contains_key(follower) {
            return;
        }
        self.followers.insert(follower.clone(), boot);
        self.wanted.remove(follower);
        match self.passed.get_mut(follower) {
            Some(passed) if passed.boot == boot => passed.in_flight = SlotSet::new(),
            Some(_) => self.lose_taker(follower),
            None => {}
        }
        self.settle(now);
    }

    /// A source has copied slots.
    pub fn handle_copied(&mut self, now: Nanos, source: &NodeId, slots: &SlotSet) {
        let Some(boot) = self.connected.get(source).copied() else {
            return;
        };
        let slots = slots.common(&self.subscribed.of(source));
        self.states.show_copy(&slots, source, boot);
        let (_, copied) = self
            .copied
            .entry(source.clone())
            .or_insert_with(|| (boot, SlotSet::new()));
        copied.extend(&slots);
        self.settle(now);
    }

    /// A source has said its last word on slots.
    pub fn handle_final(&mut self, now: Nanos, source: &NodeId, slots: &SlotSet) {
        let opened = slots.common(&self.asked.of(source)).without(&self.held);
        self.asked.take_of(source, slots);
        self.open(&opened);
        self.queue
            .act(MotionAction::Acked(source.clone(), slots.clone()));
        self.settle(now);
    }

    /// A follower orders slots to be handed over.
    pub fn handle_take(&mut self, now: Nanos, follower: &NodeId, slots: &SlotSet) {
        let boot = self.boot_of_follower(follower);
        let passed = self.passed.get(follower);
        if passed.is_some_and(|passed| passed.boot != boot) {
            self.lose_taker(follower);
        }
        let in_flight = self.passed.get(follower).map(|passed| &passed.in_flight);
        let fresh = in_flight.map_or_else(|| slots.clone(), |in_flight| slots.without(in_flight));
        let has_room = self.wanted.len() < MAX_FOLLOWERS || self.wanted.contains_key(follower);
        if !fresh.is_empty() && has_room {
            let wanted = self.wanted.entry(follower.clone());
            let wanted = wanted.or_insert_with(|| Wanted::new(now));
            wanted.order(now, &fresh);
        }
        self.settle(now);
    }

    /// A follower has taken in the last word on slots.
    pub fn handle_acked(&mut self, now: Nanos, follower: &NodeId, slots: &SlotSet) {
        let Some(passed) = self.passed.get_mut(follower) else {
            return;
        };
        let acked = slots.common(&passed.slots);
        passed.in_flight.subtract(&acked);
        passed.since = now;
        self.kept.subtract(&acked);
        self.settle(now);
    }

    /// A member decides in slots that are this node's, or has counts of them that it must have.
    pub fn handle_offer(&mut self, now: Nanos, member: &NodeId, slots: &SlotSet) {
        let Some(view) = &self.view else { return };
        let own = slots.common(&view.own);
        let mut taken = own.common(&self.held);
        // Who joins decides nowhere: what it kept is taken once this node holds the slot. What went to
        // another lately is there, whatever was offered before.
        if !view.is_joining(member) {
            let mut new = own.without(&self.held);
            new.subtract(&self.lately_passed(now, member));
            taken.extend(&new);
            new.subtract(&self.awaiting.all());
            self.awaiting.add(member, &new);
        }
        self.ask(member, &taken);
        self.settle(now);
    }

    /// Just of these slots something is to be reported still: they are not forgotten.
    pub fn handle_owed(&mut self, now: Nanos, slots: &SlotSet) {
        self.owed = slots.clone();
        self.settle(now);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            self.repeat(now);
        }
        let due = self.forgetting.handle_timeout(now);
        let due = due.without(&self.needed());
        for passed in self.passed.values_mut() {
            passed.take(&due);
        }
        self.queue.act(MotionAction::Forget(due));
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let at = [self.repeat_at, self.forgetting.poll_timeout()];
        at.into_iter().flatten().min()
    }

    /// What is to be done next, in this order.
    pub fn poll_action(&mut self) -> Option<MotionAction> {
        self.queue.poll(&self.states)
    }

    /// While joining: whether the counts of all slots to come have been copied.
    #[must_use]
    pub fn is_warm(&self) -> bool {
        let Some(view) = &self.view else { return false };
        if view.phase != Phase::Joining {
            return true;
        }
        let is_copied = |owner: &NodeId, slots: &SlotSet| {
            let copied = self.copied.get(owner);
            view.boot(owner).is_none_or(|boot| {
                copied.is_some_and(|(of, copied)| *of == boot && slots.without(copied).is_empty())
            })
        };
        view.knows_what_comes
            && view
                .copies
                .iter()
                .all(|(owner, slots)| is_copied(owner, slots))
    }

    /// While leaving: whether all slots have been handed over.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let has_takers = self.view.as_ref().is_some_and(Reading::has_owners);
        !has_takers || (self.held.is_empty() && self.kept.is_empty())
    }

    /// Slots on their way to this node, and away from it.
    #[must_use]
    pub fn moving(&self) -> (usize, usize) {
        (self.awaiting.all().len(), self.astray().len())
    }
}

#[cfg(test)]
mod tests;
