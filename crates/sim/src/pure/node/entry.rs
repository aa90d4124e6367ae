//! The entry node's part: asks for a client, in the order of the protocol, and answers in time.
//!
//! Own slots first, in one step; then one message for each peer; who does not answer is replaced by the
//! standby, and that by the limit's fallback. Whatever was charged for a check that is refused goes back.

use smallvec::SmallVec;
use tollgate_cluster::{
    Attempts, Failure, HOLD, Hold, Known, NewestOwner, NextStep, ProbeTicket, Substitute,
    next_step, stand_in, substitute_for,
};
use tollgate_limit::{Ask, Change, DecidedBy, Fallback, KeyHash, Mode, Nanos, SlotId, Verdict};
use tollgate_wire::{
    identity::BootId,
    peer::{Said, Way},
};

use super::{
    CHECK_DEADLINE, ClientCheck, FORWARD_TIMEOUT, LimitSaid, Node, Output, STANDBY_TIMEOUT, Timer,
    owner::Relay,
};
use crate::pure::{
    frames::{Asks, CheckFrame, Frame, Reply, Verdicts, link_to},
    placements::node_of,
};

/// Limits of a check, by their places.
pub(super) type Places = SmallVec<[usize; 2]>;

/// A check of a client that is not answered yet.
#[derive(Debug)]
pub(super) struct Entry {
    check: ClientCheck,
    until: Nanos,
    said: Vec<Option<(LimitSaid, Charged)>>,
    groups: usize,
    held: bool,
    /// Whether it waits for a probe of its key.
    waits: bool,
    probe: Option<ProbeTicket>,
}

/// Where a charge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charged {
    Nowhere,
    Here,
    Share,
    At(usize),
}

/// A question to a peer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) purpose: Purpose,
    pub(super) frame: CheckFrame,
    pub(super) sent: Nanos,
    /// The boot that was asked.
    pub(super) boot: BootId,
    /// Whether nobody waits for it any more. What it charged late goes back.
    pub(super) over: bool,
    /// Whether it waits for a connection.
    pub(super) stalled: bool,
}

/// What a question is for.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "few at a time, and most are the larger"
)]
pub(super) enum Purpose {
    Group(Group),
    Relay(Relay),
}

/// Limits of a check of this node that one peer decides.
#[derive(Clone, Debug)]
pub(super) struct Group {
    check: u64,
    limits: Places,
    attempts: Attempts,
    /// Who was asked before, and under which number.
    failed: Option<(usize, u64)>,
    /// Whether who was asked lives and says that another decides: a copy is behind that one then.
    astray: bool,
}

/// Where a limit is decided.
enum Place {
    Here,
    Await,
    Overdue,
    At(usize),
    Nobody,
}

impl Node {
    pub(super) fn check(&mut self, now: Nanos, check: ClientCheck) {
        let id = check.id;
        let entry = Entry {
            said: check.limits.iter().map(|_| None).collect(),
            check,
            until: now.saturating_add(CHECK_DEADLINE),
            groups: 0,
            held: false,
            waits: false,
            probe: None,
        };
        self.entries.insert(id, entry);
        self.begin(now, id);
    }

