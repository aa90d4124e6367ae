//! One shard under pressure: its table, its bytes, and who goes first (P7).

mod kinds;
mod rings;

use std::collections::HashMap;

use proptest::prelude::*;

use super::{Handle, Shard, cell, cell_of};
use crate::{
    key::KeyHash,
    rule::{OldestSlice, Rule},
    store::{
        Ask,
        cell::Standing,
        tests::{NOW, SECOND, key_in_shard, rule},
    },
    units::{Cost, Nanos},
    verdict::Mode,
};

const BUDGET: usize = 12 * 1024;

fn one(key: KeyHash, rule: Rule) -> Ask {
    let cost = Cost::ONE;
    Ask { key, rule, cost }
}

/// One of three shapes; the limit follows the number, so that some keys are at it at once.
fn shape(number: u64) -> Rule {
    let slices = match number % 7 {
        0 => 60,
        1 | 2 => 1,
        _ => 10,
    };
    rule(
        1 + number % 5,
        10 + number % 11,
        slices,
        OldestSlice::Weighted,
    )
}

#[derive(Clone, Copy, Debug)]
struct Charge {
    number: u64,
    step_ms: u64,
}

fn charge() -> impl Strategy<Value = Charge> {
    let step = prop_oneof![8 => 0_u64..3, 1 => 0_u64..4000];
    (0_u64..4000, step).prop_map(|(number, step_ms)| Charge { number, step_ms })
}

fn standings(shard: &Shard, now: Nanos) -> HashMap<KeyHash, Standing> {
    let key_of = |cell: &[u64]| KeyHash::from_halves(cell[0], cell[1]);
    let cells = shard.cells();
    cells
        .filter_map(|(_, cell)| Some((key_of(cell), shard.standing_of(cell, shard.moment(now))?)))
        .collect()
}

/// Every cell has one handle, every handle a cell, and the bytes are those of a recount.
fn check(shard: &Shard) {
    let in_arenas: usize = shard.arenas.iter().map(|arena| arena.len()).sum();
    assert_eq!(shard.len(), in_arenas);
    for (handle, cell) in shard.cells() {
        let found = shard
            .index
            .find(cell::low_of(cell), |known| known == handle);
        assert_eq!(found, Some(handle), "every cell has a handle");
    }
    let reach = |handle: Handle| cell_of(&shard.arenas, handle).is_some();
    assert!(shard.index.iter().all(reach));
    for arena in &shard.arenas {
        arena.check();
    }
}

/// Checks who went between two states: those before an insert and those after it.
fn check_order(
    before: &HashMap<KeyHash, Standing>,
    after: &HashMap<KeyHash, Standing>,
) -> Result<(), TestCaseError> {
    let gone = |kind: fn(&Standing) -> bool| {
        let lost = before
            .iter()
            .filter(|(key, standing)| kind(standing) && !after.contains_key(*key));
        lost.map(|(_, standing)| *standing).collect::<Vec<_>>()
    };
    let kept = |kind: fn(&Standing) -> bool| {
        let stayed = before
            .iter()
            .filter(|(key, standing)| kind(standing) && after.contains_key(*key));
        stayed.map(|(_, standing)| *standing).collect::<Vec<_>>()
    };
    let empty = |standing: &Standing| matches!(standing, Standing::Empty);
    let below = |standing: &Standing| matches!(standing, Standing::Below { .. });
    let full = |standing: &Standing| matches!(standing, Standing::AtLimit { .. });
    if !gone(below).is_empty() {
        prop_assert!(kept(empty).is_empty(), "the empty go first");
    }
    for lost in gone(below) {
        for stayed in kept(below) {
            prop_assert!(
                share(lost) <= share(stayed),
                "{lost:?} went, {stayed:?} stayed"
            );
        }
    }
    if !gone(full).is_empty() {
        prop_assert!(kept(below).is_empty() && kept(empty).is_empty());
        prop_assert!(gone(full).len() <= 8, "as few as needed");
    }
    for lost in gone(full) {
        for stayed in kept(full) {
            prop_assert!(recovery(lost) <= recovery(stayed));
        }
    }
    Ok(())
}

