//! Changes of counters that are no checks: sent to who decides for the key, once, until it says that it is done.

use std::collections::BTreeMap;

use tollgate_cluster::{Acceptance, Amendment};
use tollgate_limit::{Ask, Change, Nanos};
use tollgate_wire::identity::BootId;

use super::{ClientAmend, Node, Output, Timer};
use crate::pure::{
    frames::{AmendFrame, Frame, Reply, link_to},
    placements::node_of,
};
use tollgate_cluster::Hold;

/// How often what is not acknowledged is sent again.
const RETRY: Nanos = Nanos::from_millis(50);

/// What is to be changed elsewhere.
#[derive(Debug)]
pub(super) struct Amending {
    next: u64,
    outstanding: BTreeMap<u64, Outstanding>,
    /// By peer, the next number of this node's way to it.
    sequences: Vec<u64>,
    timer: bool,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    ask: Ask,
    change: Change,
    /// Whose counters hold the charge.
    boot: Option<BootId>,
    client: Option<u64>,
    /// Whether who charged was asked and cannot give it back.
    is_moved: bool,
    /// When what it is about has left the counter.
    expires: Nanos,
    /// Peer, its boot, and the number there.
    sent: Option<(usize, BootId, u64)>,
}

impl Amending {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            next: 0,
            outstanding: BTreeMap::new(),
            sequences: vec![0; nodes],
            timer: false,
        }
    }
}

impl Node {
    pub(super) fn client_amends(&mut self, now: Nanos, amend: &ClientAmend) {
        self.denials.forget(amend.ask.key);
        if amend.change == Change::Reset {
            self.last_answers.forget(amend.ask.key);
            self.shares.remove(amend.ask.key);
        }
        let amendment = Amendment {
            ask: amend.ask,
            change: amend.change,
        };
        self.push(
            now,
            Outstanding {
                expires: now.saturating_add(amendment.life_left(amend.age)),
                ask: amend.ask,
                change: amend.change,
                boot: amend.boot,
                client: Some(amend.id),
                is_moved: false,
                sent: None,
            },
        );
    }

    /// Gives back what a check charged.
    pub(super) fn give_back(&mut self, now: Nanos, ask: Ask, change: Change, boot: BootId) {
        self.denials.forget(ask.key);
        self.push(
            now,
            Outstanding {
                expires: now.saturating_add(Amendment { ask, change }.life()),
                ask,
                change,
                boot: Some(boot),
                client: None,
                is_moved: false,
                sent: None,
            },
        );
    }

    fn push(&mut self, now: Nanos, outstanding: Outstanding) {
        let name = self.amending.next;
        self.amending.next = name.saturating_add(1);
        self.amending.outstanding.insert(name, outstanding);
        self.send_amend(now, name);
        self.amend_later(now);
    }

    fn amend_later(&mut self, now: Nanos) {
        if !self.amending.timer && !self.amending.outstanding.is_empty() {
            self.amending.timer = true;
            self.out
                .push(Output::Timer(now.saturating_add(RETRY), Timer::Amends));
        }
    }

    pub(super) fn send_amends(&mut self, now: Nanos) {
        self.amending.timer = false;
        let names: Vec<_> = self.amending.outstanding.keys().copied().collect();
        for name in names {
            self.send_amend(now, name);
        }
        self.amend_later(now);
    }

    /// What it says to that boot.
    fn change_at(outstanding: &Outstanding, boot: BootId) -> Change {
        let amendment = Amendment {
            ask: outstanding.ask,
            change: outstanding.change,
        };
        if outstanding.boot == Some(boot) {
            amendment.change
        } else {
            amendment.for_another_owner().change
        }
    }

    fn send_amend(&mut self, now: Nanos, name: u64) {
        let Some(mut outstanding) = self.amending.outstanding.get(&name).copied() else {
            return;
        };
        let slot = outstanding.ask.key.slot();
        if outstanding.expires <= now {
            // Who asked is not told that it is done: where it was sent it may still be.
            self.amending.outstanding.remove(&name);
            return;
        }
        if let Some((peer, boot, sequence)) = outstanding.sent {
            let is_there = self.view.boot_of(peer) == Some(boot);
            if is_there || self.peers[peer].boot == Some(boot) {
                // Whether it is done there is not known: nobody else is asked.
                if self.peers[peer].boot == Some(boot) {
                    let change = Self::change_at(&outstanding, boot);
                    self.send_amend_to(peer, sequence, outstanding.ask, change);
                }
                return;
            }
            outstanding.sent = None;
        }
        if outstanding.boot == Some(self.boot) && self.gives_back_in_stead(now, &outstanding) {
            return self.amended_at_last(name);
        }
        let to = match self.states.hold(slot) {
            // Who stood in for the owner gives back what it counted: only that one writes its series.
            _ if let Some(peer) = self.stood_in(&outstanding) => Some(peer),
            Hold::Yes => {
                let change = Self::change_at(&outstanding, self.boot);
                if self.store.try_amend(now, &outstanding.ask, change) {
                    self.wrote(now);
                    self.amended_at_last(name);
                }
                return;
            }
            Hold::Given(to) => node_of(&to),
            Hold::No | Hold::Awaiting | Hold::Overdue => self.view.owner(slot),
        };
        if let Some(peer) = to
            && peer != self.me
            && let Some(boot) = self.peers[peer].boot
            && self
                .stood_in(&outstanding)
                .is_none_or(|_| outstanding.boot == Some(boot))
        {
            let sequence = self.amending.sequences[peer];
            self.amending.sequences[peer] = sequence.saturating_add(1);
            outstanding.sent = Some((peer, boot, sequence));
            let change = Self::change_at(&outstanding, boot);
            self.send_amend_to(peer, sequence, outstanding.ask, change);
        }
        self.amending.outstanding.insert(name, outstanding);
    }

