//! Tests of the fallback and of the last answers.

use proptest::prelude::*;
use tollgate_limit::{
    Algorithm, Alignment, Ban, CalendarUnit, Concurrency, Enforcement, Fallback, FixedWindow,
    KeyHash, LeakyBucket, Nanos, OldestSlice, Outcome, Reason, Rule, SlidingLog, SlidingWindow,
    TokenBucket, Verdict, Window, Zone,
};

use super::{LastAnswers, MAX_LAST_ANSWERS, Substitute, UNDECIDED_RETRY_AFTER, substitute_for};

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn window(millis: u64) -> Window {
    Window::new(at(millis)).unwrap()
}

fn rule(limit: u64) -> Rule {
    Rule::new(Algorithm::SlidingWindow(SlidingWindow {
        limit,
        window: window(60_000),
        slices: 10,
        oldest: OldestSlice::Full,
    }))
}

fn token_bucket(limit: u64, burst: u64) -> Algorithm {
    Algorithm::TokenBucket(TokenBucket {
        limit,
        window: window(60_000),
        burst,
    })
}

fn leaky_bucket(limit: u64, queue: u64) -> Algorithm {
    Algorithm::LeakyBucket(LeakyBucket {
        limit,
        window: window(60_000),
        queue,
    })
}

/// An algorithm of each kind, of this limit and of this burst or of a queue of one less.
fn algorithms(limit: u64, most: u64) -> [Algorithm; 7] {
    let minute = window(60_000);
    let alignments = [
        Alignment::Epoch(minute),
        Alignment::Calendar(CalendarUnit::Day, Zone::utc()),
    ];
    let [epoch, calendar] =
        alignments.map(|alignment| Algorithm::FixedWindow(FixedWindow { limit, alignment }));
    [
        rule(limit).algorithm,
        Algorithm::SlidingLog(SlidingLog {
            limit,
            window: minute,
        }),
        epoch,
        calendar,
        token_bucket(limit, if limit == 0 { 0 } else { most.max(1) }),
        leaky_bucket(limit, most.saturating_sub(1)),
        Algorithm::Concurrency(Concurrency { limit, ttl: minute }),
    ]
}

#[track_caller]
fn fair(rule: Rule, members: usize) -> Rule {
    match substitute_for(&rule, Fallback::LocalFair, members) {
        Substitute::Decide(share) => share,
        other @ (Substitute::Count(..) | Substitute::Say(_)) => panic!("{other:?}"),
    }
}

/// Units for each window.
const fn rate(algorithm: &Algorithm) -> u64 {
    match algorithm {
        Algorithm::SlidingWindow(rule) => rule.limit,
        Algorithm::SlidingLog(rule) => rule.limit,
        Algorithm::FixedWindow(rule) => rule.limit,
        Algorithm::TokenBucket(rule) => rule.limit,
        Algorithm::LeakyBucket(rule) => rule.limit,
        Algorithm::Concurrency(rule) => rule.limit,
    }
}

fn key(number: usize) -> KeyHash {
    let number = u64::try_from(number).unwrap();
    KeyHash::from_halves(number << 40, number)
}

#[test]
fn full_is_the_rule_itself() {
    let substitute = substitute_for(&rule(10), Fallback::LocalFull, 5);
    assert_eq!(substitute, Substitute::Decide(rule(10)));
}

#[test]
fn fair_divides_the_limit_alone_and_never_makes_a_block() {
    let shares = [
        (10, 3, 3),
        (10, 1, 10),
        (10, 0, 10),
        (2, 3, 1),
        (1, 1_000, 1),
        (0, 3, 0),
        (1 << 53, 2, 1 << 52),
    ];
    for (limit, members, share) in shares {
        let substitute = substitute_for(&rule(limit), Fallback::LocalFair, members);
        assert_eq!(
            substitute,
            Substitute::Decide(rule(share)),
            "{limit} / {members}"
        );
    }
}

