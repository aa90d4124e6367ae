//! Clients: what they ask, what they hear, and what they give back.

use super::{
    Amend, Amended, Change, CheckMode, ClientAmend, DecidedBy, Event, Input, LAST_CHECK, LimitSaid,
    Nanos, RngExt, Waiting, World,
};

/// The latest that a client gives back.
const MAX_REFUND: Nanos = Nanos::from_millis(4_000);

impl World {
    /// The next checks.
    pub(super) fn work(&mut self) {
        let (checks, pause) = self.workload.next(&mut self.clients);
        for (mut check, keys) in checks {
            let Some(entry) = self.any_host() else {
                continue;
            };
            check.id = self.records.number();
            let names = keys.iter().map(|at| self.workload.keys[*at].name.clone());
            let waiting = Waiting {
                entry: self.hosts[entry].name.clone(),
                boot: self.boot_of(entry),
                asked: self.now,
                check: check.clone(),
                keys: names.collect(),
            };
            self.records.asked(check.id, waiting);
            self.give(entry, Input::Check(check));
        }
        if self.clients.random_range(0..300) == 0 {
            self.reset_one();
        }
        let next = self.now.saturating_add(pause);
        if next.saturating_add(LAST_CHECK) < self.end {
            self.queue.plan(next, Event::Work);
        }
    }

    /// A host that answers clients: one that joins does not yet.
    fn any_host(&mut self) -> Option<usize> {
        let hosts = self.hosts.iter().enumerate();
        let there = hosts.filter(|(_, host)| host.node.is_some());
        let there: Vec<_> = there.map(|(at, _)| at).collect();
        if there.is_empty() {
            return None;
        }
        Some(there[self.clients.random_range(0..there.len())])
    }

    pub(super) fn answered(&mut self, id: u64, said: &[Option<LimitSaid>]) {
        let mut note = id;
        for said in said.iter().flatten() {
            let outcome = u64::from(said.verdict.is_allowed());
            note = note.rotate_left(7) ^ said.verdict.used ^ outcome;
        }
        self.queue.note(note);
        let Some(waiting) = self.records.answered(self.now, id, said) else {
            return;
        };
        let ([limit], [Some(said)]) = (waiting.check.limits.as_slice(), said) else {
            return;
        };
        let admitted = said.verdict.is_allowed() && waiting.check.mode == CheckMode::Consume;
        let by_owner = matches!(said.by, DecidedBy::Owner | DecidedBy::Standby);
        if !admitted || !by_owner || self.clients.random_range(0..12) != 0 {
            return;
        }
        let amend = ClientAmend {
            id: 0,
            ask: limit.ask,
            change: Change::GiveBack {
                slice: said.verdict.charged_slice,
            },
            boot: Some(said.boot),
            age: Nanos::ZERO,
        };
        let what = Amended::Refund {
            units: limit.ask.cost.units(),
            of: Some(id),
        };
        // The id of a check lives as long as its window.
        let life = limit.ask.rule.window().span().min(MAX_REFUND);
        let after = Nanos::new(self.clients.random_range(0..life.as_nanos() / 2));
        let Some(key) = waiting.keys.first() else {
            return;
        };
        let amend = ClientAmend {
            age: after.saturating_add(self.now.saturating_sub(said.decided)),
            ..amend
        };
        let event = Event::Refund(amend, key.clone(), what);
        self.queue.plan(self.now.saturating_add(after), event);
    }

    /// Resets a key of which something would expire anyway.
    fn reset_one(&mut self) {
        let at = self.clients.random_range(0..self.workload.keys.len());
        let key = &self.workload.keys[at];
        if key.lasts {
            return;
        }
        let amend = ClientAmend {
            id: 0,
            ask: key.ask(1),
            change: Change::Reset,
            boot: None,
            age: Nanos::ZERO,
        };
        self.amend(amend, key.name.clone(), Amended::Reset);
    }

    pub(super) fn amend(&mut self, amend: ClientAmend, key: String, what: Amended) {
        let Some(entry) = self.any_host() else { return };
        let amend = ClientAmend {
            id: self.records.number(),
            ..amend
        };
        let place = self.records.history.amends.len();
        self.records.history.amends.push(Amend {
            key,
            what,
            asked: self.now,
            answered: None,
        });
        self.amends.insert(amend.id, place);
        self.give(entry, Input::Amend(amend));
    }
}
