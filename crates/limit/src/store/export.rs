//! What goes to other stores: the series of counters, and when they are sent.
//!
//! Knows nothing of links. Invariants: what is told of a counter sums up to its total; a counter is sent whole:
//! first its own series, which holds what was absorbed, then the voids, so that nothing is counted less while
//! they arrive, and the others when the voids have made room.

use smallvec::SmallVec;

use super::{
    SLOTS_PER_SHARD,
    cell::{self, Identity, Part, Role},
    gather::{MAX_SERIES, SEED},
    handle::Handle,
    outbox::Look,
    shard::Shard,
};
use crate::{
    counter::merge::{self, Kept},
    key::KeyHash,
    series::{Body, Counter, Series, SeriesWords, Writer},
    units::Nanos,
};

/// Counters that one scan of a shard sends at least before it is put off.
const LEAST_SCANNED: usize = 256;

/// Which counters are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// All of them.
    All,
    /// Those of which something was not sent.
    Unsent,
    /// Those of which something was not sent that is replicated while it is counted.
    Due,
    /// Those that are to be sent at once.
    Urgent,
}

/// Which series of a counter are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of all writers.
    Everyones,
    /// What this store has counted itself.
    Own,
}

impl Shard {
    /// Whether the slot of a key is open.
    #[inline]
    pub(super) fn is_open(&self, key: KeyHash) -> bool {
        self.open & slot_bit(key) != 0
    }

    /// The series of the counters of some slots. With `sends` they are sent then.
    pub(super) fn export(
        &mut self,
        now: Nanos,
        slots: u64,
        (which, whose, sends): (Which, Whose, bool),
        out: &mut Vec<Series>,
    ) {
        let names = self.names_in(slots, which, usize::MAX);
        for name in names {
            self.export_one(now, name, (whose, sends), out);
        }
    }

    /// Sends what is due, of about `most` counters; returns how many.
    pub(super) fn send_due(&mut self, now: Nanos, most: usize, out: &mut Vec<Series>) -> usize {
        let mut sent = 0_usize;
        while sent < most
            && let Some(look) = self.outbox.pop(now)
        {
            let left = most.saturating_sub(sent).max(LEAST_SCANNED);
            let (names, is_complete) = match look {
                Look::Named(low) => (self.due_of_low(low), true),
                Look::Urgent => self.due_in_all(Which::Urgent, left),
                Look::All => self.due_in_all(Which::Due, left),
            };
            sent = sent.saturating_add(names.len());
            for name in names {
                self.export_one(now, name, (Whose::Everyones, true), out);
            }
            if !is_complete {
                self.outbox.put_back(look);
            }
        }
        self.outbox.signal();
        sent
    }

    /// Forgets all cells of some slots; what is counted there from now on is of another writer.
    pub(super) fn forget(&mut self, slots: u64) -> usize {
        let (mut handles, mut held) = (Vec::new(), 0);
        for (handle, cell) in self.cells() {
            let bit = cell::key_of(cell).map_or(0, slot_bit);
            if slots & bit != 0 {
                handles.push(handle);
                held |= bit;
            }
        }
        let forgotten = handles.len();
        self.remove_cells(handles);
        // Of the others nothing that counts was ever sent.
        self.raise_epochs(held);
        if forgotten > 0 {
            self.trim();
        }
        forgotten
    }

    fn due_in_all(&self, which: Which, most: usize) -> (Vec<(KeyHash, Identity)>, bool) {
        let names = self.names_in(u64::MAX, which, most);
        let is_complete = names.len() < most;
        (names, is_complete)
    }

    fn due_of_low(&self, low: u64) -> Vec<(KeyHash, Identity)> {
        let mut names = Vec::new();
        self.each_cell_of_low(low, |_, cell| {
            if is_wanted(cell, Which::Due)
                && let Some(name) = name_of(cell)
                && !names.contains(&name)
            {
                names.push(name);
            }
        });
        names
    }

