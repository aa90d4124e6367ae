//! Slots and counts on their way: what the motion wants done, what followers are told, what owners are owed.

use std::collections::BTreeMap;

use tollgate_cluster::{MotionAction, Source, take_in};
use tollgate_limit::{KeyHash, Nanos, SEND_AFTER, Series, SlotId, SlotSet};
use tollgate_wire::{
    identity::BootId,
    replica::{Delivery, Order},
};

use super::{Node, Output, Timer};
use crate::pure::{
    frames::Frame,
    placements::{name_of, node_of},
};

/// How often a node looks for what is due.
const PUMP: Nanos = Nanos::from_millis(5);
/// How often it reports what it counted in the place of others, and repeats what was not answered.
const REPORT: Nanos = Nanos::from_millis(100);
const REPORTED_AFTER: Nanos = Nanos::from_millis(1_000);
/// Counters for each look.
const TAKE_AT_ONCE: usize = 1_024;

/// What is still to be told.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// When the pump is to look next, if it is.
    pump: Option<Nanos>,
    /// When charges become due; those of one look lie together.
    due: std::collections::VecDeque<Nanos>,
    /// Slots in which this node counted for another.
    owed: SlotSet,
    /// Slots in which it ever did, and has not forgotten it.
    pub(super) stood_in: SlotSet,
    /// Slots in which its local shares have admitted.
    shared: SlotSet,
    /// What was taken out of the local shares and is told to nobody yet, and its writer's time.
    taken: Vec<(Nanos, Series)>,
    /// By peer and number: the slots, and what came from the shares.
    reports: BTreeMap<(usize, u64), Report>,
    timer: bool,
    motion_at: Option<Nanos>,
}

#[derive(Debug)]
struct Report {
    sent: Nanos,
    slots: SlotSet,
    shares: Vec<Series>,
}

impl Copies {
    /// What was reported is to be told again.
    fn take_back(&mut self, report: Report) {
        self.owed.extend(&report.slots);
        let shares = report.shares.into_iter();
        self.taken
            .extend(shares.map(|series| (report.sent, series)));
    }

    /// Whether something is still to be told.
    pub(super) fn owes(&self) -> bool {
        !self.owed.is_empty()
            || !self.shared.is_empty()
            || !self.taken.is_empty()
            || !self.reports.is_empty()
    }
}

impl Node {
    /// Carries out what the motion wants.
    pub(super) fn move_on(&mut self, now: Nanos) {
        while let Some(action) = self.motion.poll_action() {
            match action {
                MotionAction::Open(slots) => self.store.open(&slots),
                MotionAction::Close(slots) => self.store.close(&slots),
                MotionAction::Forget(slots) => {
                    self.store.forget(&slots);
                    self.copies.stood_in.subtract(&slots);
                }
                MotionAction::Subscribe(node, slots) => {
                    self.order(&node, Order::Subscribe(slots));
                }
                MotionAction::Take(node, slots) => self.order(&node, Order::Take(slots)),
                MotionAction::Acked(node, slots) => self.order(&node, Order::Acked(slots)),
                MotionAction::Offer(node, slots) => self.order(&node, Order::Offer(slots)),
                MotionAction::Give(node, slots) => {
                    let Some(follower) = node_of(&node) else {
                        continue;
                    };
                    if let Some((_, source)) = &mut self.peers[follower].follower {
                        source.give(now, &self.store, &slots);
                    }
                }
            }
        }
        if let Some(at) = self.motion.poll_timeout()
            && self
                .copies
                .motion_at
                .is_none_or(|known| at < known || known <= now)
        {
            self.copies.motion_at = Some(at);
            self.out.push(Output::Timer(at, Timer::Motion));
        }
        self.retry_held(now);
        self.retry_parked(now);
        self.grow(now);
    }

    fn order(&mut self, node: &tollgate_limit::NodeId, order: Order) {
        if let Some(peer) = node_of(node)
            && self.peers[peer].boot.is_some()
        {
            self.send_to(peer, Frame::Order(order));
        }
    }

