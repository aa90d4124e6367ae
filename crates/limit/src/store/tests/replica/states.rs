//! Any calls on any stores, and any messages in any order, late and repeated: in the end all say the same.

use proptest::{prelude::*, sample::Index};

use super::*;
use crate::rule::{Algorithm, Alignment, Concurrency, FixedWindow, SlidingLog};

const STORES: u64 = 3;
const KEYS: u64 = 2;
/// Each makes one writer more, of which a counter has room for eight.
const MOST_FORGOTTEN: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Decide {
        store: u64,
        key: u64,
        cost: u64,
    },
    Charge {
        store: u64,
        key: u64,
        cost: u64,
    },
    Refund {
        store: u64,
        key: u64,
        cost: u64,
    },
    GiveBack {
        store: u64,
        charge: Index,
        cost: u64,
    },
    Reset {
        store: u64,
        key: u64,
    },
    Send {
        store: u64,
        how: How,
    },
    Deliver {
        store: u64,
        message: Index,
    },
    Forget {
        store: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum How {
    Due,
    Export,
    Own,
    Seal,
}

fn step() -> impl Strategy<Value = Step> {
    let store = 0..STORES;
    let of = || (store.clone(), 0..KEYS, 1_u64..4);
    let how = prop_oneof![
        3 => Just(How::Due),
        2 => Just(How::Export),
        1 => Just(How::Own),
        1 => Just(How::Seal),
    ];
    prop_oneof![
        8 => of().prop_map(|(store, key, cost)| Step::Decide { store, key, cost }),
        2 => of().prop_map(|(store, key, cost)| Step::Charge { store, key, cost }),
        4 => of().prop_map(|(store, key, cost)| Step::Refund { store, key, cost }),
        4 => (store.clone(), any::<Index>(), 1_u64..4)
            .prop_map(|(store, charge, cost)| Step::GiveBack { store, charge, cost }),
        1 => (store.clone(), 0..KEYS).prop_map(|(store, key)| Step::Reset { store, key }),
        6 => (store.clone(), how).prop_map(|(store, how)| Step::Send { store, how }),
        10 => (store.clone(), any::<Index>())
            .prop_map(|(store, message)| Step::Deliver { store, message }),
        1 => store.prop_map(|store| Step::Forget { store }),
    ]
}

/// Of all algorithms that add up: of buckets only the level stands.
fn rules() -> Vec<Rule> {
    let (limit, window) = (40, super::super::window(60_000));
    let alignment = Alignment::Epoch(window);
    vec![
        soft(limit),
        rule(limit, 60, 1, OldestSlice::Weighted),
        rule(limit, 60, 10, OldestSlice::Full),
        Algorithm::SlidingLog(SlidingLog { limit, window }).into(),
        Algorithm::FixedWindow(FixedWindow { limit, alignment }).into(),
        Algorithm::Concurrency(Concurrency { limit, ttl: window }).into(),
    ]
}

struct World {
    rule: Rule,
    stores: Vec<Store>,
    messages: Vec<Vec<Series>>,
    /// Key and place of what was charged.
    charges: Vec<(u64, u64)>,
    /// What the calls have changed, by what each store saw: for each key.
    sums: Vec<i64>,
    forgotten: usize,
}

impl World {
    fn new(rule: Rule) -> Self {
        Self {
            rule,
            stores: (1..=STORES).map(store_of).collect(),
            messages: Vec::new(),
            charges: Vec::new(),
            sums: vec![0; KEYS as usize],
            forgotten: 0,
        }
    }

    fn ask(&self, key: u64, cost: u64) -> Ask {
        ask(key_in_shard(key, key), self.rule, cost)
    }

    fn store(&self, store: u64) -> &Store {
        &self.stores[store as usize]
    }

    fn used(&self, store: u64, key: u64) -> i64 {
        used(self.store(store), &self.ask(key, 1)).cast_signed()
    }

    /// Does it, and adds to the sum what has changed.
    fn counting<T>(
        &mut self,
        store: u64,
        key: u64,
        call: impl FnOnce(&Store, &Ask) -> T,
        cost: u64,
    ) -> T {
        let before = self.used(store, key);
        let done = call(self.store(store), &self.ask(key, cost));
        self.sums[key as usize] += self.used(store, key) - before;
        done
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Decide { store, key, cost } => {
                let decide = |store: &Store, ask: &Ask| store.decide(NOW, ask, Mode::Consume);
                let verdict = self.counting(*store, *key, decide, *cost);
                if verdict.is_allowed() {
                    self.charges.push((*key, verdict.charged_slice));
                }
            }
            Step::Charge { store, key, cost } => self.amend(*store, *key, *cost, Change::Charge),
            Step::Refund { store, key, cost } => self.amend(*store, *key, *cost, Change::Refund),
            Step::GiveBack {
                store,
                charge,
                cost,
            } => {
                if !self.charges.is_empty() {
                    let (key, slice) = *charge.get(&self.charges);
                    self.amend(*store, key, *cost, Change::GiveBack { slice });
                }
            }
            Step::Reset { store, key } => self.amend(*store, *key, 1, Change::Reset),
            Step::Send { store, how } => {
                let message = self.message(*store, *how);
                self.messages.push(message);
            }
            Step::Deliver { store, message } => {
                if !self.messages.is_empty() {
                    let message: &Vec<Series> = message.get(&self.messages);
                    merge_all(self.store(*store), NOW, message);
                }
            }
            Step::Forget { store } => {
                if self.forgotten < MOST_FORGOTTEN {
                    self.forgotten += 1;
                    // Nothing is forgotten that was not told.
                    let told = self.message(*store, How::Export);
                    self.messages.push(told);
                    self.store(*store).forget(&SlotSet::all());
                }
            }
        }
    }

    fn amend(&mut self, store: u64, key: u64, cost: u64, change: Change) {
        self.counting(store, key, |store, ask| store.amend(NOW, ask, change), cost);
    }

    fn message(&self, store: u64, how: How) -> Vec<Series> {
        let (store, all) = (self.store(store), SlotSet::all());
        let mut out = Vec::new();
        match how {
            How::Due => out = due(store, NOW),
            How::Export => store.export(NOW, &all, &mut out),
            How::Own => store.export_own(NOW, &all, &mut out),
            How::Seal => {
                store.seal(NOW, &all, false, &mut out);
                store.open(&all);
            }
        }
        out
    }

    /// All that was ever sent arrives everywhere, in an order that differs from store to store, and then
    /// all that each has.
    fn deliver_all(&self) {
        for store in 0..STORES {
            let mut messages = self.messages.clone();
            let first = store as usize * messages.len() / STORES as usize;
            messages.rotate_left(first);
            if store == 1 {
                messages.reverse();
            }
            for message in &messages {
                merge_all(self.store(store), NOW, message);
            }
        }
        for _ in 0..3 {
            for from in 0..STORES {
                let message = self.message(from, How::Export);
                for to in 0..STORES {
                    merge_all(self.store(to), NOW, &message);
                }
            }
        }
    }
}