    /// The counters of some slots that are wanted, each once, at most about `most`.
    fn names_in(&self, slots: u64, which: Which, most: usize) -> Vec<(KeyHash, Identity)> {
        let wanted = self
            .cells()
            .filter(|(_, cell)| is_in(cell, slots) && is_wanted(cell, which));
        let names = wanted.filter_map(|(_, cell)| name_of(cell));
        let mut names: Vec<_> = names.take(most).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn export_one(
        &mut self,
        now: Nanos,
        name: (KeyHash, Identity),
        (whose, sends): (Whose, bool),
        out: &mut Vec<Series>,
    ) {
        let handles = self.handles_of(name);
        self.tell_own(now, name.0, &handles, out);
        if whose == Whose::Everyones {
            self.tell_others(now, name.0, &handles, out);
        }
        if !sends {
            return;
        }
        for handle in handles {
            if let Some(cell) = self.cell_mut(handle) {
                match cell::role(cell) {
                    Role::Total => cell::set_sent(cell),
                    Role::Foreign | Role::Void => cell::unmark(cell),
                }
            }
        }
    }

    fn tell_own(&self, now: Nanos, key: KeyHash, handles: &[Handle], out: &mut Vec<Series>) {
        let cells = || handles.iter().filter_map(|handle| self.cell(*handle));
        let Some(total) = cells().find(|cell| cell::role(cell) == Role::Total) else {
            return;
        };
        let (Some(held), Some(counter)) = (cell::held(total), counter_of(total)) else {
            return;
        };
        let at = self.moment(now);
        let words = match cell::rule_of(total) {
            Some(rule) => {
                let foreign: SmallVec<[Kept<'_>; MAX_SERIES]> = cells()
                    .filter(|cell| cell::role(cell) == Role::Foreign)
                    .filter_map(cell::kept)
                    .collect();
                merge::own(&rule, held, at, &foreign)
            }
            // Bans are never mixed.
            None => SeriesWords::from_slice(held.words),
        };
        out.push(Series {
            key,
            counter,
            writer: Writer::new(self.writer_of(key)),
            version: cell::version(total),
            clock: now.as_nanos(),
            body: Body::Counts {
                seen: held.seen,
                latest: held.latest,
                words,
            },
        });
    }

    fn tell_others(&self, now: Nanos, key: KeyHash, handles: &[Handle], out: &mut Vec<Series>) {
        let cells = || handles.iter().filter_map(|handle| self.cell(*handle));
        let has_total = cells().any(|cell| cell::role(cell) == Role::Total);
        let own = self.writer_of(key);
        for wanted in [Role::Void, Role::Foreign] {
            for cell in cells().filter(|cell| cell::role(cell) == wanted) {
                let writer = cell::writer(cell);
                if writer == SEED || (writer == own && has_total) {
                    continue;
                }
                let Some(counter) = counter_of(cell) else {
                    continue;
                };
                let (clock, body) = match cell::kept(cell).filter(|_| wanted == Role::Foreign) {
                    Some(kept) => (
                        now.as_nanos().wrapping_sub(kept.offset),
                        Body::Counts {
                            seen: cell::seen(cell),
                            latest: kept.latest,
                            words: told_words(cell, kept.words),
                        },
                    ),
                    None => (now.as_nanos(), Body::Void),
                };
                out.push(Series {
                    key,
                    counter,
                    writer: Writer::new(writer),
                    version: cell::version(cell),
                    clock,
                    body,
                });
            }
        }
    }
}

/// The words of a series without those that its cell has to spare.
fn told_words(cell: &[u64], words: &[u64]) -> SeriesWords {
    let in_use = cell::rule_of(cell).map_or(words.len(), |rule| merge::words_in_use(&rule, words));
    SeriesWords::from_slice(words.get(..in_use).unwrap_or(words))
}

fn counter_of(cell: &[u64]) -> Option<Counter> {
    let part = Identity::of_cell(cell)?.part();
    if part == Part::Ban {
        return Some(Counter::Ban);
    }
    let algorithm = cell::rule_of(cell)?.algorithm;
    Some(match part {
        Part::Failures => Counter::Failures(algorithm),
        Part::Charges | Part::Ban => Counter::Charges(algorithm),
    })
}

fn name_of(cell: &[u64]) -> Option<(KeyHash, Identity)> {
    Some((cell::key_of(cell)?, Identity::of_cell(cell)?))
}

fn is_wanted(cell: &[u64], which: Which) -> bool {
    let is_unsent = match cell::role(cell) {
        Role::Total => cell::unsent(cell) > 0,
        Role::Foreign | Role::Void => cell::is_marked(cell),
    };
    match which {
        Which::All => true,
        Which::Unsent => is_unsent,
        Which::Due => is_unsent && is_replicated(cell),
        Which::Urgent => match cell::role(cell) {
            Role::Total => cell::is_urgent(cell),
            Role::Void => is_unsent && is_replicated(cell),
            Role::Foreign => false,
        },
    }
}

fn is_replicated(cell: &[u64]) -> bool {
    Identity::of_cell(cell).is_some_and(Identity::is_replicated)
}

fn is_in(cell: &[u64], slots: u64) -> bool {
    cell::key_of(cell).is_some_and(|key| slots & slot_bit(key) != 0)
}

fn slot_bit(key: KeyHash) -> u64 {
    let at = key.slot().index() % SLOTS_PER_SHARD;
    1_u64.unbounded_shl(u32::try_from(at).unwrap_or(0))
}
