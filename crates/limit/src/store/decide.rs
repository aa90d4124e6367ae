//! What a shard says and counts: from a key and a rule to a verdict.
//!
//! A rule's state is up to three cells of one key: what checks charged, what was reported as failed, and
//! the ban that the failures led to. Knows nothing of locks or of other shards. Invariant: a refusal and a
//! peek write nothing (P4).

use super::{
    Ask, Change, ban,
    cell::{self, Identity, Part, Urge, Wrote},
    shard::{Found, Shard},
};
use crate::{
    counter::{self, Held, Moment, Reading},
    judge::Reading as _,
    key::KeyHash,
    rule::{Algorithm, Ban, Rule},
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Reason, Verdict},
};

impl Shard {
    /// Decides one limit; `number` names a permit.
    #[inline]
    pub(super) fn decide(&mut self, now: Nanos, ask: &Ask, mode: Mode, number: u64) -> Verdict {
        let Ask { key, rule, .. } = ask;
        let at = self.moment(now);
        if let Some(banned) = self.banned(at, ask, Cost::ZERO) {
            return banned;
        }
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        let found = self.look_up(*key, identity);
        if found == Found::Others && mode == Mode::Consume {
            self.gather(at, (*key, identity), rule);
            return self.decide_unbanned(at, ask, mode, (number, self.look_up(*key, identity)));
        }
        self.decide_unbanned(at, ask, mode, (number, found))
    }

    #[inline]
    fn decide_unbanned(
        &mut self,
        at: Moment,
        ask: &Ask,
        mode: Mode,
        (number, mut found): (u64, Found),
    ) -> Verdict {
        let Ask { key, rule, cost } = ask;
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        if is_of_entries(rule) && matches!(found, Found::Total(_)) {
            let outcome = self.outcome(at, ask, Cost::ZERO);
            if counter::charges(outcome, *cost, mode) {
                self.lengthen(at, (*key, identity), rule);
                found = self.look_up(*key, identity);
            }
        }
        if let Found::Total(handle) = found
            && let Some(cell) = self.cell_mut(handle)
        {
            let (verdict, urge) = decide_cell(cell, rule, at, (*cost, mode), number);
            if counter::charges(verdict.outcome, *cost, mode) {
                self.note_write(at.now, *key);
                self.note_urge(at.now, *key, urge);
            }
            return verdict;
        }
        let foreseen = self.foresee_unbanned(at, ask, Cost::ZERO);
        if !counter::charges(foreseen.outcome, *cost, mode) {
            return foreseen;
        }
        let cell = self.insert_counter(at.now, (*key, identity), rule);
        let (verdict, urge) = decide_cell(cell, rule, at, (*cost, mode), number);
        self.note_write(at.now, *key);
        self.note_urge(at.now, *key, urge);
        verdict
    }

    /// What one limit would say if `pending` were charged before; charges nothing.
    pub(super) fn foresee(&self, now: Nanos, ask: &Ask, pending: Cost) -> Verdict {
        let at = self.moment(now);
        let banned = self.banned(at, ask, pending);
        banned.unwrap_or_else(|| self.foresee_unbanned(at, ask, pending))
    }

    /// Whether one limit would admit a check if `pending` were charged before.
    pub(super) fn fits(&self, now: Nanos, ask: &Ask, pending: Cost) -> bool {
        let at = self.moment(now);
        let is_banned = ask.rule.ban.is_some() && self.ban_left(now, ask.key) > Nanos::ZERO;
        !is_banned && self.outcome(at, ask, pending) == Outcome::Allow
    }

    fn outcome(&self, at: Moment, ask: &Ask, pending: Cost) -> Outcome {
        self.with_held(at, (ask.key, &ask.rule), |held| {
            let held = held.unwrap_or_else(|| Held::untouched(&ask.rule, at.now));
            counter::outcome(&ask.rule, held, at, (ask.cost, pending))
        })
    }

    fn foresee_unbanned(&self, at: Moment, ask: &Ask, pending: Cost) -> Verdict {
        self.with_held(at, (ask.key, &ask.rule), |held| {
            let held = held.unwrap_or_else(|| Held::untouched(&ask.rule, at.now));
            counter::foresee(&ask.rule, held, at, (ask.cost, pending))
        })
    }

