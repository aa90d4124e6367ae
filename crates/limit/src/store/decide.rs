//! What a shard says and counts: from a key and a rule to a verdict.
//!
//! A rule's state is up to three cells of one key: what checks charged, what was reported as failed, and
//! the ban that the failures led to. Knows nothing of locks or of other shards. Invariant: a refusal and a
//! peek write nothing (P4).

use super::{
    Ask, Change, ban,
    cell::{self, Identity, Part, Wrote},
    shard::Shard,
};
use crate::{
    counter::{self, Held, Moment, Reading},
    entries,
    judge::Reading as _,
    key::KeyHash,
    rule::{Algorithm, Ban, MAX_LOG_LIMIT, Rule},
    units::{Cost, Nanos},
    verdict::{Mode, Outcome, Reason, Verdict},
};

impl Shard {
    /// Decides one limit; `number` names a permit.
    #[inline]
    pub(super) fn decide(&mut self, now: Nanos, ask: &Ask, mode: Mode, number: u64) -> Verdict {
        let Ask { key, rule, cost } = ask;
        let at = self.moment(now);
        if let Some(banned) = self.banned(at, ask, Cost::ZERO) {
            return banned;
        }
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        if is_of_entries(rule) {
            let outcome = self.outcome(at, ask, Cost::ZERO);
            if counter::charges(outcome, *cost, mode) {
                self.lengthen(at, (*key, identity), rule);
            }
        }
        let cost = (*cost, mode);
        if let Some(cell) = self.find_mut(*key, identity) {
            let verdict = decide_cell(cell, rule, at, cost, number);
            if counter::charges(verdict.outcome, cost.0, cost.1) {
                self.note_write(now, *key);
            }
            return verdict;
        }
        let untouched = Held::untouched(rule, now);
        let foreseen = counter::foresee(rule, untouched, at, (cost.0, Cost::ZERO));
        if !counter::charges(foreseen.outcome, cost.0, cost.1) {
            return foreseen;
        }
        let cell = self.insert_counter(now, (*key, identity), rule);
        let verdict = decide_cell(cell, rule, at, cost, number);
        self.note_write(now, *key);
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
        let held = self.held_or_untouched(at, ask);
        counter::outcome(&ask.rule, held, at, (ask.cost, pending))
    }

    fn foresee_unbanned(&self, at: Moment, ask: &Ask, pending: Cost) -> Verdict {
        let held = self.held_or_untouched(at, ask);
        counter::foresee(&ask.rule, held, at, (ask.cost, pending))
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
        let held = self.held(key, rule)?;
        let verdict = counter::foresee(rule, held, at, (Cost::ONE, Cost::ZERO));
        (verdict.used > 0).then_some(verdict)
    }

    /// Changes a counter as a later message says; `number` names a permit.
    pub(super) fn amend(&mut self, now: Nanos, ask: &Ask, change: Change, number: u64) {
        let Ask { key, rule, cost } = ask;
        let at = self.moment(now);
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        match change {
            Change::GiveBack { slice } => self.take(at, (*key, identity), rule, |held| {
                counter::give_back(rule, held, at, (slice, *cost))
            }),
            Change::Refund => self.take(at, (*key, identity), rule, |held| {
                counter::refund(rule, held, at, *cost)
            }),
            Change::Charge => self.charge(at, (*key, identity), rule, (cost.units(), number)),
            Change::Failure => self.fail(at, *key, rule, *cost),
            Change::Reset => {
                self.remove(*key);
            }
        }
    }

    /// Starts a counter that is not there yet.
    pub(super) fn seed(&mut self, now: Nanos, (key, rule): (KeyHash, &Rule), used: u64) {
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        if self.find(key, identity).is_none() {
            self.charge(self.moment(now), (key, identity), rule, (used, 0));
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
            self.begin_ban(at.now, key, rule, &terms);
        }
    }

