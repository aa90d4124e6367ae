//! Numbers out of their bounds: each bound is refused by itself, and what lies just inside is read.

use tollgate_limit::{Rule, Window};
use tollgate_wire::{
    CodecError, decode_gossip, encode_gossip,
    identity::{Identity, MAX_TAIL},
    peer::{CheckHead, MAX_ASKS, Request, read_ask, read_request},
};

use crate::samples::{hex, identity, unhex};

#[track_caller]
fn refused_request(hex: &str) {
    assert_eq!(
        read_request(&mut &*unhex(hex)),
        Err(CodecError::Malformed),
        "{hex}"
    );
}

/// One more than the most units, and 10 000 of a log; little endian.
const TOO_MANY: &str = "fd0100000000002000";
const MOST: &str = "fd0000000000002000";
const MOST_OF_A_LOG: &str = "fb1027";
const TOO_MANY_FOR_A_LOG: &str = "fb1127";
const MINUTE: &str = "fd005847f80d000000";
/// 999 999 ns.
const TOO_SHORT: &str = "fc3f420f00";

fn too_long() -> String {
    let longest = Window::MAX.as_nanos();
    format!("fd{}", hex(&(longest + 1).to_le_bytes()))
}

#[track_caller]
fn rule_of(algorithm: &str, terms: &str) -> Rule {
    let shape = format!("01 01 {algorithm} {terms}");
    match read_request(&mut &*unhex(&shape)) {
        Ok(Request::Shape { rule, .. }) => rule,
        other => panic!("{other:?} of {shape}"),
    }
}

#[track_caller]
fn refused_rule(algorithm: &str, terms: &str) {
    refused_request(&format!("01 01 {algorithm} {terms}"));
}

/// Nothing set aside, enforced, no ban.
const USUAL: &str = "00 00 00";

#[test]
fn algorithms_out_of_range_are_refused() {
    let least = [
        (format!("00 00 {MINUTE} 01 00"), 0),
        (format!("00 {MOST} {MINUTE} 3c 01"), 1 << 53),
        (format!("01 {MOST_OF_A_LOG} {MINUTE}"), 10_000),
        (format!("02 {MOST} {MINUTE}"), 1 << 53),
        (format!("03 {MOST} 04 03 757463"), 1 << 53),
        (format!("04 01 {MINUTE} {MOST}"), 1 << 53),
        (format!("04 00 {MINUTE} 00"), 0),
        (format!("05 {MOST} {MINUTE} fdffffffffffff1f00"), 1 << 53),
        (format!("05 00 {MINUTE} 09"), 0),
        (format!("06 {MOST_OF_A_LOG} {MINUTE}"), 10_000),
        (format!("07 64 {MINUTE} 0a 0a"), 10),
        (format!("07 64 {MINUTE} 0a {MOST}"), 10),
        (format!("08 64 {MINUTE} 09 0a"), 10),
        (format!("08 00 {MINUTE} 09 00"), 0),
    ];
    for (algorithm, capacity) in least {
        assert_eq!(
            rule_of(&algorithm, USUAL).capacity(),
            capacity,
            "{algorithm}"
        );
    }
    for algorithm in [
        // Limits.
        format!("00 {TOO_MANY} {MINUTE} 0a 01"),
        format!("01 {TOO_MANY_FOR_A_LOG} {MINUTE}"),
        format!("02 {TOO_MANY} {MINUTE}"),
        format!("03 {TOO_MANY} 00 03 555443"),
        format!("04 {TOO_MANY} {MINUTE} 01"),
        format!("05 {TOO_MANY} {MINUTE} 01"),
        format!("06 {TOO_MANY_FOR_A_LOG} {MINUTE}"),
        // Slices: none, 61, and one of a hard window.
        format!("00 64 {MINUTE} 00 00"),
        format!("00 64 {MINUTE} 3d 00"),
        format!("00 64 {MINUTE} 01 01"),
        // A burst that is too large, one of nothing, and none of something.
        format!("04 64 {MINUTE} {TOO_MANY}"),
        format!("04 00 {MINUTE} 01"),
        format!("04 64 {MINUTE} 00"),
        // A queue of 2^53: with the one that flows out that is one too many.
        format!("05 64 {MINUTE} {MOST}"),
        // A part of the calendar, a zone, an algorithm and a truth value that are not known.
        "03 64 05 03 555443".to_owned(),
        "03 64 00 03 555444".to_owned(),
        "03 64 00 00".to_owned(),
        format!("09 64 {MINUTE} 01 01"),
        // A ceiling below the capacity, and one that is too large.
        format!("07 64 {MINUTE} 0a 09"),
        format!("07 64 {MINUTE} 0a {TOO_MANY}"),
        format!("08 64 {MINUTE} 09 09"),
        format!("08 64 {MINUTE} 09 {TOO_MANY}"),
        // What the numbers of other buckets must be, those of tiers must be.
        format!("07 00 {MINUTE} 01 02"),
        format!("07 64 {MINUTE} {TOO_MANY} {MOST}"),
        format!("08 {TOO_MANY} {MINUTE} 01 {MOST}"),
        format!("00 64 {MINUTE} 0a 02"),
    ] {
        refused_rule(&algorithm, USUAL);
    }
    for window in [TOO_SHORT, &too_long()] {
        refused_rule(&format!("00 64 {window} 0a 01"), USUAL);
        refused_rule(&format!("01 64 {window}"), USUAL);
        refused_rule(&format!("02 64 {window}"), USUAL);
        refused_rule(&format!("04 64 {window} 01"), USUAL);
        refused_rule(&format!("05 64 {window} 01"), USUAL);
        refused_rule(&format!("06 64 {window}"), USUAL);
    }
}

