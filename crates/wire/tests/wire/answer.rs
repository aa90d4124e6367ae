//! What a client concludes from an answer.

use std::time::Duration;

use tollgate_limit::{Nanos, Outcome, Reason, Verdict};
use tollgate_wire::client::{Answer, put_decision, read_answer};

use crate::samples::{allowed, decision, refused};

fn answer(verdicts: &[Verdict]) -> Answer {
    let mut decision = decision();
    let limit = decision.limits.swap_remove(0);
    decision.limits = vec![limit; verdicts.len()];
    for (limit, verdict) in decision.limits.iter_mut().zip(verdicts) {
        limit.verdict = *verdict;
    }
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
