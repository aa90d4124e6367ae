//! What peers answer: in time, late, or twice.
//!
//! A charge has a name, by whatever way it is told: it stands or goes back once.

use tollgate_cluster::Failure;
use tollgate_limit::{Change, DecidedBy, Mode, Nanos, NodeId, Verdict};
use tollgate_wire::{identity::BootId, peer::Said};

use super::{
    super::{LimitSaid, Node},
    Asked, Charged, Group, Purpose,
};
use crate::pure::frames::{Reply, Verdicts};

/// Verdicts of a peer.
#[derive(Clone, Debug)]
pub(in crate::pure::node) struct Heard {
    pub(in crate::pure::node) peer: usize,
    pub(in crate::pure::node) verdicts: Verdicts,
    pub(in crate::pure::node) said: Option<Said>,
    pub(in crate::pure::node) decided: Nanos,
}

impl Node {
    /// A peer answered a check.
    pub(in crate::pure::node) fn check_replied(&mut self, now: Nanos, peer: usize, reply: Reply) {
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

    pub(super) fn group_heard(&mut self, now: Nanos, group: &Group, asked: &Asked, heard: Heard) {
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
        // It stands: told again by another way, nothing of it goes back.
        let _first = self.is_first_told(asked, &heard, boot);
        let node = heard.said.as_ref().and_then(|it| NodeId::new(&it.node));
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
    pub(super) fn forget_others(&mut self, group: &Group, boot: BootId, by_owner: bool) {
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
    pub(super) fn is_first_told(&mut self, asked: &Asked, heard: &Heard, boot: BootId) -> bool {
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
    pub(in crate::pure::node) fn give_back_late(
        &mut self,
        now: Nanos,
        asked: &Asked,
        heard: &Heard,
    ) {
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

/// Whether who decided was the owner, asked directly or passed on to.
fn by_owner(heard: &Heard) -> bool {
    let said = heard.said.as_ref();
    said.is_none_or(|said| said.by == DecidedBy::Owner)
}

/// So many charges are known by name; what is told of an older one again may go back.
const MAX_TOLD: usize = 1_024;
