//! What comes from other stores: a series is kept if it is newer than what is held of its writer, and put into
//! the total in place of that.
//!
//! Knows nothing of links. Invariants: any order and any repetition give the same state; whatever a series says,
//! nothing panics; at most [`MAX_SERIES`] or [`MAX_COPIED`] cells of a counter are series, [`MAX_VOIDS`] voids.

use smallvec::SmallVec;

use super::{
    ban,
    cell::{self, Foreign, Identity, Part, Role, Standing, Urge},
    decide::is_of_entries,
    gather::{MAX_COPIED, MAX_SERIES, MOST_ENTRY_WORDS, SEED, ring_words},
    handle::Handle,
    shard::Shard,
};
use crate::{
    counter::{
        Moment,
        merge::{self, Kept},
    },
    key::KeyHash,
    rule::{Algorithm, MAX_SLICES, OldestSlice, Rule},
    series::{Body, Counter, Merged, Series, SeriesWords},
    units::Nanos,
};

/// What a series says, in a cell's terms.
struct Incoming<'a> {
    name: (KeyHash, Identity),
    /// `None` of a ban.
    rule: Option<Rule>,
    foreign: Foreign,
    latest: Nanos,
    offset: u64,
    /// `None` of a void.
    words: Option<&'a [u64]>,
}

/// What is held of the writer of a series.
struct Known {
    role: Role,
    version: u64,
    latest: Nanos,
    offset: u64,
    words: SeriesWords,
}

impl Known {
    fn of(cell: &[u64]) -> Self {
        let role = cell::role(cell);
        let kept = cell::kept(cell).filter(|_| role == Role::Foreign);
        Self {
            role,
            version: cell::version(cell),
            latest: kept.map_or(Nanos::ZERO, |kept| kept.latest),
            offset: kept.map_or(0, |kept| kept.offset),
            words: kept.map_or_else(SeriesWords::new, |kept| SeriesWords::from_slice(kept.words)),
        }
    }

    fn kept(&self) -> Option<Kept<'_>> {
        (self.role == Role::Foreign).then_some(Kept {
            latest: self.latest,
            offset: self.offset,
            words: &self.words,
        })
    }
}

impl Shard {
    /// Takes a series over, if it is newer than what is held of its writer.
    pub(super) fn merge(&mut self, now: Nanos, series: &Series) -> Merged {
        let Some(incoming) = Incoming::of(now, series) else {
            return self.refuse();
        };
        if incoming.foreign.writer == self.writer_of(series.key) {
            return self.merge_own(now, &incoming);
        }
        let known = self.known(incoming.name, incoming.foreign.writer);
        // A void is of a series as it stood at its version, so it comes after that.
        let rank = |version, is_void: bool| (version, is_void);
        let is_known = known.as_ref().is_some_and(|known| {
            let held = rank(known.version, known.role == Role::Void);
            rank(incoming.foreign.version, incoming.words.is_none()) <= held
        });
        if is_known {
            return Merged::Known;
        }
        let at = self.moment(now);
        let is_new = known.as_ref().is_none_or(|known| known.role == Role::Void);
        if incoming.words.is_some() && is_new && !self.make_place(at, incoming.name) {
            return self.refuse();
        }
        self.mix_in(at, &incoming, known.as_ref().and_then(Known::kept));
        self.keep(at, &incoming, known.as_ref());
        self.note_write(now, series.key);
        Merged::Taken
    }

    fn refuse(&mut self) -> Merged {
        self.tally.refused = self.tally.refused.saturating_add(1);
        Merged::Refused
    }

    /// Another has declared what this store counted as void: it is, unless there is more of it by now.
    fn merge_own(&mut self, now: Nanos, incoming: &Incoming<'_>) -> Merged {
        if incoming.words.is_some() {
            return Merged::Own;
        }
        let (key, identity) = incoming.name;
        let version = self.find(key, identity).map(cell::version);
        if version.is_none_or(|version| version > incoming.foreign.version) {
            return Merged::Own;
        }
        let version = version.unwrap_or(0);
        let at = self.moment(now);
        self.remove_one(key, identity);
        let own = (incoming.foreign.writer, version);
        let end = void_end(at, incoming.rule.as_ref(), None);
        self.insert_void(at, incoming.name, own, (incoming.foreign.seen, end));
        self.note_write(now, key);
        Merged::Taken
    }

