//! The store against a plain map of windows: any run of calls gives the same answers.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{MEBIBYTE, NOW, ask, key_in_shard, rule, store};
use crate::{
    judge::{Reading as _, Terms},
    rule::{Algorithm, OldestSlice, Rule, SlidingWindow},
    store::{Ask, Change, SHARD_COUNT, Store},
    units::Nanos,
    verdict::{Mode, Verdict},
    window::{self, Reading},
};

#[derive(Clone, Copy, Debug)]
enum Call {
    Decide {
        key: u64,
        cost: u64,
        mode: Mode,
    },
    DecideAll {
        keys: [u64; 3],
        cost: u64,
    },
    GiveBack {
        key: u64,
        slices_ago: u64,
        cost: u64,
    },
    Seed {
        key: u64,
        used: u64,
    },
    Remove {
        key: u64,
    },
    Sweep,
    Wait {
        milliseconds: u64,
    },
}

fn call() -> impl Strategy<Value = Call> {
    let key = 0_u64..150;
    let mode = prop_oneof![4 => Just(Mode::Consume), 1 => Just(Mode::Peek)];
    prop_oneof![
        20 => (key.clone(), 0_u64..8, mode)
            .prop_map(|(key, cost, mode)| Call::Decide { key, cost, mode }),
        4 => ([key.clone(), key.clone(), key.clone()], 1_u64..8)
            .prop_map(|(keys, cost)| Call::DecideAll { keys, cost }),
        2 => (key.clone(), 0_u64..4, 1_u64..8)
            .prop_map(|(key, slices_ago, cost)| Call::GiveBack { key, slices_ago, cost }),
        1 => (key.clone(), 0_u64..12).prop_map(|(key, used)| Call::Seed { key, used }),
        3 => key.prop_map(|key| Call::Remove { key }),
        1 => Just(Call::Sweep),
        2 => (0_u64..20_000).prop_map(|milliseconds| Call::Wait { milliseconds }),
    ]
}

/// Three shapes of counters in two shards.
fn ask_of(number: u64, cost: u64) -> Ask {
    let rule = match number % 3 {
        0 => rule(9, 60, 1, OldestSlice::Weighted),
        1 => rule(12, 30, 10, OldestSlice::Full),
        _ => rule(7, 10, 60, OldestSlice::Weighted),
    };
    ask(key_in_shard(number % 2, number), rule, cost)
}

fn sliding(rule: &Rule) -> &SlidingWindow {
    let Algorithm::SlidingWindow(rule) = &rule.algorithm else {
        panic!("{rule:?} is no sliding window");
    };
    rule
}

/// One counter for each key, none ever dropped: an empty one answers as an absent one.
#[derive(Default)]
struct Model {
    counters: HashMap<u64, (Vec<u64>, Nanos)>,
}

impl Model {
    fn counter(&mut self, number: u64, rule: &SlidingWindow) -> &mut (Vec<u64>, Nanos) {
        let fresh = || (vec![0; usize::from(rule.slices) + 1], Nanos::ZERO);
        self.counters.entry(number).or_insert_with(fresh)
    }

    fn used(&mut self, now: Nanos, number: u64, rule: &SlidingWindow) -> u64 {
        let (words, latest) = self.counter(number, rule);
        Reading::at(rule, words, *latest, now).used()
    }

    fn decide(&mut self, now: Nanos, number: u64, cost: u64, mode: Mode) -> Verdict {
        let ask = ask_of(number, cost);
        let (words, latest) = self.counter(number, sliding(&ask.rule));
        let rule = (sliding(&ask.rule), &Terms::of(&ask.rule));
        window::decide(rule, words, latest, now, (ask.cost, mode))
    }
}

/// A verdict without the place of a charge that was not made.
fn told(verdict: Verdict, cost: u64, mode: Mode) -> Verdict {
    let is_charged = verdict.is_allowed() && mode == Mode::Consume && cost > 0;
    Verdict {
        charged_slice: if is_charged { verdict.charged_slice } else { 0 },
        ..verdict
    }
}

fn apply(store: &Store, model: &mut Model, now: &mut Nanos, call: Call) {
    match call {
        Call::Decide { key, cost, mode } => {
            let verdict = store.decide(*now, &ask_of(key, cost), mode);
            let expected = model.decide(*now, key, cost, mode);
            assert_eq!(told(verdict, cost, mode), told(expected, cost, mode));
        }
        Call::DecideAll { keys, cost } => {
            let asks = keys.map(|key| ask_of(key, cost));
            let mut verdicts = Vec::new();
            store.decide_all(*now, &asks, Mode::Consume, &mut verdicts);
            let saved = model.counters.clone();
            let expected = keys.map(|key| model.decide(*now, key, cost, Mode::Consume));
            let all = expected.iter().all(Verdict::is_allowed);
            assert_eq!(verdicts.iter().all(Verdict::is_allowed), all);
            if all {
                assert_eq!(verdicts, expected);
            } else {
                model.counters = saved;
            }
        }
        Call::GiveBack {
            key,
            slices_ago,
            cost,
        } => {
            let ask = ask_of(key, cost);
            let slice = model.decide(*now, key, 1, Mode::Peek).charged_slice - slices_ago;
            store.amend(*now, &ask, Change::GiveBack { slice });
            let (words, latest) = model.counter(key, sliding(&ask.rule));
            window::give_back(sliding(&ask.rule), words, *latest, *now, (slice, ask.cost));
        }
        Call::Seed { key, used } => {
            let ask = ask_of(key, 1);
            if store.read(*now, ask.key, &ask.rule).is_none() {
                store.remove(ask.key);
                store.seed(*now, ask.key, &ask.rule, used);
                let (words, latest) = model.counter(key, sliding(&ask.rule));
                window::charge(sliding(&ask.rule), words, latest, *now, used);
            }
        }
        Call::Remove { key } => {
            let known = model.used(*now, key, sliding(&ask_of(key, 1).rule)) > 0;
            let removed = store.remove(ask_of(key, 1).key);
            assert!(removed || !known);
            model.counters.remove(&key);
        }
        Call::Sweep => {
            store.sweep(*now, SHARD_COUNT);
        }
        Call::Wait { milliseconds } => {
            *now = now.saturating_add(Nanos::from_millis(milliseconds));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_calls_give_the_answers_of_a_plain_map(
        calls in prop::collection::vec(call(), 1..1200),
    ) {
        let store = store(256 * MEBIBYTE);
        let mut model = Model::default();
        let mut now = NOW;
        for call in calls {
            apply(&store, &mut model, &mut now, call);
        }
        for number in 0..150 {
            let ask = ask_of(number, 1);
            let used = model.used(now, number, sliding(&ask.rule));
            let read = store.read(now, ask.key, &ask.rule);
            prop_assert_eq!(read.map_or(0, |verdict| verdict.used), used);
        }
        let stats = store.stats();
        prop_assert_eq!(stats.evicted + stats.evicted_at_limit, 0);
    }
}
