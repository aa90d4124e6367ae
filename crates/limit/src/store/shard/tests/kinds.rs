//! Cells of all kinds in one shard: lengths, several cells of a key, and pressure among them.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{BUDGET, check, one, recovery};
use crate::{
    key::KeyHash,
    rule::{
        Algorithm, Alignment, Ban, Concurrency, FixedWindow, LeakyBucket, OldestSlice, Rule,
        SlidingLog, TokenBucket,
    },
    store::{
        Ask, Change,
        cell::{self, Role, Standing},
        shard::Shard,
        tests::{NOW, key_in_shard, rule, window},
    },
    units::Nanos,
    verdict::{Mode, Outcome, Reason},
};

/// A key, and what tells its cells apart.
type Name = (KeyHash, u64, u64);

fn standings(shard: &Shard, now: Nanos) -> HashMap<Name, Standing> {
    let at = shard.moment(now);
    let named = shard.cells().filter_map(|(_, cell)| {
        let key = KeyHash::from_halves(cell[0], cell[1]);
        // The flag of the oldest slice, the mark and the number of writes are no part of the name.
        let name = (key, cell[2] & 0x7eff, cell[3]);
        Some((name, shard.standing_of(cell, at)?))
    });
    named.collect()
}

fn ban(milliseconds: u64) -> Ban {
    Ban {
        length: Nanos::from_millis(milliseconds),
        escalation: 2000,
        longest: Nanos::from_millis(8 * milliseconds),
    }
}

