//! Questions to peers, and what is done when one gives no verdicts.

use tollgate_cluster::{Failure, NewestOwner, NextStep, next_step, stand_in};
use tollgate_limit::{Mode, Nanos, SlotId};
use tollgate_wire::{identity::BootId, peer::Way};

use super::{
    super::{FORWARD_TIMEOUT, Node, Output, STANDBY_TIMEOUT, Timer},
    Asked, Group, Place, Purpose,
};
use crate::pure::frames::{Asks, CheckFrame, Frame, link_to};

impl Node {
    pub(super) fn ask_peer(&mut self, now: Nanos, peer: usize, group: Group, way: Way) {
        let id = group.check;
        let (Some((asks, mode)), Some(entry)) =
            (self.asks_of(id, &group.limits), self.entries.get(&id))
        else {
            return;
        };
        let wait = match way {
            Way::Owner | Way::Relayed { .. } => FORWARD_TIMEOUT,
            Way::Standby { .. } => STANDBY_TIMEOUT,
        };
        let until = entry.until.min(now.saturating_add(wait));
        if peer == self.me || !self.is_usable(peer) {
            return self.failed(now, peer, group, (Failure::BreakerOpen, 0));
        }
        let frame = CheckFrame {
            number: 0,
            asks,
            mode,
            budget: until.saturating_sub(now),
            way,
        };
        self.send_check(now, peer, frame, Purpose::Group(group));
    }

    /// Sends a question under a new number, and waits for its budget.
    pub(in crate::pure::node) fn send_check(
        &mut self,
        now: Nanos,
        peer: usize,
        frame: CheckFrame,
        purpose: Purpose,
    ) {
        let number = self.peers[peer].next_number;
        self.peers[peer].next_number = number.saturating_add(1);
        let frame = CheckFrame { number, ..frame };
        let until = now.saturating_add(frame.budget);
        let asked = Asked {
            purpose,
            frame: frame.clone(),
            sent: now,
            boot: self.peers[peer].boot.unwrap_or(BootId(0)),
            over: false,
            stalled: false,
        };
        self.asked.insert((peer, number), asked);
        self.out
            .push(Output::Timer(until, Timer::Timeout(peer, number)));
        self.send_to(peer, Frame::Check(frame));
    }

    pub(in crate::pure::node) fn timed_out(&mut self, now: Nanos, name: (usize, u64)) {
        let Some(asked) = self.asked.get_mut(&name) else {
            return;
        };
        if asked.over {
            return;
        }
        asked.over = true;
        let (sent, purpose) = (asked.sent, asked.purpose.clone());
        let peer = &mut self.peers[name.0];
        let due = sent.saturating_add(asked.frame.budget);
        if now.saturating_sub(due) > Nanos::from_millis(10) {
            peer.breaker.handle_late_timeout();
        } else {
            let _turn = peer.breaker.handle_timeout(sent, peer.last_heard);
        }
        self.ping(now, name.0);
        match purpose {
            Purpose::Group(group) => self.failed(now, name.0, group, (Failure::Timeout, name.1)),
            Purpose::Relay(relay) => self.relay_failed(now, relay, false),
        }
    }

    /// The connection to a peer broke.
    pub(in crate::pure::node) fn asked_lost(&mut self, now: Nanos, peer: usize) {
        let names: Vec<_> = self
            .asked
            .range((peer, 0)..=(peer, u64::MAX))
            .map(|(name, _)| *name)
            .collect();
        for name in names {
            let Some(asked) = self.asked.remove(&name) else {
                continue;
            };
            if asked.over {
                continue;
            }
            match asked.purpose.clone() {
                Purpose::Group(group) if !group.attempts.repeated => {
                    let left = self.time_left(now, group.check);
                    let step = next_step(
                        Failure::ConnectionLost,
                        group.attempts,
                        left,
                        NewestOwner::Same,
                    );
                    if step == NextStep::AskAgain {
                        let mut asked = asked;
                        let mut group = group;
                        group.attempts.repeated = true;
                        asked.purpose = Purpose::Group(group);
                        asked.stalled = true;
                        self.asked.insert(name, asked);
                    } else {
                        self.failed(now, peer, group, (Failure::ConnectionLost, name.1));
                    }
                }
                Purpose::Group(group) => {
                    self.failed(now, peer, group, (Failure::ConnectionLost, name.1));
                }
                Purpose::Relay(relay) => self.relay_failed(now, relay, false),
            }
        }
    }

    /// It is up again: what waits is sent under its number.
    pub(in crate::pure::node) fn ask_again(&mut self, now: Nanos, peer: usize) {
        let names = self.asked.range((peer, 0)..=(peer, u64::MAX));
        let stalled = names.filter(|(_, asked)| asked.stalled && !asked.over);
        let names: Vec<_> = stalled.map(|(name, _)| *name).collect();
        for name in names {
            let boot = self.peers[peer].boot.unwrap_or(BootId(0));
            let Some(asked) = self.asked.get_mut(&name) else {
                continue;
            };
            asked.stalled = false;
            asked.boot = boot;
            let mut frame = asked.frame.clone();
            let until = asked.sent.saturating_add(frame.budget);
            frame.budget = until.saturating_sub(now);
            self.send_to(peer, Frame::Check(frame));
        }
    }

