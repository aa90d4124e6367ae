//! Broken bytes: no panic, a clear error, and no memory for what is only claimed.

mod bounds;
mod replica;

use allocation_counter::measure;
use proptest::{collection::vec, prelude::*};
use tollgate_limit::{HashKey, MAX_ATTRIBUTES, Mode, Rule};
use tollgate_wire::{
    CodecError,
    client::{Pairs, Subject, put_check, put_decision, put_fault, read_answer, read_check},
    decode_gossip, encode_gossip,
    frame::{self, FrameError, MAX_CLIENT_FRAME},
    identity::{BootId, Identity},
    peer::{
        CheckHead, PeerAsk, Reply, Request, Way, put_check as put_check_of_peers, put_reply,
        put_request, put_verdicts, read_ask, read_reply, read_request, read_verdict,
    },
    receipt,
    replica::{put_delivery, put_order, read_delivery, read_order},
};

use crate::samples::{
    CHANGES, algorithms, allowed, amend, ask, decision, deliveries, fault, identity,
    inline_calendar_check, inline_check, orders, policy_check, refused, rule_on_all_terms, said,
    switches, unhex,
};

/// Memory that a reader may take for each byte that it was given, and in any case.
const BYTES_PER_BYTE: u64 = 64;
const BYTES_ANYWAY: u64 = 1024;
/// A set of slots takes as much whatever is in it.
const SLOT_SET: u64 = 8192;

const KEY: HashKey = HashKey::new([7; 16]);

/// Every reader on the same bytes.
fn read_all(bytes: &[u8]) -> [bool; 8] {
    let mut requests = bytes;
    let mut replies = bytes;
    [
        frame::split(bytes, MAX_CLIENT_FRAME).is_ok(),
        read_request(&mut requests).is_ok() && read_ask(&mut requests).is_ok(),
        read_reply(&mut replies).is_ok() && read_verdict(&mut replies).is_ok(),
        read_check(bytes).is_ok(),
        read_answer(bytes).is_ok(),
        decode_gossip::<Identity>(bytes).is_ok(),
        decode_gossip::<PeerAsk>(bytes).is_ok(),
        std::str::from_utf8(bytes).is_ok_and(|text| receipt::open(text, &KEY).is_ok()),
    ]
}

fn bodies() -> Vec<Vec<u8>> {
    let body = |put: &dyn Fn(&mut Vec<u8>) -> Result<(), CodecError>| {
        let mut body = Vec::new();
        put(&mut body).unwrap();
        body
    };
    let rules = algorithms().into_iter().map(Rule::new);
    let shapes = rules.chain([rule_on_all_terms()]).map(|rule| {
        let shape = Request::Shape { number: 1, rule };
        body(&|out| put_request(out, &shape))
    });
    let amends =
        CHANGES.map(|change| body(&|out| put_request(out, &Request::Amend(amend(change)))));
    let rest = vec![
        body(&|out| put_request(out, &Request::Read(ask()))),
        body(&|out| put_request(out, &Request::Switches(switches()))),
        body(&|out| put_check_of_peers(out, &relayed(), [ask()])),
        body(&|out| put_verdicts(out, None, &[allowed(), refused()])),
        body(&|out| put_verdicts(out, Some(&said()), &[allowed(), refused()])),
        body(&|out| put_reply(out, &Reply::Counter(Some(refused())))),
        body(&|out| put_reply(out, &Reply::Fault("no".to_owned()))),
        body(&|out| put_check(out, &policy_check())),
        body(&|out| put_check(out, &inline_check())),
        body(&|out| put_check(out, &inline_calendar_check())),
        body(&|out| put_decision(out, &decision())),
        body(&|out| put_fault(out, &fault())),
        body(&|out| encode_gossip(&identity(), out)),
    ];
    let orders = orders();
    let orders = orders
        .iter()
        .map(|order| body(&|out| put_order(out, order)));
    let deliveries = deliveries();
    let deliveries = deliveries
        .iter()
        .map(|delivery| body(&|out| put_delivery(out, delivery)));
    let told = orders.chain(deliveries);
    shapes.chain(amends).chain(rest).chain(told).collect()
}