    /// A follower's stream is up.
    pub(super) fn followed(&mut self, now: Nanos, follower: usize, boot: BootId) {
        self.peers[follower].follower = Some((boot, Source::new()));
        self.motion.handle_followed(now, &name_of(follower), boot);
    }

    pub(super) fn ordered_by(&mut self, now: Nanos, follower: usize, order: Order) {
        let name = name_of(follower);
        match order {
            Order::Subscribe(slots) => {
                if let Some((_, source)) = &mut self.peers[follower].follower {
                    source.handle_subscribe(&slots);
                }
            }
            Order::Take(slots) => self.motion.handle_take(now, &name, &slots),
            Order::Acked(slots) => self.motion.handle_acked(now, &name, &slots),
            Order::Offer(slots) => self.motion.handle_offer(now, &name, &slots),
            Order::Report { number, series } => self.reported(now, follower, number, &series),
        }
        self.move_on(now);
    }

    pub(super) fn delivered(&mut self, now: Nanos, source: usize, delivery: Delivery) {
        let name = name_of(source);
        match delivery {
            Delivery::Batch(series) => {
                take_in(&self.store, now, &series);
                self.wrote(now);
            }
            Delivery::Copied(slots) => self.motion.handle_copied(now, &name, &slots),
            Delivery::Final(slots) => self.motion.handle_final(now, &name, &slots),
            Delivery::Reported(number) => {
                self.copies.reports.remove(&(source, number));
                self.tell_owed(now);
            }
        }
        self.move_on(now);
    }

    /// Sends followers what there is for them.
    pub(super) fn deliver(&mut self, now: Nanos) {
        for follower in 0..self.peers.len() {
            let Some((boot, mut source)) = self.peers[follower].follower.take() else {
                continue;
            };
            while let Some(delivery) = source.poll_delivery(now, &self.store) {
                self.send_back(follower, Frame::Delivery(delivery));
            }
            self.peers[follower].follower = Some((boot, source));
        }
    }

    /// The store was written to.
    pub(super) fn wrote(&mut self, now: Nanos) {
        let due = now.saturating_add(SEND_AFTER);
        let last = self.copies.due.back().copied();
        if last.is_none_or(|last| last.saturating_add(PUMP) <= due) {
            self.copies.due.push_back(due.saturating_add(PUMP));
        }
        if self.store.has_urgent() {
            self.pump_at(now.saturating_add(PUMP));
        } else if let Some(first) = self.copies.due.front().copied() {
            self.pump_at(first);
        }
    }

    fn pump_at(&mut self, at: Nanos) {
        if self.copies.pump.is_none_or(|known| at < known) {
            self.copies.pump = Some(at);
            self.out.push(Output::Timer(at, Timer::Pump));
        }
    }

    pub(super) fn pump(&mut self, now: Nanos) {
        if self.copies.pump.is_none_or(|at| at > now) {
            return;
        }
        self.copies.pump = None;
        while self.copies.due.front().is_some_and(|due| *due <= now) {
            self.copies.due.pop_front();
        }
        let mut series = Vec::new();
        while self.store.take_due(now, TAKE_AT_ONCE, &mut series) {}
        for peer in &mut self.peers {
            if let Some((_, source)) = &mut peer.follower {
                source.handle_changed(now, &series);
            }
        }
        if let Some(next) = self.copies.due.front().copied() {
            self.pump_at(next);
        }
    }

    /// This node counted for a key that is another's.
    pub(super) fn owe(&mut self, now: Nanos, key: KeyHash) {
        self.copies.owed.insert(key.slot());
        self.copies.stood_in.insert(key.slot());
        self.tell_owed(now);
        self.report_soon(now);
    }

    /// Its local shares did.
    pub(super) fn owe_share(&mut self, now: Nanos, key: KeyHash) {
        self.copies.shared.insert(key.slot());
        self.report_soon(now);
    }

