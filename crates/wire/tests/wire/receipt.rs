//! Receipts: what is opened is what was sealed, and nothing else is opened.

use std::sync::Arc;

use allocation_counter::measure;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tollgate_limit::{
    AlgorithmSpec, ChargedAt, Cost, CostSource, Counted, DecidedBy, Decision, HashKey, KeyHasher,
    Limit, LimitDecision, LimitNumber, LimitSpec, MAX_LIMITS_PER_POLICY, MAX_NAME_LENGTH, Nanos,
    Receipt, Rule,
};
use tollgate_wire::{
    CodecError,
    receipt::{Contents, MAX_RECEIPT_TEXT, NotAReceipt, open, seal},
};

use crate::samples::{
    BAN, algorithms, charged, decision, hex, limit_decision, rule, rule_on_all_terms, unhex,
};

const KEY: HashKey = HashKey::new([7; 16]);
const MADE: u64 = 1_700_000_000;

#[track_caller]
fn sealed(decision: &Decision, contents: Contents) -> String {
    let mut text = String::new();
    seal(decision, contents, MADE, &KEY, |receipt| {
        text.push_str(receipt);
    })
    .unwrap();
    text
}

/// The text of a body with a right seal.
fn forged(body: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode([body, &seal_of(body)].concat())
}

fn seal_of(body: &[u8]) -> [u8; 8] {
    let mut hasher = KeyHasher::new(&KEY);
    hasher.part(b"receipt");
    hasher.part(body);
    hasher.finish().low().to_le_bytes()
}

/// A limit that counts failures, with the cost in an attribute.
fn failures(name: &str, attribute: &str) -> Arc<Limit> {
    let algorithm = AlgorithmSpec::FixedWindow {
        window: Nanos::from_millis(60_000),
    };
    let spec = LimitSpec {
        cost: CostSource::Attribute(attribute.to_owned()),
        count: Counted::Failures,
        ..LimitSpec::new(name, LimitNumber::One(100), algorithm)
    };
    Arc::new(Limit::inline(spec, &KEY).unwrap())
}

#[test]
fn what_is_opened_is_what_was_sealed() {
    let mut rules: Vec<_> = algorithms().into_iter().map(Rule::new).collect();
    rules.push(rule_on_all_terms());
    for rule in &rules {
        let decision = charged(&[*rule]);
        let receipt = open(&sealed(&decision, Contents::All), &KEY).unwrap();
        assert_eq!(receipt, Receipt::of(&decision, MADE));
        let [item] = receipt.items.as_slice() else {
            panic!("one item")
        };
        assert_eq!((item.limit.as_str(), item.charge.rule), ("l0", *rule));
        assert_eq!((item.charge.cost.units(), item.charge.slice), (7, 4));
        assert_eq!((receipt.id, receipt.made), (decision.id, MADE));
    }
    let decision = charged(&rules);
    let receipt = open(&sealed(&decision, Contents::All), &KEY).unwrap();
    assert_eq!(receipt, Receipt::of(&decision, MADE));
    assert_eq!(receipt.items.len(), rules.len());
}

#[test]
fn costs_of_attributes_and_failures_are_kept() {
    let mut decision = charged(&[rule(), rule()]);
    decision.limits[1].limit = failures("logins", "tokens");
    let receipt = open(&sealed(&decision, Contents::All), &KEY).unwrap();
    assert_eq!(receipt, Receipt::of(&decision, MADE));
    let [usual, failures] = receipt.items.as_slice() else {
        panic!("two items")
    };
    assert_eq!(usual.cost_source, CostSource::Request);
    assert_eq!(usual.counted, Counted::Requests);
    let tokens = CostSource::Attribute("tokens".to_owned());
    assert_eq!(failures.cost_source, tokens);
    assert_eq!(failures.counted, Counted::Failures);
}

#[test]
fn who_decided_says_where_the_charge_is() {
    for (decided_by, at) in [
        (DecidedBy::Owner, Some(ChargedAt::Owner)),
        (DecidedBy::Standby, Some(ChargedAt::Owner)),
        (DecidedBy::Fallback, Some(ChargedAt::Local)),
        (DecidedBy::Cached, None),
        (DecidedBy::Switch, None),
    ] {
        let mut decision = charged(&[rule()]);
        decision.limits[0].decided_by = decided_by;
        let receipt = open(&sealed(&decision, Contents::All), &KEY).unwrap();
        let found = receipt.items.first().map(|item| item.at);
        assert_eq!(found, at, "{decided_by:?}");
    }
}

/// The charge is in the counters of one boot of its owner; most often that of the entry node.
#[test]
fn the_boot_that_charged_is_kept() {
    let own = charged(&[rule(), rule()]);
    let mut other = own.clone();
    other.limits[1].boot = 77;
    let text = sealed(&other, Contents::All);
    let receipt = open(&text, &KEY).unwrap();
    let boots: Vec<_> = receipt.items.iter().map(|item| item.charge.boot).collect();
    assert_eq!(boots, [own.id.boot, 77]);
    assert!(sealed(&own, Contents::All).len() < text.len());
}