    /// Answers from memory, waits for who asks already, or asks.
    fn begin(&mut self, now: Nanos, id: u64) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        if let ([limit], Mode::Consume) = (entry.check.limits.as_slice(), entry.check.mode) {
            let (ask, until) = (limit.ask, entry.until);
            if !self.states.holds(ask.key.slot()) {
                match self.denials.ask(now, until, &ask) {
                    Known::Nothing => {}
                    Known::Denied(verdict) => {
                        return self.deny_from_memory(now, id, verdict);
                    }
                    Known::Probe(ticket) => {
                        if let Some(entry) = self.entries.get_mut(&id) {
                            entry.probe = Some(ticket);
                        }
                    }
                    Known::Wait(at) => return self.wait_for_probe(id, ask.key, at.min(until)),
                }
            }
        }
        self.decide_or_ask(now, id);
    }

    fn deny_from_memory(&mut self, now: Nanos, id: u64, verdict: Verdict) {
        let said = LimitSaid {
            verdict,
            by: DecidedBy::Cached,
            node: self.name.clone(),
            boot: self.boot,
            degraded: false,
            decided: self.world(now),
        };
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.said[0] = Some((said, Charged::Nowhere));
        }
        self.finish(now, id);
    }

    fn wait_for_probe(&mut self, id: u64, key: KeyHash, until: Nanos) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.waits = true;
            self.waiting.entry(key).or_default().push(id);
            self.out.push(Output::Timer(until, Timer::Held(id)));
        }
    }

    fn place_of(&self, slot: SlotId) -> Place {
        match self.states.hold(slot) {
            Hold::Yes => Place::Here,
            Hold::Awaiting => Place::Await,
            Hold::Overdue => Place::Overdue,
            Hold::Given(to) => node_of(&to).map_or(Place::Nobody, Place::At),
            Hold::No => match self.view.owner(slot) {
                // Not its to decide yet, or not any more.
                Some(owner) if owner == self.me => Place::Nobody,
                Some(owner) => Place::At(owner),
                None => Place::Nobody,
            },
        }
    }

    fn decide_or_ask(&mut self, now: Nanos, id: u64) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let keys: Vec<_> = entry.check.limits.iter().map(|it| it.ask.key).collect();
        let places: Vec<_> = keys.iter().map(|key| self.place_of(key.slot())).collect();
        if places.iter().any(|place| matches!(place, Place::Await)) {
            if let Some(entry) = self.entries.get_mut(&id)
                && !entry.held
            {
                entry.held = true;
                let at = now.saturating_add(HOLD);
                self.out.push(Output::Timer(at, Timer::Held(id)));
            }
            return;
        }
        let all = |is_one: fn(&Place) -> bool| -> Places {
            let places = places.iter().enumerate();
            places
                .filter(|(_, it)| is_one(it))
                .map(|(at, _)| at)
                .collect()
        };
        let own = all(|place| matches!(place, Place::Here | Place::Overdue));
        let degraded = places.iter().any(|place| matches!(place, Place::Overdue));
        let nobody = all(|place| matches!(place, Place::Nobody));
        if !own.is_empty() && !self.decide_here(now, id, &own, degraded) {
            // Closed in between: the states say more by now.
            return self.fall_back(now, id, &own);
        }
        if !nobody.is_empty() && !self.is_refused(id) {
            self.fall_back_now(now, id, &nobody);
        }
        if !self.is_refused(id) {
            let mut groups: Vec<(usize, Places)> = Vec::new();
            for (at, place) in places.iter().enumerate() {
                let Place::At(peer) = place else { continue };
                match groups.iter_mut().find(|(known, _)| known == peer) {
                    Some((_, limits)) => limits.push(at),
                    None => groups.push((*peer, Places::from_slice(&[at]))),
                }
            }
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.groups = groups.len();
            }
            for (peer, limits) in groups {
                let group = Group {
                    check: id,
                    limits,
                    attempts: Attempts::default(),
                    failed: None,
                    astray: false,
                };
                self.ask_peer(now, peer, group, Way::Owner);
            }
        }
        self.finish(now, id);
    }

    fn asks_of(&self, id: u64, limits: &[usize]) -> Option<(Asks, Mode)> {
        let entry = self.entries.get(&id)?;
        let asks = limits.iter().filter_map(|at| entry.check.limits.get(*at));
        Some((asks.map(|limit| limit.ask).collect(), entry.check.mode))
    }

    /// Decides in the own counters; false if they are closed.
    fn decide_here(&mut self, now: Nanos, id: u64, limits: &[usize], degraded: bool) -> bool {
        let Some((asks, mode)) = self.asks_of(id, limits) else {
            return true;
        };
        let mut verdicts = Verdicts::new();
        if degraded {
            self.store.decide_all(now, &asks, mode, &mut verdicts);
        } else if !self.store.try_decide_all(now, &asks, mode, &mut verdicts) {
            return false;
        }
        self.wrote(now);
        let said = |verdict| LimitSaid {
            verdict,
            by: DecidedBy::Owner,
            node: self.name.clone(),
            boot: self.boot,
            degraded,
            decided: self.world(now),
        };
        let said: Vec<_> = verdicts.into_iter().map(said).collect();
        self.record(id, limits, said, Charged::Here);
        true
    }

    /// Decides on the copy of another's counters.
    fn decide_as_standby(&mut self, now: Nanos, id: u64, limits: &[usize], astray: bool) {
        let Some((asks, mode)) = self.asks_of(id, limits) else {
            return;
        };
        let (verdicts, degraded) = self.decide_on_copy(now, &asks, mode);
        let degraded = degraded || astray;
        let said = |verdict| LimitSaid {
            verdict,
            by: DecidedBy::Standby,
            node: self.name.clone(),
            boot: self.boot,
            degraded,
            decided: self.world(now),
        };
        let said: Vec<_> = verdicts.into_iter().map(said).collect();
        self.record(id, limits, said, Charged::Here);
    }

    /// One step has decided these limits together.
    fn record(&mut self, id: u64, limits: &[usize], said: Vec<LimitSaid>, charged: Charged) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        // A step with a refusal charged nothing.
        let admits = said.iter().all(|said| said.verdict.is_allowed());
        let charged = match admits && entry.check.mode == Mode::Consume {
            true => charged,
            false => Charged::Nowhere,
        };
        for (at, said) in limits.iter().zip(said) {
            entry.said[*at] = Some((said, charged));
        }
    }

    fn is_refused(&self, id: u64) -> bool {
        self.entries.get(&id).is_some_and(|entry| {
            let mut said = entry.said.iter().flatten();
            said.any(|(said, _)| !said.verdict.is_allowed())
        })
    }

    /// Answers if all is said, and gives back what a refused check charged.
    fn finish(&mut self, now: Nanos, id: u64) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let refused = self.is_refused(id);
        let complete = entry.said.iter().all(Option::is_some);
        if entry.groups > 0 || !(complete || refused) {
            return;
        }
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        if let Some(ticket) = entry.probe {
            self.denials.handle_done(ticket);
            self.wake_waiting(now, ticket.key);
        }
        if refused {
            for (limit, said) in entry.check.limits.iter().zip(&entry.said) {
                let Some((said, charged)) = said else {
                    continue;
                };
                let change = Change::GiveBack {
                    slice: said.verdict.charged_slice,
                };
                match charged {
                    Charged::Nowhere => {}
                    Charged::Share => self.shares.amend(now, &limit.ask, change),
                    Charged::Here | Charged::At(_) => {
                        self.give_back(now, limit.ask, change, said.boot);
                    }
                }
            }
        }
        let said = entry
            .said
            .into_iter()
            .map(|said| said.map(|(said, _)| said));
        self.out.push(Output::Answered(id, said.collect()));
    }

    fn wake_waiting(&mut self, now: Nanos, key: KeyHash) {
        for id in self.waiting.remove(&key).unwrap_or_default() {
            if let Some(entry) = self.entries.get_mut(&id)
                && entry.waits
            {
                entry.waits = false;
                self.begin(now, id);
            }
        }
    }

    /// A check waited for a slot's counts or for a probe.
    pub(super) fn held_long_enough(&mut self, now: Nanos, id: u64) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if entry.waits {
            entry.waits = false;
            if now >= entry.until {
                let all: Places = (0..entry.check.limits.len()).collect();
                self.fall_back_now(now, id, &all);
                return self.finish(now, id);
            }
            return self.begin(now, id);
        }
        if entry.held {
            let keys: Vec<_> = entry.check.limits.iter().map(|it| it.ask.key).collect();
            entry.held = false;
            for key in keys {
                self.states.handle_overdue(key.slot());
            }
            self.decide_or_ask(now, id);
        }
    }

    /// Slots have moved: held checks may go on.
    pub(super) fn retry_held(&mut self, now: Nanos) {
        let held = self.entries.iter().filter(|(_, entry)| entry.held);
        let held: Vec<_> = held.map(|(id, _)| *id).collect();
        for id in held {
            let waits = self.entries.get(&id).is_some_and(|entry| {
                let mut limits = entry.check.limits.iter();
                limits.any(|it| matches!(self.place_of(it.ask.key.slot()), Place::Await))
            });
            if !waits && let Some(entry) = self.entries.get_mut(&id) {
                entry.held = false;
                self.decide_or_ask(now, id);
            }
        }
    }

    fn ask_peer(&mut self, now: Nanos, peer: usize, group: Group, way: Way) {
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
    pub(super) fn send_check(
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

    pub(super) fn timed_out(&mut self, now: Nanos, name: (usize, u64)) {
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
    pub(super) fn asked_lost(&mut self, now: Nanos, peer: usize) {
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
    pub(super) fn ask_again(&mut self, now: Nanos, peer: usize) {
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

    fn time_left(&self, now: Nanos, check: u64) -> Nanos {
        let entry = self.entries.get(&check);
        entry.map_or(Nanos::ZERO, |entry| entry.until.saturating_sub(now))
    }

    /// A peer gave no verdicts.
    fn failed(&mut self, now: Nanos, peer: usize, mut group: Group, why: (Failure, u64)) {
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
                self.ask_where_it_is(now, slot, group);
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

    fn slot_of(&self, group: &Group) -> Option<SlotId> {
        let entry = self.entries.get(&group.check)?;
        let limit = entry.check.limits.get(*group.limits.first()?)?;
        Some(limit.ask.key.slot())
    }

    /// The members were pulled: the newest owner is asked.
    pub(super) fn pulled(&mut self, now: Nanos, name: (usize, u64)) {
        let Some(asked) = self.asked.remove(&name) else {
            return;
        };
        if let (Purpose::Group(group), false) = (asked.purpose, asked.over) {
            self.failed(now, name.0, group, (Failure::NotOwner, name.1));
        }
    }

    /// This node may be the owner itself by now.
    fn ask_where_it_is(&mut self, now: Nanos, slot: SlotId, group: Group) {
        match self.place_of(slot) {
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

    fn decide_group(&mut self, now: Nanos, group: &Group, degraded: bool) {
        let id = group.check;
        self.group_done(id);
        if self.decide_here(now, id, &group.limits, degraded) {
            self.finish(now, id);
        } else {
            self.fall_back(now, id, &group.limits);
        }
    }

    fn ask_standby(&mut self, now: Nanos, failed: usize, slot: SlotId, group: Group) {
        let (owner, standby) = (self.view.owner(slot), self.view.standby(slot));
        let (link, number) = match group.failed {
            Some((peer, number)) => (link_to(peer), number),
            None => (0, 0),
        };
        match stand_in(&failed, owner, standby) {
            Some(peer) if peer == self.me => match self.place_of(slot) {
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

    fn group_done(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.groups = entry.groups.saturating_sub(1);
        }
    }

    fn fall_back(&mut self, now: Nanos, id: u64, limits: &[usize]) {
        self.fall_back_now(now, id, limits);
        self.finish(now, id);
    }

    /// Decides by the fallbacks of these limits.
    fn fall_back_now(&mut self, now: Nanos, id: u64, limits: &[usize]) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let members = self.view.placement().members().len();
        let mode = entry.check.mode;
        let limits_of: Vec<_> = limits
            .iter()
            .filter_map(|at| entry.check.limits.get(*at).copied())
            .collect();
        let mut said = Vec::new();
        for limit in &limits_of {
            let ask = limit.ask;
            let substitute = substitute_for(&ask.rule, limit.fallback, members);
            let decided = match substitute {
                Substitute::Say(_) => None,
                Substitute::Count(rule, _) | Substitute::Decide(rule) => {
                    Some(self.decide_in_shares(now, Ask { rule, ..ask }, limit.fallback, mode))
                }
            };
            let counts = match (&substitute, &decided) {
                (Substitute::Count(rule, _), Some(decided)) if mode == Mode::Consume => {
                    if !decided.is_allowed() {
                        let ask = Ask { rule: *rule, ..ask };
                        self.shares.amend(now, &ask, Change::Charge);
                    }
                    true
                }
                (_, Some(decided)) => decided.is_allowed() && mode == Mode::Consume,
                (_, None) => false,
            };
            if counts {
                self.owe_share(now, ask.key);
            }
            let Some(verdict) = substitute.said(decided) else {
                continue;
            };
            said.push(LimitSaid {
                verdict,
                by: DecidedBy::Fallback,
                node: self.name.clone(),
                boot: self.boot,
                degraded: true,
                decided: self.world(now),
            });
        }
        for (at, said) in limits.iter().zip(said) {
            self.record(id, &[*at], vec![said], Charged::Share);
        }
    }

    fn decide_in_shares(&self, now: Nanos, ask: Ask, fallback: Fallback, mode: Mode) -> Verdict {
        if fallback == Fallback::LocalFull
            && let Some(used) = self.last_answers.used(now, ask.key)
        {
            self.shares.seed(now, ask.key, &ask.rule, used);
        }
        self.shares.decide(now, &ask, mode)
    }

    /// A peer answered a check.
    pub(super) fn check_replied(&mut self, now: Nanos, peer: usize, reply: Reply) {
        let number = match &reply {
            Reply::Verdicts { number, .. }
            | Reply::NotOwner { number }
            | Reply::TooLate { number } => *number,
            Reply::Amended { .. } | Reply::Pong => return,
        };
        let Some(asked) = self.asked.remove(&(peer, number)) else {
            return;
        };
        self.peers[peer].breaker.handle_answer();
        match reply {
            Reply::Verdicts {
                verdicts,
                said,
                decided,
                ..
            } => match asked.purpose.clone() {
                Purpose::Group(group) => {
                    let heard = Heard {
                        peer,
                        verdicts,
                        said,
                        decided,
                    };
                    self.group_heard(now, &group, &asked, heard);
                }
                Purpose::Relay(relay) => {
                    let heard = Heard {
                        peer,
                        verdicts,
                        said,
                        decided,
                    };
                    self.relay_heard(now, relay, &asked, heard);
                }
            },
            Reply::NotOwner { .. } | Reply::TooLate { .. } => {
                let why = match reply {
                    Reply::NotOwner { .. } => Failure::NotOwner,
                    Reply::TooLate { .. }
                    | Reply::Verdicts { .. }
                    | Reply::Amended { .. }
                    | Reply::Pong => Failure::TooLate,
                };
                match asked.purpose {
                    _ if asked.over => {}
                    Purpose::Group(group) => self.failed(now, peer, group, (why, number)),
                    Purpose::Relay(relay) => {
                        self.relay_failed(now, relay, why == Failure::NotOwner);
                    }
                }
            }
            Reply::Amended { .. } | Reply::Pong => {}
        }
    }

    fn group_heard(&mut self, now: Nanos, group: &Group, asked: &Asked, heard: Heard) {
        let id = group.check;
        let known = self.entries.get(&id).is_some_and(|entry| {
            let mut limits = group.limits.iter();
            limits.any(|at| entry.said.get(*at).is_none_or(Option::is_none))
        });
        let by_owner = heard
            .said
            .as_ref()
            .is_none_or(|it| it.by == DecidedBy::Owner);
        if !known {
            // Answered by other means: what it charged goes back, unless that was this very charge.
            self.give_back_late(now, asked, &heard);
            return;
        }
        let boot = heard.said.as_ref().map_or(asked.boot, |said| said.boot);
        let node = heard
            .said
            .as_ref()
            .and_then(|it| tollgate_limit::NodeId::new(&it.node));
        let degraded = heard.said.as_ref().is_some_and(|said| said.degraded);
        if by_owner && !degraded && asked.frame.mode == Mode::Consume {
            let asks = (asked.frame.asks.as_slice(), heard.verdicts.as_slice());
            self.denials.handle_answers(asked.sent, now, asks);
            for (ask, verdict) in asked.frame.asks.iter().zip(&heard.verdicts) {
                let window = ask.rule.window();
                self.last_answers.record(now, ask.key, verdict.used, window);
            }
        }
        let said = heard.verdicts.iter().map(|verdict| LimitSaid {
            verdict: *verdict,
            by: heard.said.as_ref().map_or(DecidedBy::Owner, |said| said.by),
            node: node
                .clone()
                .unwrap_or_else(|| self.peers[heard.peer].name.clone()),
            boot,
            degraded,
            decided: heard.decided,
        });
        let said: Vec<_> = said.collect();
        self.record(id, &group.limits, said, Charged::At(heard.peer));
        // Whoever else was asked for it is not waited for any more.
        self.forget_others(group, boot, by_owner);
        self.group_done(id);
        self.finish(now, id);
    }

    /// Other questions for the same limits are over; those to the boot that has decided are the same
    /// charge under the same name, and nothing of them goes back.
    fn forget_others(&mut self, group: &Group, boot: BootId, by_owner: bool) {
        let is_other = |asked: &Asked| match &asked.purpose {
            Purpose::Group(other) => other.check == group.check && other.limits == group.limits,
            Purpose::Relay(_) => false,
        };
        self.asked
            .retain(|_, asked| !(is_other(asked) && by_owner && asked.boot == boot));
        for asked in self.asked.values_mut() {
            if is_other(asked) {
                asked.over = true;
            }
        }
    }

    /// Whether a charge was not heard of before, by whatever way: it stands or goes back once.
    fn is_first_told(&mut self, asked: &Asked, heard: &Heard, boot: BootId) -> bool {
        // What a standby passed on under the first number is the very charge of that number.
        let name = match &asked.purpose {
            Purpose::Group(Group {
                failed: Some(first),
                ..
            }) if by_owner(heard) => *first,
            Purpose::Group(_) | Purpose::Relay(_) => (heard.peer, asked.frame.number),
        };
        if self.told.contains(&(boot, name)) {
            return false;
        }
        if self.told.len() >= MAX_TOLD {
            self.told.pop_front();
        }
        self.told.push_back((boot, name));
        true
    }

    /// A reply that nobody waits for any more.
    pub(super) fn give_back_late(&mut self, now: Nanos, asked: &Asked, heard: &Heard) {
        let admits = heard.verdicts.iter().all(Verdict::is_allowed);
        if !admits || asked.frame.mode == Mode::Peek {
            return;
        }
        let boot = heard.said.as_ref().map_or(asked.boot, |said| said.boot);
        if !self.is_first_told(asked, heard, boot) {
            return;
        }
        for (ask, verdict) in asked.frame.asks.iter().zip(&heard.verdicts) {
            let change = Change::GiveBack {
                slice: verdict.charged_slice,
            };
            self.give_back(now, *ask, change, boot);
        }
    }
}

/// Verdicts of a peer.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) peer: usize,
    pub(super) verdicts: Verdicts,
    pub(super) said: Option<Said>,
    pub(super) decided: Nanos,
}

/// Whether who decided was the owner, asked directly or passed on to.
fn by_owner(heard: &Heard) -> bool {
    let said = heard.said.as_ref();
    said.is_none_or(|said| said.by == DecidedBy::Owner)
}

/// So many charges are known by name; what is told of an older one again may go back.
const MAX_TOLD: usize = 1_024;