    /// Puts what is new of a series into the total, if there is one, in place of what was held.
    fn mix_in(&mut self, at: Moment, incoming: &Incoming<'_>, old: Option<Kept<'_>>) {
        let (key, identity) = incoming.name;
        // Bans are never mixed: each says until when it holds.
        if identity.part() == Part::Ban {
            return;
        }
        let new = incoming.kept();
        let Some(total) = self.find(key, identity) else {
            return;
        };
        let Some(rule) = cell::rule_of(total) else {
            return;
        };
        let others = self.others_of(incoming.name, incoming.foreign.writer);
        let others: SmallVec<[Kept<'_>; 2]> = others.iter().filter_map(Known::kept).collect();
        if is_of_entries(&rule) {
            let words = words_for_mix(total, &rule, at, &others, (old, new));
            self.lengthen_to(at, incoming.name, words);
        }
        let Some(total) = self.find_mut(key, identity) else {
            return;
        };
        cell::mix(total, |held| {
            merge::replace(&rule, held, at, &others, (old, new));
        });
        cell::mark(total);
    }

    /// Keeps a series or a void in place of what was held of its writer.
    fn keep(&mut self, at: Moment, incoming: &Incoming<'_>, known: Option<&Known>) {
        let (name, foreign) = (incoming.name, incoming.foreign);
        let is_open = self.is_open(name.0);
        let Some(words) = incoming.words else {
            let end = void_end(at, incoming.rule.as_ref(), known.and_then(Known::kept));
            let of = (foreign.writer, foreign.version);
            self.insert_void(at, name, of, (foreign.seen, end));
            return;
        };
        let latest = (incoming.latest, incoming.offset);
        let own_words = incoming.own_words(words);
        let in_place = self.handle_of(name, foreign.writer).filter(|handle| {
            let length = cell::length(own_words.saturating_add(1));
            let cell = self.cell(*handle).unwrap_or_default();
            cell::role(cell) == Role::Foreign && cell.len() == length
        });
        let fill = |cell: &mut [u64]| {
            cell::start_foreign(cell, name, &foreign, latest);
            let own = cell.get_mut(cell::HEADER_WORDS.saturating_add(1)..);
            if let Some(own) = own.and_then(|own| own.get_mut(..words.len())) {
                own.copy_from_slice(words);
            }
            if is_open {
                cell::mark(cell);
            }
        };
        let was_marked = self.is_any_marked(name);
        if let Some(cell) = in_place.and_then(|handle| self.cell_mut(handle)) {
            fill(cell);
        } else {
            self.remove_series(name, foreign.writer);
            self.insert_other(at.now, name.0, own_words.saturating_add(1), fill);
        }
        if is_open && !was_marked {
            self.note_passed_on(at.now, name, Urge::Due);
        }
    }

    /// Makes a place for one more series of a counter; false if there is none.
    pub(super) fn make_place(&mut self, at: Moment, name: (KeyHash, Identity)) -> bool {
        let mut series: Vec<(Nanos, u64, bool)> = Vec::new();
        self.each_cell_of_counter(name, |_, cell| {
            if cell::role(cell) == Role::Foreign
                && let Some(kept) = cell::kept(cell)
            {
                let latest = kept.latest.as_nanos().wrapping_add(kept.offset);
                let is_over = cell::standing_of_foreign(cell, at) == Standing::Empty;
                series.push((Nanos::new(latest), cell::writer(cell), is_over));
            }
        });
        // The own series is one of them: what this store tells of a counter must find its place in another.
        let has_total = self.find(name.0, name.1).is_some();
        let decides = self.is_open(name.0);
        let most = if decides { MAX_SERIES } else { MAX_COPIED };
        if series.len().saturating_add(usize::from(has_total)) < most {
            return true;
        }
        let before = series.len();
        for (_, writer, _) in series.iter().filter(|(_, _, is_over)| *is_over) {
            self.remove_series(name, *writer);
        }
        series.retain(|(_, _, is_over)| !is_over);
        if series.len() < before || !decides {
            return series.len() < before;
        }
        let counted = series.iter().filter(|(_, writer, _)| *writer != SEED);
        let Some((_, oldest, _)) = counted.min() else {
            return false;
        };
        self.absorb(at, name, *oldest)
    }

    /// Takes another's series into what this store counts itself; false if it counts nothing itself.
    fn absorb(&mut self, at: Moment, name: (KeyHash, Identity), writer: u64) -> bool {
        let Some(known) = self.known(name, writer) else {
            return false;
        };
        let Some(total) = self.find_mut(name.0, name.1) else {
            return false;
        };
        let seen = cell::held(total).map_or(0, |held| held.seen);
        let rule = cell::rule_of(total);
        let urge = cell::amend(total, |held| match (&rule, known.kept()) {
            (Some(rule), Some(kept)) => merge::absorb(rule, held, at, kept),
            (None, Some(kept)) => ban::mix(held.words, at.now, kept.words, kept.offset),
            (_, None) => {}
        });
        let end = void_end(at, rule.as_ref(), known.kept());
        self.insert_void(at, name, (writer, known.version), (seen, end));
        self.note_urge(at.now, name.0, urge);
        self.tally.absorbed = self.tally.absorbed.saturating_add(1);
        true
    }

    fn known(&self, name: (KeyHash, Identity), writer: u64) -> Option<Known> {
        let cell = self.cell(self.handle_of(name, writer)?)?;
        Some(Known::of(cell))
    }

    /// The series of all other writers of a counter.
    fn others_of(&self, name: (KeyHash, Identity), writer: u64) -> SmallVec<[Known; 1]> {
        let mut others = SmallVec::new();
        self.each_cell_of_counter(name, |_, cell| {
            if cell::role(cell) == Role::Foreign && cell::writer(cell) != writer {
                others.push(Known::of(cell));
            }
        });
        others
    }

    /// Where the series or the void of a writer lies.
    fn handle_of(&self, name: (KeyHash, Identity), writer: u64) -> Option<Handle> {
        let mut found = None;
        self.each_cell_of_counter(name, |handle, cell| {
            if cell::role(cell) != Role::Total && cell::writer(cell) == writer {
                found = Some(handle);
            }
        });
        found
    }

    /// Removes what is held of a writer's series.
    pub(super) fn remove_series(&mut self, name: (KeyHash, Identity), writer: u64) {
        if let Some(handle) = self.handle_of(name, writer) {
            self.remove_cell(handle);
        }
    }
}

impl<'a> Incoming<'a> {
    /// `None` if it cannot be one of its counter.
    fn of(now: Nanos, series: &'a Series) -> Option<Self> {
        let (part, algorithm) = match series.counter {
            Counter::Charges(algorithm) => (Part::Charges, Some(algorithm)),
            Counter::Failures(algorithm) => (Part::Failures, Some(algorithm)),
            Counter::Ban => (Part::Ban, None),
        };
        let identity = algorithm.map_or(Identity::BAN, |algorithm| Identity::of(&algorithm, part));
        let window = algorithm.and_then(|algorithm| match algorithm {
            Algorithm::SlidingWindow(window) => Some(window),
            Algorithm::SlidingLog(_)
            | Algorithm::FixedWindow(_)
            | Algorithm::TokenBucket(_)
            | Algorithm::LeakyBucket(_)
            | Algorithm::Concurrency(_) => None,
        });
        if window.is_some_and(|window| !(1..=MAX_SLICES).contains(&window.slices)) {
            return None;
        }
        let (seen, latest, words) = match &series.body {
            Body::Counts {
                seen,
                latest,
                words,
            } => (*seen, *latest, Some(words.as_slice())),
            Body::Void => (0, Nanos::ZERO, None),
        };
        let rule = algorithm.map(|algorithm| Rule {
            ceiling: seen,
            ..Rule::new(algorithm)
        });
        let is_sound = |words: &[u64]| {
            words.len() <= MOST_ENTRY_WORDS
                && match &rule {
                    Some(rule) => merge::is_sound(rule, words),
                    None => ban::is_sound(words),
                }
        };
        let writer = series.writer.number();
        if writer == SEED || series.version > cell::MOST_VERSION || !words.is_none_or(is_sound) {
            return None;
        }
        Some(Self {
            name: (series.key, identity),
            rule,
            foreign: Foreign {
                writer,
                version: series.version,
                seen,
                is_full: window.is_some_and(|window| window.oldest == OldestSlice::Full),
            },
            latest,
            offset: merge::offset(now, series.clock, latest),
            words,
        })
    }

