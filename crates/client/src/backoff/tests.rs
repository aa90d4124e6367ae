//! The state machine of retries, without a clock.

use std::time::Duration;

use proptest::prelude::*;

use super::{Backoff, Next, RetryPolicy, Setback, Steps};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const POLICY: RetryPolicy = RetryPolicy {
    max_attempts: 10,
    max_total: ms(10_000),
    first_wait: ms(10),
    max_wait: ms(50),
};

#[test]
fn errors_double_the_bound_up_to_the_longest() {
    let mut backoff = Backoff::new(POLICY);
    for bound in [10, 20, 40, 50, 50] {
        let Next::Wait(wait) = backoff.after(Setback::Failed, ms(0), u64::MAX) else {
            panic!("gave up");
        };
        assert!(ms(bound) - Duration::from_nanos(1) <= wait && wait <= ms(bound));
    }
}

#[test]
fn jitter_covers_the_whole_span() {
    let waits = [0, 1 << 62, 1 << 63, 3 << 62].map(|random| {
        let mut steps = Steps::new(ms(8), ms(8));
        steps.next(random)
    });
    assert_eq!(waits, [ms(0), ms(2), ms(4), ms(6)]);
}

#[test]
fn a_refusal_is_waited_for_and_spread() {
    let retry_after = ms(1234);
    let mut backoff = Backoff::new(POLICY);
    let refused = Setback::Refused { retry_after };
    assert_eq!(backoff.after(refused, ms(0), 0), Next::Wait(ms(1234)));
    assert_eq!(backoff.after(refused, ms(0), 1 << 63), Next::Wait(ms(1239)));
}

#[test]
fn attempts_are_bounded() {
    let mut backoff = Backoff::new(RetryPolicy {
        max_attempts: 3,
        ..POLICY
    });
    let mut next = || backoff.after(Setback::Failed, ms(0), 0);
    assert_eq!(
        [next(), next(), next()],
        [Next::Wait(ms(0)), Next::Wait(ms(0)), Next::GiveUp]
    );
    let mut once = Backoff::new(RetryPolicy {
        max_attempts: 1,
        ..POLICY
    });
    assert_eq!(once.after(Setback::Failed, ms(0), 0), Next::GiveUp);
}

#[test]
fn a_wait_beyond_the_total_is_not_begun() {
    let refused = |retry_after| Setback::Refused { retry_after };
    let mut backoff = Backoff::new(POLICY);
    assert_eq!(
        backoff.after(refused(ms(9_000)), ms(1_000), 0),
        Next::Wait(ms(9_000))
    );
    assert_eq!(
        backoff.after(refused(ms(9_001)), ms(1_000), 0),
        Next::GiveUp
    );
    assert_eq!(
        backoff.after(refused(Duration::MAX), ms(0), u64::MAX),
        Next::GiveUp
    );
}

#[test]
fn a_reset_starts_again() {
    let mut steps = Steps::new(ms(8), ms(800));
    for _ in 0..5 {
        steps.next(0);
    }
    assert_eq!(steps.next(1 << 63), ms(128));
    steps.reset();
    assert_eq!(steps.next(1 << 63), ms(4));
}

proptest! {
    #[test]
    fn whatever_comes_it_ends_in_time(
        policy in (0_u32..20, 0_u64..5_000, 0_u64..100, 0_u64..1_000),
        setbacks in prop::collection::vec((any::<Option<u32>>(), any::<u64>(), 0_u64..50), 40),
    ) {
        let (max_attempts, max_total, first_wait, max_wait) = policy;
        let policy = RetryPolicy {
            max_attempts,
            max_total: ms(max_total),
            first_wait: ms(first_wait),
            max_wait: ms(max_wait),
        };
        let mut backoff = Backoff::new(policy);
        let (mut elapsed, mut attempts) = (Duration::ZERO, 1);
        for (refused, random, took) in setbacks {
            let ended = elapsed + ms(took);
            let retry_after = refused.map(|nanos| Duration::from_nanos(nanos.into()));
            let setback = retry_after.map_or(Setback::Failed, |retry_after| Setback::Refused {
                retry_after,
            });
            let Next::Wait(wait) = backoff.after(setback, ended, random) else {
                break;
            };
            prop_assert!(wait >= retry_after.unwrap_or_default());
            elapsed = ended + wait;
            attempts += 1;
            prop_assert!(elapsed <= policy.max_total);
        }
        prop_assert!(attempts <= max_attempts.max(1));
    }
}
