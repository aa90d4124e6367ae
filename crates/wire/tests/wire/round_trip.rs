//! What is written is what is read, for any value in its bounds.

use std::net::{IpAddr, SocketAddr};

use proptest::{collection::vec, option, prelude::*};
use tollgate_limit::{
    Cost, KeyHash, MAX_UNITS, Mode, Nanos, NodeId, OldestSlice, Outcome, Reason, Rule,
    SlidingWindow, Verdict, Window,
};
use tollgate_wire::{
    client::{self, Check, Fault, FaultKind, InlineLimit, Pairs, Subject, put_fault, read_answer},
    decode_gossip, encode_gossip, frame,
    identity::{BootId, Identity, MAX_TAIL, Phase},
    peer::{
        CheckHead, GiveBack, Hello, PeerAsk, Reply, Request, put_check, put_reply, put_request,
        put_verdicts, read_ask, read_reply, read_request, read_verdict,
    },
};

fn rule() -> impl Strategy<Value = Rule> {
    let window = Window::MIN.as_nanos()..=Window::MAX.as_nanos();
    (0..=MAX_UNITS, window, 2_u8..=60, any::<bool>()).prop_map(|(limit, window, slices, hard)| {
        Rule::SlidingWindow(SlidingWindow {
            limit,
            window: Window::new(Nanos::new(window)).unwrap(),
            slices,
            oldest: if hard {
                OldestSlice::Full
            } else {
                OldestSlice::Weighted
            },
        })
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Allow),
        Just(Outcome::Refuse(Reason::LimitExceeded)),
        Just(Outcome::Refuse(Reason::CostExceedsLimit)),
        Just(Outcome::Refuse(Reason::LimitIsZero)),
        Just(Outcome::Refuse(Reason::Undecided)),
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
        (ask(), any::<(u64, u64)>()).prop_map(|(ask, (sequence, slice))| {
            Request::GiveBack(GiveBack {
                sequence,
                ask,
                slice,
            })
        }),
        ask().prop_map(Request::Read),
        Just(Request::Ping),
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

fn subject() -> impl Strategy<Value = Subject<'static>> {
    let numbers = (any::<(u64, u64)>(), any::<(u8, bool)>());
    prop_oneof![
        (".{0,70}", pairs()).prop_map(|(name, attributes)| Subject::Policy {
            name: name.into(),
            attributes,
        }),
        (".{0,70}", numbers, pairs()).prop_map(|(name, numbers, key)| {
            let ((limit, window_nanos), (slices, hard)) = numbers;
            let limit = InlineLimit {
                name: name.into(),
                limit,
                window_nanos,
                slices,
                hard,
            };
            Subject::Inline { limit, key }
        }),
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

proptest! {
    #[test]
    fn requests(sent in request()) {
        let mut body = Vec::new();
        put_request(&mut body, &sent).unwrap();
        prop_assert_eq!(read_request(&mut &*body), Ok(sent));
    }

    #[test]
    fn replies(sent in reply()) {
        let mut body = Vec::new();
        put_reply(&mut body, &sent).unwrap();
        prop_assert_eq!(read_reply(&mut &*body), Ok(sent));
    }

    #[test]
    fn checks_of_peers(budget_micros: u32, peek: bool, asks in vec(ask(), 1..=64)) {
        let mode = if peek { Mode::Peek } else { Mode::Consume };
        let head = CheckHead { budget_micros, mode, asks: asks.len().try_into().unwrap() };
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
    fn verdicts(sent in vec(verdict(), 0..=64)) {
        let mut body = Vec::new();
        put_verdicts(&mut body, &sent).unwrap();
        let body = &mut &*body;
        let Ok(Reply::Verdicts(head)) = read_reply(body) else { panic!("no verdicts") };
        prop_assert_eq!(usize::from(head.count), sent.len());
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
