//! One of each message, with numbers that show where they stand in the bytes; and hexadecimal.

use std::sync::Arc;

use tollgate_limit::{
    AlgorithmSpec, CheckId, Cost, DecidedBy, Decision, Fallback, HashKey, KeyHash, Limit,
    LimitDecision, LimitNumber, LimitSpec, Nanos, NodeId, OldestSlice, Outcome, Reason, Rule,
    SlidingWindow, Verdict, Window,
};
use tollgate_wire::{
    client::{Check, Fault, FaultKind, InlineLimit, Pairs, Subject},
    identity::{BootId, Identity, Phase},
    peer::{GiveBack, PeerAsk},
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

pub(crate) fn give_back() -> GiveBack {
    GiveBack {
        sequence: 300,
        ask: ask(),
        slice: 70_000,
    }
}

pub(crate) fn rule() -> Rule {
    Rule::SlidingWindow(SlidingWindow {
        limit: 100,
        window: Window::new(Nanos::from_millis(60_000)).unwrap(),
        slices: 10,
        oldest: OldestSlice::Full,
    })
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

pub(crate) fn inline_check() -> Check<'static> {
    let limit = InlineLimit {
        name: "login".into(),
        limit: 5,
        window_nanos: 60_000_000_000,
        slices: 10,
        hard: true,
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

pub(crate) fn decision() -> Decision {
    let of = |name, verdict, decided_by, degraded| LimitDecision {
        limit: limit(name),
        verdict,
        decided_by,
        node: NodeId::new("n2").unwrap(),
        degraded,
    };
    Decision {
        id: CheckId {
            boot: 0x0a0b_0c0d_0e0f_1011,
            number: 5,
        },
        limits: vec![
            of("per-ip", allowed(), DecidedBy::Owner, false),
            of("all", refused(), DecidedBy::Fallback, true),
        ],
    }
}

pub(crate) fn fault() -> Fault {
    Fault {
        kind: FaultKind::BadRequest,
        field: Some("cost".to_owned()),
        message: "too large".to_owned(),
    }
}
