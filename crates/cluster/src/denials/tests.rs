//! Tests of known denials.

mod model;

use tollgate_limit::{
    Algorithm, Ask, Concurrency, Cost, Enforcement, KeyHash, Mode, Nanos, OldestSlice, Outcome,
    Reason, Rule, SlidingWindow, Store, StoreConfig, Verdict, Window,
};

use super::{Denials, KEPT_AT_MOST, Known, MAX_DENIALS, ProbeTicket};

const fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// A deadline that no test reaches unless it means to.
const LATER: Nanos = at(1_000_000);

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

fn ask(key: u64, cost: u64) -> Ask {
    Ask {
        key: KeyHash::from_halves(key << 40, key),
        rule: rule(10),
        cost: Cost::new(cost).unwrap(),
    }
}

fn refusal(wait: Option<u64>) -> Verdict {
    Verdict {
        outcome: Outcome::Refuse(Reason::LimitExceeded),
        used: 10,
        remaining: 0,
        retry_after: wait.map(at),
        more_after: at(100),
        reset_after: at(9_000),
        delay: Nanos::ZERO,
        charged_slice: 0,
    }
}

fn admission() -> Verdict {
    Verdict {
        outcome: Outcome::Allow,
        retry_after: Some(Nanos::ZERO),
        ..refusal(None)
    }
}

/// Denials of which one was sent and heard at these milliseconds.
fn denied(ask: &Ask, verdict: Verdict, (sent, heard): (u64, u64)) -> Denials {
    let denials = Denials::new();
    denials.handle_answers(at(sent), at(heard), (&[*ask], &[verdict]));
    denials
}

#[track_caller]
fn told(denials: &Denials, now: u64, ask: &Ask) -> Verdict {
    let known = denials.ask(at(now), LATER, ask);
    let Known::Denied(verdict) = known else {
        panic!("{known:?}")
    };
    verdict
}

#[track_caller]
fn probe(denials: &Denials, now: u64, until: u64, ask: &Ask) -> ProbeTicket {
    let known = denials.ask(at(now), at(until), ask);
    let Known::Probe(ticket) = known else {
        panic!("{known:?}")
    };
    ticket
}

#[test]
fn a_denial_is_told_for_its_wait_from_when_the_question_was_sent() {
    let denials = denied(&ask(1, 1), refusal(Some(400)), (100, 120));
    assert_eq!(told(&denials, 120, &ask(1, 1)), refusal(Some(400)));
    let later = told(&denials, 220, &ask(1, 1));
    assert_eq!(later.retry_after, Some(at(300)), "from when it was heard");
    assert_eq!(later.reset_after, at(8_900));
    assert_eq!(later.more_after, at(300), "no unit is known to come before");
    assert_eq!(told(&denials, 219, &ask(1, 1)).more_after, at(1));
    told(&denials, 499, &ask(1, 1));
    let ticket = probe(&denials, 500, 550, &ask(1, 1));
    denials.handle_done(ticket);
    assert!(denials.is_empty());
}

#[test]
fn it_is_told_for_a_second_at_most_and_for_ever_means_so() {
    for wait in [Some(60_000), None] {
        let denials = denied(&ask(1, 1), refusal(wait), (100, 120));
        let last = told(&denials, 1_099, &ask(1, 1));
        assert_eq!(last.retry_after, wait.map(|wait| at(wait - 979)));
        let _ticket = probe(&denials, 1_100, 1_150, &ask(1, 1));
    }
}

#[test]
fn it_holds_for_as_much_of_the_same_numbers_and_key() {
    let denials = denied(&ask(1, 3), refusal(Some(400)), (0, 0));
    for (other, is_known) in [
        (ask(1, 3), true),
        (ask(1, 9), true),
        (ask(1, 2), false),
        (ask(2, 3), false),
        (
            Ask {
                rule: rule(11),
                ..ask(1, 3)
            },
            false,
        ),
    ] {
        let known = denials.ask(at(1), LATER, &other);
        assert_eq!(
            matches!(known, Known::Denied(_)),
            is_known,
            "{other:?}: {known:?}"
        );
        // What is over makes nobody else wait either.
        let known = denials.ask(at(400), LATER, &other);
        assert_eq!(known != Known::Nothing, is_known, "{other:?}: {known:?}");
    }
}

