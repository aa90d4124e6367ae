//! Any rule that there can be.

use proptest::{option, prelude::*};
use tollgate_limit::{
    Algorithm, Alignment, Ban, CalendarUnit, Concurrency, Enforcement, FixedWindow, LeakyBucket,
    MAX_ESCALATION, MAX_LOG_LIMIT, MAX_SLICES, MAX_UNITS, Nanos, OldestSlice, Rule, SlidingLog,
    SlidingWindow, TokenBucket, Window, Zone,
};

fn span() -> impl Strategy<Value = Nanos> {
    (Window::MIN.as_nanos()..=Window::MAX.as_nanos()).prop_map(Nanos::new)
}

fn window() -> impl Strategy<Value = Window> {
    span().prop_map(|span| Window::new(span).unwrap())
}

pub(super) fn unit() -> impl Strategy<Value = CalendarUnit> {
    prop::sample::select(CalendarUnit::ALL.as_slice())
}

fn sliding_window() -> impl Strategy<Value = Algorithm> {
    let slices = (1..=MAX_SLICES, any::<bool>());
    (0..=MAX_UNITS, window(), slices).prop_map(|(limit, window, (slices, hard))| {
        Algorithm::SlidingWindow(SlidingWindow {
            limit,
            window,
            slices,
            oldest: if hard && slices > 1 {
                OldestSlice::Full
            } else {
                OldestSlice::Weighted
            },
        })
    })
}

fn fixed_window() -> impl Strategy<Value = Algorithm> {
    let zones = ["UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York"];
    let zone = prop::sample::select(zones.to_vec());
    let alignment = prop_oneof![
        window().prop_map(Alignment::Epoch),
        (unit(), zone)
            .prop_map(|(unit, zone)| { Alignment::Calendar(unit, Zone::named(zone).unwrap()) }),
    ];
    (0..=MAX_UNITS, alignment)
        .prop_map(|(limit, alignment)| Algorithm::FixedWindow(FixedWindow { limit, alignment }))
}

fn bucket() -> impl Strategy<Value = Algorithm> {
    let numbers = prop_oneof![Just((0, 0)), (1..=MAX_UNITS, 1..=MAX_UNITS)];
    prop_oneof![
        (numbers, window()).prop_map(|((limit, burst), window)| {
            Algorithm::TokenBucket(TokenBucket {
                limit,
                window,
                burst,
            })
        }),
        (0..=MAX_UNITS, window(), 0..MAX_UNITS).prop_map(|(limit, window, queue)| {
            Algorithm::LeakyBucket(LeakyBucket {
                limit,
                window,
                queue,
            })
        }),
    ]
}

fn of_entries() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        (0..=MAX_LOG_LIMIT, window())
            .prop_map(|(limit, window)| Algorithm::SlidingLog(SlidingLog { limit, window })),
        (0..=MAX_LOG_LIMIT, window())
            .prop_map(|(limit, ttl)| Algorithm::Concurrency(Concurrency { limit, ttl })),
    ]
}

fn ban() -> impl Strategy<Value = Ban> {
    (span(), 1000..=MAX_ESCALATION, span()).prop_map(|(one, escalation, other)| Ban {
        length: one.min(other),
        escalation,
        longest: one.max(other),
    })
}

fn is_bucket(algorithm: &Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_)
    )
}

/// Any rule that there can be.
pub(super) fn rule() -> impl Strategy<Value = Rule> {
    let algorithm = prop_oneof![sliding_window(), fixed_window(), bucket(), of_entries()];
    let terms = (any::<u64>(), any::<bool>(), option::of(ban()));
    (algorithm, terms).prop_map(|(algorithm, (part, shadow, ban))| Rule {
        ceiling: if part % 2 == 0 && is_bucket(&algorithm) {
            algorithm.capacity() + part % (MAX_UNITS - algorithm.capacity() + 1)
        } else {
            algorithm.capacity()
        },
        algorithm,
        set_aside: part % (algorithm.capacity() + 1),
        enforcement: if shadow {
            Enforcement::Shadow
        } else {
            Enforcement::Enforced
        },
        ban,
    })
}
