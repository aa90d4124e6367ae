//! Limits that come with checks, and faults that quote what came.

use std::time::Duration;

use tollgate_limit::{CalendarUnit, Fallback};
use tollgate_wire::client::{Check, FaultKind, InlineAlgorithm, InlineLimit, Subject};

use super::{Client, framed, pairs, policy};
use crate::client_stream::batch::spec_of;

pub(super) fn inline(
    key: &[(&'static str, &'static str)],
    change: impl FnOnce(&mut InlineLimit<'static>),
) -> Check<'static> {
    let mut limit = InlineLimit::sliding_window("l", 5, Duration::from_secs(60));
    change(&mut limit);
    Check {
        subject: Subject::Inline {
            limit,
            key: pairs(key),
        },
        cost: 1,
        peek: false,
    }
}

const MINUTE: u64 = 60_000_000_000;

fn sliding(window_nanos: u64, slices: u8) -> InlineAlgorithm<'static> {
    InlineAlgorithm::SlidingWindow {
        window_nanos,
        slices,
        hard: false,
    }
}

fn month(time_zone: &'static str) -> InlineAlgorithm<'static> {
    InlineAlgorithm::CalendarWindow {
        unit: CalendarUnit::Month,
        time_zone: time_zone.into(),
    }
}

/// Each is answered by a fault of that kind and field, nothing is counted, and the stream goes on.
async fn refused(checks: impl IntoIterator<Item = (Check<'static>, FaultKind, &str)>) {
    let mut client = Client::new(1 << 16);
    for (check, kind, field) in checks {
        let (id, fault) = client.fault(&framed(9, &check)).await;
        assert_eq!(
            (id, fault.kind, fault.field.as_deref()),
            (9, kind, Some(field))
        );
        assert!(fault.message.contains("right is"), "{fault}");
    }
    assert_eq!(client.checker.used(), 0);
    client.end().await.unwrap();
}

#[tokio::test]
async fn a_faulty_check_gets_an_error_frame_and_the_stream_goes_on() {
    let above = Check {
        cost: (1 << 53) + 1,
        ..policy("api", &[])
    };
    let off = inline(&[("user", "1")], |limit| limit.name = "off".into());
    refused([
        (policy("nope", &[]), FaultKind::UnknownPolicy, "policy"),
        (off, FaultKind::InlineOff, "limit"),
    ])
    .await;
    let bad = [
        (policy("strict", &[]), "attributes.user"),
        (policy("api", &[("a", "1"), ("a", "2")]), "attributes.a"),
        (policy("api", &[("a", "b\u{7}")]), "attributes.a"),
        (above, "cost"),
        (inline(&[], |_| ()), "key"),
        (inline(&[("a", "")], |_| ()), "key.a"),
        (inline(&[("a", "b\u{0}")], |_| ()), "key.a"),
    ];
    refused(bad.map(|(check, field)| (check, FaultKind::BadRequest, field))).await;
}

#[tokio::test]
async fn a_faulty_limit_gets_an_error_frame_that_names_the_field() {
    let of = |algorithm| inline(&[("user", "1")], |limit| limit.algorithm = algorithm);
    let named = inline(&[("user", "1")], |limit| limit.name = "a b".into());
    let above = inline(&[("user", "1")], |limit| limit.limit = u64::MAX);
    let burst = InlineAlgorithm::TokenBucket {
        window_nanos: MINUTE,
        burst: Some(0),
    };
    let queue = InlineAlgorithm::LeakyBucket {
        window_nanos: MINUTE,
        queue: Some(u64::MAX),
    };
    let permits = InlineAlgorithm::Concurrency { ttl_nanos: MINUTE };
    let bad = [
        (named, "limit.name"),
        (above, "limit.limit"),
        (of(sliding(0, 10)), "limit.window"),
        (of(sliding(MINUTE, 0)), "limit.slices"),
        (of(month("Nowhere/Here")), "limit.time_zone"),
        (of(burst), "limit.burst"),
        (of(queue), "limit.queue"),
        (of(permits), "limit.algorithm"),
    ];
    refused(bad.map(|(check, field)| (check, FaultKind::BadRequest, field))).await;
}

/// Every algorithm but permits is read, with all its numbers.
#[tokio::test]
async fn limits_of_all_algorithms_come_with_checks() {
    let mut client = Client::new(1 << 16);
    let window_nanos = MINUTE;
    for (algorithm, name, capacity, window) in [
        (sliding(MINUTE, 6), "sliding-window", 5, MINUTE),
        (
            InlineAlgorithm::SlidingLog { window_nanos },
            "sliding-log",
            5,
            MINUTE,
        ),
        (
            InlineAlgorithm::FixedWindow { window_nanos },
            "fixed-window",
            5,
            MINUTE,
        ),
        (month(""), "fixed-window", 5, 31 * 1440 * MINUTE),
        (
            month("Europe/Berlin"),
            "fixed-window",
            5,
            31 * 1440 * MINUTE,
        ),
        (
            InlineAlgorithm::TokenBucket {
                window_nanos,
                burst: Some(9),
            },
            "token-bucket",
            9,
            MINUTE,
        ),
        (
            InlineAlgorithm::LeakyBucket {
                window_nanos,
                queue: Some(2),
            },
            "leaky-bucket",
            3,
            MINUTE,
        ),
    ] {
        let check = inline(&[("a", "1")], |limit| limit.algorithm = algorithm);
        client.send(&framed(1, &check)).await;
        let answer = client.next().await.unwrap().1.unwrap();
        let limit = &answer.limits[0];
        assert_eq!((limit.algorithm.as_str(), limit.capacity), (name, capacity));
        assert_eq!(limit.window.span().as_nanos(), window);
    }
    client.end().await.unwrap();
}

#[test]
fn the_fallback_comes_with_the_limit() {
    for fallback in [
        Fallback::LocalFull,
        Fallback::LocalFair,
        Fallback::Allow,
        Fallback::Deny,
    ] {
        let limit = InlineLimit {
            fallback,
            ..InlineLimit::sliding_window("l", 5, Duration::from_secs(60))
        };
        let spec = spec_of(&limit, &pairs(&[("a", "1")])).unwrap();
        assert_eq!(spec.fallback, fallback);
    }
}

/// What a client sent is quoted in the fault, but never all of a long one: the fault must fit into a frame.
#[tokio::test]
async fn a_fault_of_long_texts_fits_into_a_frame() {
    let mut client = Client::new(1 << 20);
    let long = "\u{1}".repeat(100_000);
    let name: &'static str = long.clone().leak();
    for check in [
        policy(name, &[]),
        policy("api", &[(name, "v")]),
        inline(&[(name, "v")], |_| ()),
        inline(&[("a", "b")], |limit| limit.name = long.clone().into()),
        inline(&[("a", "b")], |limit| limit.algorithm = month(name)),
    ] {
        let (id, fault) = client.fault(&framed(9, &check)).await;
        assert_eq!(id, 9);
        assert!(
            fault.to_string().len() < 4096,
            "{} bytes",
            fault.to_string().len()
        );
        assert!(fault.message.contains("right is"));
    }
    client.end().await.unwrap();
}