#[test]
fn fair_divides_the_numbers_of_every_algorithm() {
    for algorithm in algorithms(12, 24) {
        let share = fair(Rule::new(algorithm), 4);
        let [expected] = algorithms(3, 6)
            .into_iter()
            .filter(|share| {
                share.name() == algorithm.name() && share.window() == algorithm.window()
            })
            .collect::<Vec<_>>()[..]
        else {
            panic!("one of each kind")
        };
        assert_eq!(share, Rule::new(expected));
    }
    let share = |algorithm, members| fair(Rule::new(algorithm), members).algorithm;
    assert_eq!(share(token_bucket(10, 1), 3), token_bucket(3, 1));
    assert_eq!(share(token_bucket(1, 9), 3), token_bucket(1, 3));
    assert_eq!(share(token_bucket(0, 0), 3), token_bucket(0, 0));
    assert_eq!(share(leaky_bucket(10, 0), 3), leaky_bucket(3, 0));
    assert_eq!(share(leaky_bucket(10, 8), 3), leaky_bucket(3, 2));
    assert_eq!(share(leaky_bucket(0, 8), 3), leaky_bucket(0, 0));
}

/// What is set aside stays so in proportion, and never is all where it was not.
#[test]
fn fair_keeps_what_is_open() {
    let share = |limit, set_aside, members| {
        let share = fair(
            Rule {
                set_aside,
                ..rule(limit)
            },
            members,
        );
        (share.capacity(), share.set_aside)
    };
    assert_eq!(share(100, 20, 4), (25, 5));
    assert_eq!(share(100, 0, 4), (25, 0));
    assert_eq!(
        share(10, 9, 3),
        (3, 2),
        "one of ten is open, and one of three"
    );
    assert_eq!(share(10, 8, 3), (3, 2));
    assert_eq!(share(2, 1, 3), (1, 0));
    assert_eq!(share(10, 10, 3), (3, 3), "all of it is set aside");
    assert_eq!(share(0, 0, 3), (0, 0));
}

#[test]
fn fair_keeps_the_other_terms() {
    let terms = Rule {
        enforcement: Enforcement::Shadow,
        ban: Some(Ban {
            length: at(1_000),
            escalation: 2_000,
            longest: at(9_000),
        }),
        ..rule(10)
    };
    let share = fair(terms, 5);
    assert_eq!(
        share,
        Rule {
            algorithm: rule(2).algorithm,
            ceiling: 2,
            ..terms
        }
    );
}

proptest! {
    /// The shares of all members never sum to more than the whole, unless that is below their number:
    /// then each is of one unit. Of what is open the same.
    #[test]
    fn shares_are_parts(
        limit in prop_oneof![0_u64..200, 0..=10_000_u64],
        most in 0_u64..200,
        part in any::<u64>(),
        members in 0_usize..40,
    ) {
        let count = u64::try_from(members).unwrap().max(1);
        let is_part = |share: u64, whole: u64| {
            let fits = share * count <= whole || (share == 1 && whole < count);
            fits && (share == 0) == (whole == 0) && (share + 1) * count > whole
        };
        for algorithm in algorithms(limit, most) {
            let set_aside = part % (algorithm.capacity() + 1);
            let whole = Rule { set_aside, ..Rule::new(algorithm) };
            let share = fair(whole, members);
            prop_assert!(is_part(share.capacity(), whole.capacity()), "{share:?}");
            prop_assert!(is_part(rate(&share.algorithm), rate(&algorithm)), "{share:?}");
            prop_assert!(is_part(share.open_capacity(), whole.open_capacity()), "{share:?}");
            prop_assert!(share.set_aside <= share.capacity());
            prop_assert_eq!(share.window(), whole.window());
        }
    }
}

#[test]
fn deny_is_said_without_a_counter() {
    let substitute = substitute_for(&rule(10), Fallback::Deny, 3);
    let Substitute::Say(deny) = substitute else {
        panic!("{substitute:?}")
    };
    assert_eq!(deny.outcome, Outcome::Refuse(Reason::Undecided));
    assert_eq!(deny.retry_after, Some(UNDECIDED_RETRY_AFTER));
    assert_eq!(UNDECIDED_RETRY_AFTER.ceil_seconds(), 1);
    assert_eq!(substitute.said(None), Some(deny));
}

