//! Known denials: what an entry node refuses from memory, so that a flood on a key that is used up does
//! not reach the key's owner.
//!
//! A refusal by the owner holds for its own wait, since with nothing given back what is free only grows
//! by time, and at most for [`KEPT_AT_MOST`], since there is no word when something is given back. It
//! counts from when the question was sent: the owner read its clock after that. Then one check goes to
//! the owner and the others of the key wait for what it says.
//!
//! INV-DENIAL-SOUND: what is refused here is what the owner would refuse too, if nothing was given back:
//! the same counter and numbers, at least the cost; never a limit on concurrency, where something is
//! given back all the time, and never one in shadow. Knows nothing of peers and tasks: who waits is
//! woken by the caller when it ends a probe. Shared by all threads.

mod told;

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_limit::{Algorithm, Ask, Cost, KeyHash, Nanos, Rule, Verdict};

use crate::{
    key_map::KeyMap,
    sabotage::{self, Sabotage},
};

/// The most keys whose denials are known. When full, those of other keys are not kept: their checks go
/// to the owner.
pub const MAX_DENIALS: usize = 65_536;

/// How long a denial is kept at most, from when its question was sent; and for how long after its end
/// the checks of its key wait for one of them.
pub const KEPT_AT_MOST: Nanos = Nanos::from_millis(1_000);

/// What is known of a check before its owner is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing: ask.
    Nothing,
    /// It is refused with these words, as of now.
    Denied(Verdict),
    /// It was refused until just now: ask, and say what became of it. The others of the key wait.
    Probe(ProbeTicket),
    /// A probe is under way: ask again here when it has ended, or at this instant.
    Wait(Nanos),
}

/// The one check of a key that asks whether the denial is over. Its holder calls one of
/// [`Denials::handle_done`] and [`Denials::handle_gone`]; if it does neither, its deadline ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ProbeTicket {
    /// Whose denial it is: those that wait for this key are woken when it ends.
    pub key: KeyHash,
    number: u64,
}

/// The denials that owners gave this node.
#[derive(Debug)]
pub struct Denials {
    known: KeyMap<Denial>,
    next_probe: AtomicU64,
}

/// The least cost that was refused, and what was said.
#[derive(Clone, Copy, Debug)]
struct Denial {
    rule: Rule,
    cost: Cost,
    verdict: Verdict,
    sent_at: Nanos,
    heard_at: Nanos,
    expires: Nanos,
    probe: Option<Probe>,
    /// Whether it is newer than the probe.
    is_renewed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    until: Nanos,
}

impl Denials {
    /// None is known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            known: KeyMap::new(MAX_DENIALS),
            next_probe: AtomicU64::new(0),
        }
    }

    /// What is known of a check that must be answered by `until`. While nothing at all is known it costs
    /// one atomic read, else a look in the map.
    pub fn ask(&self, now: Nanos, until: Nanos, ask: &Ask) -> Known {
        if self.known.is_empty() {
            return Known::Nothing;
        }
        let read = |denial: &Denial| denial.says(now, ask);
        match self.known.read(ask.key, read) {
            None | Some(Says::Nothing) => Known::Nothing,
            Some(Says::Denied(verdict)) => Known::Denied(verdict),
            Some(Says::Wait(until)) => Known::Wait(until),
            // Looked at again under the lock that is written under, so that one only is the probe.
            Some(Says::Over) => {
                let number = self.next_probe.fetch_add(1, Ordering::Relaxed);
                let change = |denial: &mut Denial| denial.probe(now, Probe { number, until }, ask);
                self.known.change(ask.key, change).unwrap_or(Known::Nothing)
            }
        }
    }

    /// The owner has decided a group of limits on all counts: one verdict for each ask, in order. Not to
    /// be told of what a standby said without all counts.
    pub fn handle_answers(
        &self,
        sent_at: Nanos,
        heard_at: Nanos,
        (asks, verdicts): (&[Ask], &[Verdict]),
    ) {
        for (at, (ask, verdict)) in asks.iter().zip(verdicts).enumerate() {
            // Asks of one key count on top of each other: neither is refused for its own cost alone.
            let mut others = asks.iter().enumerate();
            if others.any(|(other, one)| other != at && one.key == ask.key) {
                continue;
            }
            if verdict.is_allowed() {
                self.handle_allowed(sent_at, ask);
            } else if let Some(denial) = Denial::new(sent_at, heard_at, ask, *verdict) {
                self.known.set(ask.key, denial, Denial::gives_way_to);
            }
        }
    }

    /// What was refused is admitted: something was given back in between.
    fn handle_allowed(&self, sent_at: Nanos, ask: &Ask) {
        if !self.known.is_empty() {
            let is_over = |denial: &Denial| denial.is_of(ask) && sent_at >= denial.sent_at;
            self.known.remove_if(ask.key, is_over);
        }
    }

    /// The probe was answered, or will not be: unless the denial was renewed the checks of its key go to
    /// the owner as others do.
    pub fn handle_done(&self, ticket: ProbeTicket) {
        let is_over = |denial: &Denial| denial.is_probed_by(ticket) && !denial.is_renewed;
        self.known.remove_if(ticket.key, is_over);
        self.handle_gone(ticket);
    }

    /// The probe's asker went away before it knew: the next check of the key is the probe.
    pub fn handle_gone(&self, ticket: ProbeTicket) {
        self.known.change(ticket.key, |denial| {
            if denial.is_probed_by(ticket) {
                denial.probe = None;
            }
        });
    }

    /// Something was given back to the key, or it was reset.
    pub fn forget(&self, key: KeyHash) {
        if !sabotage::is(Sabotage::DenialsKeptAfterRefund) {
            self.known.remove_if(key, |_denial| true);
        }
    }

    /// Forgets what is over. One pass over all, a shard at a time.
    pub fn sweep(&self, now: Nanos) {
        self.known.retain(|denial| !denial.is_forgotten(now));
    }

    /// How many keys have a denial that is known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

