//! Golden bytes of every message, both ways. If one of these tests fails, the layout has changed:
//! that needs a new version byte, not new bytes here.

use tollgate_limit::{DecidedBy, Mode, Outcome, Reason, Verdict};
use tollgate_wire::{
    client::{self, Check, Fault, FaultKind, put_decision, put_fault, read_answer, read_check},
    decode_gossip, encode_gossip, frame,
    identity::{BootId, Identity, Phase},
    peer::{
        CheckHead, Hello, Reply, Request, Verdicts, put_check, put_reply, put_request,
        put_verdicts, read_ask, read_reply, read_request, read_verdict,
    },
};

use crate::samples::{
    allowed, ask, decision, fault, give_back, hex, identity, inline_check, policy_check, refused,
    rule, unhex,
};

const ASK: &str = "03 fd0807060504030201 fd1817161514131211 07";
const ALLOWED: &str = "00 01 63 0100 fc40420f00 fc80841e00 03 04";
const REFUSED: &str = "02 05 06 00 07 08 09 0a";
const IDENTITY: &str = "02 6e31 fbbbaa fd0068e5cf8b010000 00 0a000001 fbb11d \
    01 00000000000000000000000000000001 fbb01d 02 01 01 01 02 feff";

#[track_caller]
fn request(request: &Request, golden: &str) {
    let mut body = Vec::new();
    put_request(&mut body, request).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)), "{request:?}");
    assert_eq!(read_request(&mut &*unhex(golden)).as_ref(), Ok(request));
}

#[track_caller]
fn reply(reply: &Reply, golden: &str) {
    let mut body = Vec::new();
    put_reply(&mut body, reply).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)), "{reply:?}");
    assert_eq!(read_reply(&mut &*unhex(golden)).as_ref(), Ok(reply));
}

#[track_caller]
fn check(check: &Check<'static>, golden: &str) {
    let mut body = Vec::new();
    client::put_check(&mut body, check).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)));
    assert_eq!(read_check(unhex(golden).leak()).as_ref(), Ok(check));
}

#[test]
fn frames() {
    let mut bytes = vec![0xee];
    frame::put(&mut bytes, 0x0102_0304_0506_0708, |body| {
        body.extend_from_slice(b"abc");
        Ok::<(), ()>(())
    })
    .unwrap();
    assert_eq!(hex(&bytes), "ee0c000000010807060504030201616263");
    let bytes = unhex("0c000000 01 0807060504030201 616263 ff");
    let (frame, length) = frame::split(&bytes, frame::MAX_PEER_FRAME)
        .unwrap()
        .unwrap();
    assert_eq!(
        (frame.version, frame.id, frame.body, length),
        (1, 0x0102_0304_0506_0708, &b"abc"[..], 16)
    );
}

#[test]
fn peer_requests() {
    let hello = Hello {
        cluster: "prod".to_owned(),
        cluster_fingerprint: 251,
        node: "n1".to_owned(),
        boot: BootId(250),
        link: 3,
    };
    request(
        &Request::Hello(hello),
        "00 04 70726f64 fbfb00 02 6e31 fa 03",
    );
    let shape = Request::Shape {
        number: 1,
        rule: rule(),
    };
    request(&shape, "01 01 00 64 fd005847f80d000000 0a 01");
    request(
        &Request::GiveBack(give_back()),
        &format!("03 fb2c01 {ASK} fc70110100"),
    );
    request(&Request::Read(ask()), &format!("04 {ASK}"));
    request(&Request::Ping, "05");
}

#[test]
fn a_check_between_peers() {
    let head = CheckHead {
        budget_micros: 20_000,
        mode: Mode::Peek,
        asks: 2,
    };
    let golden = format!("02 fb204e 01 02 {ASK} {ASK}");
    let mut body = Vec::new();
    put_check(&mut body, &head, [ask(), ask()]).unwrap();
    assert_eq!(hex(&body), hex(&unhex(&golden)));
    let body = &mut &*body;
    assert_eq!(read_request(body), Ok(Request::Check(head)));
    assert_eq!(read_ask(body), Ok(ask()));
    assert_eq!(read_ask(body), Ok(ask()));
    assert!(body.is_empty());
}

