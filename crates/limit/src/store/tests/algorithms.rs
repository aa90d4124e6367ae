//! What each algorithm promises, in figures, on the store.

use super::{
    MEBIBYTE, NOW, SECOND, ask, decide_all, every_algorithm, key, later, rule, store, store_since,
    used, window,
};
use crate::{
    rule::{
        Algorithm, Alignment, Ban, FixedWindow, LeakyBucket, OldestSlice, Rule, SlidingLog,
        TokenBucket,
    },
    store::{Ask, Change, Store},
    units::{Cost, MAX_UNITS, Nanos},
    verdict::{Mode, Outcome, Reason, Verdict},
};

fn consume(store: &Store, now: Nanos, ask: &Ask) -> Verdict {
    store.decide(now, ask, Mode::Consume)
}

/// How many of so many are admitted at that instant.
fn admitted(store: &Store, now: Nanos, ask: &Ask, tries: usize) -> usize {
    let admit = |_: &usize| consume(store, now, ask).is_allowed();
    (0..tries).filter(admit).count()
}

#[test]
fn a_token_bucket_admits_its_burst_and_then_its_rate() {
    let store = store(16 * MEBIBYTE);
    let bucket = Algorithm::TokenBucket(TokenBucket {
        limit: 60,
        window: window(60_000),
        burst: 12,
    });
    let one = ask(key(1), bucket.into(), 1);
    assert_eq!(admitted(&store, NOW, &one, 100), 12);
    for half_minute in 1..=120 {
        let now = later(30 * half_minute);
        assert_eq!(admitted(&store, now, &one, 1), 1, "{half_minute}");
    }
    // Two a second from a full bucket.
    let start = later(3660);
    let mut instants = Vec::new();
    for half in 0..1200 {
        let now = start.saturating_add(Nanos::new(half * SECOND / 2));
        if consume(&store, now, &one).is_allowed() {
            instants.push(half);
        }
    }
    assert!((0..12).all(|half| instants.contains(&half)), "the burst");
    for from in 0..1200 {
        for length in [1, 2, 60, 120, 600] {
            let within = from..from + length;
            let count = instants
                .iter()
                .filter(|half| within.contains(*half))
                .count();
            // In `length` instants half a second apart lies `length - 1` times half a second.
            let most = 12 + (length - 1) / 2;
            assert!(count as u64 <= most, "{count} of {length} from {from}");
        }
    }
    let minute = |number: u64| {
        let within = number * 120..(number + 1) * 120;
        instants
            .iter()
            .filter(|half| within.contains(*half))
            .count()
    };
    assert_eq!((minute(0), minute(1), minute(9)), (71, 60, 60));
}

#[test]
fn a_leaky_bucket_lets_out_evenly() {
    let store = store(16 * MEBIBYTE);
    let bucket = Algorithm::LeakyBucket(LeakyBucket {
        limit: 10,
        window: window(1000),
        queue: 4,
    });
    let one = ask(key(1), bucket.into(), 1);
    for place in 0..5 {
        let verdict = consume(&store, NOW, &one);
        assert!(verdict.is_allowed());
        assert_eq!(verdict.delay, Nanos::from_millis(100 * place));
    }
    let refused = consume(&store, NOW, &one);
    assert_eq!(refused.outcome, Outcome::Refuse(Reason::QueueFull));
    assert_eq!(refused.retry_after, Some(Nanos::from_millis(100)));
    assert_eq!(refused.delay, Nanos::ZERO);
    // Whatever comes when: what is let out is at least 100 ms apart.
    let mut last_out = NOW.saturating_add(Nanos::from_millis(400));
    for step in [130, 10, 90, 400, 7, 7, 7, 300, 1000, 1, 1, 1] {
        let now = last_out.saturating_sub(Nanos::from_millis(300));
        let now = now.saturating_add(Nanos::from_millis(step));
        let verdict = consume(&store, now, &one);
        if verdict.is_allowed() {
            let out = now.saturating_add(verdict.delay);
            assert!(out.saturating_sub(last_out) >= Nanos::from_millis(100));
            last_out = out;
        }
    }
    let together = [ask(key(2), bucket.into(), 2), ask(key(2), bucket.into(), 1)];
    for mode in [Mode::Peek, Mode::Consume] {
        let verdicts = decide_all(&store, &together, mode);
        let delays = [verdicts[0].delay, verdicts[1].delay];
        assert_eq!(delays, [Nanos::ZERO, Nanos::from_millis(200)], "{mode:?}");
    }
}