fn relayed() -> CheckHead {
    let (boot, link, number) = (BootId(250), 3, 300);
    CheckHead {
        budget_micros: 20_000,
        mode: Mode::Consume,
        asks: 1,
        way: Way::Relayed { boot, link, number },
    }
}

#[track_caller]
fn assert_bounded(bytes: &[u8]) {
    let memory = measure(|| {
        read_all(bytes);
    });
    let given = u64::try_from(bytes.len()).unwrap();
    let most = given * BYTES_PER_BYTE + BYTES_ANYWAY;
    assert!(memory.bytes_max <= most, "{memory:?} for {given} bytes");
    let memory = measure(|| {
        let _read = read_order(bytes).is_ok();
        let _read = read_delivery(bytes).is_ok();
    });
    let most = most + SLOT_SET;
    assert!(memory.bytes_max <= most, "{memory:?} for {given} bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
        assert_bounded(&bytes);
    }

    /// The first byte names the message: small ones reach further into the readers.
    #[test]
    fn random_bodies_do_no_harm(message in 0_u8..10, rest in vec(any::<u8>(), 0..200)) {
        assert_bounded(&[&[message], &*rest].concat());
    }

    #[test]
    fn changed_messages_do_no_harm(
        which: prop::sample::Index,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bodies = bodies();
        let mut bytes = bodies.swap_remove(which.index(bodies.len()));
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        assert_bounded(&bytes);
    }
}

/// A length of 2^32 - 1 and more in the place of every byte of every message.
#[test]
fn claimed_lengths_take_no_memory() {
    for body in bodies() {
        for place in 0..body.len() {
            for claim in [
                "fcffffffff",
                "fc00000f00",
                "fd00000f0000000000",
                "fdffffffffffffffff",
            ] {
                assert_bounded(&[&body[..place], &*unhex(claim), &body[place..]].concat());
            }
        }
    }
    // Faults of about a million bytes, to a peer and to a client; a cluster's name likewise.
    for claim in ["06 fc00000f00", "01 00 00 fc00000f00", "00 fc00000f00"] {
        let memory = measure(|| {
            read_all(&unhex(claim));
        });
        assert!(memory.bytes_max <= BYTES_ANYWAY, "{claim}: {memory:?}");
    }
}