    /// The state of a counter as a peek for one unit; `None` if nothing is counted for the key.
    pub(super) fn read(&self, now: Nanos, key: KeyHash, rule: &Rule) -> Option<Verdict> {
        let at = self.moment(now);
        let one = Ask {
            key,
            rule: *rule,
            cost: Cost::ONE,
        };
        if let Some(banned) = self.banned(at, &one, Cost::ZERO) {
            return Some(banned);
        }
        let verdict = self.with_held(at, (key, rule), |held| {
            held.map(|held| counter::foresee(rule, held, at, (Cost::ONE, Cost::ZERO)))
        });
        verdict.filter(|verdict| verdict.used > 0)
    }

    /// Changes a counter as a later message says; `number` names a permit.
    pub(super) fn amend(&mut self, now: Nanos, ask: &Ask, change: Change, number: u64) {
        let Ask { key, rule, cost } = ask;
        let at = self.moment(now);
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        match change {
            Change::GiveBack { slice } => self.take(at, (*key, identity), (rule, *cost), |held| {
                counter::give_back(rule, held, at, (slice, *cost))
            }),
            Change::Refund => self.take(at, (*key, identity), (rule, *cost), |held| {
                counter::refund(rule, held, at, *cost)
            }),
            Change::Charge => self.charge(at, (*key, identity), rule, (cost.units(), number)),
            Change::Failure => self.fail(at, *key, rule, *cost),
            Change::Reset => self.void_key(at, *key),
        }
    }

    /// Starts a counter that is not there yet with what another has counted: it is no part of what this store
    /// counts itself.
    pub(super) fn seed(&mut self, now: Nanos, (key, rule): (KeyHash, &Rule), used: u64) {
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        if self.look_up(key, identity) == Found::Nothing {
            let at = self.moment(now);
            self.charge(at, (key, identity), rule, (used, 0));
            self.set_seed(now, (key, identity));
        }
    }

    /// A failure was reported. What reaches the limit bans the key and clears its failures.
    fn fail(&mut self, at: Moment, key: KeyHash, rule: &Rule, cost: Cost) {
        let Some(terms) = rule.ban else { return };
        if self.ban_left(at.now, key) > Nanos::ZERO {
            return;
        }
        let identity = Identity::of(&rule.algorithm, Part::Failures);
        self.charge(at, (key, identity), rule, (cost.units(), 0));
        let failed = self.find(key, identity).and_then(cell::held);
        let failed = failed.map_or(0, |held| Reading::at(rule, held, at).used());
        if failed >= rule.capacity() {
            self.begin_ban(at, key, rule, &terms);
        }
    }

    fn begin_ban(&mut self, at: Moment, key: KeyHash, rule: &Rule, terms: &Ban) {
        for part in [Part::Charges, Part::Failures] {
            self.void_counter(at, (key, Identity::of(&rule.algorithm, part)));
        }
        let now = at.now;
        let known = self.ban(now, key).unwrap_or_default();
        if self.find(key, Identity::BAN).is_none() {
            self.insert(
                now,
                (key, Identity::BAN),
                (rule.capacity(), now),
                ban::WORDS,
            );
        }
        let mut urge = Urge::None;
        if let Some(cell) = self.find_mut(key, Identity::BAN) {
            let change = cell::change(cell, rule, |held| {
                if let Some(words) = held.words.get_mut(..ban::WORDS) {
                    words.copy_from_slice(&known);
                }
                ban::begin(held.words, terms, now);
                *held.latest = now.max(*held.latest);
                // A ban is sent at once.
                ((), Wrote::Yes(u64::MAX))
            });
            urge = change.map_or(Urge::None, |((), urge)| urge);
        }
        self.note_write(now, key);
        self.note_urge(now, key, urge);
    }

