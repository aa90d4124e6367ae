//! What clients and nodes say to each other.

use tollgate_limit::{CalendarUnit, DecidedBy, Enforcement, Fallback, Rule};
use tollgate_wire::client::{
    self, Check, Fault, FaultKind, InlineAlgorithm, Subject, put_decision, put_fault, read_answer,
    read_check,
};

use super::{ALLOWED, REFUSED};
use crate::samples::{
    algorithms, charged, decision, fault, hex, inline, inline_check, policy_check, rule, unhex,
};

#[track_caller]
fn check(check: &Check<'static>, golden: &str) {
    let mut body = Vec::new();
    client::put_check(&mut body, check).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)));
    assert_eq!(read_check(unhex(golden).leak()).as_ref(), Ok(check));
}

#[test]
fn checks_of_clients() {
    check(
        &policy_check(),
        "00 00 03 617069 02 02 6970 0b 3230332e302e3131332e37 07 6170695f6b6579 02 6b31 03 00",
    );
    check(
        &inline_check(),
        "00 01 05 6c6f67696e 05 00 fd005847f80d000000 0a 01 03 01 04 75736572 02 3432 00 01",
    );
}

#[test]
fn limits_of_clients() {
    let window_nanos = 60_000_000_000;
    let calendar = |unit, time_zone: &'static str| InlineAlgorithm::CalendarWindow {
        unit,
        time_zone: time_zone.into(),
    };
    for (algorithm, golden) in [
        (
            InlineAlgorithm::SlidingLog { window_nanos },
            "01 fd005847f80d000000",
        ),
        (
            InlineAlgorithm::FixedWindow { window_nanos },
            "02 fd005847f80d000000",
        ),
        (calendar(CalendarUnit::Hour, ""), "03 00 00"),
        (calendar(CalendarUnit::Day, "UTC"), "03 01 03 555443"),
        (calendar(CalendarUnit::Week, ""), "03 02 00"),
        (calendar(CalendarUnit::Month, ""), "03 03 00"),
        (calendar(CalendarUnit::Year, ""), "03 04 00"),
        (
            InlineAlgorithm::TokenBucket {
                window_nanos,
                burst: Some(9),
            },
            "04 fd005847f80d000000 01 09",
        ),
        (
            InlineAlgorithm::LeakyBucket {
                window_nanos,
                queue: None,
            },
            "05 fd005847f80d000000 00",
        ),
        (
            InlineAlgorithm::Concurrency {
                ttl_nanos: window_nanos,
            },
            "06 fd005847f80d000000",
        ),
    ] {
        let golden = format!("00 01 05 6c6f67696e 05 {golden} 03 01 04 75736572 02 3432 00 01");
        check(&inline(algorithm), &golden);
    }
    let fallbacks = [
        Fallback::LocalFull,
        Fallback::LocalFair,
        Fallback::Allow,
        Fallback::Deny,
    ];
    for (code, fallback) in fallbacks.into_iter().enumerate() {
        let mut sent = inline(InlineAlgorithm::SlidingLog { window_nanos: 1 });
        if let Subject::Inline { limit, .. } = &mut sent.subject {
            limit.fallback = fallback;
        }
        let golden =
            format!("00 01 05 6c6f67696e 05 01 01 {code:02x} 01 04 75736572 02 3432 00 01");
        check(&sent, &golden);
    }
}

#[test]
fn answers_to_clients() {
    let golden = format!(
        "00 fd11100f0e0d0c0b0a 05 00 02 \
         06 7065722d6970 00 64 fd005847f80d000000 {ALLOWED} 00 02 6e32 00 00 \
         03 616c6c 00 64 fd005847f80d000000 {REFUSED} 03 02 6e32 01 00"
    );
    let decision = decision();
    let mut body = Vec::new();
    put_decision(&mut body, &decision).unwrap();
    assert_eq!(hex(&body), hex(&unhex(&golden)));

    let answer = read_answer(&body).unwrap().unwrap();
    assert_eq!((answer.id, answer.allowed), (decision.id, false));
    assert_eq!(answer.limits.len(), decision.limits.len());
    for (read, sent) in answer.limits.iter().zip(&decision.limits) {
        assert_eq!(read.name, sent.limit.name());
        assert_eq!(read.algorithm.as_str(), sent.rule.algorithm.name());
        assert_eq!(read.capacity, sent.rule.capacity());
        assert_eq!(read.window, sent.rule.window());
        assert_eq!(read.verdict, sent.verdict);
        assert_eq!(read.decided_by, sent.decided_by);
        assert_eq!(read.node, sent.node.as_str());
        assert_eq!(read.degraded, sent.degraded);
        assert!(!read.shadow);
    }
}

