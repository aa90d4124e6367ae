//! What a new view, an event and the time that passes make necessary.
//!
//! Decides what is to move; how is the moves' matter.

use tollgate_limit::{Nanos, NodeId, SlotSet};
use tollgate_wire::identity::{BootId, Phase};

use super::{
    ACK_WAIT, Motion, RECLAIM, RELAY, RETRY, by_member::ByMember, states::Shown, view::Reading,
};
use crate::sabotage::{self, Sabotage};

impl Motion {
    /// Does what a new view makes necessary.
    pub(super) fn follow_view(&mut self, now: Nanos, before: Option<&Reading>) {
        let Some(view) = &self.view else { return };
        let own = view.own.clone();
        let is_joining = view.phase == Phase::Joining;
        let lost = before.map_or_else(Vec::new, |before| before.lost(view));
        if is_joining && !sabotage::is(Sabotage::JoiningNodeOwns) {
            self.close_all();
        }
        for (node, boot) in lost {
            self.lose(&node, boot);
        }
        let not_own = self.awaiting.all().without(&own);
        self.awaiting.keep(&own);
        self.show_unless_passed(&not_own, Shown::No);
        if !not_own.is_empty() {
            self.elsewhere.0 = now;
            self.elsewhere.1.extend(&not_own);
        }
        // What was handed over although the view said so already is not ordered back at once.
        let mut passed = self.all_passed();
        passed.intersect(&before.map_or_else(SlotSet::new, |before| before.own.clone()));
        let mut new = own.without(&self.held);
        new.subtract(&self.awaiting.all());
        new.subtract(&passed);
        let sources = match &self.view {
            Some(view) if !is_joining => view.sources(before, &new),
            Some(_) | None => ByMember::default(),
        };
        new.subtract(&sources.all());
        self.open(&new);
        for (source, slots) in sources.iter() {
            self.awaiting.add(source, slots);
            self.show_unless_passed(slots, Shown::Awaiting);
            self.ask(source, slots);
        }
    }

    /// What every event ends with: answers followers, offers what has become another's, keeps copies up to
    /// date and sees what is needed.
    pub(super) fn settle(&mut self, now: Nanos) {
        self.serve(now);
        let new = self.astray().without(&self.offered);
        self.offer(&new, None);
        self.subscribe();
        let needed = self.needed();
        self.forgetting.handle_needed(now, &needed);
        self.repeat_at = if self.is_unfinished() {
            Some(self.repeat_at.unwrap_or_else(|| now.saturating_add(RETRY)))
        } else {
            None
        };
    }

    /// Repeats what was not answered.
    pub(super) fn repeat(&mut self, now: Nanos) {
        self.lose_unknown(now);
        self.age_passed(now);
        let awaited = self.awaiting.clone();
        for (source, slots) in awaited.iter() {
            self.ask(source, slots);
        }
        let astray = self.astray();
        self.offer(&astray, None);
    }

    /// The slots with counts that their owner must have and, as far as is known, has not: held or not.
    pub(super) fn astray(&self) -> SlotSet {
        let mut astray = self.kept.clone();
        for passed in self.passed.values() {
            astray.subtract(&passed.in_flight);
        }
        astray.extend(&self.held);
        if let Some(view) = &self.view {
            astray.subtract(&view.own);
        }
        astray
    }

    /// The slots that this node has a part in, or counts of that must not be lost.
    pub(super) fn needed(&self) -> SlotSet {
        let mut needed = self.view.as_ref().map_or_else(SlotSet::new, Reading::near);
        for more in [&self.held, &self.kept, &self.owed] {
            needed.extend(more);
        }
        needed.extend(&self.awaiting.all());
        needed
    }

    pub(super) fn boot_of_follower(&self, follower: &NodeId) -> BootId {
        let by_view = || self.view.as_ref().and_then(|view| view.boot(follower));
        let boot = self.followers.get(follower).copied().or_else(by_view);
        boot.unwrap_or(BootId(0))
    }

    /// Members that no view names and no stream leads to are not waited for.
    fn lose_unknown(&mut self, now: Nanos) {
        let is_unknown = |node: &&NodeId| {
            let by_view = self.view.as_ref().and_then(|view| view.boot(node));
            by_view.is_none() && !self.connected.contains_key(*node)
        };
        let awaited = self.awaiting.iter().map(|(source, _)| source);
        let awaited: Vec<_> = awaited.filter(is_unknown).cloned().collect();
        let taken = self.passed.iter().filter(|(_, p)| p.had(now, RECLAIM));
        let taken = taken.map(|(node, _)| node);
        let taken: Vec<_> = taken.filter(is_unknown).cloned().collect();
        for node in awaited {
            self.lose_source(&node);
        }
        for node in taken {
            self.lose_taker(&node);
        }
    }

    /// Looks at what was handed over: whether it must be told again, is relayed no more, or should come back.
    fn age_passed(&mut self, now: Nanos) {
        let own = self.view.as_ref().map(|view| view.own.clone());
        let own = own.unwrap_or_default();
        let awaited = self.awaiting.all();
        for (node, passed) in &mut self.passed {
            if passed.had(now, ACK_WAIT) {
                passed.in_flight = SlotSet::new();
            }
            if passed.had(now, RELAY) {
                let mut over = passed.relayed.without(&own);
                over.subtract(&self.kept);
                passed.relayed.subtract(&over);
                self.queue.show(&over, Shown::No);
            }
            if passed.had(now, RECLAIM) {
                let back = passed.slots.common(&own).without(&awaited);
                self.awaiting.add(node, &back);
            }
        }
    }

    /// Whether something is to be repeated, or looked at again.
    fn is_unfinished(&self) -> bool {
        let own = self.view.as_ref().map(|view| &view.own);
        let is_open = |passed: &super::Passed| {
            let is_back_soon = own.is_some_and(|own| !passed.slots.common(own).is_empty());
            let is_relayed = own.is_none_or(|own| !passed.relayed.without(own).is_empty());
            is_back_soon || is_relayed || !passed.in_flight.is_empty()
        };
        !self.awaiting.is_empty()
            || !self.wanted.is_empty()
            || self.passed.values().any(is_open)
            || !self.astray().is_empty()
    }

    /// Slots that were handed over stay shown as given until they are back.
    fn show_unless_passed(&mut self, slots: &SlotSet, shown: Shown) {
        let mut relayed = SlotSet::new();
        for passed in self.passed.values() {
            relayed.extend(&passed.relayed);
        }
        self.queue.show(&slots.without(&relayed), shown);
    }

    fn all_passed(&self) -> SlotSet {
        let mut all = SlotSet::new();
        for passed in self.passed.values() {
            all.extend(&passed.slots);
        }
        all
    }
}