#[test]
fn allow_is_said_and_counted_by_the_whole_rule() {
    let substitute = substitute_for(&rule(10), Fallback::Allow, 3);
    let Substitute::Count(by, allow) = substitute else {
        panic!("{substitute:?}")
    };
    assert_eq!(by, rule(10));
    assert!(allow.is_allowed());
    assert_eq!(allow.remaining, 10);
    // Whatever the counter says, all that is told of it is where the charge went.
    let refused = Verdict {
        outcome: Outcome::Refuse(Reason::LimitExceeded),
        charged_slice: 77,
        ..allow
    };
    assert_eq!(substitute.said(None), Some(allow));
    let told = substitute.said(Some(refused)).unwrap();
    assert!(told.is_allowed());
    assert_eq!(told.charged_slice, 77);
    let decided = Substitute::Decide(rule(10));
    assert_eq!(decided.said(Some(refused)), Some(refused));
    assert_eq!(decided.said(None), None);
}

#[test]
fn the_last_answer_holds_for_a_window() {
    let answers = LastAnswers::new();
    assert_eq!(answers.used(at(0), key(1)), None);
    answers.record(at(100), key(1), 7, window(1_000));
    answers.record(at(100), key(2), 9, window(1_000));
    assert_eq!(answers.used(at(1_099), key(1)), Some(7));
    assert_eq!(answers.used(at(1_100), key(1)), None);
    answers.record(at(500), key(1), 3, window(1_000));
    answers.record(at(400), key(1), 99, window(1_000));
    assert_eq!(
        answers.used(at(1_100), key(1)),
        Some(3),
        "the newest counts"
    );
    answers.sweep(at(1_100));
    assert_eq!(answers.len(), 1);
    answers.sweep(at(1_500));
    assert!(answers.is_empty());
}

#[test]
fn an_answer_can_be_forgotten() {
    let answers = LastAnswers::new();
    answers.record(at(0), key(1), 7, window(1_000));
    answers.record(at(0), key(2), 9, window(1_000));
    answers.forget(key(1));
    answers.forget(key(1));
    answers.forget(key(3));
    assert_eq!(answers.used(at(1), key(1)), None);
    assert_eq!(answers.used(at(1), key(2)), Some(9));
    assert_eq!(answers.len(), 1);
    // There is room again, and an older answer is as good as none.
    answers.record(at(0), key(1), 3, window(1_000));
    assert_eq!(answers.used(at(1), key(1)), Some(3));
    assert_eq!(answers.len(), 2);
}

#[test]
fn a_full_memory_keeps_what_it_has() {
    let answers = LastAnswers::new();
    for number in 0..MAX_LAST_ANSWERS + 10 {
        answers.record(at(0), key(number), 1, window(1_000));
    }
    assert_eq!(answers.len(), MAX_LAST_ANSWERS);
    assert_eq!(answers.answers.counted(), MAX_LAST_ANSWERS);
    assert_eq!(answers.used(at(0), key(MAX_LAST_ANSWERS)), None);
    answers.record(at(1), key(0), 2, window(1_000));
    assert_eq!(
        answers.used(at(1), key(0)),
        Some(2),
        "known keys are kept up"
    );
    answers.sweep(at(1_000));
    answers.record(at(1_000), key(MAX_LAST_ANSWERS), 5, window(1_000));
    assert_eq!(answers.used(at(1_000), key(MAX_LAST_ANSWERS)), Some(5));
}

/// Racing threads keep the count exact and within the cap.
#[test]
fn threads_share_it() {
    let answers = LastAnswers::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let answers = &answers;
            scope.spawn(move || {
                for number in 0..20_000 {
                    answers.record(at(0), key(number + thread * 15_000), 1, window(1_000));
                    if number % 5_000 == 0 {
                        answers.sweep(at(0));
                    }
                }
            });
        }
    });
    assert_eq!(answers.len(), MAX_LAST_ANSWERS.min(65_000));
    assert_eq!(answers.answers.counted(), answers.len());
}