fn check(rule: Rule, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new(rule);
    for step in steps {
        world.step(step);
    }
    world.deliver_all();
    let has_reset = steps.iter().any(|step| matches!(step, Step::Reset { .. }));
    for key in 0..KEYS {
        let used: Vec<_> = (0..STORES).map(|store| world.used(store, key)).collect();
        prop_assert!(
            used.iter().all(|other| *other == used[0]),
            "key {key}: {used:?}"
        );
        if !has_reset {
            prop_assert!(
                used[0] >= world.sums[key as usize],
                "{used:?} of {:?}",
                world.sums
            );
        }
        // Nothing is counted twice.
        let whole = steps
            .iter()
            .all(|step| !matches!(step, Step::Refund { .. } | Step::GiveBack { .. }));
        if !has_reset && whole {
            prop_assert_eq!(used[0], world.sums[key as usize]);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_stores_say_the_same_in_the_end(
        which in any::<Index>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        check(*which.get(&rules()), &steps)?;
    }

    #[test]
    fn what_is_only_charged_is_counted_once_everywhere(
        which in any::<Index>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let charges = |step: &Step| !matches!(
            step,
            Step::Refund { .. } | Step::GiveBack { .. } | Step::Reset { .. }
        );
        let steps: Vec<_> = steps.into_iter().filter(charges).collect();
        check(*which.get(&rules()), &steps)?;
    }
}
