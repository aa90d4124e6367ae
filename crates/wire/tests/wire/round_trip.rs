//! What is written is what is read, for any value in its bounds.

mod replica;
mod rules;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use proptest::{collection::vec, option, prelude::*};
use tollgate_limit::{
    AlgorithmSpec, Change, Cost, DEFAULT_SLICES, DecidedBy, Fallback, HashKey, KeyHash, MAX_UNITS,
    Mode, Nanos, NodeId, Outcome, Reason, Receipt, Verdict,
};
use tollgate_wire::{
    client::{
        self, Check, Fault, FaultKind, InlineAlgorithm, InlineLimit, Pairs, Subject, put_fault,
        read_answer,
    },
    decode_gossip, encode_gossip, frame,
    identity::{BootId, Identity, MAX_TAIL, Phase},
    peer::{
        Amend, CheckHead, Hello, PeerAsk, Register, Reply, Request, Said, Switches, Way, put_check,
        put_reply, put_request, put_verdicts, read_ask, read_reply, read_request, read_verdict,
    },
    receipt::{self, Contents},
};

use self::rules::{rule, unit};
use crate::samples::charged;

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Allow),
        Just(Outcome::Refuse(Reason::LimitExceeded)),
        Just(Outcome::Refuse(Reason::CostExceedsLimit)),
        Just(Outcome::Refuse(Reason::LimitIsZero)),
        Just(Outcome::Refuse(Reason::Undecided)),
        Just(Outcome::Refuse(Reason::QueueFull)),
        Just(Outcome::Refuse(Reason::SetAside)),
        Just(Outcome::Refuse(Reason::Banned)),
    ]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    (outcome(), any::<[u64; 6]>(), any::<Option<u64>>()).prop_map(|(outcome, numbers, wait)| {
        let [used, remaining, more, reset, delay, charged_slice] = numbers;
        Verdict {
            outcome,
            used,
            remaining,
            retry_after: wait.map(Nanos::new),
            more_after: Nanos::new(more),
            reset_after: Nanos::new(reset),
            delay: Nanos::new(delay),
            charged_slice,
        }
    })
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

prop_compose! {
    fn identity()(
        node in "[A-Za-z0-9._-]{1,64}", boot: u64, generation: u64, peer in address(),
        api in address(), weight in 1_u8.., versions: (u8, u8),
        phase in prop_oneof![Just(Phase::Joining), Just(Phase::Active), Just(Phase::Leaving)],
        tail in vec(any::<u8>(), 0..=MAX_TAIL),
    ) -> Identity {
        Identity {
            node: NodeId::new(&node).unwrap(),
            boot: BootId(boot),
            generation,
            peer,
            api,
            weight,
            newest_version: versions.0.max(versions.1),
            oldest_version: versions.0.min(versions.1),
            phase,
            tail,
        }
    }
}

prop_compose! {
    fn ask()(shape: u16, high: u64, low: u64, cost in 0..=MAX_UNITS) -> PeerAsk {
        PeerAsk::new(shape, KeyHash::from_halves(high, low), Cost::new(cost).unwrap())
    }
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<u64>().prop_map(|slice| Change::GiveBack { slice }),
        Just(Change::Refund),
        Just(Change::Charge),
        Just(Change::Failure),
        Just(Change::Reset),
    ]
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        Just(Way::Owner),
        any::<(u64, u64)>().prop_map(|(link, number)| Way::Standby { link, number }),
        any::<(u64, u64, u64)>().prop_map(|(boot, link, number)| Way::Relayed {
            boot: BootId(boot),
            link,
            number,
        }),
    ]
}

fn register() -> impl Strategy<Value = Register> {
    ("[A-Za-z0-9._-]{0,64}", any::<(u64, bool)>()).prop_map(|(node, (counter, on))| Register {
        counter,
        node,
        on,
    })
}

fn said() -> impl Strategy<Value = Said> {
    let by = prop::sample::select(vec![DecidedBy::Owner, DecidedBy::Standby]);
    ("[A-Za-z0-9._-]{1,64}", any::<(u64, bool)>(), by).prop_map(|(node, (boot, degraded), by)| {
        Said {
            node,
            boot: BootId(boot),
            by,
            degraded,
        }
    })
}

