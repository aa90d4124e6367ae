//! The moves: slots are opened, closed, ordered, offered and handed over here, and only here.
//!
//! Order is what matters: a slot is closed before anybody else may open it, and shown as held only once it is
//! open.

use tollgate_limit::{Nanos, NodeId, SlotSet};
use tollgate_wire::identity::BootId;

use super::{Motion, MotionAction, PATIENCE, Passed, Shown};
use crate::sabotage::{self, Sabotage};

impl Motion {
    /// Lets this node decide.
    pub(super) fn open(&mut self, slots: &SlotSet) {
        if slots.is_empty() {
            return;
        }
        self.queue.act(MotionAction::Open(slots.clone()));
        self.queue.show(slots, Shown::Yes);
        self.held.extend(slots);
        self.kept.subtract(slots);
        self.offered.subtract(slots);
        self.awaiting.take(slots);
        self.asked.take(slots);
        self.elsewhere.1.subtract(slots);
        self.take_from_passed(slots);
    }

    /// Decides nowhere any more, and keeps what it has counted.
    pub(super) fn close_all(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.queue.show(&held, Shown::No);
        self.queue.act(MotionAction::Close(held.clone()));
        self.kept.extend(&held);
    }

    /// Hands slots over, held or not.
    fn give(&mut self, now: Nanos, follower: &NodeId, slots: &SlotSet) {
        if slots.is_empty() {
            return;
        }
        let boot = self.boot_of_follower(follower);
        self.queue
            .act(MotionAction::Give(follower.clone(), slots.clone()));
        self.queue.show(slots, Shown::Given(follower.clone(), boot));
        self.held.subtract(slots);
        self.kept.extend(slots);
        self.offered.subtract(slots);
        // Whoever still hands them over to this node: they are another's now.
        self.asked.take(slots);
        self.elsewhere.1.subtract(slots);
        self.take_from_passed(slots);
        let passed = self.passed.entry(follower.clone());
        let passed = passed.or_insert_with(|| Passed::new(now, boot));
        passed.give(now, slots);
        if let Some(wanted) = self.wanted.get_mut(follower) {
            wanted.take(slots);
        }
        if sabotage::is(Sabotage::DeleteBeforeAck) {
            self.kept.subtract(slots);
            self.queue.act(MotionAction::Forget(slots.clone()));
        }
    }

    /// Hands followers what they ordered: what this node holds at once. Of the rest it says so, to the owner,
    /// when it does not wait for it itself; if it seems that another one holds it, after a while.
    pub(super) fn serve(&mut self, now: Nanos) {
        let followers: Vec<NodeId> = self.wanted.keys().cloned().collect();
        for follower in followers {
            let Some(wanted) = self.wanted.get_mut(&follower) else {
                continue;
            };
            wanted.turn(now);
            let slots = wanted.slots().clone();
            if slots.is_empty() {
                self.wanted.remove(&follower);
                continue;
            }
            let has_waited = wanted.has_waited(now, PATIENCE);
            let mut given = slots.without(&self.held);
            given.subtract(&self.awaiting.all());
            if !has_waited {
                given.subtract(&self.asked.all());
                given.subtract(&self.held_elsewhere(now, &follower));
            }
            if let Some(view) = &self.view {
                given = view.owned_by(&follower, &given);
            }
            given.extend(&slots.common(&self.held));
            self.give(now, &follower, &given);
        }
    }

    /// Orders slots from a source, if it can be told.
    pub(super) fn ask(&mut self, source: &NodeId, slots: &SlotSet) {
        if self.connected.contains_key(source) {
            self.asked.add(source, &slots.without(&self.held));
            self.queue
                .act(MotionAction::Take(source.clone(), slots.clone()));
        }
    }