/// A fixed window admits twice its limit around an edge, the exact ones do not.
#[test]
fn around_the_edge_of_a_minute() {
    const ELEVEN: u64 = 1_767_265_200;
    let store = store_since(Nanos::new((ELEVEN - 1000) * SECOND));
    let at = |minute: u64, second: u64| Nanos::new((1000 + minute * 60 + second) * SECOND);
    let (limit, alignment) = (100, Alignment::Epoch(window(60_000)));
    let fixed = Algorithm::FixedWindow(FixedWindow { limit, alignment });
    let log = Algorithm::SlidingLog(SlidingLog {
        limit,
        window: window(60_000),
    });
    let hard = rule(limit, 60, 10, OldestSlice::Full);
    for (number, rule, both) in [
        (1, fixed.into(), [100, 100]),
        (2, log.into(), [100, 0]),
        (3, hard, [100, 0]),
    ] {
        let one = ask(key(number), rule, 1);
        let before = admitted(&store, at(0, 59), &one, 150);
        let after = admitted(&store, at(1, 0), &one, 150);
        assert_eq!([before, after], both, "{rule:?}");
    }
}

#[test]
fn a_cost_that_does_not_fit_leaves_room_for_one_that_does() {
    let store = store(16 * MEBIBYTE);
    for (number, algorithm) in (0..).zip(every_algorithm(10, 10_000)) {
        let costs = |cost| ask(key(number), algorithm.into(), cost);
        let all = consume(&store, NOW, &costs(8));
        assert_eq!((all.outcome, all.remaining), (Outcome::Allow, 2));
        let refused = consume(&store, NOW, &costs(5));
        assert!(!refused.is_allowed(), "{algorithm:?}");
        assert_eq!((refused.used, refused.remaining), (8, 2), "{algorithm:?}");
        let one = consume(&store, NOW, &costs(1));
        assert_eq!((one.outcome, one.remaining), (Outcome::Allow, 1));
    }
}

/// P4: what one limit refuses costs nothing on the other.
#[test]
fn a_full_tenant_costs_its_user_nothing() {
    for algorithm in every_algorithm(4, 3_600_000) {
        let store = store(16 * MEBIBYTE);
        let one = |number| ask(key(number), algorithm.into(), 1);
        let (user, tenant, other) = (one(1), one(2), one(3));
        assert_eq!(admitted(&store, NOW, &tenant, 9), 4);
        for _ in 0..2 {
            let verdicts = decide_all(&store, &[user, tenant], Mode::Consume);
            assert!(verdicts[0].is_allowed() && !verdicts[1].is_allowed());
        }
        for _ in 0..4 {
            let verdicts = decide_all(&store, &[user, other], Mode::Consume);
            assert!(verdicts.iter().all(Verdict::is_allowed), "{algorithm:?}");
        }
        let verdicts = decide_all(&store, &[user, other], Mode::Consume);
        assert!(verdicts.iter().all(|verdict| !verdict.is_allowed()));
    }
}

/// Rule 2.
#[test]
fn a_changed_limit_counts_what_was_used() {
    const DAY: u64 = 86_400_000;
    let (before, after) = (every_algorithm(1000, DAY), every_algorithm(10_000, DAY));
    for (before, after) in before.into_iter().zip(after) {
        let store = store(1024 * MEBIBYTE);
        for number in 0..1000 {
            let now = NOW.saturating_add(Nanos::new(number));
            assert_eq!(admitted(&store, now, &ask(key(1), before.into(), 1), 1), 1);
        }
        let now = NOW.saturating_add(Nanos::new(1000));
        let one = ask(key(1), after.into(), 1);
        let raised = store.decide(now, &one, Mode::Peek);
        assert_eq!((raised.outcome, raised.remaining), (Outcome::Allow, 9000));
        let raised = consume(&store, now, &one);
        assert_eq!((raised.outcome, raised.remaining), (Outcome::Allow, 8999));
    }
    let (before, after) = (every_algorithm(100, 60_000), every_algorithm(10, 60_000));
    for (number, (before, after)) in (0..).zip(before.into_iter().zip(after)) {
        let store = store(16 * MEBIBYTE);
        assert_eq!(
            admitted(&store, NOW, &ask(key(number), before.into(), 1), 1),
            1
        );
        let lowered = consume(&store, NOW, &ask(key(number), after.into(), 1));
        assert_eq!((lowered.outcome, lowered.remaining), (Outcome::Allow, 8));
    }
}

