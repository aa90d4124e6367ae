//! Golden bytes of every message, both ways. If one of these tests fails, the layout has changed:
//! that needs a new version byte, not new bytes here.

mod clients;
mod replica;

use tollgate_limit::{
    Algorithm, Alignment, CalendarUnit, DecidedBy, FixedWindow, Mode, Outcome, Reason, Rule,
    Verdict, Zone,
};
use tollgate_wire::{
    decode_gossip, encode_gossip, frame,
    identity::{BootId, Identity, Phase},
    peer::{
        CheckHead, Hello, Reply, Request, Said, Verdicts, Way, put_check, put_reply, put_request,
        put_verdicts, read_ask, read_reply, read_request, read_verdict,
    },
};

use crate::samples::{
    CHANGES, algorithms, allowed, amend, ask, hex, identity, refused, rule_on_all_terms, said,
    switches, unhex,
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
    request(&Request::Read(ask()), &format!("04 {ASK}"));
    request(&Request::Ping, "05");
    request(&Request::Follow, "08");
    request(
        &Request::Switches(switches()),
        "09 fb2c01 02 6e31 01 00 00 00",
    );
}

#[track_caller]
fn shape(rule: Rule, golden: &str) {
    request(
        &Request::Shape { number: 1, rule },
        &format!("01 01 {golden}"),
    );
}

#[test]
fn rules() {
    let golden = [
        "00 64 fd005847f80d000000 0a 01",
        "01 64 fd005847f80d000000",
        "02 64 fd005847f80d000000",
        "03 64 03 0d 4575726f70652f4265726c696e",
        "04 64 fd005847f80d000000 c8",
        "05 64 fd005847f80d000000 32",
        "06 64 fd005847f80d000000",
    ];
    // Nothing set aside, enforced, no ban.
    for (algorithm, golden) in algorithms().into_iter().zip(golden) {
        shape(Rule::new(algorithm), &format!("{golden} 00 00 00"));
    }
    shape(
        rule_on_all_terms(),
        &format!(
            "{} 14 01 01 fd005847f80d000000 fbd007 fd00b08ef01b000000",
            golden[0]
        ),
    );
    // The tier of a bucket whose largest tier holds 300; of other algorithms the ceiling does not travel.
    let tiered = |algorithm| Rule {
        ceiling: 300,
        ..Rule::new(algorithm)
    };
    let window = "fd005847f80d000000";
    let [_, _, _, _, token, leaky, _] = algorithms();
    shape(tiered(token), &format!("07 64 {window} c8 fb2c01 00 00 00"));
    shape(tiered(leaky), &format!("08 64 {window} 32 fb2c01 00 00 00"));
    for (code, unit) in CalendarUnit::ALL.into_iter().enumerate() {
        let algorithm = Algorithm::FixedWindow(FixedWindow {
            limit: 1,
            alignment: Alignment::Calendar(unit, Zone::utc()),
        });
        shape(
            Rule::new(algorithm),
            &format!("03 01 {code:02x} 03 555443 00 00 00"),
        );
    }
}

#[test]
fn changes_of_counters() {
    let golden = ["00 fc70110100", "01", "02", "03", "04"];
    for (change, golden) in CHANGES.into_iter().zip(golden) {
        request(
            &Request::Amend(amend(change)),
            &format!("03 fb2c01 {ASK} {golden}"),
        );
    }
}

#[test]
fn a_check_between_peers() {
    let head = CheckHead {
        budget_micros: 20_000,
        mode: Mode::Peek,
        asks: 2,
        way: Way::Owner,
    };
    check(head, &format!("02 fb204e 01 02 {ASK} {ASK}"));
    let (link, number) = (3, 300);
    let standby = CheckHead {
        way: Way::Standby { link, number },
        ..head
    };
    check(standby, &format!("06 fb204e 01 02 03 fb2c01 {ASK} {ASK}"));
    let boot = BootId(250);
    let relayed = CheckHead {
        way: Way::Relayed { boot, link, number },
        ..head
    };
    check(
        relayed,
        &format!("07 fb204e 01 02 fa 03 fb2c01 {ASK} {ASK}"),
    );
}

#[track_caller]
fn check(head: CheckHead, golden: &str) {
    let mut body = Vec::new();
    put_check(&mut body, &head, [ask(), ask()]).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)));
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
    verdicts(None, &format!("00 02 {ALLOWED} {REFUSED}"));
    verdicts(
        Some(said()),
        &format!("07 02 02 6e31 fbbbaa 01 01 {ALLOWED} {REFUSED}"),
    );
    let owner = Said {
        by: DecidedBy::Owner,
        degraded: false,
        ..said()
    };
    verdicts(
        Some(owner),
        &format!("07 02 02 6e31 fbbbaa 00 00 {ALLOWED} {REFUSED}"),
    );
}

#[track_caller]
fn verdicts(said: Option<Said>, golden: &str) {
    let mut body = Vec::new();
    put_verdicts(&mut body, said.as_ref(), &[allowed(), refused()]).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)));
    let body = &mut &*body;
    let head = Verdicts { count: 2, said };
    assert_eq!(read_reply(body), Ok(Reply::Verdicts(head)));
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
        Outcome::Refuse(Reason::QueueFull),
        Outcome::Refuse(Reason::SetAside),
        Outcome::Refuse(Reason::Banned),
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