#[test]
fn terms_out_of_range_are_refused() {
    let of_100 = format!("02 64 {MINUTE}");
    assert_eq!(rule_of(&of_100, "64 00 00").open_capacity(), 0);
    let second = "fc00ca9a3b";
    let day = "fd00a0724e18090000";
    let longest = format!("fd{}", hex(&Window::MAX.as_nanos().to_le_bytes()));
    let most = rule_of(&of_100, &format!("00 01 01 {second} fc40420f00 {longest}"));
    assert_eq!(most.ban.unwrap().escalation, 1_000_000);
    let same = rule_of(&of_100, &format!("00 00 01 {day} fbe803 {day}"));
    assert_eq!(same.ban.unwrap().escalation, 1_000);
    for terms in [
        // More is set aside than there is.
        "65 00 00".to_owned(),
        "00 02 00".to_owned(),
        "00 00 02".to_owned(),
        // A ban that is too short or too long, a longest that is shorter or too long.
        format!("00 00 01 {TOO_SHORT} fbe803 {day}"),
        format!("00 00 01 {} fbe803 {}", too_long(), too_long()),
        format!("00 00 01 {day} fbe803 {second}"),
        format!("00 00 01 {day} fbe803 {}", too_long()),
        // 999 and 1 000 001 thousandths.
        format!("00 00 01 {second} fbe703 {day}"),
        format!("00 00 01 {second} fc41420f00 {day}"),
    ] {
        refused_rule(&of_100, &terms);
    }
    // Of what the burst or the queue hold, not of the limit.
    assert_eq!(
        rule_of(&format!("04 64 {MINUTE} c8"), "c8 00 00").set_aside,
        200
    );
    refused_rule(&format!("04 64 {MINUTE} c8"), "c9 00 00");
    assert_eq!(
        rule_of(&format!("05 64 {MINUTE} 09"), "0a 00 00").set_aside,
        10
    );
    refused_rule(&format!("05 64 {MINUTE} 09"), "0b 00 00");
}

#[test]
fn unknown_messages_and_changes_are_refused() {
    refused_request("0a");
    refused_request("03 00 03 01 02 07 05");
    assert!(read_request(&mut &*unhex("03 00 03 01 02 07 04")).is_ok());
}

#[test]
fn checks_out_of_range_are_refused() {
    refused_request("02 01 00 00");
    let asks = u8::try_from(MAX_ASKS).unwrap();
    refused_request(&format!("02 01 00 {:02x}", asks + 1));
    let head = read_request(&mut &*unhex(&format!("02 01 00 {asks:02x}")));
    assert!(matches!(head, Ok(Request::Check(CheckHead { asks: read, .. })) if read == asks));
    for way in ["06", "07"] {
        refused_request(&format!("{way} 01 00 00 01 02 03"));
        refused_request(&format!("{way} 01 00 {:02x} 01 02 03", asks + 1));
    }
    let ask = read_ask(&mut &*unhex("03 01 02 fd0100000000002000")).unwrap();
    assert_eq!(ask.cost(), Err(CodecError::Malformed));
}

#[test]
fn identities_out_of_range_are_refused() {
    let refused = |identity: &Identity| {
        let mut packet = Vec::new();
        encode_gossip(identity, &mut packet).unwrap();
        assert_eq!(
            decode_gossip::<Identity>(&*packet),
            Err(CodecError::Malformed)
        );
    };
    refused(&Identity {
        weight: 0,
        ..identity()
    });
    refused(&Identity {
        oldest_version: 2,
        ..identity()
    });
    refused(&Identity {
        tail: vec![0; MAX_TAIL + 1],
        ..identity()
    });
    let mut packet = Vec::new();
    encode_gossip(&identity(), &mut packet).unwrap();
    packet[1] = b'/';
    assert_eq!(
        decode_gossip::<Identity>(&*packet),
        Err(CodecError::Malformed)
    );
}
