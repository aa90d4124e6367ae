//! Tiers that share a bucket: each is judged by its own numbers, none changes what the others count.

use super::{MEBIBYTE, NOW, SECOND, ask, key, later, store, window};
use crate::{
    rule::{Algorithm, LeakyBucket, Rule, TokenBucket},
    store::{
        Change, Store,
        cell::{self, Standing},
        shard::Shard,
    },
    units::Nanos,
    verdict::Mode,
};

/// Tiers of `number` a minute and at once, of which the largest has `ceiling`.
fn tiers(number: u64, ceiling: u64) -> [Rule; 2] {
    let window = window(60_000);
    [
        Algorithm::TokenBucket(TokenBucket {
            limit: number,
            window,
            burst: number,
        }),
        Algorithm::LeakyBucket(LeakyBucket {
            limit: number,
            window,
            queue: number - 1,
        }),
    ]
    .map(|algorithm| Rule {
        ceiling,
        ..Rule::new(algorithm)
    })
}

fn used(store: &Store, rule: Rule) -> u64 {
    store.decide(NOW, &ask(key(1), rule, 1), Mode::Peek).used
}

#[test]
fn a_smaller_tier_never_frees_what_a_larger_one_used() {
    for (free, pro) in tiers(60, 6000).into_iter().zip(tiers(6000, 6000)) {
        let store = store(16 * MEBIBYTE);
        let mut admitted = 0;
        for second in 0..10 {
            let now = later(second);
            let seen = store.decide(now, &ask(key(1), free, 1), Mode::Consume);
            if second > 0 {
                assert!(!seen.is_allowed());
                assert!(seen.used > 5000, "it sees what is used: {}", seen.used);
                assert_eq!(seen.remaining, 0);
            }
            while store
                .decide(now, &ask(key(1), pro, 100), Mode::Consume)
                .is_allowed()
            {
                admitted += 100;
            }
        }
        assert!(admitted <= 6000 + 100 * 10, "{admitted}");
    }
}

/// Neither what a smaller tier is charged nor what is given back by its rule clamps.
#[test]
fn a_charge_of_a_smaller_tier_leaves_the_ceiling() {
    for (free, pro) in tiers(60, 6000).into_iter().zip(tiers(6000, 6000)) {
        let store = store(16 * MEBIBYTE);
        store.decide(NOW, &ask(key(1), free, 50), Mode::Consume);
        store.decide(NOW, &ask(key(1), pro, 5000), Mode::Consume);
        store.amend(NOW, &ask(key(1), free, 7), Change::Charge);
        assert_eq!(used(&store, pro), 5057);
        store.amend(NOW, &ask(key(1), free, 50), Change::Refund);
        assert_eq!((used(&store, pro), used(&store, free)), (5007, 5007));
    }
}

#[test]
fn an_amendment_of_a_rule_of_before_neither_clamps_nor_is_noted() {
    for (old, new) in tiers(60, 60).into_iter().zip(tiers(6000, 6000)) {
        let store = store(16 * MEBIBYTE);
        let place = store
            .decide(NOW, &ask(key(1), old, 1), Mode::Consume)
            .charged_slice;
        assert!(
            store
                .decide(NOW, &ask(key(1), new, 5999), Mode::Consume)
                .is_allowed()
        );
        store.amend(NOW, &ask(key(1), old, 1), Change::GiveBack { slice: place });
        assert_eq!(used(&store, new), 5999);
        store.amend(NOW, &ask(key(1), old, 2), Change::Charge);
        store.amend(NOW, &ask(key(1), old, 1), Change::Refund);
        assert_eq!(used(&store, new), 6000);
        // The drain is still that of the new rule.
        store.amend(later(1), &ask(key(1), old, 1), Change::Refund);
        let peek = store.decide(later(2), &ask(key(1), new, 1), Mode::Peek);
        assert_eq!(peek.used, 5799);
    }
}

/// A policy that lowers its limit lowers all tiers, and with them what a bucket may hold.
#[test]
fn a_lowered_ceiling_clamps() {
    for (old, new) in tiers(6000, 6000).into_iter().zip(tiers(60, 60)) {
        let store = store(16 * MEBIBYTE);
        store.decide(NOW, &ask(key(1), old, 6000), Mode::Consume);
        assert_eq!(used(&store, new), 60);
        assert!(
            store
                .decide(later(1), &ask(key(1), new, 1), Mode::Consume)
                .is_allowed()
        );
        assert!(
            store
                .decide(later(1), &ask(key(1), old, 5940), Mode::Peek)
                .is_allowed()
        );
    }
}

/// P7: a tier that is used up is at its limit, however much more a larger one may hold.
#[test]
fn a_used_up_smaller_tier_is_at_its_limit() {
    for free in tiers(60, 6000) {
        let mut shard = Shard::new(64 * 1024, Nanos::ZERO);
        shard.decide(NOW, &ask(key(1), free, 60), Mode::Consume, 0);
        let at = shard.moment(NOW);
        let standings: Vec<_> = shard
            .cells()
            .map(|(_, cell)| cell::standing(cell, at))
            .collect();
        let recovers_after = Nanos::new(SECOND);
        assert_eq!(standings, [Standing::AtLimit { recovers_after }]);
    }
}