/// Refused checks and peeks charge nothing: there is an id, and nothing to be done with it.
#[test]
fn what_charged_nothing_makes_an_empty_receipt() {
    let refused = decision();
    assert!(!refused.is_allowed());
    let mut peek = charged(&[rule(), rule()]);
    for limit in &mut peek.limits {
        limit.charged = Cost::ZERO;
    }
    assert!(peek.is_allowed());
    for decision in [refused, peek] {
        let receipt = open(&sealed(&decision, Contents::All), &KEY).unwrap();
        assert_eq!(receipt.id, decision.id);
        assert!(receipt.items.is_empty());
    }
}

#[test]
fn permits_are_told_apart() {
    let permit = |name: &str| {
        let ttl = Nanos::from_millis(60_000);
        let spec = LimitSpec::new(
            name,
            LimitNumber::One(100),
            AlgorithmSpec::Concurrency { ttl },
        );
        let limit = Arc::new(Limit::inline(spec, &KEY).unwrap());
        LimitDecision {
            rule: *limit.usual_rule().unwrap(),
            limit,
            ..limit_decision(name, rule(), Cost::ONE)
        }
    };
    let decision = Decision {
        limits: vec![
            limit_decision("rate", rule(), Cost::ONE),
            permit("one"),
            permit("other"),
        ],
        ..charged(&[])
    };
    let names = |contents| {
        let receipt = open(&sealed(&decision, contents), &KEY).unwrap();
        let items = receipt.items.into_iter();
        items.map(|item| item.limit).collect::<Vec<_>>()
    };
    assert_eq!(names(Contents::All), ["rate", "one", "other"]);
    assert_eq!(names(Contents::Permits), ["one", "other"]);
}

/// The bytes, so that a change of them is seen: all nodes of a cluster read them, and ids outlive a
/// restart.
#[test]
fn golden_bytes() {
    let mut decision = charged(&[rule_on_all_terms()]);
    decision.limits[0].decided_by = DecidedBy::Fallback;
    let body = unhex(
        "01 fd11100f0e0d0c0b0a 05 fc00f15365 01 \
         02 6c30 00 00 01 fd0807060504030201 fd1817161514131211 \
         00 64 fd005847f80d000000 0a 01 14 01 01 fd005847f80d000000 fbd007 fd00b08ef01b000000 07 04 00",
    );
    let text = sealed(&decision, Contents::All);
    let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
    assert_eq!(hex(&bytes[..bytes.len() - 8]), hex(&body));
    // The seal covers all of the body, the version too.
    assert_eq!(text, forged(&body));
    assert!(open(&text, &KEY).is_ok());
}

#[test]
fn any_flipped_bit_breaks_the_seal() {
    let text = sealed(&charged(&[rule(), rule_on_all_terms()]), Contents::All);
    assert!(open(&text, &KEY).is_ok());
    let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            let flipped = URL_SAFE_NO_PAD.encode(flipped);
            assert_eq!(open(&flipped, &KEY), Err(NotAReceipt), "{place}.{bit}");
        }
    }
    // And of the text, so that no two texts are one receipt.
    for place in 0..text.len() {
        for bit in 0..7 {
            let mut flipped = text.clone().into_bytes();
            flipped[place] ^= 1 << bit;
            let flipped = String::from_utf8(flipped).unwrap();
            assert_eq!(open(&flipped, &KEY), Err(NotAReceipt), "{place}.{bit}");
        }
    }
}

#[test]
fn no_other_key_opens_it() {
    let text = sealed(&charged(&[rule()]), Contents::All);
    for bit in 0..128 {
        let mut other = [7_u8; 16];
        other[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(&text, &HashKey::new(other)), Err(NotAReceipt));
    }
}

#[test]
fn what_is_no_receipt_is_told_so() {
    let good = sealed(&charged(&[rule()]), Contents::All);
    let bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
    let body = &bytes[..bytes.len() - 8];
    assert_eq!(forged(body), good, "the forger knows how");
    for length in 0..good.len() {
        assert_eq!(open(&good[..length], &KEY), Err(NotAReceipt), "{length}");
    }
    for text in [
        "00000000000000ab0000000000000001",
        "not base64!",
        "é",
        &format!("{good}="),
        &format!("{good}A"),
        &format!(" {good}"),
        &"A".repeat(MAX_RECEIPT_TEXT),
        &"A".repeat(MAX_RECEIPT_TEXT + 1),
    ] {
        assert_eq!(open(text, &KEY), Err(NotAReceipt));
    }
    // Sealed, but by a node that is not of this version: no version, another one, bytes after the end,
    // bytes missing, more items than a policy has limits.
    let head = [1, 0, 0, 0];
    let too_many = u8::try_from(MAX_LIMITS_PER_POLICY + 1).unwrap();
    let item = &unhex("02 6c30 00 00 00 00 00 01 01 fd005847f80d000000 00 00 00 07 04 00");
    let crowd = [&head[..], &[too_many], &item.repeat(usize::from(too_many))].concat();
    for body in [
        &[][..],
        &[0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0],
        &body[..body.len() - 1],
        &head,
        &crowd,
    ] {
        assert_eq!(open(&forged(body), &KEY), Err(NotAReceipt), "{}", hex(body));
    }
    assert!(open(&forged(&[1, 0, 0, 0, 0]), &KEY).is_ok());
    let most = [
        &head[..],
        &[too_many - 1],
        &item.repeat(MAX_LIMITS_PER_POLICY),
    ]
    .concat();
    let receipt = open(&forged(&most), &KEY).unwrap();
    assert_eq!(receipt.items.len(), MAX_LIMITS_PER_POLICY);
}

