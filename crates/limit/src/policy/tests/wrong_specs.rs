//! Which specs are refused, by which field; and what stands for a number that is left out.

use super::{HASH_KEY, limit, spec};
use crate::{
    calendar::CalendarUnit,
    policy::Limit,
    rule::Algorithm,
    spec::{
        AlgorithmSpec, BanSpec, CostSource, Counted, LimitNumber, LimitSpec, SetAsideSpec,
        TierNumber,
    },
    units::{MAX_UNITS, Nanos},
};

/// A change to a spec that makes it wrong.
type Spoil = Box<dyn Fn(&mut LimitSpec)>;

fn set(spoil: impl Fn(&mut LimitSpec) + 'static) -> Spoil {
    Box::new(spoil)
}

fn algorithm(algorithm: AlgorithmSpec) -> Spoil {
    set(move |spec| spec.algorithm = algorithm.clone())
}

fn banning(length: u64, escalate: f64, longest: Option<u64>) -> Spoil {
    set(move |spec| {
        spec.count = Counted::Failures;
        spec.ban = Some(BanSpec {
            length: Nanos::from_millis(length),
            escalate,
            longest: longest.map(Nanos::from_millis),
        });
    })
}

fn sharing(attribute: &'static str, values: usize, share: f64) -> Spoil {
    set(move |spec| {
        spec.set_aside = Some(SetAsideSpec {
            attribute: attribute.to_owned(),
            values: (0..values).map(|value| value.to_string()).collect(),
            share,
        });
    })
}

fn by(attribute: &'static str, values: Vec<(&'static str, u64)>) -> Spoil {
    set(move |spec| {
        let values = values.iter();
        let values = values.map(|(value, units)| ((*value).to_owned(), TierNumber::Units(*units)));
        spec.limit = LimitNumber::By {
            attribute: attribute.to_owned(),
            values: values.collect(),
            default: TierNumber::Units(1),
        };
    })
}

/// A field, and what makes it wrong.
type Case = (&'static str, Vec<Spoil>);

fn wrong_terms() -> Vec<Case> {
    vec![
        (
            "ban",
            vec![
                banning(1000, 1.0, None),
                set(|spec| spec.count = Counted::Requests),
            ],
        ),
        ("ban.for", vec![banning(0, 1.0, None)]),
        ("ban.max", vec![banning(1000, 1.0, Some(999))]),
        ("ban.max", vec![banning(1000, 1.0, Some(u64::MAX))]),
        ("ban.escalate", vec![banning(1000, 0.99, None)]),
        ("ban.escalate", vec![banning(1000, 1000.1, None)]),
        ("ban.escalate", vec![banning(1000, f64::NAN, None)]),
        ("set_aside.by", vec![sharing("", 1, 0.5)]),
        ("set_aside.values", vec![sharing("a", 0, 0.5)]),
        ("set_aside.values", vec![sharing("a", 1025, 0.5)]),
        ("set_aside.share", vec![sharing("a", 1, 0.0)]),
        ("set_aside.share", vec![sharing("a", 1, 1.1)]),
        ("set_aside.share", vec![sharing("a", 1, f64::NAN)]),
        ("limit.by", vec![by("", vec![])]),
        (
            "limit.values",
            vec![by("plan", vec![("a", 1), ("b", 2), ("a", 3)])],
        ),
        (
            "limit.values.b",
            vec![by("plan", vec![("a", 1), ("b", MAX_UNITS + 1)])],
        ),
    ]
}

fn wrong_numbers() -> Vec<Case> {
    let (window, zone) = (Nanos::from_millis(1000), Some("Europe/Atlantis".to_owned()));
    let unit = CalendarUnit::Day;
    let many = |spec: &mut LimitSpec| spec.limit = LimitNumber::One(10_001);
    let permits = AlgorithmSpec::Concurrency { ttl: window };
    let (burst, queue) = (Some(0), Some(MAX_UNITS));
    vec![
        (
            "burst",
            vec![algorithm(AlgorithmSpec::TokenBucket { window, burst })],
        ),
        (
            "queue",
            vec![algorithm(AlgorithmSpec::LeakyBucket { window, queue })],
        ),
        (
            "limit",
            vec![algorithm(AlgorithmSpec::SlidingLog { window }), set(many)],
        ),
        ("limit", vec![algorithm(permits.clone()), set(many)]),
        (
            "ttl",
            vec![algorithm(AlgorithmSpec::Concurrency { ttl: Nanos::ZERO })],
        ),
        (
            "count",
            vec![
                algorithm(permits),
                set(|spec| spec.count = Counted::Failures),
            ],
        ),
        (
            "time_zone",
            vec![algorithm(AlgorithmSpec::CalendarWindow {
                unit,
                time_zone: zone,
            })],
        ),
        (
            "cost",
            vec![set(|spec| spec.cost = CostSource::Attribute(String::new()))],
        ),
        ("ipv6_prefix", vec![set(|spec| spec.ipv6_prefix = 0)]),
        ("ipv6_prefix", vec![set(|spec| spec.ipv6_prefix = 129)]),
        (
            "window",
            vec![
                set(|spec| spec.limit = LimitNumber::Unlimited),
                algorithm(AlgorithmSpec::SlidingLog {
                    window: Nanos::ZERO,
                }),
            ],
        ),
    ]
}

#[test]
fn a_spec_that_is_wrong_names_the_field() {
    for (field, spoils) in wrong_terms().into_iter().chain(wrong_numbers()) {
        let mut spec = spec("n", &["user"]);
        spoils.iter().for_each(|spoil| spoil(&mut spec));
        let error = Limit::new("api", spec.clone(), &HASH_KEY).expect_err(field);
        assert_eq!(error.field, field, "{spec:?}");
        assert!(!error.wrong.is_empty() && !error.right.is_empty());
    }
}

#[test]
fn the_numbers_that_are_left_out_are_the_usual_ones() {
    let window = Nanos::from_millis(1000);
    let of = |algorithm| {
        let spec = LimitSpec::new("n", LimitNumber::One(7), algorithm);
        *limit(spec).usual_rule().expect("it is limited")
    };
    let token = of(AlgorithmSpec::TokenBucket {
        window,
        burst: None,
    });
    let leaky = of(AlgorithmSpec::LeakyBucket {
        window,
        queue: None,
    });
    assert_eq!((token.capacity(), leaky.capacity()), (7, 7));
    let mut spec = spec("n", &[]);
    banning(1000, 2.5, None)(&mut spec);
    let ban = limit(spec.clone()).usual_rule().and_then(|rule| rule.ban);
    let ban = ban.expect("as it says");
    let day = Nanos::from_millis(24 * 3_600_000);
    assert_eq!((ban.escalation, ban.longest), (2500, day));
    banning(48 * 3_600_000, 1.0, None)(&mut spec);
    let ban = limit(spec).usual_rule().and_then(|rule| rule.ban);
    let longest = ban.map(|ban| ban.longest);
    assert_eq!(longest, Some(Nanos::from_millis(48 * 3_600_000)));
    let blocked = AlgorithmSpec::TokenBucket {
        window,
        burst: Some(5),
    };
    let blocked = limit(LimitSpec::new("n", LimitNumber::One(0), blocked));
    let rule = blocked.usual_rule().expect("it is limited");
    assert!(matches!(rule.algorithm, Algorithm::TokenBucket(_)));
    assert_eq!(rule.capacity(), 0, "a block has no burst");
}