fn rule_of(number: u64) -> Rule {
    let limit = 1 + number % 3;
    let window = window(5000 + number % 11 * 1000);
    let algorithm = match number % 8 {
        0 => Algorithm::SlidingLog(SlidingLog { limit: 12, window }),
        1 => Algorithm::FixedWindow(FixedWindow {
            limit,
            alignment: Alignment::Epoch(window),
        }),
        2 => Algorithm::TokenBucket(TokenBucket {
            limit,
            window,
            burst: limit,
        }),
        3 => Algorithm::LeakyBucket(LeakyBucket {
            limit,
            window,
            queue: limit,
        }),
        4 => Algorithm::Concurrency(Concurrency { limit, ttl: window }),
        5 => rule(limit, 7, 60, OldestSlice::Full).algorithm,
        _ => rule(limit, 9, 10, OldestSlice::Weighted).algorithm,
    };
    let bans = number % 8 != 4 && number.is_multiple_of(3);
    Rule {
        ban: bans.then(|| ban(1000 + number % 7 * 1000)),
        ..Rule::new(algorithm)
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    number: u64,
    step_ms: u64,
    what: u8,
}

fn steps(most: u64) -> impl Strategy<Value = Vec<Step>> {
    let step_ms = prop_oneof![8 => 0_u64..3, 1 => 0_u64..4000];
    let step = (0..most, step_ms, 0_u8..12);
    let step = step.prop_map(|(number, step_ms, what)| Step {
        number,
        step_ms,
        what,
    });
    prop::collection::vec(step, 1..600)
}

fn act(shard: &mut Shard, now: Nanos, ask: &Ask, what: u8) {
    let change = match what {
        0 => Change::Charge,
        1 => Change::Refund,
        2 => Change::GiveBack { slice: 1 },
        3..6 => Change::Failure,
        _ => {
            shard.decide(now, ask, Mode::Consume, 1);
            return;
        }
    };
    shard.amend(now, ask, change, 1);
}

/// Who went is who goes first; the key that was written is spared the comparison, since its own cells
/// come and go.
fn check_order(
    before: &HashMap<Name, Standing>,
    after: &HashMap<Name, Standing>,
    written: KeyHash,
) -> Result<(), TestCaseError> {
    let others = before.iter().filter(|((key, _, _), _)| *key != written);
    let (kept, gone): (Vec<_>, Vec<_>) = others.partition(|(name, _)| after.contains_key(*name));
    let is_full = |standing: &Standing| matches!(standing, Standing::AtLimit { .. });
    let is_empty = |standing: &Standing| *standing == Standing::Empty;
    for (_, lost) in &gone {
        for (_, stayed) in &kept {
            prop_assert!(is_empty(lost) || !is_empty(stayed), "the empty go first");
            if is_full(lost) {
                prop_assert!(is_full(stayed), "{lost:?} went, {stayed:?} stayed");
                prop_assert!(recovery(**lost) <= recovery(**stayed));
            }
        }
    }
    Ok(())
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    let mut now = NOW;
    for Step {
        number,
        step_ms,
        what,
    } in steps
    {
        now = now.saturating_add(Nanos::from_millis(step_ms));
        let ask = one(key_in_shard(0, number), rule_of(number));
        let before = standings(&shard, now);
        act(&mut shard, now, &ask, what);
        check(&shard);
        prop_assert!(shard.bytes() <= BUDGET, "{} bytes", shard.bytes());
        check_order(&before, &standings(&shard, now), ask.key)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// P7 and `INV-BUDGET` with every kind of cell.
    #[test]
    fn any_kinds_keep_the_budget_and_the_order(steps in steps(2000)) {
        run(steps)?;
    }

    /// The same with few keys, which have several cells each.
    #[test]
    fn several_cells_of_a_key_keep_the_order(steps in steps(120)) {
        run(steps)?;
    }
}

/// The lengths of cells are few, whatever rules come: a handle names fewer than 64 arenas.
#[test]
fn every_kind_and_length_has_an_arena() {
    let mut shard = Shard::new(64 * 1024 * 1024, Nanos::ZERO);
    let mut number = 0;
    let mut charge = |shard: &mut Shard, rule: Rule, times: u64| {
        number += 1;
        let ask = one(key_in_shard(0, number), rule);
        for time in 1..=times {
            let now = NOW.saturating_add(Nanos::new(time));
            let verdict = shard.decide(now, &ask, Mode::Consume, time);
            assert_eq!(verdict.used, time);
        }
        if rule.ban.is_some() {
            for _ in 0..rule.capacity() {
                shard.amend(NOW, &ask, Change::Failure, 0);
            }
            let banned = shard.decide(NOW, &ask, Mode::Peek, 0);
            assert_eq!(banned.outcome, Outcome::Refuse(Reason::Banned));
        }
    };
    for slices in 1..=60 {
        charge(&mut shard, rule(5, 60, slices, OldestSlice::Weighted), 3);
    }
    for number in 0..8 {
        charge(&mut shard, rule_of(number), 1);
    }
    let (limit, window) = (10_000, window(60_000));
    let log = Algorithm::SlidingLog(SlidingLog { limit, window });
    charge(&mut shard, log.into(), 10_000);
    let permits = Algorithm::Concurrency(Concurrency { limit, ttl: window });
    charge(&mut shard, permits.into(), 10_000);
    check(&shard);
    let arenas = shard.arenas.len();
    assert!((40..64).contains(&arenas), "{arenas} arenas");
}

/// All cells at their limit, three to a key: an eviction always finds one to go.
#[test]
fn keys_with_all_their_cells_at_their_limit_make_room() {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    let failures = Rule {
        ban: Some(ban(3_600_000)),
        ..rule(2, 3600, 10, OldestSlice::Full)
    };
    for number in 0..400 {
        let now = NOW.saturating_add(Nanos::new(number));
        let ask = one(key_in_shard(0, number), failures);
        // One more charge and failure than the ban clears.
        for _ in 0..2 {
            shard.amend(now, &ask, Change::Failure, 0);
        }
        for _ in 0..2 {
            shard.amend(now, &ask, Change::Charge, 0);
        }
        check(&shard);
        assert!(shard.bytes() <= BUDGET);
    }
    assert!(shard.losses.evicted_at_limit > 300);
    assert_eq!(shard.losses.evicted, 0, "{:?}", shard.losses);
}

/// Of a key with two cells at their limit the second is not forgotten when the first goes.
#[test]
fn the_second_cell_of_a_key_goes_when_its_turn_comes() {
    let mut shard = Shard::new(BUDGET, Nanos::ZERO);
    let full = rule(1, 3600, 10, OldestSlice::Full);
    let mut number = 0;
    let mut press = |shard: &mut Shard| {
        number += 1;
        let now = NOW.saturating_add(Nanos::new(number));
        let ask = one(key_in_shard(0, number), full);
        shard.decide(now, &ask, Mode::Consume, 0);
        now
    };
    for banned in 1000..1008 {
        let failures = Rule {
            ban: Some(ban(7_200_000)),
            ..full
        };
        let ask = one(key_in_shard(0, banned), failures);
        shard.amend(NOW, &ask, Change::Failure, 0);
    }
    while shard.losses.evicted_at_limit == 0 {
        press(&mut shard);
    }
    // Banned for twenty seconds, and a debt for eleven.
    let failures = Rule {
        ban: Some(ban(20_000)),
        ..rule(1, 10, 10, OldestSlice::Full)
    };
    let ask = one(key_in_shard(0, u64::MAX), failures);
    let now = press(&mut shard);
    for number in 10..16 {
        assert!(shard.remove(key_in_shard(0, number)), "room for both");
    }
    for banned in 1000..1002 {
        assert!(shard.remove(key_in_shard(0, banned)), "of both lengths");
    }
    shard.amend(now, &ask, Change::Failure, 0);
    shard.amend(now, &ask, Change::Charge, 0);
    let cells = |shard: &Shard| {
        let mut cells = 0;
        shard.each_cell_of(ask.key, |_, cell| {
            cells += usize::from(cell::role(cell) != Role::Void);
        });
        cells
    };
    assert_eq!(cells(&shard), 2);
    let before = shard.losses.evicted_at_limit;
    while shard.losses.evicted_at_limit == before {
        press(&mut shard);
    }
    assert_eq!(cells(&shard), 1, "the debt recovers first");
    press(&mut shard);
    assert_eq!(cells(&shard), 0, "then the ban, long before the others");
}
