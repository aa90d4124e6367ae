//! A slot that is sealed while it is decided in.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

const DECIDERS: usize = 2;
const ROUNDS: u64 = 40;

/// Every unit that was admitted was told, before the seal or by it.
#[test]
fn what_was_admitted_in_a_slot_is_told_when_it_is_sealed() {
    for round in 0..ROUNDS {
        let (store, copy) = (store_of(1), store_of(2));
        let first = ask(key_in_shard(5, 1), soft(1_000_000), 1);
        let second = Ask {
            key: KeyHash::from_halves(first.key.high(), 2),
            ..first
        };
        let admitted = [AtomicU64::new(0), AtomicU64::new(0)];
        let is_open = AtomicBool::new(true);
        let decide = || {
            let mut verdicts = Vec::new();
            while is_open.load(Ordering::Relaxed) {
                if store.try_decide(NOW, &first, Mode::Consume).is_some() {
                    admitted[0].fetch_add(1, Ordering::Relaxed);
                }
                verdicts.clear();
                if store.try_decide_all(NOW, &[first, second], Mode::Consume, &mut verdicts) {
                    admitted[0].fetch_add(1, Ordering::Relaxed);
                    admitted[1].fetch_add(1, Ordering::Relaxed);
                }
                if store.try_amend(NOW, &second, Change::Charge) {
                    admitted[1].fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..DECIDERS {
                scope.spawn(decide);
            }
            let mut told = Vec::new();
            while admitted[0].load(Ordering::Relaxed) < 20 * round {
                store.take_due(NOW, 10, &mut told);
                std::thread::yield_now();
            }
            store.seal(NOW, &slot_of(&first), false, &mut told);
            is_open.store(false, Ordering::Relaxed);
            merge_all(&copy, NOW, &told);
        });
        for (ask, admitted) in [first, second].iter().zip(&admitted) {
            assert_eq!(used(&copy, ask), admitted.load(Ordering::Relaxed));
        }
    }
}