    /// The refusal of a key that is banned.
    #[inline]
    fn banned(&self, at: Moment, ask: &Ask, pending: Cost) -> Option<Verdict> {
        ask.rule.ban?;
        let left = self.ban_left(at.now, ask.key);
        (left > Nanos::ZERO).then(|| {
            // A cost that never fits does not fit after the ban, and a debt may outlast it.
            let without = self.foresee_unbanned(at, ask, pending);
            let more_after = match without.remaining {
                0 => without.more_after,
                1.. => Nanos::ZERO,
            };
            Verdict {
                outcome: Outcome::Refuse(Reason::Banned),
                used: without.used.max(ask.rule.capacity()),
                remaining: 0,
                retry_after: without.retry_after.map(|wait| wait.max(left)),
                more_after: more_after.max(left),
                reset_after: without.reset_after.max(left),
                delay: Nanos::ZERO,
                charged_slice: 0,
            }
        })
    }

    fn ban_left(&self, now: Nanos, key: KeyHash) -> Nanos {
        let ban = self.ban(now, key);
        ban.map_or(Nanos::ZERO, |words| ban::left(&words, now))
    }

    /// Counts units without asking.
    fn charge(
        &mut self,
        at: Moment,
        (key, identity): (KeyHash, Identity),
        rule: &Rule,
        (units, number): (u64, u64),
    ) {
        if units == 0 {
            return;
        }
        self.gather(at, (key, identity), rule);
        if is_of_entries(rule) {
            self.lengthen(at, (key, identity), rule);
        }
        let is_new = self.find(key, identity).is_none();
        if is_new {
            self.insert_counter(at.now, (key, identity), rule);
        }
        self.change(at, (key, identity), rule, |held| {
            if is_new {
                counter::charge(rule, held, at, (units, number));
                return Wrote::Yes(units);
            }
            counter::charge_later(rule, held, at, (units, number));
            Wrote::Amended(units)
        });
    }

    /// Takes units out of a counter, if it is there.
    fn take(
        &mut self,
        at: Moment,
        (key, identity): (KeyHash, Identity),
        (rule, cost): (&Rule, Cost),
        take: impl FnOnce(counter::HeldMut<'_>) -> bool,
    ) {
        self.gather(at, (key, identity), rule);
        self.change(at, (key, identity), rule, |held| {
            if take(held) {
                Wrote::Amended(cost.units())
            } else {
                Wrote::No
            }
        });
    }

    fn change(
        &mut self,
        at: Moment,
        (key, identity): (KeyHash, Identity),
        rule: &Rule,
        change: impl FnOnce(counter::HeldMut<'_>) -> Wrote,
    ) {
        if let Some(cell) = self.find_mut(key, identity) {
            let changed = cell::change(cell, rule, |held| ((), change(held)));
            let urge = changed.map_or(Urge::None, |((), urge)| urge);
            self.note_write(at.now, key);
            self.note_urge(at.now, key, urge);
        }
    }

    /// Gives a ring of entries that is full twice the room, unless the budget or counters at their limit
    /// leave no room.
    fn lengthen(&mut self, at: Moment, (key, identity): (KeyHash, Identity), rule: &Rule) {
        let Some(held) = self.find(key, identity).and_then(cell::held) else {
            return;
        };
        if let Some(words) = Reading::at(rule, held, at).longer_words() {
            self.lengthen_to(at, (key, identity), words);
        }
    }

    fn insert_counter(&mut self, now: Nanos, cell: (KeyHash, Identity), rule: &Rule) -> &mut [u64] {
        let words = counter::words(&rule.algorithm);
        self.insert(now, cell, (rule.noted(), now), words)
    }
}

pub(super) fn is_of_entries(rule: &Rule) -> bool {
    matches!(
        rule.algorithm,
        Algorithm::SlidingLog(_) | Algorithm::Concurrency(_)
    )
}

#[inline]
fn decide_cell(
    cell: &mut [u64],
    rule: &Rule,
    at: Moment,
    (cost, mode): (Cost, Mode),
    number: u64,
) -> (Verdict, Urge) {
    let verdict = cell::change(cell, rule, |held| {
        let verdict = counter::decide(rule, held, at, (cost, mode), number);
        let wrote = if counter::charges(verdict.outcome, cost, mode) {
            Wrote::Yes(cost.units())
        } else {
            Wrote::No
        };
        (verdict, wrote)
    });
    verdict.unwrap_or_else(|| {
        let untouched = Held::untouched(rule, at.now);
        let foreseen = counter::foresee(rule, untouched, at, (cost, Cost::ZERO));
        (foreseen, Urge::None)
    })
}