#[test]
fn peer_replies() {
    reply(&Reply::NotOwner { placement: 9 }, "01 09");
    reply(&Reply::TooLate, "02");
    reply(&Reply::Done, "03");
    reply(&Reply::Counter(None), "04 00");
    reply(
        &Reply::Counter(Some(refused())),
        &format!("04 01 {REFUSED}"),
    );
    let pong = Reply::Pong {
        placement: 9,
        policies: 8,
    };
    reply(&pong, "05 09 08");
    reply(&Reply::Fault("no".to_owned()), "06 02 6e6f");
}

#[test]
fn verdicts_between_peers() {
    let golden = format!("00 02 {ALLOWED} {REFUSED}");
    let mut body = Vec::new();
    put_verdicts(&mut body, &[allowed(), refused()]).unwrap();
    assert_eq!(hex(&body), hex(&unhex(&golden)));
    let body = &mut &*body;
    assert_eq!(read_reply(body), Ok(Reply::Verdicts(Verdicts { count: 2 })));
    assert_eq!(read_verdict(body), Ok(allowed()));
    assert_eq!(read_verdict(body), Ok(refused()));
    assert!(body.is_empty());
}

#[test]
fn outcomes() {
    let outcomes = [
        Outcome::Allow,
        Outcome::Refuse(Reason::LimitExceeded),
        Outcome::Refuse(Reason::CostExceedsLimit),
        Outcome::Refuse(Reason::LimitIsZero),
        Outcome::Refuse(Reason::Undecided),
    ];
    for (code, outcome) in (0_u8..).zip(outcomes) {
        let verdict = Verdict {
            outcome,
            ..refused()
        };
        let golden = REFUSED.replacen("02", &format!("{code:02x}"), 1);
        reply(&Reply::Counter(Some(verdict)), &format!("04 01 {golden}"));
    }
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
        // Before the node's name, its length and the last truth value.
        assert_eq!(body[body.len() - 5], code);
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

#[test]
fn identities_in_gossip() {
    let mut packet = Vec::new();
    encode_gossip(&identity(), &mut packet).unwrap();
    assert_eq!(hex(&packet), hex(&unhex(IDENTITY)));
    assert_eq!(decode_gossip(&*packet), Ok(identity()));
    let phases = [Phase::Joining, Phase::Active, Phase::Leaving];
    for (code, phase) in (0_u8..).zip(phases) {
        let mut bytes = unhex(IDENTITY);
        let place = bytes.len() - 4;
        bytes[place] = code;
        assert_eq!(decode_gossip::<Identity>(&*bytes).unwrap().phase, phase);
    }
}

#[test]
fn checks_of_clients() {
    check(
        &policy_check(),
        "00 00 03 617069 02 02 6970 0b 3230332e302e3131332e37 07 6170695f6b6579 02 6b31 03 00",
    );
    check(
        &inline_check(),
        "00 01 05 6c6f67696e 05 fd005847f80d000000 0a 01 01 04 75736572 02 3432 00 01",
    );
}

#[test]
fn answers_to_clients() {
    let golden = format!(
        "00 fd11100f0e0d0c0b0a 05 00 02 \
         06 7065722d6970 00 64 fd005847f80d000000 {ALLOWED} 00 02 6e32 00 \
         03 616c6c 00 64 fd005847f80d000000 {REFUSED} 03 02 6e32 01"
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
        assert_eq!(read.algorithm.as_str(), sent.limit.rule().algorithm());
        assert_eq!(read.capacity, sent.limit.rule().capacity());
        assert_eq!(read.window, sent.limit.rule().window());
        assert_eq!(read.verdict, sent.verdict);
        assert_eq!(read.decided_by, sent.decided_by);
        assert_eq!(read.node, sent.node.as_str());
        assert_eq!(read.degraded, sent.degraded);
    }
}

#[test]
fn faults_to_clients() {
    let golden = "01 02 01 04 636f7374 09 746f6f206c61726765";
    let mut body = Vec::new();
    put_fault(&mut body, &fault()).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)));
    assert_eq!(read_answer(&body), Ok(Err(fault())));
}
