//! Series that no store has written: nothing panics, and every bound holds.

use proptest::prelude::*;

use super::{super::any_rules::algorithms, *};
use crate::{
    SHARD_COUNT,
    rule::{Ban, Rule},
    series::{Body, Counter},
    store::{gather::MAX_SERIES, void::MAX_VOIDS},
};

fn words() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0_u64..5,
        2 => any::<u64>(),
        1 => Just(u64::MAX),
        1 => (0_u64..4).prop_map(|count| count << 32),
        1 => (1_u64..5).prop_map(u64::wrapping_neg),
        1 => Just(NOW.as_nanos()),
    ]
}

#[derive(Clone, Debug)]
struct Forged {
    part: u8,
    writer: u64,
    version: u64,
    clock: u64,
    seen: u64,
    latest: u64,
    words: Vec<u64>,
    /// Cut or filled to as many words as its counter has.
    fits: bool,
}

fn forged() -> impl Strategy<Value = Forged> {
    let version = prop_oneof![0_u64..6, any::<u64>(), Just((1 << 48) - 1)];
    let writer = prop_oneof![0_u64..12, Just(1 << 32), Just(u64::MAX)];
    let counts = prop::collection::vec(words(), 0..80);
    (
        (0_u8..5, writer, version, words()),
        (words(), words(), counts, any::<bool>()),
    )
        .prop_map(
            |((part, writer, version, clock), (seen, latest, words, fits))| Forged {
                part,
                writer,
                version,
                clock,
                seen,
                latest,
                words,
                fits,
            },
        )
}

fn series(ask: &Ask, forged: &Forged) -> Series {
    let algorithm = ask.rule.algorithm;
    let mut words = forged.words.clone();
    if forged.fits {
        let length = match forged.part {
            3 => 3,
            _ => crate::counter::words(&algorithm),
        };
        words.resize(length, 0);
    }
    Series {
        key: ask.key,
        counter: match forged.part {
            1 => Counter::Failures(algorithm),
            3 => Counter::Ban,
            _ => Counter::Charges(algorithm),
        },
        writer: Writer::new(forged.writer),
        version: forged.version,
        clock: forged.clock,
        body: if forged.part == 4 {
            Body::Void
        } else {
            Body::Counts {
                seen: forged.seen,
                latest: Nanos::new(forged.latest),
                words: words.into_iter().collect(),
            }
        },
    }
}

fn act(store: &Store, now: Nanos, ask: &Ask, what: u8) {
    let change = match what {
        0 | 1 => {
            store.decide(now, ask, Mode::Consume);
            return;
        }
        2 => Change::Refund,
        3 => Change::GiveBack {
            slice: now.as_nanos(),
        },
        4 => Change::Failure,
        5 => Change::Charge,
        6 => Change::Reset,
        7 => {
            store.sweep(now, SHARD_COUNT);
            return;
        }
        _ => {
            let mut out = Vec::new();
            store.take_due(now, 100, &mut out);
            store.export(now, &slot_of(ask), &mut out);
            let copy = store_of(7);
            merge_all(&copy, now, &out);
            copy.decide(now, ask, Mode::Consume);
            return;
        }
    };
    store.amend(now, ask, change);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_comes_nothing_panics_and_bounds_hold(
        algorithm in algorithms(),
        steps in prop::collection::vec((forged(), 0_u8..10, words(), 1_u64..4), 1..40),
    ) {
        let store = store_of(1);
        let rule = Rule {
            ban: Some(Ban {
                length: Nanos::from_millis(1000),
                escalation: 2000,
                longest: Nanos::from_millis(5000),
            }),
            ..Rule::new(algorithm)
        };
        for (forged, what, now, cost) in steps {
            let ask = ask(key(1), rule, cost);
            let now = Nanos::new(now);
            store.merge(now, &series(&ask, &forged));
            act(&store, now, &ask, what);
            let verdict = store.decide(now, &ask, Mode::Peek);
            prop_assert!(verdict.remaining <= rule.capacity());
            let stats = store.stats();
            prop_assert!(stats.bytes <= stats.max_bytes);
            // Charges, failures and the ban.
            prop_assert!(stats.foreign <= 3 * MAX_SERIES as u64, "{stats:?}");
            prop_assert!(stats.voids <= 3 * MAX_VOIDS as u64, "{stats:?}");
        }
        store.forget(&SlotSet::all());
        let stats = store.stats();
        prop_assert_eq!((stats.keys, stats.foreign, stats.voids), (0, 0, 0));
    }
}

/// A forged void must not make a store count below what it has told.
#[test]
fn no_void_ends_more_than_was_told_or_what_comes_after() {
    let store = store_of(1);
    let ask = ask(key(1), soft(20), 1);
    store.decide(NOW, &ask, Mode::Consume);
    let told = exported(&store, NOW, &slot_of(&ask));
    let void = |version| Series {
        version,
        body: Body::Void,
        ..told[0].clone()
    };
    assert_eq!(store.merge(NOW, &void(told[0].version - 1)), Merged::Own);
    assert_eq!(used(&store, &ask), 1);
    assert_eq!(store.merge(NOW, &void((1 << 48) - 1)), Merged::Taken);
    store.decide(NOW, &ask, Mode::Consume);
    let copy = store_of(2);
    merge_all(&copy, NOW, &told);
    merge_all(&copy, NOW, &exported(&store, NOW, &slot_of(&ask)));
    assert_eq!(used(&copy, &ask), 1);
}
