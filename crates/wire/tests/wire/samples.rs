//! One of each message, with numbers that show where they stand in the bytes; and hexadecimal.

use std::{sync::Arc, time::Duration};

use tollgate_limit::{
    Algorithm, AlgorithmSpec, Alignment, Ban, Body, CalendarUnit, Change, CheckId, Concurrency,
    Cost, Counter, DecidedBy, Decision, Enforcement, Fallback, FixedWindow, HashKey, KeyHash,
    LeakyBucket, Limit, LimitDecision, LimitNumber, LimitSpec, Nanos, NodeId, OldestSlice, Outcome,
    Reason, Rule, Series, SlidingLog, SlidingWindow, SlotId, SlotSet, TokenBucket, Verdict, Window,
    Writer, Zone,
};
use tollgate_wire::{
    client::{Check, Fault, FaultKind, InlineAlgorithm, InlineLimit, Pairs, Subject},
    identity::{BootId, Identity, Phase},
    peer::{Amend, PeerAsk, Register, Said, Switches},
    replica::{Delivery, Order},
};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

pub(crate) fn key() -> KeyHash {
    KeyHash::from_halves(0x0102_0304_0506_0708, 0x1112_1314_1516_1718)
}

pub(crate) fn ask() -> PeerAsk {
    PeerAsk::new(3, key(), Cost::new(7).unwrap())
}

pub(crate) fn amend(change: Change) -> Amend {
    Amend {
        sequence: 300,
        ask: ask(),
        change,
    }
}

/// Every way to change a counter.
pub(crate) const CHANGES: [Change; 5] = [
    Change::GiveBack { slice: 70_000 },
    Change::Refund,
    Change::Charge,
    Change::Failure,
    Change::Reset,
];

fn minute() -> Window {
    Window::new(Nanos::from_millis(60_000)).unwrap()
}

pub(crate) fn sliding_window() -> Algorithm {
    Algorithm::SlidingWindow(SlidingWindow {
        limit: 100,
        window: minute(),
        slices: 10,
        oldest: OldestSlice::Full,
    })
}

/// Every algorithm, the fixed window both ways.
pub(crate) fn algorithms() -> [Algorithm; 7] {
    let (limit, window) = (100, minute());
    let berlin = Zone::named("Europe/Berlin").unwrap();
    [
        sliding_window(),
        Algorithm::SlidingLog(SlidingLog { limit, window }),
        Algorithm::FixedWindow(FixedWindow {
            limit,
            alignment: Alignment::Epoch(window),
        }),
        Algorithm::FixedWindow(FixedWindow {
            limit,
            alignment: Alignment::Calendar(CalendarUnit::Month, berlin),
        }),
        Algorithm::TokenBucket(TokenBucket {
            limit,
            window,
            burst: 200,
        }),
        Algorithm::LeakyBucket(LeakyBucket {
            limit,
            window,
            queue: 50,
        }),
        Algorithm::Concurrency(Concurrency { limit, ttl: window }),
    ]
}

pub(crate) fn rule() -> Rule {
    Rule::new(sliding_window())
}

pub(crate) const BAN: Ban = Ban {
    length: Nanos::from_millis(60_000),
    escalation: 2_000,
    longest: Nanos::from_millis(120_000),
};

/// A rule with all terms set.
pub(crate) fn rule_on_all_terms() -> Rule {
    Rule {
        algorithm: sliding_window(),
        set_aside: 20,
        enforcement: Enforcement::Shadow,
        ban: Some(BAN),
        ceiling: 100,
    }
}

pub(crate) fn allowed() -> Verdict {
    Verdict {
        outcome: Outcome::Allow,
        used: 1,
        remaining: 99,
        retry_after: Some(Nanos::ZERO),
        more_after: Nanos::from_millis(1),
        reset_after: Nanos::from_millis(2),
        delay: Nanos::new(3),
        charged_slice: 4,
    }
}

pub(crate) fn refused() -> Verdict {
    Verdict {
        outcome: Outcome::Refuse(Reason::CostExceedsLimit),
        used: 5,
        remaining: 6,
        retry_after: None,
        more_after: Nanos::new(7),
        reset_after: Nanos::new(8),
        delay: Nanos::new(9),
        charged_slice: 10,
    }
}

/// The standby `n1`, on a copy that may lack counts.
pub(crate) fn said() -> Said {
    Said {
        node: "n1".to_owned(),
        boot: BootId(0xaabb),
        by: DecidedBy::Standby,
        degraded: true,
    }
}

/// One set by `n1`, one by nobody.
pub(crate) fn switches() -> Switches {
    Switches {
        kill: Register {
            counter: 300,
            node: "n1".to_owned(),
            on: true,
        },
        shadow: Register::default(),
    }
}

pub(crate) fn slots() -> SlotSet {
    [0, 2, 64, 65_535].map(SlotId::new).into_iter().collect()
}

