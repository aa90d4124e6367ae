//! What goes back of a bucket that has a backlog: what was charged first flows out first.

use proptest::prelude::*;

use super::{MEBIBYTE, NOW, ask, key, later, store, window};
use crate::{
    rule::{Algorithm, Rule, TokenBucket},
    store::Change,
    units::Nanos,
    verdict::Mode,
};

fn bucket(limit: u64, seconds: u64, burst: u64) -> Rule {
    Rule::new(Algorithm::TokenBucket(TokenBucket {
        limit,
        window: window(seconds * 1000),
        burst,
    }))
}

#[test]
fn what_has_not_flowed_out_goes_back() {
    let store = store(16 * MEBIBYTE);
    let of = |cost| ask(key(1), bucket(60, 60, 60), cost);
    let slice = store.decide(NOW, &of(60), Mode::Consume).charged_slice;
    // It cost 30, told when 30 have flowed out.
    store.amend(later(30), &of(30), Change::GiveBack { slice });
    assert_eq!(store.decide(later(30), &of(60), Mode::Peek).used, 0);
}

#[test]
fn what_waits_behind_a_backlog_goes_back_whole() {
    let store = store(16 * MEBIBYTE);
    let of = |cost| ask(key(1), bucket(500_000, 60, 500_000), cost);
    store.decide(NOW, &of(400_000), Mode::Consume);
    let slice = store.decide(NOW, &of(4_000), Mode::Consume).charged_slice;
    let used = || store.decide(later(10), &of(1), Mode::Peek).used;
    let before = used();
    store.amend(later(10), &of(3_000), Change::GiveBack { slice });
    assert_eq!(used(), before - 3_000);
}

#[test]
fn what_succeeds_is_never_refused() {
    let store = store(16 * MEBIBYTE);
    let one = ask(key(1), bucket(5, 600, 5), 1);
    let mut places = Vec::new();
    for second in 0..3600_usize {
        let now = later(second as u64);
        if let Some(slice) = second.checked_sub(2).map(|before| places[before]) {
            store.amend(now, &one, Change::GiveBack { slice });
        }
        let verdict = store.decide(now, &one, Mode::Consume);
        assert!(verdict.is_allowed(), "refused at {second} s");
        places.push(verdict.charged_slice);
    }
}

#[test]
fn the_last_charge_goes_back_as_if_it_had_never_been() {
    let store = store(16 * MEBIBYTE);
    let of = |cost| ask(key(1), bucket(1, 1, 20), cost);
    let first = store.decide(NOW, &of(10), Mode::Consume).charged_slice;
    let second = store.decide(NOW, &of(10), Mode::Consume).charged_slice;
    store.amend(NOW, &of(10), Change::GiveBack { slice: second });
    store.amend(NOW, &of(10), Change::GiveBack { slice: first });
    assert_eq!(store.decide(NOW, &of(1), Mode::Peek).used, 0);
}

/// With the first charge gone the second has flowed out long before it would have.
#[test]
fn a_charge_that_moved_up_does_not_go_back_once_it_is_out() {
    let store = store(16 * MEBIBYTE);
    let of = |cost| ask(key(1), bucket(1, 1, 20), cost);
    let first = store.decide(NOW, &of(10), Mode::Consume).charged_slice;
    let second = store.decide(NOW, &of(10), Mode::Consume).charged_slice;
    store.amend(NOW, &of(10), Change::GiveBack { slice: first });
    assert!(store.decide(later(10), &of(10), Mode::Consume).is_allowed());
    store.amend(later(10), &of(10), Change::GiveBack { slice: second });
    assert_eq!(store.decide(later(10), &of(1), Mode::Peek).used, 10);
}

/// A place of a counter that went is none of the counter that came after it.
#[test]
fn a_place_of_before_is_no_place_of_a_new_counter() {
    let store = store(16 * MEBIBYTE);
    let of = |cost| ask(key(1), bucket(60, 60, 60), cost);
    let slice = store.decide(NOW, &of(30), Mode::Consume).charged_slice;
    store.amend(NOW, &of(1), Change::Reset);
    let now = later(1);
    store.decide(now, &of(40), Mode::Consume);
    store.amend(now, &of(30), Change::GiveBack { slice });
    assert_eq!(store.decide(now, &of(1), Mode::Peek).used, 40);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    /// Whatever goes back, in whole or in part, each once and in any order: what stands of any time is
    /// never more than the burst and what flows out in it.
    #[test]
    fn what_stands_is_never_more_than_burst_and_rate(
        (limit, burst) in (1_u64..20, 1_u64..20),
        steps in prop::collection::vec(
            (0_u64..400, 1_u64..6, any::<Option<prop::sample::Index>>(), 0_u64..6), 1..60),
    ) {
        let store = store(16 * MEBIBYTE);
        let rule = bucket(limit, 1, burst);
        // The instant in milliseconds, what stands, the place.
        let mut standing: Vec<(u64, u64, Option<u64>)> = Vec::new();
        let mut now = 0;
        for (step, cost, which, back) in steps {
            now += step;
            let at = NOW.saturating_add(Nanos::from_millis(now));
            if let Some(which) = which && !standing.is_empty() {
                let which = which.index(standing.len());
                let (_, stands, place) = &mut standing[which];
                let back = back.min(*stands);
                if let Some(slice) = place.take() {
                    store.amend(at, &ask(key(1), rule, back), Change::GiveBack { slice });
                    *stands -= back;
                }
            }
            let verdict = store.decide(at, &ask(key(1), rule, cost), Mode::Consume);
            if verdict.is_allowed() {
                standing.push((now, cost, Some(verdict.charged_slice)));
            }
            let mut stands = 0;
            for (from, cost, _) in standing.iter().rev() {
                stands += cost;
                let most = burst * 1000 + limit * (now - from);
                prop_assert!(stands * 1000 <= most, "{stands} since {from} at {now}");
            }
        }
    }
}
