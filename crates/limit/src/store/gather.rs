//! Totals: what is decided on, made of what each writer has counted.
//!
//! A store that only keeps copies has no total; the first check or change makes it. Knows nothing of messages.
//! Invariant: a total with series beside it is marked, and what it holds of each is what its cell says.

use smallvec::SmallVec;

use super::{
    ban,
    cell::{self, Foreign, Identity, Part, Role},
    decide::is_of_entries,
    handle::Handle,
    shard::{Found, Shard},
};
use crate::{
    counter::{
        self, Held, HeldMut, Moment,
        merge::{self, Kept},
    },
    entries,
    key::KeyHash,
    rule::{MAX_LOG_LIMIT, Rule},
    series::SeriesWords,
    units::Nanos,
};

/// Series of a counter that are held at most where this store decides, the own one included.
pub(super) const MAX_SERIES: usize = 8;
/// And where it only keeps copies: what a store that decides holds, and what that has held lately and taken in
/// since. Copies are never taken in: two stores that did would both tell of the same.
pub(super) const MAX_COPIED: usize = 3 * MAX_SERIES;
/// The writer of what was not counted but told: no store has that number, and none sends its series.
pub(super) const SEED: u64 = u64::MAX;
/// The longest ring of entries: what the largest limit needs.
pub(super) const MOST_ENTRY_WORDS: usize = entries::words_for(MAX_LOG_ENTRIES);
const MAX_LOG_ENTRIES: usize = 10_000;
const _: () = assert!(
    MAX_LOG_LIMIT == 10_000,
    "the longest ring fits the largest limit"
);

/// A total that has no cell.
struct Gathered {
    latest: Nanos,
    words: Vec<u64>,
}