/// Counts of all counters of a key, one of them twice, and a void.
pub(crate) fn series() -> Vec<Series> {
    let counts = |counter, words: &[u64]| Series {
        key: key(),
        counter,
        writer: Writer::new(250),
        version: 300,
        clock: 70_000,
        body: Body::Counts {
            seen: 100,
            latest: Nanos::new(9),
            words: words.into(),
        },
    };
    let [sliding, _, _, calendar, ..] = algorithms();
    let void = Series {
        body: Body::Void,
        ..counts(Counter::Charges(sliding), &[])
    };
    vec![
        counts(Counter::Charges(sliding), &[1, 2, u64::MAX]),
        counts(Counter::Failures(calendar), &[]),
        void,
        counts(Counter::Ban, &[7]),
    ]
}

pub(crate) fn orders() -> Vec<Order> {
    let (number, series) = (300, series());
    vec![
        Order::Subscribe(slots()),
        Order::Take(slots()),
        Order::Acked(slots()),
        Order::Offer(slots()),
        Order::Report { number, series },
    ]
}

pub(crate) fn deliveries() -> Vec<Delivery> {
    vec![
        Delivery::Batch(series()),
        Delivery::Copied(slots()),
        Delivery::Final(slots()),
        Delivery::Reported(300),
    ]
}

pub(crate) fn identity() -> Identity {
    Identity {
        node: NodeId::new("n1").unwrap(),
        boot: BootId(0xaabb),
        generation: 1_700_000_000_000,
        peer: "10.0.0.1:7601".parse().unwrap(),
        api: "[::1]:7600".parse().unwrap(),
        weight: 2,
        newest_version: 1,
        oldest_version: 1,
        phase: Phase::Active,
        tail: vec![0xfe, 0xff],
    }
}

pub(crate) fn policy_check() -> Check<'static> {
    let attributes = Pairs::from_iter([("ip", "203.0.113.7"), ("api_key", "k1")]);
    Check {
        subject: Subject::Policy {
            name: "api".into(),
            attributes,
        },
        cost: 3,
        peek: false,
    }
}

pub(crate) fn inline(algorithm: InlineAlgorithm<'static>) -> Check<'static> {
    let limit = InlineLimit {
        algorithm,
        fallback: Fallback::Deny,
        ..InlineLimit::sliding_window("login", 5, Duration::ZERO)
    };
    Check {
        subject: Subject::Inline {
            limit,
            key: Pairs::from_iter([("user", "42")]),
        },
        cost: 0,
        peek: true,
    }
}

pub(crate) fn inline_check() -> Check<'static> {
    inline(InlineAlgorithm::SlidingWindow {
        window_nanos: 60_000_000_000,
        slices: 10,
        hard: true,
    })
}

pub(crate) fn inline_calendar_check() -> Check<'static> {
    inline(InlineAlgorithm::CalendarWindow {
        unit: CalendarUnit::Week,
        time_zone: "Asia/Tokyo".into(),
    })
}

pub(crate) fn limit(name: &str) -> Arc<Limit> {
    let spec = LimitSpec {
        key: vec!["ip".to_owned()],
        fallback: Fallback::Deny,
        ..LimitSpec::new(
            name,
            LimitNumber::One(100),
            AlgorithmSpec::SlidingWindow {
                window: Nanos::from_millis(60_000),
                slices: 10,
                hard: false,
            },
        )
    };
    Arc::new(Limit::inline(spec, &HashKey::new([7; 16])).unwrap())
}

/// The boot of the entry node.
const ENTRY_BOOT: u64 = 0x0a0b_0c0d_0e0f_1011;

/// What a limit of this rule said, and was charged for it.
pub(crate) fn limit_decision(name: &str, rule: Rule, charged: Cost) -> LimitDecision {
    LimitDecision {
        limit: limit(name),
        key: key(),
        rule,
        charged,
        verdict: allowed(),
        decided_by: DecidedBy::Owner,
        node: NodeId::new("n2").unwrap(),
        boot: ENTRY_BOOT,
        degraded: false,
    }
}

/// A check that a limit admitted and another refused, so that nothing is charged.
pub(crate) fn decision() -> Decision {
    Decision {
        id: CheckId {
            boot: ENTRY_BOOT,
            number: 5,
        },
        limits: vec![
            limit_decision("per-ip", rule(), Cost::ZERO),
            LimitDecision {
                verdict: refused(),
                decided_by: DecidedBy::Fallback,
                degraded: true,
                ..limit_decision("all", rule(), Cost::ZERO)
            },
        ],
    }
}

/// An admitted check that these rules were charged for, 7 each.
pub(crate) fn charged(rules: &[Rule]) -> Decision {
    let limits = rules.iter().enumerate().map(|(at, rule)| {
        let cost = Cost::new(7).unwrap();
        limit_decision(&format!("l{at}"), *rule, cost)
    });
    Decision {
        limits: limits.collect(),
        ..decision()
    }
}

pub(crate) fn fault() -> Fault {
    Fault {
        kind: FaultKind::BadRequest,
        field: Some("cost".to_owned()),
        message: "too large".to_owned(),
    }
}