/// What is sealed is still checked as all else is: a rule or a cost out of bounds is none.
#[test]
fn a_sealed_rule_out_of_bounds_is_no_receipt() {
    let receipt = |rule: &str, cost: &str| {
        let body = format!("01 00 00 00 01 02 6c30 00 00 00 00 00 {rule} 00 00 00 {cost} 04 00");
        open(&forged(&unhex(&body)), &KEY).is_ok()
    };
    assert!(receipt("01 01 fd005847f80d000000", "fd0000000000002000"));
    assert!(!receipt("01 01 fd005847f80d000000", "fd0100000000002000"));
    assert!(!receipt("01 01 00", "07"));
    assert!(!receipt("01 fb1127 fd005847f80d000000", "07"));
}

/// As many limits as a policy can have, of the longest names, costs from attributes of the longest
/// names, and numbers that take all bytes they can.
#[test]
fn the_largest_receipt_fits() {
    let rule = Rule {
        set_aside: 1 << 53,
        ban: Some(BAN),
        ..Rule::new(tollgate_limit::Algorithm::TokenBucket(
            tollgate_limit::TokenBucket {
                limit: 1 << 53,
                window: rule().window(),
                burst: 1 << 53,
            },
        ))
    };
    let largest = |at: usize, attribute: &str| {
        let limit = failures(&format!("{at:0>64}"), attribute);
        let mut decision = limit_decision("l", rule, Cost::new(1 << 53).unwrap());
        decision.verdict.charged_slice = u64::MAX;
        decision.boot = u64::MAX;
        LimitDecision { limit, ..decision }
    };
    let decision = |limits: usize, attribute: &str| Decision {
        limits: (0..limits).map(|at| largest(at, attribute)).collect(),
        ..charged(&[])
    };
    let attribute = "a".repeat(MAX_NAME_LENGTH);
    let most = decision(MAX_LIMITS_PER_POLICY, &attribute);
    let text = sealed(&most, Contents::All);
    assert!(text.len() <= MAX_RECEIPT_TEXT, "{}", text.len());
    assert_eq!(open(&text, &KEY), Ok(Receipt::of(&most, MADE)));

    // One limit more, or names that no attribute can have: nothing is written.
    for decision in [
        decision(MAX_LIMITS_PER_POLICY + 1, "a"),
        decision(300, "a"),
        decision(MAX_LIMITS_PER_POLICY, &"a".repeat(1_000)),
    ] {
        let result = seal(&decision, Contents::All, MADE, &KEY, |_| {
            panic!("nothing must be written")
        });
        assert_eq!(result, Err(CodecError::TooLarge));
    }
}

#[test]
fn the_usual_receipt_allocates_nothing_after_the_first() {
    let decision = charged(&[rule(), rule_on_all_terms()]);
    let mut length = 0;
    let mut sealing = || {
        let memory = measure(|| {
            seal(&decision, Contents::All, MADE, &KEY, |text| {
                length = text.len();
            })
            .unwrap();
        });
        memory.count_total
    };
    sealing();
    assert_eq!(sealing(), 0);
    assert!(length > 0);
}

/// What is no receipt of this cluster costs its own bytes once, and nothing that it claims.
#[test]
fn opening_takes_no_more_memory_than_the_text() {
    let longest = "A".repeat(MAX_RECEIPT_TEXT);
    let memory = measure(|| {
        assert_eq!(open(&longest, &KEY), Err(NotAReceipt));
    });
    let length = u64::try_from(longest.len()).unwrap();
    assert!(memory.bytes_max <= length, "{memory:?}");
    let too_long = "A".repeat(1 << 20);
    let memory = measure(|| {
        assert_eq!(open(&too_long, &KEY), Err(NotAReceipt));
    });
    assert_eq!(memory.bytes_max, 0, "{memory:?}");
    // A name of 2^32 bytes, sealed.
    let claims = forged(&unhex("01 00 00 00 01 fc00000010 61"));
    let memory = measure(|| {
        assert_eq!(open(&claims, &KEY), Err(NotAReceipt));
    });
    assert!(memory.bytes_max <= 1024, "{memory:?}");
}