impl Shard {
    /// Looks at what checks have charged: at the total, or at what that would be; `None` if there is nothing.
    #[inline]
    pub(super) fn with_held<T>(
        &self,
        at: Moment,
        (key, rule): (KeyHash, &Rule),
        look: impl FnOnce(Option<Held<'_>>) -> T,
    ) -> T {
        let identity = Identity::of(&rule.algorithm, Part::Charges);
        match self.look_up(key, identity) {
            Found::Total(handle) => look(self.cell(handle).and_then(cell::held)),
            Found::Nothing => look(None),
            Found::Others => {
                let Gathered { latest, words } = self.gathered(at, (key, identity), rule);
                look(Some(Held {
                    seen: rule.noted(),
                    latest,
                    words: &words,
                }))
            }
        }
    }

    /// Makes the total of a counter of which only others' series are held.
    pub(super) fn gather(&mut self, at: Moment, name: (KeyHash, Identity), rule: &Rule) {
        if self.look_up(name.0, name.1) != Found::Others {
            return;
        }
        let Gathered { latest, words } = self.gathered(at, name, rule);
        let cell = self.insert(at.now, name, (rule.noted(), latest), words.len());
        if let Some(own) = cell.get_mut(cell::HEADER_WORDS..) {
            copy_words(rule, &words, own);
        }
        cell::mark(cell);
        // With its own there may be one too many.
        if self.kept_of(name).len() >= MAX_SERIES {
            self.make_place(at, name);
        }
    }

    fn gathered(&self, at: Moment, name: (KeyHash, Identity), rule: &Rule) -> Gathered {
        let kept: SmallVec<[Kept<'_>; MAX_SERIES]> = self.kept_of(name);
        let words = if is_of_entries(rule) {
            ring_words(merge::words_to_hold(rule, None, &kept))
        } else {
            counter::words(&rule.algorithm)
        };
        let (mut latest, mut words) = (Nanos::ZERO, vec![0; words]);
        let total = HeldMut {
            seen: rule.noted(),
            latest: &mut latest,
            words: &mut words,
        };
        merge::gather(rule, total, at, &kept);
        Gathered { latest, words }
    }

    /// What is held of others' series of a counter.
    pub(super) fn kept_of(&self, name: (KeyHash, Identity)) -> SmallVec<[Kept<'_>; MAX_SERIES]> {
        let handles = self.handles_of(name);
        let cells = handles.iter().filter_map(|handle| self.cell(*handle));
        cells
            .filter(|cell| cell::role(cell) == Role::Foreign)
            .filter_map(cell::kept)
            .collect()
    }

    /// Where all cells of a counter lie.
    pub(super) fn handles_of(&self, name: (KeyHash, Identity)) -> SmallVec<[Handle; MAX_SERIES]> {
        let mut handles = SmallVec::new();
        self.each_cell_of_counter(name, |handle, _| handles.push(handle));
        handles
    }

    /// The ban of a key, of all writers.
    #[inline]
    pub(super) fn ban(&self, now: Nanos, key: KeyHash) -> Option<[u64; ban::WORDS]> {
        let mut words = None;
        self.each_cell_of_counter((key, Identity::BAN), |_, cell| match cell::role(cell) {
            Role::Total => {
                let own = cell::held(cell).map_or(&[][..], |held| held.words);
                ban::mix(words.get_or_insert([0; ban::WORDS]), now, own, 0);
            }
            Role::Foreign => {
                if let Some(kept) = cell::kept(cell) {
                    let known = words.get_or_insert([0; ban::WORDS]);
                    ban::mix(known, now, kept.words, kept.offset);
                }
            }
            Role::Void => {}
        });
        words
    }

    /// Says of all that a new counter has that another has counted it.
    pub(super) fn set_seed(&mut self, now: Nanos, (key, identity): (KeyHash, Identity)) {
        let Some(cell) = self.find_mut(key, identity) else {
            return;
        };
        cell::set_sent(cell);
        cell::mark(cell);
        let Some(held) = cell::held(cell) else { return };
        let (seen, latest) = (held.seen, held.latest);
        let words = SeriesWords::from_slice(held.words);
        let seed = Foreign {
            writer: SEED,
            version: 1,
            seen,
            is_full: false,
        };
        self.insert_foreign(now, (key, identity), &seed, (latest, 0), &words);
    }

    /// Adds a cell for another writer's series.
    pub(super) fn insert_foreign(
        &mut self,
        now: Nanos,
        name: (KeyHash, Identity),
        foreign: &Foreign,
        (latest, offset): (Nanos, u64),
        words: &[u64],
    ) {
        // The offset goes before the words.
        let own_words = words.len().saturating_add(1);
        self.insert_other(now, name.0, own_words, |cell| {
            cell::start_foreign(cell, name, foreign, (latest, offset));
            let own = cell.get_mut(cell::HEADER_WORDS.saturating_add(1)..);
            if let Some(own) = own.and_then(|own| own.get_mut(..words.len())) {
                own.copy_from_slice(words);
            }
        });
    }

    /// Gives a ring of entries that many words, unless the budget or counters at their limit leave no room.
    pub(super) fn lengthen_to(&mut self, at: Moment, name: (KeyHash, Identity), words: usize) {
        let words = words.min(MOST_ENTRY_WORDS);
        let Some(cell) = self.find(name.0, name.1) else {
            return;
        };
        let Some(held) = cell::held(cell) else { return };
        if words <= held.words.len() || !self.could_hold(words) {
            return;
        }
        let mut copy = vec![0; words];
        entries::move_to(held.words, &mut copy);
        let (seen, latest, before) = (held.seen, held.latest, held.words.len());
        let state = cell::state(cell);
        self.remove_one(name.0, name.1);
        // No limit is forgotten for a longer ring: without room the two oldest entries become one.
        let fits = self.make_spare_room(at.now, cell::length(words));
        let words = if fits { words } else { before };
        let cell = self.insert(at.now, name, (seen, latest), words);
        cell::set_state(cell, state);
        if let Some(own) = cell.get_mut(cell::HEADER_WORDS..) {
            entries::move_to(&copy, own);
        }
    }
}

/// Words of a ring that holds as much as one of so many: few lengths, so that there are few arenas.
pub(super) fn ring_words(words: usize) -> usize {
    let mut longer = entries::FEWEST_WORDS;
    let mut entries = FEWEST_ENTRIES;
    while longer < words && longer < MOST_ENTRY_WORDS {
        entries = entries.saturating_mul(2);
        longer = entries::words_for(entries).min(MOST_ENTRY_WORDS);
    }
    longer
}

const FEWEST_ENTRIES: usize = 3;
const _: () = assert!(
    entries::words_for(FEWEST_ENTRIES) == entries::FEWEST_WORDS,
    "the smallest ring has three entries"
);

/// Copies a counter's words into a cell that may have more.
pub(super) fn copy_words(rule: &Rule, words: &[u64], own: &mut [u64]) {
    if is_of_entries(rule) {
        entries::move_to(words, own);
    } else if let Some(own) = own.get_mut(..words.len()) {
        own.copy_from_slice(words);
    }
}
