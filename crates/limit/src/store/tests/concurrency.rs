//! Many threads: what they are admitted is what one thread would be.

use std::{sync::mpsc, thread, time::Duration};

use super::{MEBIBYTE, NOW, ask, key, mix, soft, store, used};
use crate::{
    store::{Ask, Store},
    verdict::{Mode, Verdict},
};

/// Runs `work` on eight threads; panics if they are not done within a minute.
fn on_eight_threads(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for thread in 0..8 {
            let (sender, work) = (sender.clone(), &work);
            scope.spawn(move || {
                let result = work(thread);
                sender.send(result).expect("someone waits");
            });
        }
        let next = || match receiver.recv_timeout(Duration::from_secs(60)) {
            Ok(result) => result,
            // A scope waits for its threads: only an abort ends a deadlock.
            Err(_) => std::process::abort(),
        };
        (0..8).map(|_| next()).sum()
    })
}

/// P1: no lost update.
#[test]
fn one_key_admits_exactly_its_limit() {
    let store = store(16 * MEBIBYTE);
    let one = ask(key(1), soft(50_000), 1);
    let admitted = on_eight_threads(|_| {
        let admitted = |_: &u32| store.decide(NOW, &one, Mode::Consume).is_allowed();
        (0..10_000).filter(admitted).count() as u64
    });
    assert_eq!(admitted, 50_000);
    assert_eq!(used(&store, &one), 50_000);
}

fn consume_all(store: &Store, asks: &[Ask]) -> bool {
    let mut verdicts: Vec<Verdict> = Vec::new();
    store.decide_all(NOW, asks, Mode::Consume, &mut verdicts);
    verdicts.iter().all(Verdict::is_allowed)
}

/// `INV-LOCK-ORDER`, and all or nothing: each key holds what was admitted with it.
#[test]
fn checks_that_cross_neither_deadlock_nor_lose_anything() {
    let store = store(16 * MEBIBYTE);
    let limits: Vec<Ask> = (0..6)
        .map(|number| ask(key(number), soft(20_000), 1))
        .collect();
    let narrow = ask(key(99), soft(9000), 1);
    let admitted = on_eight_threads(|thread| {
        let mut state = thread;
        let mut admitted = 0;
        for _ in 0..3000 {
            let mut asks = limits.clone();
            asks.push(narrow);
            for at in (1..asks.len()).rev() {
                asks.swap(at, mix(&mut state) as usize % (at + 1));
            }
            admitted += u64::from(consume_all(&store, &asks));
        }
        admitted
    });
    assert_eq!(admitted, 9000, "the narrow limit decides");
    for limit in &limits {
        assert_eq!(used(&store, limit), 9000);
    }
}