fn request() -> impl Strategy<Value = Request> {
    let hello = (".{0,80}", ".{0,80}", any::<(u64, u64, u64)>());
    prop_oneof![
        hello.prop_map(
            |(cluster, node, (cluster_fingerprint, boot, link))| Request::Hello(Hello {
                cluster,
                cluster_fingerprint,
                node,
                boot: BootId(boot),
                link,
            })
        ),
        (any::<u16>(), rule()).prop_map(|(number, rule)| Request::Shape { number, rule }),
        (ask(), any::<u64>(), change()).prop_map(|(ask, sequence, change)| {
            Request::Amend(Amend {
                sequence,
                ask,
                change,
            })
        }),
        ask().prop_map(Request::Read),
        Just(Request::Ping),
        Just(Request::Follow),
        (register(), register())
            .prop_map(|(kill, shadow)| Request::Switches(Switches { kill, shadow })),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        any::<u64>().prop_map(|placement| Reply::NotOwner { placement }),
        Just(Reply::TooLate),
        Just(Reply::Done),
        option::of(verdict()).prop_map(Reply::Counter),
        any::<(u64, u64)>().prop_map(|(placement, policies)| Reply::Pong {
            placement,
            policies
        }),
        ".{0,80}".prop_map(Reply::Fault),
    ]
}

fn pairs() -> impl Strategy<Value = Pairs<'static>> {
    vec((".{0,9}", ".{0,40}"), 0..=64).prop_map(Pairs::from_iter)
}

fn inline_algorithm() -> impl Strategy<Value = InlineAlgorithm<'static>> {
    let slices = any::<(u8, bool)>();
    prop_oneof![
        (any::<u64>(), slices).prop_map(|(window_nanos, (slices, hard))| {
            InlineAlgorithm::SlidingWindow {
                window_nanos,
                slices,
                hard,
            }
        }),
        any::<u64>().prop_map(|window_nanos| InlineAlgorithm::SlidingLog { window_nanos }),
        any::<u64>().prop_map(|window_nanos| InlineAlgorithm::FixedWindow { window_nanos }),
        (unit(), ".{0,40}").prop_map(|(unit, time_zone)| InlineAlgorithm::CalendarWindow {
            unit,
            time_zone: time_zone.into(),
        }),
        any::<(u64, Option<u64>)>().prop_map(|(window_nanos, burst)| {
            InlineAlgorithm::TokenBucket {
                window_nanos,
                burst,
            }
        }),
        any::<(u64, Option<u64>)>().prop_map(|(window_nanos, queue)| {
            InlineAlgorithm::LeakyBucket {
                window_nanos,
                queue,
            }
        }),
        any::<u64>().prop_map(|ttl_nanos| InlineAlgorithm::Concurrency { ttl_nanos }),
    ]
}

fn inline_limit() -> impl Strategy<Value = InlineLimit<'static>> {
    let fallbacks = [
        Fallback::LocalFull,
        Fallback::LocalFair,
        Fallback::Allow,
        Fallback::Deny,
    ];
    let fallback = prop::sample::select(fallbacks.to_vec());
    (".{0,70}", any::<u64>(), inline_algorithm(), fallback).prop_map(
        |(name, limit, algorithm, fallback)| InlineLimit {
            name: name.into(),
            limit,
            algorithm,
            fallback,
        },
    )
}

fn subject() -> impl Strategy<Value = Subject<'static>> {
    prop_oneof![
        (".{0,70}", pairs()).prop_map(|(name, attributes)| Subject::Policy {
            name: name.into(),
            attributes,
        }),
        (inline_limit(), pairs()).prop_map(|(limit, key)| Subject::Inline { limit, key }),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let kind = prop_oneof![
        Just(FaultKind::Malformed),
        Just(FaultKind::UnsupportedVersion),
        Just(FaultKind::BadRequest),
        Just(FaultKind::UnknownPolicy),
        Just(FaultKind::InlineOff),
        Just(FaultKind::TooLarge),
        Just(FaultKind::Unavailable),
        Just(FaultKind::Other),
    ];
    (kind, option::of(".{0,40}"), ".{0,200}").prop_map(|(kind, field, message)| Fault {
        kind,
        field,
        message,
    })
}

