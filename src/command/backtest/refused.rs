//! Which keys are refused most.
//!
//! The space-saving sketch: exact for as many keys as it has places; with more the key with the fewest
//! refusals gives its place, and its count, to the new one. So no key with more refusals than all divided
//! by the places is missed, and each count is too high by at most what it says. Must not know of limits.
//!
//! Bound: as many keys as it is made for, of each at most [`MAX_SHOWN`] characters for each value.

use std::collections::{BTreeSet, HashMap};

use tollgate_limit::KeyHash;

/// The most characters that are kept of a value.
const MAX_SHOWN: usize = 64;

/// The keys that are refused most.
#[derive(Debug)]
pub(super) struct MostRefused {
    places: usize,
    keys: HashMap<KeyHash, Place>,
    /// The same keys by their refusals.
    by_count: BTreeSet<(u64, KeyHash)>,
    exact: bool,
}

#[derive(Debug)]
struct Place {
    count: u64,
    too_high_by: u64,
    values: Vec<String>,
}

/// A key and how often it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusedKey {
    /// The values of the key's attributes.
    pub(super) values: Vec<String>,
    /// How often it was refused.
    pub(super) refused: u64,
    /// What the count may be too high by.
    pub(super) too_high_by: u64,
}

impl MostRefused {
    /// Nothing refused.
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: places.max(1),
            keys: HashMap::new(),
            by_count: BTreeSet::new(),
            exact: true,
        }
    }

    /// Whether every key has its own count.
    pub(super) const fn is_exact(&self) -> bool {
        self.exact
    }

    /// Counts a refusal of a key that has these values.
    pub(super) fn count<'v>(&mut self, key: KeyHash, values: impl Iterator<Item = &'v str>) {
        if let Some(place) = self.keys.get_mut(&key) {
            self.by_count.remove(&(place.count, key));
            place.count = place.count.saturating_add(1);
            self.by_count.insert((place.count, key));
            return;
        }
        let mut inherited = 0;
        if self.keys.len() >= self.places
            && let Some((least, out)) = self.by_count.pop_first()
        {
            self.keys.remove(&out);
            self.exact = false;
            inherited = least;
        }
        let count = inherited.saturating_add(1);
        self.by_count.insert((count, key));
        let place = Place {
            count,
            too_high_by: inherited,
            values: values.map(short).collect(),
        };
        self.keys.insert(key, place);
    }

    /// The keys with the most refusals, the most first; equal ones by their values.
    pub(super) fn first(&self, wanted: usize) -> Vec<RefusedKey> {
        let mut all: Vec<_> = self.keys.values().collect();
        all.sort_unstable_by(|one, other| {
            let more = other.count.cmp(&one.count);
            more.then_with(|| one.values.cmp(&other.values))
        });
        let first = all.into_iter().take(wanted).map(|place| RefusedKey {
            values: place.values.clone(),
            refused: place.count,
            too_high_by: place.too_high_by,
        });
        first.collect()
    }
}

fn short(value: &str) -> String {
    match value.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::KeyHash;

    use super::{MAX_SHOWN, MostRefused};

    fn refused(sketch: &mut MostRefused, number: u64) {
        let text = number.to_string();
        sketch.count(
            KeyHash::from_halves(number, number),
            [text.as_str()].into_iter(),
        );
    }

    fn first(sketch: &MostRefused, wanted: usize) -> Vec<(String, u64, u64)> {
        let first = sketch.first(wanted).into_iter();
        first
            .map(|key| (key.values.concat(), key.refused, key.too_high_by))
            .collect()
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut sketch = MostRefused::new(3);
        for number in [5, 7, 5, 9, 7, 5] {
            refused(&mut sketch, number);
        }
        assert!(sketch.is_exact());
        let wanted = [("5", 3, 0), ("7", 2, 0), ("9", 1, 0)];
        assert_eq!(
            first(&sketch, 10),
            wanted.map(|(key, n, high)| (key.to_owned(), n, high))
        );
        assert_eq!(first(&sketch, 1).len(), 1);
    }

    #[test]
    fn a_key_that_is_refused_often_is_found_among_many() {
        let mut sketch = MostRefused::new(20);
        for number in 1000..3000 {
            refused(&mut sketch, number);
            if number % 4 == 0 {
                refused(&mut sketch, 1);
            }
        }
        assert!(!sketch.is_exact());
        assert_eq!((sketch.keys.len(), sketch.by_count.len()), (20, 20));
        let (key, count, too_high_by) = first(&sketch, 1).remove(0);
        assert_eq!(key, "1");
        assert!(
            count - too_high_by <= 500 && 500 <= count,
            "{count} - {too_high_by}"
        );
    }

    #[test]
    fn a_long_value_is_cut_off() {
        let mut sketch = MostRefused::new(1);
        let long = "é".repeat(MAX_SHOWN + 1);
        sketch.count(KeyHash::from_halves(1, 1), [long.as_str()].into_iter());
        assert_eq!(
            first(&sketch, 1)[0].0,
            format!("{}…", "é".repeat(MAX_SHOWN))
        );
    }
}