    /// It is done.
    fn amended_at_last(&mut self, name: u64) {
        if let Some(outstanding) = self.amending.outstanding.remove(&name) {
            self.denials.forget(outstanding.ask.key);
            if let Some(client) = outstanding.client {
                self.out.push(Output::Amended(client));
            }
        }
    }

    /// The member that has charged and is not the owner, unless it has said that it cannot give it back. Until
    /// it is connected the change waits: elsewhere it would take what others have charged.
    fn stood_in(&self, outstanding: &Outstanding) -> Option<usize> {
        if outstanding.is_moved || !matches!(outstanding.change, Change::GiveBack { .. }) {
            return None;
        }
        let boot = outstanding.boot?;
        let mut others = (0..self.peers.len()).filter(|peer| *peer != self.me);
        others.find(|peer| self.view.boot_of(*peer) == Some(boot))
    }

    /// Gives back what this node has counted for another.
    fn gives_back_in_stead(&mut self, now: Nanos, outstanding: &Outstanding) -> bool {
        let key = outstanding.ask.key;
        let is_ours = self.copies.stood_in.contains(key.slot()) && !self.holds(key);
        if is_ours && matches!(outstanding.change, Change::GiveBack { .. }) {
            self.store.amend(now, &outstanding.ask, outstanding.change);
            self.wrote(now);
            self.owe(now, key);
            return true;
        }
        false
    }

    fn send_amend_to(&mut self, peer: usize, sequence: u64, ask: Ask, change: Change) {
        let frame = AmendFrame {
            sequence,
            ask,
            change,
        };
        self.send_to(peer, Frame::Amend(frame));
    }

    pub(super) fn amends_connected(&mut self, now: Nanos, _peer: usize, _boot: BootId) {
        self.send_amends(now);
    }

    /// A peer says what became of one.
    pub(super) fn amended(&mut self, now: Nanos, from: (usize, u64), done: bool) {
        let is_it = |outstanding: &Outstanding| {
            let sent = outstanding.sent;
            sent.is_some_and(|(peer, _, sequence)| (peer, sequence) == from)
        };
        let mut all = self.amending.outstanding.iter();
        let Some(name) = all.find(|(_, it)| is_it(it)).map(|(name, _)| *name) else {
            return;
        };
        if done {
            self.amended_at_last(name);
        } else if let Some(outstanding) = self.amending.outstanding.get_mut(&name) {
            // For who owns it now, a little later.
            outstanding.sent = None;
            outstanding.is_moved = true;
            self.amend_later(now);
        }
    }

    /// Another node wants a counter of this one changed.
    pub(super) fn amended_by(&mut self, now: Nanos, caller: usize, frame: &AmendFrame) {
        let Some(boot) = self.boot_of_caller(caller) else {
            return;
        };
        let origin = (boot, link_to(self.me));
        let key = frame.ask.key;
        let holds = self.holds(key);
        let stood_in = matches!(frame.change, Change::GiveBack { .. })
            && self.copies.stood_in.contains(key.slot());
        let window = self.windows.entry(origin).or_default();
        let acceptance = match holds || stood_in {
            true => window.accept(frame.sequence),
            false => window.refuse(frame.sequence),
        };
        let done = match acceptance {
            Acceptance::Fresh if !holds => {
                self.store.amend(now, &frame.ask, frame.change);
                self.wrote(now);
                self.owe(now, key);
                true
            }
            Acceptance::Fresh => {
                let done = self.store.try_amend(now, &frame.ask, frame.change);
                self.wrote(now);
                done
            }
            Acceptance::Repeated | Acceptance::TooOld => true,
            Acceptance::Refused => false,
        };
        let sequence = frame.sequence;
        self.reply(caller, Reply::Amended { sequence, done });
    }
}
