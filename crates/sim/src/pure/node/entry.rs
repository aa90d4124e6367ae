//! The entry node's part: asks for a client, in the order of the protocol, and answers in time.
//!
//! Own slots first, in one step; then one message for each peer; who does not answer is replaced by the
//! standby, and that by the limit's fallback. Whatever was charged for a check that is refused goes back.

mod asking;
mod fall_back;
mod heard;

use smallvec::SmallVec;
use tollgate_cluster::{Attempts, HOLD, Hold, Known, ProbeTicket};
use tollgate_limit::{Change, DecidedBy, KeyHash, Mode, Nanos, SlotId, Verdict};
use tollgate_wire::{identity::BootId, peer::Way};

pub(super) use self::heard::Heard;
use super::{CHECK_DEADLINE, ClientCheck, LimitSaid, Node, Output, Timer, owner::Relay};
use crate::pure::{
    frames::{Asks, CheckFrame, Verdicts},
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}