impl Default for Denials {
    fn default() -> Self {
        Self::new()
    }
}

/// What a denial says to a check.
enum Says {
    Nothing,
    Denied(Verdict),
    Wait(Nanos),
    Over,
}

impl Denial {
    /// `None` if a refusal is none that can be repeated.
    fn new(sent_at: Nanos, heard_at: Nanos, ask: &Ask, verdict: Verdict) -> Option<Self> {
        let is_monotone = !matches!(ask.rule.algorithm, Algorithm::Concurrency(_));
        let wait = verdict.retry_after.unwrap_or(Nanos::MAX);
        let expires = sent_at.saturating_add(wait.min(kept_at_most()));
        let is_of_use = is_monotone && ask.rule.is_enforced() && expires > heard_at;
        is_of_use.then_some(Self {
            rule: ask.rule,
            cost: ask.cost,
            verdict,
            sent_at,
            heard_at,
            expires,
            probe: None,
            is_renewed: true,
        })
    }

    /// Whether what is refused of it is refused of a check too.
    fn is_of(&self, ask: &Ask) -> bool {
        self.cost <= ask.cost && self.rule == ask.rule
    }

    fn says(&self, now: Nanos, ask: &Ask) -> Says {
        if !self.is_of(ask) || self.is_forgotten(now) {
            return Says::Nothing;
        }
        if now < self.expires {
            return Says::Denied(self.told(now, ask.cost));
        }
        match self.probe {
            Some(probe) if now < probe.until => Says::Wait(probe.until),
            Some(_) | None => Says::Over,
        }
    }

    fn probe(&mut self, now: Nanos, probe: Probe, ask: &Ask) -> Known {
        match self.says(now, ask) {
            Says::Nothing => Known::Nothing,
            Says::Denied(verdict) => Known::Denied(verdict),
            Says::Wait(until) => Known::Wait(until),
            Says::Over => {
                self.probe = Some(probe);
                self.is_renewed = false;
                Known::Probe(ProbeTicket {
                    key: ask.key,
                    number: probe.number,
                })
            }
        }
    }

    const fn is_probed_by(&self, ticket: ProbeTicket) -> bool {
        matches!(self.probe, Some(probe) if probe.number == ticket.number)
    }

    /// One that is in force covers more with a lower cost; of others the one that was sent later is more.
    /// A probe that is under way stays the only one, whoever renews the denial.
    fn gives_way_to(&self, newer: &mut Self) -> bool {
        newer.probe = self.probe.filter(|_| self.rule == newer.rule);
        let covers_more = self.rule == newer.rule && newer.heard_at < self.expires;
        let covered = newer.cost <= self.cost && newer.expires >= self.expires;
        if covers_more {
            covered
        } else {
            newer.sent_at >= self.sent_at
        }
    }

    /// Whether it is over for so long that nobody waits for anybody.
    fn is_forgotten(&self, now: Nanos) -> bool {
        let is_probed = self.probe.is_some_and(|probe| now < probe.until);
        !is_probed && now >= self.expires.saturating_add(KEPT_AT_MOST)
    }
}

fn kept_at_most() -> Nanos {
    if sabotage::is(Sabotage::DenialsKeptAfterRefund) {
        Nanos::from_millis(5_000)
    } else {
        KEPT_AT_MOST
    }
}

#[cfg(test)]
mod tests;
