//! The index against a plain map, under hashes that collide.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{Handle, Index, TAG_BITS};

#[derive(Clone, Copy, Debug)]
enum Call {
    Insert { number: usize },
    Remove { number: usize },
    Replace { number: usize, by: usize },
    Trim,
}

fn call() -> impl Strategy<Value = Call> {
    let number = 0_usize..120;
    prop_oneof![
        5 => number.clone().prop_map(|number| Call::Insert { number }),
        3 => number.clone().prop_map(|number| Call::Remove { number }),
        1 => (number.clone(), number).prop_map(|(number, by)| Call::Replace { number, by }),
        1 => Just(Call::Trim),
    ]
}

/// Few homes, some at the end of the slots, and few tags.
fn hash_of_number(number: usize) -> u64 {
    let number = number as u64;
    (number % 3) << (u64::BITS - TAG_BITS) | (number % 7).wrapping_mul(37).wrapping_sub(3) & 0xffff
}

/// Handles with the number's hash: 200 of them for each number.
fn handle(number: usize, version: usize) -> Handle {
    Handle::new(number % 5, number * 200 + version)
}

fn hash_of(handle: Handle) -> u64 {
    hash_of_number(handle.index() / 200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn handles_are_found_as_in_a_plain_map(calls in prop::collection::vec(call(), 1..400)) {
        let mut index = Index::default();
        let mut model: HashMap<usize, Handle> = HashMap::new();
        let mut version = 0;
        for call in calls {
            version = (version + 1) % 200;
            match call {
                Call::Insert { number } => {
                    if let std::collections::hash_map::Entry::Vacant(entry) = model.entry(number) {
                        let told = index.bytes() + index.bytes_for_one_more();
                        let handle = *entry.insert(handle(number, version));
                        index.insert(hash_of(handle), handle, hash_of);
                        prop_assert_eq!(index.bytes(), told);
                    }
                }
                Call::Remove { number } => {
                    let known = model.remove(&number);
                    let handle = known.unwrap_or_else(|| handle(number, version));
                    prop_assert_eq!(index.remove(hash_of(handle), handle, hash_of), known.is_some());
                }
                Call::Replace { number, by } => {
                    let new = handle(number, by);
                    let old = model.get(&number).copied();
                    let known = old.unwrap_or(new);
                    prop_assert_eq!(index.replace(hash_of(new), known, new), old.is_some());
                    if let Some(known) = model.get_mut(&number) {
                        *known = new;
                    }
                }
                Call::Trim => index.trim(hash_of),
            }
            prop_assert_eq!(index.len(), model.len());
            prop_assert!(model.len() * 4 <= index.slots.len() * 3);
        }
        for number in 0..120 {
            let found = index.find(hash_of_number(number), |handle| handle.index() / 200 == number);
            prop_assert_eq!(found, model.get(&number).copied());
        }
        prop_assert_eq!(index.iter().count(), model.len());
    }
}