    pub(super) fn time_left(&self, now: Nanos, check: u64) -> Nanos {
        let entry = self.entries.get(&check);
        entry.map_or(Nanos::ZERO, |entry| entry.until.saturating_sub(now))
    }

    /// A peer gave no verdicts.
    pub(super) fn failed(
        &mut self,
        now: Nanos,
        peer: usize,
        mut group: Group,
        why: (Failure, u64),
    ) {
        let (failure, number) = why;
        let Some(slot) = self.slot_of(&group) else {
            return;
        };
        let newest = match self.view.owner(slot) {
            Some(owner) if owner == peer => NewestOwner::Same,
            Some(_) => NewestOwner::Other,
            None => NewestOwner::None,
        };
        let left = self.time_left(now, group.check);
        match next_step(failure, group.attempts, left, newest) {
            NextStep::AskAgain => {
                group.attempts.repeated = true;
                self.ask_peer(now, peer, group, Way::Owner);
            }
            NextStep::AskNewOwner => {
                group.attempts.redirected = true;
                self.ask_where_it_is(now, group);
            }
            NextStep::PullMembers => {
                group.attempts.pulled = true;
                let name = (peer, number);
                let asked = Asked {
                    purpose: Purpose::Group(group),
                    frame: CheckFrame {
                        number,
                        asks: Asks::new(),
                        mode: Mode::Peek,
                        budget: left,
                        way: Way::Owner,
                    },
                    sent: now,
                    boot: BootId(0),
                    over: false,
                    stalled: false,
                };
                self.asked.insert(name, asked);
                let until = now.saturating_add(left);
                self.out
                    .push(Output::Timer(until, Timer::Timeout(peer, number)));
                self.out
                    .push(Output::Pull(peer, Timer::Pulled(peer, number)));
            }
            NextStep::AskStandby => {
                group.attempts.standby = true;
                group.astray = failure == Failure::NotOwner;
                if number > 0 && matches!(failure, Failure::Timeout | Failure::ConnectionLost) {
                    group.failed = Some((peer, number));
                }
                self.ask_standby(now, peer, slot, group);
            }
            NextStep::FallBack => {
                let (id, limits) = (group.check, group.limits);
                self.group_done(id);
                self.fall_back(now, id, &limits);
            }
        }
    }

    pub(super) fn slot_of(&self, group: &Group) -> Option<SlotId> {
        let entry = self.entries.get(&group.check)?;
        let limit = entry.check.limits.get(*group.limits.first()?)?;
        Some(limit.ask.key.slot())
    }

    /// The members were pulled: the newest owner is asked.
    pub(in crate::pure::node) fn pulled(&mut self, now: Nanos, name: (usize, u64)) {
        let Some(asked) = self.asked.remove(&name) else {
            return;
        };
        if let (Purpose::Group(group), false) = (asked.purpose, asked.over) {
            self.failed(now, name.0, group, (Failure::NotOwner, name.1));
        }
    }

    /// Where all of a group is decided; what has come apart meanwhile is decided by nobody.
    fn place_of_group(&self, group: &Group) -> Place {
        let Some((asks, _)) = self.asks_of(group.check, &group.limits) else {
            return Place::Nobody;
        };
        let mut places = asks.iter().map(|ask| self.place_of(ask.key.slot()));
        let first = places.next().unwrap_or(Place::Nobody);
        match places.all(|place| place == first) {
            true => first,
            false => Place::Nobody,
        }
    }

    /// This node may be the owner itself by now.
    pub(super) fn ask_where_it_is(&mut self, now: Nanos, group: Group) {
        match self.place_of_group(&group) {
            Place::Here => self.decide_group(now, &group, false),
            Place::Await | Place::Overdue => self.decide_group(now, &group, true),
            Place::At(peer) => self.ask_peer(now, peer, group, Way::Owner),
            Place::Nobody => {
                let (id, limits) = (group.check, group.limits);
                self.group_done(id);
                self.fall_back(now, id, &limits);
            }
        }
    }

    pub(super) fn decide_group(&mut self, now: Nanos, group: &Group, degraded: bool) {
        let id = group.check;
        self.group_done(id);
        if self.decide_here(now, id, &group.limits, degraded) {
            self.finish(now, id);
        } else {
            self.fall_back(now, id, &group.limits);
        }
    }

    pub(super) fn ask_standby(&mut self, now: Nanos, failed: usize, slot: SlotId, group: Group) {
        let (owner, standby) = (self.view.owner(slot), self.view.standby(slot));
        let (link, number) = match group.failed {
            Some((peer, number)) => (link_to(peer), number),
            None => (0, 0),
        };
        match stand_in(&failed, owner, standby) {
            Some(peer) if peer == self.me => match self.place_of_group(&group) {
                Place::Here => self.decide_group(now, &group, false),
                Place::Await | Place::Overdue => self.decide_group(now, &group, true),
                Place::At(_) | Place::Nobody => {
                    let id = group.check;
                    self.group_done(id);
                    self.decide_as_standby(now, id, &group.limits, group.astray);
                    self.finish(now, id);
                }
            },
            Some(peer) => self.ask_peer(now, peer, group, Way::Standby { link, number }),
            None => {
                let (id, limits) = (group.check, group.limits);
                self.group_done(id);
                self.fall_back(now, id, &limits);
            }
        }
    }

    pub(super) fn group_done(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.groups = entry.groups.saturating_sub(1);
        }
    }
}
