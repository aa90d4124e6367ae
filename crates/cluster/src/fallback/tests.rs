//! Tests of the fallback and of the last answers.

use tollgate_limit::{
    Fallback, KeyHash, Nanos, OldestSlice, Outcome, Reason, Rule, SlidingWindow, Window,
};

use super::{LastAnswers, MAX_LAST_ANSWERS, Substitute, UNDECIDED_RETRY_AFTER, substitute_for};

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn window(millis: u64) -> Window {
    Window::new(at(millis)).unwrap()
}

fn rule(limit: u64) -> Rule {
    Rule::SlidingWindow(SlidingWindow {
        limit,
        window: window(60_000),
        slices: 10,
        oldest: OldestSlice::Full,
    })
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
fn allow_and_deny_are_said_without_a_counter() {
    let said = |fallback| match substitute_for(&rule(10), fallback, 3) {
        Substitute::Say(verdict) => verdict,
        Substitute::Decide(rule) => panic!("{rule:?} must not decide"),
    };
    assert!(said(Fallback::Allow).is_allowed());
    assert!(said(Fallback::Allow).remaining <= 10);
    let deny = said(Fallback::Deny);
    assert_eq!(deny.outcome, Outcome::Refuse(Reason::Undecided));
    assert_eq!(deny.retry_after, Some(UNDECIDED_RETRY_AFTER));
    assert_eq!(UNDECIDED_RETRY_AFTER.ceil_seconds(), 1);
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
fn a_full_memory_keeps_what_it_has() {
    let answers = LastAnswers::new();
    for number in 0..MAX_LAST_ANSWERS + 10 {
        answers.record(at(0), key(number), 1, window(1_000));
    }
    assert_eq!(answers.len(), MAX_LAST_ANSWERS);
    assert_eq!(answers.answers.len(), MAX_LAST_ANSWERS);
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
    assert_eq!(answers.answers.len(), answers.len());
}
