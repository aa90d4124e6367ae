//! What a client concludes from an answer.

use std::time::Duration;

use tollgate_limit::{
    Cost, Decision, Enforcement, LimitDecision, Nanos, Outcome, Reason, Rule, Verdict,
};
use tollgate_wire::client::{Answer, put_decision, read_answer};

use crate::samples::{allowed, decision, limit_decision, refused, rule};

fn answer(verdicts: &[Verdict]) -> Answer {
    let enforced = verdicts
        .iter()
        .map(|verdict| (Enforcement::Enforced, *verdict));
    answer_of(enforced)
}

fn answer_of(verdicts: impl IntoIterator<Item = (Enforcement, Verdict)>) -> Answer {
    let limits = verdicts.into_iter().map(|(enforcement, verdict)| {
        let rule = Rule {
            enforcement,
            ..rule()
        };
        LimitDecision {
            verdict,
            ..limit_decision("l", rule, Cost::ZERO)
        }
    });
    let decision = Decision {
        limits: limits.collect(),
        ..decision()
    };
    let mut body = Vec::new();
    put_decision(&mut body, &decision).unwrap();
    read_answer(&body).unwrap().unwrap()
}

fn wait(millis: u64) -> Verdict {
    Verdict {
        outcome: Outcome::Refuse(Reason::LimitExceeded),
        retry_after: Some(Nanos::from_millis(millis)),
        ..refused()
    }
}

#[test]
fn the_longest_wait_of_the_refusing_limits_counts() {
    let answer = answer(&[wait(5), allowed(), wait(700), wait(20)]);
    assert!(!answer.is_allowed());
    assert_eq!(answer.retry_after(), Some(Duration::from_millis(700)));
}

#[test]
fn one_limit_that_waiting_does_not_cure_spoils_all() {
    for verdicts in [[refused(), wait(5)], [wait(5), refused()]] {
        assert_eq!(answer(&verdicts).retry_after(), None);
    }
}

#[test]
fn an_allowed_check_need_not_wait() {
    assert_eq!(answer(&[allowed()]).retry_after(), None);
    let none = answer(&[]);
    assert!(none.is_allowed() && none.limits.is_empty());
}

#[test]
fn one_degraded_limit_makes_the_answer_so() {
    assert!(!answer(&[allowed()]).is_degraded());
    let mut body = Vec::new();
    put_decision(&mut body, &decision()).unwrap();
    assert!(read_answer(&body).unwrap().unwrap().is_degraded());
}

/// Rule 10: what a limit in shadow says is told, and decides nothing.
#[test]
fn a_limit_in_shadow_makes_nobody_wait() {
    use Enforcement::{Enforced, Shadow};
    let delayed = |millis| Verdict {
        delay: Nanos::from_millis(millis),
        ..allowed()
    };
    let answer = answer_of([
        (Shadow, refused()),
        (Enforced, delayed(3)),
        (Shadow, delayed(9)),
    ]);
    assert!(answer.is_allowed());
    assert_eq!(answer.retry_after(), None);
    assert_eq!(answer.delay(), Duration::from_millis(3));
    let refused = answer_of([
        (Shadow, wait(900)),
        (Enforced, wait(5)),
        (Shadow, refused()),
    ]);
    assert!(!refused.is_allowed());
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(5)));
}

#[test]
fn the_longest_delay_counts_and_none_of_a_refused_check() {
    let delayed = |millis| Verdict {
        delay: Nanos::from_millis(millis),
        ..allowed()
    };
    let admitted = answer(&[delayed(20), delayed(700), delayed(5)]);
    assert_eq!(admitted.delay(), Duration::from_millis(700));
    assert_eq!(answer(&[delayed(20), wait(5)]).delay(), Duration::ZERO);
    assert_eq!(answer(&[]).delay(), Duration::ZERO);
}