#[test]
fn what_may_be_admitted_any_time_is_not_kept() {
    let shadow = Rule {
        enforcement: Enforcement::Shadow,
        ..rule(10)
    };
    let permits = Rule::new(Algorithm::Concurrency(Concurrency {
        limit: 10,
        ttl: window(60_000),
    }));
    for rule in [shadow, permits] {
        let ask = Ask { rule, ..ask(1, 1) };
        assert!(denied(&ask, refusal(Some(400)), (0, 0)).is_empty());
    }
    for verdict in [refusal(Some(0)), admission()] {
        assert!(denied(&ask(1, 1), verdict, (0, 0)).is_empty());
    }
    let late = denied(&ask(1, 1), refusal(Some(20)), (100, 120));
    assert!(late.is_empty(), "it was over when it was heard");
    let twice = Denials::new();
    let asks = [ask(1, 6), ask(1, 6), ask(2, 6)];
    twice.handle_answers(at(0), at(0), (&asks, &[refusal(Some(400)); 3]));
    assert_eq!(twice.ask(at(1), LATER, &ask(1, 6)), Known::Nothing);
    told(&twice, 1, &ask(2, 6));
}

#[test]
fn the_others_wait_for_one_probe_until_it_is_done() {
    let denials = denied(&ask(1, 1), refusal(Some(100)), (0, 0));
    let ticket = probe(&denials, 100, 150, &ask(1, 1));
    assert_eq!(
        denials.ask(at(101), LATER, &ask(1, 5)),
        Known::Wait(at(150))
    );
    // Refused again.
    denials.handle_answers(at(100), at(110), (&[ask(1, 1)], &[refusal(Some(100))]));
    denials.handle_done(ticket);
    told(&denials, 110, &ask(1, 1));
    // Admitted.
    let ticket = probe(&denials, 200, 250, &ask(1, 1));
    denials.handle_answers(at(200), at(210), (&[ask(1, 1)], &[admission()]));
    denials.handle_done(ticket);
    assert!(denials.is_empty());
}

#[test]
fn a_probe_without_an_answer_makes_nobody_wait_any_more() {
    let denials = denied(&ask(1, 1), refusal(Some(100)), (0, 0));
    let ticket = probe(&denials, 100, 150, &ask(1, 1));
    denials.handle_done(ticket);
    assert_eq!(denials.ask(at(120), LATER, &ask(1, 1)), Known::Nothing);
}

#[test]
fn a_probe_whose_asker_is_gone_is_the_next_ones() {
    let denials = denied(&ask(1, 1), refusal(Some(100)), (0, 0));
    let first = probe(&denials, 100, 150, &ask(1, 1));
    denials.handle_gone(first);
    let second = probe(&denials, 110, 160, &ask(1, 1));
    // One that says nothing is over at its deadline.
    let third = probe(&denials, 160, 210, &ask(1, 1));
    for stale in [first, second] {
        denials.handle_gone(stale);
        denials.handle_done(stale);
        assert_eq!(
            denials.ask(at(170), LATER, &ask(1, 1)),
            Known::Wait(at(210)),
            "it is not theirs any more"
        );
    }
    denials.handle_done(third);
    assert!(denials.is_empty());
}

/// A check that was under way before renews the denial, for less time than the probe takes.
#[test]
fn a_probe_stays_the_only_one_when_another_renews_the_denial() {
    let denials = denied(&ask(1, 1), refusal(Some(100)), (0, 0));
    let ticket = probe(&denials, 100, 150, &ask(1, 1));
    denials.handle_answers(at(95), at(101), (&[ask(1, 1)], &[refusal(Some(20))]));
    told(&denials, 114, &ask(1, 1));
    assert_eq!(
        denials.ask(at(115), LATER, &ask(1, 1)),
        Known::Wait(at(150))
    );
    // It was lost: what another has heard since stands.
    denials.handle_answers(at(95), at(116), (&[ask(1, 1)], &[refusal(Some(90))]));
    denials.handle_done(ticket);
    told(&denials, 184, &ask(1, 1));
    let _next = probe(&denials, 185, 235, &ask(1, 1));
}

#[test]
fn what_is_given_back_here_ends_it() {
    let denials = denied(&ask(1, 1), refusal(Some(400)), (0, 0));
    denials.forget(ask(2, 1).key);
    told(&denials, 1, &ask(1, 1));
    denials.forget(ask(1, 1).key);
    assert_eq!(denials.ask(at(1), LATER, &ask(1, 1)), Known::Nothing);
}