/// Share in a common denominator of the limits 1 to 5, then age.
fn share(standing: Standing) -> (u64, Nanos) {
    match standing {
        Standing::Below {
            used,
            limit,
            latest,
        } => (used * 60 / limit, latest),
        Standing::Empty | Standing::AtLimit { .. } => panic!("not below its limit"),
    }
}

fn recovery(standing: Standing) -> Nanos {
    match standing {
        Standing::AtLimit { recovers_after } => recovers_after,
        Standing::Empty | Standing::Below { .. } => panic!("not at its limit"),
    }
}

/// Charges keys one after the other and checks after each who went, and that all holds together.
fn run(charges: Vec<Charge>, shape: fn(u64) -> Rule) -> Result<(), TestCaseError> {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    let mut now = NOW;
    for Charge { number, step_ms } in charges {
        now = now.saturating_add(Nanos::from_millis(step_ms));
        let key = key_in_shard(0, number);
        let ask = one(key, shape(number));
        let before = standings(&shard, now);
        shard.decide(now, &ask, Mode::Consume, 0);
        check(&shard);
        prop_assert!(shard.bytes() <= BUDGET);
        let after = standings(&shard, now);
        prop_assert!(after.contains_key(&key), "its own insert spares it");
        let came = after
            .keys()
            .filter(|known| !before.contains_key(*known))
            .count();
        prop_assert!(came <= 1);
        check_order(&before, &after)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_least_needed_goes_first_and_the_budget_holds(
        charges in prop::collection::vec(charge(), 1..600),
    ) {
        run(charges, shape)?;
    }

    /// The same with nearly all keys at their limit: the victims are known in advance.
    #[test]
    fn the_first_to_recover_goes_first(
        charges in prop::collection::vec(charge(), 1..600),
    ) {
        run(charges, |number| {
            let limit = if number % 16 == 0 { 3 } else { 1 };
            rule(limit, 10 + number * 7 % 31, 10, OldestSlice::Weighted)
        })?;
    }
}

#[test]
fn nothing_in_use_goes_while_enough_is_empty() {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    let mut full = 0;
    for number in 0..1000 {
        let seconds = if number % 2 == 0 { 10 } else { 3600 };
        let rule = rule(20, seconds, 10, OldestSlice::Full);
        let key = key_in_shard(0, number);
        let later = NOW.saturating_add(Nanos::new(60 * SECOND));
        if shard.bytes_with_one_more(18) > BUDGET {
            shard.decide(later, &one(key, rule), Mode::Consume, 0);
            break;
        }
        shard.decide(NOW, &one(key, rule), Mode::Consume, 0);
        full += 1;
    }
    assert_eq!(shard.losses.evicted, 0);
    assert_eq!(shard.losses.expired, u64::div_ceil(full, 2));
}

#[test]
fn a_raised_limit_ends_the_standoff_of_its_key() {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    let mut charge = |number: u64, limit: u64| {
        let now = NOW.saturating_add(Nanos::new(number));
        let rule = rule(limit, 3600, 10, OldestSlice::Full);
        let ask = one(key_in_shard(0, number), rule);
        shard.decide(now, &ask, Mode::Consume, 0);
        (shard.losses.evicted, shard.losses.evicted_at_limit)
    };
    let last = (0..).find(|number| charge(*number, 1).1 > 0);
    let raised = last.expect("memory is bounded");
    let (_, lost) = charge(raised, 5);
    // Two of its five are used: it goes before those at their limit.
    assert_eq!(charge(raised + 1, 1), (1, lost));
    assert_eq!(charge(raised + 2, 1), (1, lost + 1));
}

#[test]
fn many_of_one_kind_make_room_for_another() {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    for (first, slices) in [(0, 1), (10_000, 60), (20_000, 10), (30_000, 1)] {
        for number in first..first + 500 {
            let rule = rule(20, 60, slices, OldestSlice::Full);
            let now = NOW.saturating_add(Nanos::new(number * SECOND / 1_000_000));
            let key = key_in_shard(0, number);
            shard.decide(now, &one(key, rule), Mode::Consume, 0);
            check(&shard);
            assert!(shard.bytes() <= BUDGET);
        }
        let (enough, words) = (shard.len(), usize::from(slices) + 8);
        assert!(
            enough * words * 8 > BUDGET / 3,
            "{enough} cells of {words} words"
        );
    }
}