/// Lowered below what is used: nothing remains, and a bucket waits for its new capacity alone.
#[test]
fn a_limit_lowered_below_its_use_admits_nothing_until_it_fits() {
    let (before, after) = (every_algorithm(100, 100_000), every_algorithm(10, 100_000));
    for (number, (before, after)) in (0..).zip(before.into_iter().zip(after)) {
        let store = store(16 * MEBIBYTE);
        consume(&store, NOW, &ask(key(number), before.into(), 90));
        let one = ask(key(number), after.into(), 1);
        let lowered = consume(&store, NOW, &one);
        assert!(!lowered.is_allowed(), "{after:?}");
        assert_eq!(lowered.remaining, 0);
        let used = match after {
            Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => 10,
            Algorithm::SlidingWindow(_)
            | Algorithm::SlidingLog(_)
            | Algorithm::FixedWindow(_)
            | Algorithm::Concurrency(_) => 90,
        };
        assert_eq!(lowered.used, used, "{after:?}");
        let wait = lowered.retry_after.expect("waiting helps");
        let then = NOW.saturating_add(wait);
        let just_before = then.saturating_sub(Nanos::new(1));
        assert!(!store.decide(just_before, &one, Mode::Peek).is_allowed());
        assert!(consume(&store, then, &one).is_allowed(), "{after:?}");
    }
}

#[test]
fn what_can_never_fit_is_told_so() {
    let store = store(16 * MEBIBYTE);
    for (limit, cost, reason) in [
        (10, 11, Reason::CostExceedsLimit),
        (10, MAX_UNITS, Reason::CostExceedsLimit),
        (0, 1, Reason::LimitIsZero),
        (0, MAX_UNITS, Reason::LimitIsZero),
    ] {
        for algorithm in every_algorithm(limit, 1000) {
            for mode in [Mode::Peek, Mode::Consume] {
                let verdict = store.decide(NOW, &ask(key(1), algorithm.into(), cost), mode);
                assert_eq!(verdict.outcome, Outcome::Refuse(reason), "{algorithm:?}");
                assert_eq!(verdict.retry_after, None, "{algorithm:?}");
            }
        }
    }
    assert_eq!(store.stats().keys, 0);
}

#[test]
fn a_permit_is_released_once_and_ends_by_itself() {
    let store = store(16 * MEBIBYTE);
    let permits = every_algorithm(2, 30_000)
        .pop()
        .expect("concurrency is the last");
    let one = ask(key(1), permits.into(), 1);
    let first = consume(&store, NOW, &one);
    let second = consume(&store, later(1), &one);
    assert_ne!(first.charged_slice, second.charged_slice);
    let refused = consume(&store, later(2), &one);
    assert_eq!(refused.retry_after, Some(Nanos::new(28 * SECOND)));
    let release = |now, verdict: &Verdict| {
        let slice = verdict.charged_slice;
        store.amend(now, &one, Change::GiveBack { slice });
    };
    // Released twice it is one slot.
    release(later(3), &first);
    release(later(3), &first);
    assert_eq!(admitted(&store, later(3), &one, 5), 1);
    // The holder of the second died: after the ttl its slot is free again, and its release does nothing.
    assert_eq!(admitted(&store, later(31), &one, 5), 1);
    release(later(31), &second);
    release(later(31), &second);
    assert_eq!(admitted(&store, later(31), &one, 5), 0, "never a third");
    assert_eq!(used_at(&store, later(31), &one), 2);
    assert_eq!(used_at(&store, later(33), &one), 1);
    assert_eq!(used_at(&store, later(61), &one), 0);
}

fn used_at(store: &Store, now: Nanos, ask: &Ask) -> u64 {
    let read = store.read(now, ask.key, &ask.rule);
    read.map_or(0, |verdict| verdict.used)
}

#[test]
fn permits_of_one_acquire_are_released_together_or_in_part() {
    let store = store(16 * MEBIBYTE);
    let permits = every_algorithm(5, 30_000)
        .pop()
        .expect("concurrency is the last");
    let of = |cost| ask(key(1), permits.into(), cost);
    let slice = consume(&store, NOW, &of(4)).charged_slice;
    store.amend(NOW, &of(2), Change::Refund);
    assert_eq!(used(&store, &of(1)), 4, "a permit is not refunded");
    store.amend(NOW, &of(1), Change::GiveBack { slice });
    assert_eq!(used(&store, &of(1)), 3);
    store.amend(NOW, &of(9), Change::GiveBack { slice });
    assert_eq!(used(&store, &of(1)), 0);
}

/// A check charges before it is known how it ends, so that a thousand at once are no thousand tries.
#[test]
fn a_limit_on_failures_admits_no_more_than_it_has() {
    for algorithm in every_algorithm(5, 600_000) {
        let store = store(16 * MEBIBYTE);
        let hour = Nanos::new(3600 * SECOND);
        let ban = Ban {
            length: hour,
            escalation: 1000,
            longest: hour,
        };
        let rule = Rule {
            ban: Some(ban),
            ..Rule::new(algorithm)
        };
        let one = ask(key(1), rule, 1);
        assert_eq!(admitted(&store, NOW, &one, 1000), 5, "{algorithm:?}");
        assert_eq!(one.cost, Cost::ONE);
    }
}
