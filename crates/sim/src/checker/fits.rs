//! P9: what fits is not refused, and a refund is in force within a second of its answer.
//!
//! Looked at in runs without faults and changes only. What may have been used when a check was refused is
//! reckoned from above: of a window a slice more than its length, and all charges that may not have been given
//! back yet.

use tollgate_limit::{Algorithm, Alignment, Nanos, Reason};

use super::{of_key::OfKey, violation::Violation};
use crate::history::{Amended, Answer, Said};

/// Within which a refund or a reset is in force everywhere, and a known denial forgotten.
const IN_FORCE: Nanos = Nanos::from_millis(1_000);

/// All refusals of a key.
pub(super) fn check(key: &OfKey<'_>, broken: &mut Vec<Violation>) {
    if !key.is_calm() || key.rule.set_aside > 0 {
        return;
    }
    let capacity = key.rule.open_capacity();
    for answer in &key.answers {
        let Said::Refused(Reason::LimitExceeded | Reason::QueueFull | Reason::SetAside) =
            answer.said
        else {
            continue;
        };
        let Some(used) = most_used(key, answer) else {
            continue;
        };
        if used.saturating_add(answer.cost) <= capacity {
            broken.push(Violation::RefusedThoughItFits {
                check: answer.check,
                key: key.name.to_owned(),
                cost: answer.cost,
                at: answer.asked,
                used,
                capacity,
            });
        }
    }
}

/// The most that may have been used when a check was refused; `None` where it is not told.
fn most_used(key: &OfKey<'_>, refused: &Answer) -> Option<u64> {
    let back = match key.rule.algorithm {
        Algorithm::SlidingWindow(rule) => {
            let window = rule.window.span();
            let slice = window.as_nanos().div_ceil(u64::from(rule.slices.max(1)));
            window.saturating_add(Nanos::new(slice))
        }
        Algorithm::SlidingLog(rule) => rule.window.span(),
        Algorithm::FixedWindow(rule) => match rule.alignment {
            Alignment::Epoch(window) => window.span(),
            Alignment::Calendar(..) => return None,
        },
        Algorithm::TokenBucket(rule) => {
            return Some(level(key, refused, (rule.limit, rule.window.span())));
        }
        Algorithm::LeakyBucket(rule) => {
            return Some(level(key, refused, (rule.limit, rule.window.span())));
        }
        Algorithm::Concurrency(_) => return None,
    };
    let from = refused.earliest().as_nanos().checked_sub(back.as_nanos());
    let charged = charged_before(key, refused);
    let inside = charged.filter(|it| from.is_none_or(|from| it.latest().as_nanos() >= from));
    let inside: Vec<_> = inside.collect();
    let used = inside
        .iter()
        .fold(0_u64, |sum, it| sum.saturating_add(it.cost));
    Some(used.saturating_sub(surely_back(key, refused, &inside)))
}

/// What may have been charged when a check was refused. A charge that was given back may still have stood.
fn charged_before<'a>(key: &'a OfKey<'_>, refused: &'a Answer) -> impl Iterator<Item = &'a Answer> {
    let up_to = refused.latest();
    let reset = key.amends.iter().filter(|amend| {
        let in_force = amend.answered.map(|at| at.saturating_add(IN_FORCE));
        amend.what == Amended::Reset && in_force.is_some_and(|at| at <= refused.asked)
    });
    let reset = reset.map(|amend| amend.asked).max();
    let charged = move |answer: &&Answer| {
        let charged = match answer.said {
            Said::Admitted => answer.admitted() > 0,
            Said::Nothing => true,
            Said::Given => {
                let back = answer.latest().saturating_add(IN_FORCE);
                back >= refused.earliest()
            }
            Said::Refused(_) | Said::Peeked => false,
        };
        charged && answer.earliest() <= up_to && reset.is_none_or(|reset| answer.latest() >= reset)
    };
    key.answers.iter().copied().filter(charged)
}

/// What was given back of that and is in force.
fn surely_back(key: &OfKey<'_>, refused: &Answer, charged: &[&Answer]) -> u64 {
    let mut back = 0_u64;
    for amend in &key.amends {
        let Amended::Refund {
            units,
            of: Some(check),
        } = amend.what
        else {
            continue;
        };
        let in_force = amend.answered.map(|at| at.saturating_add(IN_FORCE));
        let in_force = in_force.is_some_and(|at| at <= refused.asked);
        if in_force && charged.iter().any(|answer| answer.check == check) {
            back = back.saturating_add(units);
        }
    }
    back
}

/// The highest level that a bucket may have had when a check was refused, with no refund.
fn level(key: &OfKey<'_>, refused: &Answer, rate: (u64, Nanos)) -> u64 {
    let (limit, window) = rate;
    let at = refused.earliest();
    let (mut highest, mut sum) = (0_u64, 0_u64);
    let mut charged: Vec<_> = charged_before(key, refused).collect();
    charged.sort_by_key(|answer| answer.latest());
    for answer in charged.iter().rev() {
        sum = sum.saturating_add(answer.cost);
        let since = at.saturating_sub(answer.latest());
        let drained = u128::from(limit) * u128::from(since.as_nanos());
        let drained = drained / u128::from(window.as_nanos().max(1));
        let drained = u64::try_from(drained).unwrap_or(u64::MAX);
        highest = highest.max(sum.saturating_sub(drained));
    }
    highest
}