#[test]
fn an_admission_that_was_sent_later_ends_it() {
    let answered = |cost, sent| {
        let denials = denied(&ask(1, 2), refusal(Some(400)), (100, 120));
        denials.handle_answers(at(sent), at(130), (&[ask(1, cost)], &[admission()]));
        denials.is_empty()
    };
    assert!(answered(2, 100));
    assert!(!answered(2, 99), "it may have been decided before");
    assert!(!answered(1, 125), "less may fit");
}

#[test]
fn of_two_in_force_the_one_that_says_more_stays() {
    let both = |cost, (sent, heard)| {
        let denials = denied(&ask(1, 3), refusal(Some(400)), (100, 120));
        denials.handle_answers(
            at(sent),
            at(heard),
            (&[ask(1, cost)], &[refusal(Some(400))]),
        );
        let knows = |now, cost| {
            let known = denials.ask(at(now), LATER, &ask(1, cost));
            matches!(known, Known::Denied(_))
        };
        (knows(499, 2), knows(499, 3), knows(501, 5))
    };
    assert_eq!(both(2, (110, 120)), (true, true, true));
    assert_eq!(both(2, (90, 120)), (false, true, false));
    assert_eq!(both(5, (110, 120)), (false, true, false));
    assert!(both(5, (480, 510)).2, "the first is over");
}

#[test]
fn what_is_over_is_forgotten_in_a_while() {
    let denials = denied(&ask(1, 1), refusal(Some(100)), (0, 0));
    let end = at(100).saturating_add(KEPT_AT_MOST);
    let before = end.saturating_sub(Nanos::new(1));
    denials.sweep(before);
    assert_eq!(denials.len(), 1);
    let until = end.saturating_add(at(50));
    assert!(matches!(
        denials.ask(before, until, &ask(1, 1)),
        Known::Probe(_)
    ));
    denials.sweep(end);
    assert_eq!(denials.len(), 1, "a probe is under way");
    assert_eq!(denials.ask(until, LATER, &ask(1, 1)), Known::Nothing);
    denials.sweep(until);
    assert!(denials.is_empty());
}

#[test]
fn when_full_it_keeps_what_it_has() {
    let denials = Denials::new();
    let most = u64::try_from(MAX_DENIALS).unwrap();
    for key in 0..=most {
        denials.handle_answers(at(0), at(0), (&[ask(key, 1)], &[refusal(Some(400))]));
    }
    assert_eq!(denials.len(), MAX_DENIALS);
    assert_eq!(denials.ask(at(1), LATER, &ask(most, 1)), Known::Nothing);
    told(&denials, 1, &ask(0, 1));
}

/// P5: to a larger cost than the refused one it tells a wait after which that is admitted, and of a bucket
/// or a fixed window not a nanosecond more than one.
#[test]
fn a_larger_cost_is_told_a_wait_that_works() {
    for rule in model::rules() {
        for cost in 1..=rule.capacity() + 1 {
            let store = Store::new(&StoreConfig::default());
            let sized = |cost| Ask {
                rule,
                ..ask(1, cost)
            };
            let mut now = 1_000;
            let refused = loop {
                let verdict = store.decide(at(now), &sized(1), Mode::Consume);
                if !verdict.is_allowed() {
                    break verdict;
                }
                now += 7;
            };
            let denials = denied(&sized(1), refused, (now, now));
            let said = told(&denials, now, &sized(cost));
            let owner = store.decide(at(now), &sized(cost), Mode::Peek);
            assert_eq!(said.outcome, owner.outcome, "{rule:?} {cost}");
            let (Some(wait), Some(least)) = (said.retry_after, owner.retry_after) else {
                assert_eq!(said.retry_after, owner.retry_after, "{rule:?} {cost}");
                continue;
            };
            let then = store.decide(at(now).saturating_add(wait), &sized(cost), Mode::Peek);
            assert!(then.is_allowed(), "{rule:?} {cost}: {said:?} {owner:?}");
            let is_exact = !matches!(
                rule.algorithm,
                Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_)
            );
            if is_exact || cost == 1 {
                let more = wait.as_nanos() - least.as_nanos();
                assert!(more <= 1, "{rule:?} {cost}: {said:?} {owner:?}");
            }
        }
    }
}

#[cfg(feature = "sabotage")]
#[test]
fn it_can_be_made_to_outlive_a_refund() {
    use crate::sabotage::{Sabotage, set};
    set(Some(Sabotage::DenialsKeptAfterRefund));
    let denials = denied(&ask(1, 1), refusal(Some(60_000)), (0, 0));
    denials.forget(ask(1, 1).key);
    told(&denials, 4_999, &ask(1, 1));
    set(None);
}