#[test]
fn a_prefix_of_a_message_is_refused() {
    let malformed = Err(CodecError::Malformed);
    let mut check = Vec::new();
    put_check(&mut check, &policy_check()).unwrap();
    for length in 0..check.len() {
        assert_eq!(read_check(&check[..length]).map(drop), malformed);
    }
    let mut answer = Vec::new();
    put_decision(&mut answer, &decision()).unwrap();
    for length in 0..answer.len() {
        assert_eq!(read_answer(&answer[..length]).map(drop), malformed);
    }
    let requests = CHANGES.map(|change| Request::Amend(amend(change)));
    let rule = rule_on_all_terms();
    for sent in requests
        .into_iter()
        .chain([Request::Shape { number: 1, rule }])
    {
        let mut request = Vec::new();
        put_request(&mut request, &sent).unwrap();
        for length in 0..request.len() {
            let read = read_request(&mut &request[..length]);
            assert_eq!(read.map(drop), malformed);
        }
    }
    let mut reply = Vec::new();
    put_reply(&mut reply, &Reply::Counter(Some(refused()))).unwrap();
    for length in 0..reply.len() {
        assert_eq!(read_reply(&mut &reply[..length]).map(drop), malformed);
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let trailing = Err(CodecError::TrailingBytes);
    assert_eq!(read_request(&mut &*unhex("05 00")).map(drop), trailing);
    assert_eq!(read_reply(&mut &*unhex("05 01 02 00")).map(drop), trailing);
    for check in [policy_check(), inline_check(), inline_calendar_check()] {
        let mut body = Vec::new();
        put_check(&mut body, &check).unwrap();
        body.push(0);
        assert_eq!(read_check(&body).map(drop), trailing);
    }
    let mut body = Vec::new();
    put_decision(&mut body, &decision()).unwrap();
    body.push(0);
    assert_eq!(read_answer(&body).map(drop), trailing);
    let mut body = Vec::new();
    put_fault(&mut body, &fault()).unwrap();
    body.push(0);
    assert_eq!(read_answer(&body).map(drop), trailing);
}

#[test]
fn lengths_of_frames_are_bounded() {
    let split = |hex: &str| frame::split(&unhex(hex), 64).map(drop);
    let length = u32::MAX;
    assert_eq!(split("ffffffff"), Err(FrameError::TooLong { length }));
    assert_eq!(split("3d000000"), Err(FrameError::TooLong { length: 61 }));
    assert_eq!(split("3c000000"), Ok(()));
    assert_eq!(split("08000000"), Err(FrameError::TooShort { length: 8 }));
    assert_eq!(split("00000000"), Err(FrameError::TooShort { length: 0 }));
    assert_eq!(frame::split(&unhex("ffffff"), 64), Ok(None));
    assert_eq!(
        frame::split(&unhex("09000000 01 00000000000000"), 64),
        Ok(None)
    );
}

#[test]
fn a_frame_that_fails_leaves_nothing() {
    let mut out = vec![1, 2];
    let result = frame::put(&mut out, 1, |body| {
        body.push(3);
        Err(CodecError::TooLarge)
    });
    assert_eq!((result, &*out), (Err(CodecError::TooLarge), &[1, 2][..]));
}

#[test]
fn too_many_attributes_are_refused() {
    let pairs = |count: usize| (0..count).map(|i| (i.to_string(), "v"));
    let check = |count: usize| {
        let mut check = policy_check();
        check.subject = Subject::Policy {
            name: "api".into(),
            attributes: Pairs::from_iter(pairs(count)),
        };
        check
    };
    let mut body = Vec::new();
    put_check(&mut body, &check(MAX_ATTRIBUTES)).unwrap();
    assert!(read_check(&body).is_ok());
    let result = put_check(&mut Vec::new(), &check(MAX_ATTRIBUTES + 1));
    assert_eq!(result, Err(CodecError::TooLarge));
    // The same, written by someone else: one pair more than is allowed, empty ones.
    let mut body = unhex("00 00 00");
    body.push(u8::try_from(MAX_ATTRIBUTES + 1).unwrap());
    body.resize(body.len() + 2 * (MAX_ATTRIBUTES + 1) + 2, 0);
    assert_eq!(read_check(&body), Err(CodecError::Malformed));
}

#[test]
fn a_check_above_the_frame_is_not_written() {
    let mut check = policy_check();
    check.subject = Subject::Policy {
        name: "a".repeat(MAX_CLIENT_FRAME).into(),
        attributes: Pairs::new(),
    };
    assert_eq!(
        put_check(&mut Vec::new(), &check),
        Err(CodecError::TooLarge)
    );
}

/// The check path: a policy check with four attributes, forwarded, decided and answered.
#[test]
fn the_check_path_allocates_nothing() {
    let mut check = policy_check();
    if let Subject::Policy { attributes, .. } = &mut check.subject {
        attributes.push("path", "/v1/search");
        attributes.push("method", "GET");
    }
    let decision = decision();
    let head = CheckHead {
        budget_micros: 20_000,
        mode: Mode::Consume,
        asks: 1,
        way: Way::Owner,
    };
    let mut out = Vec::with_capacity(4096);
    let memory = measure(|| {
        put_check(&mut out, &check).unwrap();
        assert!(read_check(&out).is_ok());
        out.clear();
        put_check_of_peers(&mut out, &head, [ask()]).unwrap();
        let mut body = &*out;
        assert!(read_request(&mut body).is_ok());
        assert!(read_ask(&mut body).is_ok());
        out.clear();
        put_verdicts(&mut out, None, &[allowed()]).unwrap();
        let mut body = &*out;
        assert!(read_reply(&mut body).is_ok());
        assert!(read_verdict(&mut body).is_ok());
        out.clear();
        put_decision(&mut out, &decision).unwrap();
    });
    assert_eq!(memory.count_total, 0, "{memory:?}");
}