    fn tell_owed(&mut self, now: Nanos) {
        let mut owed = self.copies.owed.clone();
        for report in self.copies.reports.values() {
            owed.extend(&report.slots);
        }
        self.motion.handle_owed(now, &owed);
        self.move_on(now);
    }

    fn report_soon(&mut self, now: Nanos) {
        if !self.copies.timer {
            self.copies.timer = true;
            self.out
                .push(Output::Timer(now.saturating_add(REPORT), Timer::Reports));
        }
    }

    /// Reports to owners what was counted in their place.
    pub(super) fn report(&mut self, now: Nanos) {
        self.copies.timer = false;
        let overdue = |report: &Report| now >= report.sent.saturating_add(REPORTED_AFTER);
        let reports = std::mem::take(&mut self.copies.reports);
        for (name, report) in reports {
            if overdue(&report) {
                self.copies.take_back(report);
            } else {
                self.copies.reports.insert(name, report);
            }
        }
        for owner in 0..self.peers.len() {
            self.report_to(now, owner);
        }
        self.tell_owed(now);
        if self.copies.owes() {
            self.report_soon(now);
        }
        self.grow(now);
    }

    fn report_to(&mut self, now: Nanos, owner: usize) {
        let is_here = owner == self.me;
        if !is_here && !self.is_usable(owner) {
            return;
        }
        let for_owner = |slot: &SlotId| {
            let holds = self.states.holds(*slot);
            match is_here {
                true => holds,
                false => !holds && self.view.owner(*slot) == Some(owner),
            }
        };
        let owed: SlotSet = self.copies.owed.iter().filter(for_owner).collect();
        let shared: SlotSet = self.copies.shared.iter().filter(for_owner).collect();
        let taken = std::mem::take(&mut self.copies.taken);
        let (ready, rest): (Vec<_>, Vec<_>) = taken
            .into_iter()
            .partition(|(_at, series)| for_owner(&series.key.slot()));
        // Its writer's clock has gone on while it waited.
        let mut shares: Vec<_> = ready
            .into_iter()
            .map(|(at, series)| Series {
                clock: series.clock.wrapping_add(now.saturating_sub(at).as_nanos()),
                ..series
            })
            .collect();
        self.copies.taken = rest;
        self.copies.owed.subtract(&owed);
        self.copies.shared.subtract(&shared);
        if !shared.is_empty() {
            self.shares.withdraw(now, &shared, &mut shares);
        }
        let mut series = shares.clone();
        if is_here {
            // What this node counted itself is where it belongs.
            take_in(&self.store, now, &series);
            self.wrote(now);
            return;
        }
        if !owed.is_empty() {
            self.store.export_own(now, &owed, &mut series);
        }
        if series.is_empty() {
            return;
        }
        let number = self.peers[owner].next_report;
        self.peers[owner].next_report = number.saturating_add(1);
        let report = Report {
            sent: now,
            slots: owed,
            shares,
        };
        self.copies.reports.insert((owner, number), report);
        self.send_to(owner, Frame::Order(Order::Report { number, series }));
    }

    /// Another node reports what it counted in this one's place.
    fn reported(&mut self, now: Nanos, peer: usize, number: u64, series: &[Series]) {
        if !series.iter().all(|series| self.holds(series.key)) {
            // It is told again to whoever holds the slots then.
            return;
        }
        take_in(&self.store, now, series);
        self.wrote(now);
        if let Some((_, source)) = &mut self.peers[peer].follower {
            source.handle_reported(number);
        }
    }

    /// What was reported on a link that broke is to be told again.
    pub(super) fn reports_lost(&mut self, peer: usize) {
        let reports = std::mem::take(&mut self.copies.reports);
        for (name, report) in reports {
            if name.0 == peer {
                self.copies.take_back(report);
            } else {
                self.copies.reports.insert(name, report);
            }
        }
    }
}