    fn begin_ban(&mut self, now: Nanos, key: KeyHash, rule: &Rule, terms: &Ban) {
        for part in [Part::Charges, Part::Failures] {
            let identity = Identity::of(&rule.algorithm, part);
            self.remove_one(key, identity);
        }
        let identity = Identity::of(&rule.algorithm, Part::Ban);
        if self.find(key, identity).is_none() {
            self.insert(now, (key, identity), (rule.capacity(), now), ban::WORDS);
        }
        if let Some(cell) = self.find_mut(key, identity) {
            cell::change(cell, rule, |held| {
                ban::begin(held.words, terms, now);
                *held.latest = now.max(*held.latest);
                ((), Wrote::Yes)
            });
        }
        self.note_write(now, key);
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
        let ban = self.find(key, Identity::BAN).and_then(cell::held);
        ban.map_or(Nanos::ZERO, |held| ban::left(held.words, now))
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
        if is_of_entries(rule) {
            self.lengthen(at, (key, identity), rule);
        }
        let is_new = self.find(key, identity).is_none();
        if is_new {
            self.insert_counter(at.now, (key, identity), rule);
        }
        if let Some(cell) = self.find_mut(key, identity) {
            cell::change(cell, rule, |held| {
                if is_new {
                    counter::charge(rule, held, at, (units, number));
                    return ((), Wrote::Yes);
                }
                counter::charge_later(rule, held, at, (units, number));
                ((), Wrote::Amended)
            });
        }
        self.note_write(at.now, key);
    }

    /// Takes units out of a counter, if it is there.
    fn take(
        &mut self,
        at: Moment,
        (key, identity): (KeyHash, Identity),
        rule: &Rule,
        take: impl FnOnce(counter::HeldMut<'_>) -> bool,
    ) {
        if let Some(cell) = self.find_mut(key, identity) {
            cell::change(cell, rule, |held| {
                let wrote = if take(held) {
                    Wrote::Amended
                } else {
                    Wrote::No
                };
                ((), wrote)
            });
            self.note_write(at.now, key);
        }
    }

    /// Gives a ring of entries that is full twice the room, unless the budget or counters at their limit
    /// leave no room.
    fn lengthen(&mut self, at: Moment, (key, identity): (KeyHash, Identity), rule: &Rule) {
        let Some(held) = self.find(key, identity).and_then(cell::held) else {
            return;
        };
        let Some(words) = Reading::at(rule, held, at).longer_words() else {
            return;
        };
        let words = words.min(MOST_ENTRY_WORDS);
        if words <= held.words.len() || !self.could_hold(words) {
            return;
        }
        let mut copy = vec![0; words];
        entries::move_to(held.words, &mut copy);
        let (seen, latest, before) = (held.seen, held.latest, held.words.len());
        self.remove_one(key, identity);
        // No limit is forgotten for a longer ring: without room the two oldest entries become one.
        let fits = self.make_spare_room(at.now, cell::length(words));
        let words = if fits { words } else { before };
        let cell = self.insert(at.now, (key, identity), (seen, latest), words);
        if let Some(own) = cell.get_mut(cell::HEADER_WORDS..) {
            entries::move_to(&copy, own);
        }
    }

    fn insert_counter(&mut self, now: Nanos, cell: (KeyHash, Identity), rule: &Rule) -> &mut [u64] {
        let words = counter::words(&rule.algorithm);
        self.insert(now, cell, (rule.noted(), now), words)
    }

    fn held_or_untouched(&self, at: Moment, ask: &Ask) -> Held<'_> {
        let held = self.held(ask.key, &ask.rule);
        held.unwrap_or_else(|| Held::untouched(&ask.rule, at.now))
    }

    fn held(&self, key: KeyHash, rule: &Rule) -> Option<Held<'_>> {
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        cell::held(self.find(key, identity)?)
    }
}

/// The longest ring of entries: what the largest limit needs.
const MOST_ENTRY_WORDS: usize = entries::words_for(MAX_LOG_ENTRIES);
const MAX_LOG_ENTRIES: usize = 10_000;
const _: () = assert!(
    MAX_LOG_LIMIT == 10_000,
    "the longest ring fits the largest limit"
);

fn is_of_entries(rule: &Rule) -> bool {
    matches!(
        rule.algorithm,
        Algorithm::SlidingLog(_) | Algorithm::Concurrency(_)
    )
}

fn decide_cell(
    cell: &mut [u64],
    rule: &Rule,
    at: Moment,
    (cost, mode): (Cost, Mode),
    number: u64,
) -> Verdict {
    let verdict = cell::change(cell, rule, |held| {
        let verdict = counter::decide(rule, held, at, (cost, mode), number);
        let wrote = counter::charges(verdict.outcome, cost, mode);
        (verdict, Wrote::from(wrote))
    });
    verdict.unwrap_or_else(|| {
        counter::foresee(rule, Held::untouched(rule, at.now), at, (cost, Cost::ZERO))
    })
}
