//! Voids: that nothing counts any more of what a writer has counted, up to a version.
//!
//! A reset and a ban that begins leave one for each series, so that none of them comes back with a late copy.
//! Knows nothing of links. Invariant: at most [`MAX_VOIDS`] for each counter; the one that is over first goes
//! for another, and with all counters of a shard at their limit none is kept. Then a late copy may count again:
//! towards refusing.

use smallvec::SmallVec;

use super::{
    cell::{self, Identity, Role, Urge},
    gather::SEED,
    merge::void_end,
    shard::Shard,
};
use crate::{
    counter::{Held, Moment, merge::Kept},
    key::KeyHash,
    units::Nanos,
};

/// Voids of a counter that are held at most.
pub(super) const MAX_VOIDS: usize = 8;

/// A series that is to be void.
struct Ended {
    writer: u64,
    version: u64,
    seen: u64,
    end: Nanos,
}

/// What a total holds, as if it were a series.
fn at_home(held: Held<'_>) -> Kept<'_> {
    let Held { latest, words, .. } = held;
    Kept {
        latest,
        offset: 0,
        words,
    }
}

impl Shard {
    /// Makes a void of all that is counted for a key.
    pub(super) fn void_key(&mut self, at: Moment, key: KeyHash) {
        let mut counters: SmallVec<[Identity; 4]> = SmallVec::new();
        self.each_cell_of(key, |_, cell| {
            counters.extend(Identity::of_cell(cell).filter(|known| !counters.contains(known)));
        });
        for identity in counters {
            self.void_counter(at, (key, identity));
        }
    }

    /// Makes a void of each series of a counter.
    pub(super) fn void_counter(&mut self, at: Moment, name: (KeyHash, Identity)) {
        let own = self.writer_of(name.0);
        let mut ended: SmallVec<[Ended; 4]> = SmallVec::new();
        self.each_cell_of_counter(name, |_, cell| {
            let rule = cell::rule_of(cell);
            let (writer, version, kept) = match cell::role(cell) {
                // Above what was sent of it.
                Role::Total => {
                    let version = cell::version(cell).saturating_add(1);
                    (own, version, cell::held(cell).map(at_home))
                }
                Role::Foreign => (cell::writer(cell), cell::version(cell), cell::kept(cell)),
                Role::Void => return,
            };
            ended.push(Ended {
                writer,
                version: version.min(cell::MOST_VERSION),
                seen: rule.map_or(0, |rule| rule.noted()),
                end: void_end(at, rule.as_ref(), kept),
            });
        });
        for Ended {
            writer,
            version,
            seen,
            end,
        } in ended
        {
            if writer == own {
                self.remove_one(name.0, name.1);
                self.note_version(version);
            } else {
                self.remove_series(name, writer);
            }
            if writer != SEED {
                self.insert_void(at, name, (writer, version), (seen, end));
                self.note_passed_on(at.now, name, Urge::Urgent);
            }
        }
    }

    /// Keeps a void in place of what was held of its writer, to be sent if the slot is open.
    pub(super) fn insert_void(
        &mut self,
        at: Moment,
        name: (KeyHash, Identity),
        (writer, version): (u64, u64),
        (seen, end): (u64, Nanos),
    ) {
        let was_marked = self.is_any_marked(name);
        self.remove_series(name, writer);
        self.make_place_for_void(name);
        // No limit is forgotten for it.
        if !self.make_spare_room(at.now, cell::length(0)) {
            return;
        }
        let is_open = self.is_open(name.0);
        self.insert_other(at.now, name.0, 0, |cell| {
            cell::start_void(cell, name, (writer, version), (seen, end));
            if is_open {
                cell::mark(cell);
            }
        });
        if is_open && !was_marked {
            self.note_passed_on(at.now, name, Urge::Due);
        }
    }

    fn make_place_for_void(&mut self, name: (KeyHash, Identity)) {
        let (mut voids, mut first) = (0_usize, None);
        self.each_cell_of_counter(name, |handle, cell| {
            if cell::role(cell) == Role::Void {
                voids = voids.saturating_add(1);
                let end = cell::void_end(cell);
                if first.is_none_or(|(known, _)| end < known) {
                    first = Some((end, handle));
                }
            }
        });
        if voids >= MAX_VOIDS
            && let Some((_, handle)) = first
        {
            self.remove_cell(handle);
        }
    }

    /// Whether a cell of a counter that is no total is to be sent.
    pub(super) fn is_any_marked(&self, name: (KeyHash, Identity)) -> bool {
        let mut is_marked = false;
        self.each_cell_of_counter(name, |_, cell| {
            is_marked |= cell::role(cell) != Role::Total && cell::is_marked(cell);
        });
        is_marked
    }

    /// Notes that a counter is to be sent for what others counted.
    pub(super) fn note_passed_on(&mut self, now: Nanos, name: (KeyHash, Identity), urge: Urge) {
        if name.1.is_replicated() {
            self.note_urge(now, name.0, urge);
        }
    }
}