    fn kept(&self) -> Option<Kept<'a>> {
        Some(Kept {
            latest: self.latest,
            offset: self.offset,
            words: self.words?,
        })
    }

    /// Words of the cell that holds them: of rings only few lengths.
    fn own_words(&self, words: &[u64]) -> usize {
        match &self.rule {
            Some(rule) if is_of_entries(rule) => ring_words(words.len()),
            _ => words.len(),
        }
    }
}

/// Words of a ring that holds what a total will be with a series in place of an older one: what is missing from
/// a series by what was taken back here has an entry too.
fn words_for_mix(
    total: &[u64],
    rule: &Rule,
    at: Moment,
    others: &[Kept<'_>],
    (old, new): (Option<Kept<'_>>, Option<Kept<'_>>),
) -> usize {
    let Some(held) = cell::held(total) else {
        return 0;
    };
    let mut series: SmallVec<[Kept<'_>; 4]> = others.iter().copied().chain(old).collect();
    let all: SmallVec<[Kept<'_>; 4]> = series.iter().copied().chain(new).collect();
    let most = merge::words_to_hold(rule, Some(held.words), &all);
    if most <= held.words.len() {
        return most;
    }
    let own = merge::own(rule, held, at, &series);
    series.truncate(others.len());
    series.extend(new);
    ring_words(merge::words_to_hold(rule, Some(&own), &series))
}

/// When a void may be forgotten: no copy of what it is of counts any more by then.
pub(super) fn void_end(at: Moment, rule: Option<&Rule>, kept: Option<Kept<'_>>) -> Nanos {
    let Some(rule) = rule else {
        let end = at.now.saturating_add(VOID_OF_BAN);
        return kept.map_or(end, |kept| end.max(ban::ends_at(kept.words, kept.offset)));
    };
    let window = rule.window().span();
    // A slice is at most a window.
    let longest = window.saturating_add(window).max(rule.algorithm.refill());
    let end = at.now.saturating_add(longest);
    kept.map_or(end, |kept| end.max(merge::ends_at(rule, at, kept)))
}

/// How long it is known that a ban was lifted.
const VOID_OF_BAN: Nanos = Nanos::from_millis(3_600_000);