/// What a client need not say means the same as in files.
#[test]
fn the_usual_limit_is_that_of_files() {
    let limit = InlineLimit::sliding_window("login", 5, Duration::from_secs(60));
    let usual = AlgorithmSpec::SlidingWindow {
        window: Nanos::from_millis(60_000),
        slices: DEFAULT_SLICES,
        hard: false,
    };
    assert_eq!(AlgorithmSpec::from(&limit.algorithm), usual);
    assert_eq!(limit.fallback, Fallback::default());
    assert_eq!((limit.name.as_ref(), limit.limit), ("login", 5));
}

proptest! {
    #[test]
    fn requests(sent in request()) {
        let mut body = Vec::new();
        put_request(&mut body, &sent).unwrap();
        prop_assert_eq!(read_request(&mut &*body), Ok(sent));
    }

    #[test]
    fn receipts(rules in vec(rule(), 0..6), made: u64) {
        let (decision, key) = (charged(&rules), HashKey::new([7; 16]));
        let mut text = String::new();
        let write = |sealed: &str| text.push_str(sealed);
        receipt::seal(&decision, Contents::All, made, &key, write).unwrap();
        prop_assert_eq!(receipt::open(&text, &key), Ok(Receipt::of(&decision, made)));
    }

    #[test]
    fn replies(sent in reply()) {
        let mut body = Vec::new();
        put_reply(&mut body, &sent).unwrap();
        prop_assert_eq!(read_reply(&mut &*body), Ok(sent));
    }

    #[test]
    fn checks_of_peers(
        budget_micros: u32, peek: bool, way in way(), asks in vec(ask(), 1..=64),
    ) {
        let mode = if peek { Mode::Peek } else { Mode::Consume };
        let asked = asks.len().try_into().unwrap();
        let head = CheckHead { budget_micros, mode, asks: asked, way };
        let mut body = Vec::new();
        put_check(&mut body, &head, asks.iter().copied()).unwrap();
        let body = &mut &*body;
        prop_assert_eq!(read_request(body), Ok(Request::Check(head)));
        for ask in asks {
            prop_assert_eq!(read_ask(body), Ok(ask));
        }
        prop_assert!(body.is_empty());
    }

    #[test]
    fn verdicts(said in option::of(said()), sent in vec(verdict(), 0..=64)) {
        let mut body = Vec::new();
        put_verdicts(&mut body, said.as_ref(), &sent).unwrap();
        let body = &mut &*body;
        let Ok(Reply::Verdicts(head)) = read_reply(body) else { panic!("no verdicts") };
        prop_assert_eq!(usize::from(head.count), sent.len());
        prop_assert_eq!(head.said, said);
        for verdict in sent {
            prop_assert_eq!(read_verdict(body), Ok(verdict));
        }
        prop_assert!(body.is_empty());
    }

    #[test]
    fn identities(sent in identity(), rest in vec(any::<u8>(), 0..9)) {
        let mut packet = Vec::new();
        encode_gossip(&sent, &mut packet).unwrap();
        packet.extend_from_slice(&rest);
        let mut left = &*packet;
        prop_assert_eq!(decode_gossip(&mut left), Ok(sent));
        prop_assert_eq!(left, &*rest);
    }

    #[test]
    fn checks_of_clients(subject in subject(), cost: u64, peek: bool) {
        let sent = Check { subject, cost, peek };
        let mut body = Vec::new();
        client::put_check(&mut body, &sent).unwrap();
        prop_assert_eq!(client::read_check(body.leak()), Ok(sent));
    }

    #[test]
    fn faults(sent in fault()) {
        let mut body = Vec::new();
        put_fault(&mut body, &sent).unwrap();
        prop_assert_eq!(read_answer(&body), Ok(Err(sent)));
    }

    #[test]
    fn frames(id: u64, body in vec(any::<u8>(), 0..300), rest in vec(any::<u8>(), 0..20)) {
        let mut bytes = Vec::new();
        frame::put(&mut bytes, id, |out| {
            out.extend_from_slice(&body);
            Ok::<(), ()>(())
        }).unwrap();
        let length = bytes.len();
        bytes.extend_from_slice(&rest);
        let (frame, taken) = frame::split(&bytes, 1 << 10).unwrap().unwrap();
        prop_assert_eq!((frame.version, frame.id, frame.body, taken), (1, id, &*body, length));
        prop_assert_eq!(frame::split(&bytes[..length - 1], 1 << 10), Ok(None));
    }
}