/// Told by a code each; the capacity and the window are those of the rule.
#[test]
fn algorithms_in_answers() {
    let golden = [
        "00 64 fd005847f80d000000",
        "01 64 fd005847f80d000000",
        "02 64 fd005847f80d000000",
        "02 64 fd00009198fd830900",
        "03 c8 fd005847f80d000000",
        "04 33 fd005847f80d000000",
        "05 64 fd005847f80d000000",
    ];
    for (algorithm, golden) in algorithms().into_iter().zip(golden) {
        let mut body = Vec::new();
        put_decision(&mut body, &charged(&[Rule::new(algorithm)])).unwrap();
        let golden =
            format!("00 fd11100f0e0d0c0b0a 05 01 01 02 6c30 {golden} {ALLOWED} 00 02 6e32 00 00");
        assert_eq!(hex(&body), hex(&unhex(&golden)));
        let answer = read_answer(&body).unwrap().unwrap();
        assert_eq!(answer.limits[0].algorithm.as_str(), algorithm.name());
        assert_eq!(answer.limits[0].capacity, algorithm.capacity());
        assert_eq!(answer.limits[0].window, algorithm.window());
    }
}

#[test]
fn shadow_in_answers() {
    let shadow = Rule {
        enforcement: Enforcement::Shadow,
        ..rule()
    };
    let mut body = Vec::new();
    put_decision(&mut body, &charged(&[shadow])).unwrap();
    assert_eq!(body.last(), Some(&1));
    assert!(read_answer(&body).unwrap().unwrap().limits[0].shadow);
}

#[test]
fn faults_to_clients() {
    let golden = "01 02 01 04 636f7374 09 746f6f206c61726765";
    let mut body = Vec::new();
    put_fault(&mut body, &fault()).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)));
    assert_eq!(read_answer(&body), Ok(Err(fault())));
}

#[test]
fn deciders() {
    let deciders = [
        DecidedBy::Owner,
        DecidedBy::Standby,
        DecidedBy::Cached,
        DecidedBy::Fallback,
        DecidedBy::Switch,
    ];
    for (code, decided_by) in (0_u8..).zip(deciders) {
        let mut decision = decision();
        decision.limits.truncate(1);
        decision.limits[0].decided_by = decided_by;
        let mut body = Vec::new();
        put_decision(&mut body, &decision).unwrap();
        // Before the node's name, its length and the last two truth values.
        assert_eq!(body[body.len() - 6], code);
        let answer = read_answer(&body).unwrap().unwrap();
        assert_eq!(answer.limits[0].decided_by, decided_by);
    }
}

#[test]
fn kinds_of_faults() {
    let kinds = [
        (0, FaultKind::Malformed),
        (1, FaultKind::UnsupportedVersion),
        (2, FaultKind::BadRequest),
        (3, FaultKind::UnknownPolicy),
        (4, FaultKind::InlineOff),
        (5, FaultKind::TooLarge),
        (6, FaultKind::Unavailable),
        (255, FaultKind::Other),
    ];
    for (code, kind) in kinds {
        let (field, message) = (None, String::new());
        let fault = Fault {
            kind,
            field,
            message,
        };
        let mut body = Vec::new();
        put_fault(&mut body, &fault).unwrap();
        assert_eq!(body, [1, code, 0, 0]);
        assert_eq!(read_answer(&body), Ok(Err(fault)));
    }
    // A kind that a newer node made up is still a fault.
    let newer = read_answer(&[1, 77, 0, 0]).unwrap().unwrap_err();
    assert_eq!(newer.kind, FaultKind::Other);
}