    /// Offers slots to their owners, or to one of them; who cannot be told is told when it can.
    pub(super) fn offer(&mut self, slots: &SlotSet, only: Option<&NodeId>) {
        let Some(view) = self.view.as_ref().filter(|_| !slots.is_empty()) else {
            return;
        };
        for (owner, slots) in view.by_owner(slots).iter() {
            let is_meant = only.is_none_or(|only| only == owner);
            if is_meant && self.connected.contains_key(owner) {
                self.offered.extend(slots);
                self.queue
                    .act(MotionAction::Offer(owner.clone(), slots.clone()));
            }
        }
    }

    /// Keeps the sources told what to copy: what the view says, and what they are to hand over until they
    /// have.
    pub(super) fn subscribe(&mut self) {
        let Some(view) = &self.view else { return };
        let mut desired = view.copies.clone();
        for (source, slots) in self.awaiting.iter() {
            desired.add(source, slots);
        }
        let copied: Vec<NodeId> = self.copied.keys().cloned().collect();
        for source in copied {
            let desired = desired.of(&source);
            if let Some((_, copied)) = self.copied.get_mut(&source) {
                let no_more = copied.without(&desired);
                copied.subtract(&no_more);
                self.states.show_no_copy(&no_more);
            }
        }
        let known = self.subscribed.iter().chain(desired.iter());
        let sources: std::collections::BTreeSet<_> = known.map(|(source, _)| source).collect();
        let mut news = Vec::new();
        for source in sources {
            let desired = desired.of(source);
            if self.connected.contains_key(source) && desired != self.subscribed.of(source) {
                news.push((source.clone(), desired));
            }
        }
        for (source, desired) in news {
            self.subscribed.remove(&source);
            self.subscribed.add(&source, &desired);
            self.queue.act(MotionAction::Subscribe(source, desired));
        }
    }

    /// A start of a member is gone: what it was to hand over is this node's, with the copy that it has; what
    /// it was given is taken back, or offered to who owns it now.
    pub(super) fn lose(&mut self, node: &NodeId, boot: BootId) {
        self.lose_source(node);
        if self.passed.get(node).is_some_and(|p| p.boot == boot) {
            self.lose_taker(node);
        }
        if self.copied.get(node).is_some_and(|(of, _)| *of == boot) {
            self.drop_copy(node);
        }
        self.states.drop_peer(node, boot);
    }

    pub(super) fn lose_source(&mut self, node: &NodeId) {
        self.asked.remove(node);
        let orphans = self.awaiting.remove(node);
        self.open(&orphans);
    }

    pub(super) fn lose_taker(&mut self, node: &NodeId) {
        let Some(passed) = self.passed.remove(node) else {
            return;
        };
        let own = self.view.as_ref().map(|view| &view.own);
        let own = own.map_or_else(SlotSet::new, |own| passed.slots.common(own));
        let mut rest = passed.slots;
        rest.subtract(&own);
        self.kept.extend(&rest);
        self.queue.show(&passed.relayed.common(&rest), Shown::No);
        self.open(&own);
        self.states.drop_peer(node, passed.boot);
    }

    pub(super) fn drop_copy(&mut self, node: &NodeId) {
        if let Some((_, slots)) = self.copied.remove(node) {
            self.states.show_no_copy(&slots);
        }
    }

    fn take_from_passed(&mut self, slots: &SlotSet) {
        self.passed.retain(|_, passed| {
            passed.take(slots);
            !passed.slots.is_empty()
        });
    }

    /// What others than this member were given lately.
    pub(super) fn lately_passed(&self, now: Nanos, member: &NodeId) -> SlotSet {
        let mut slots = SlotSet::new();
        for (node, passed) in &self.passed {
            if node != member && !passed.had(now, PATIENCE) {
                slots.extend(&passed.slots);
            }
        }
        slots
    }

    /// What others than this follower seem to hold: what they were given, and what came to them while this
    /// node waited.
    fn held_elsewhere(&self, now: Nanos, follower: &NodeId) -> SlotSet {
        let mut slots = self.lately_passed(now, follower);
        let (since, elsewhere) = &self.elsewhere;
        if now < since.saturating_add(PATIENCE) {
            slots.extend(elsewhere);
        }
        slots
    }
}
