//! P6: what is counted at the end is what was admitted, but for what a crash lost and what nobody knows.
//!
//! Looked at for keys of which nothing expires within the run.

use tollgate_limit::{DecidedBy, Nanos};

use super::{allowance, of_key::OfKey, violation::Violation};
use crate::history::{Amended, Answer, Fault, Said};

/// The end of a key, if the history tells it.
pub(super) fn check(key: &OfKey<'_>, broken: &mut Vec<Violation>) {
    let Some(end) = key.history.ends.iter().find(|end| end.key == key.name) else {
        return;
    };
    let reset = key.amends.iter().any(|amend| amend.what == Amended::Reset);
    let admitted = key.admissions.iter().map(|it| it.admitted());
    let admitted = admitted.fold(0_u64, u64::saturating_add);
    let (surely, maybe) = back(key);
    let (lost, unknown) = (lost(key), unknown(key));
    let least = if reset {
        0
    } else {
        admitted.saturating_sub(maybe).saturating_sub(lost)
    };
    let most = admitted.saturating_sub(if reset { 0 } else { surely });
    let most = most.saturating_add(unknown);
    if end.counted < least {
        broken.push(Violation::Lost {
            key: key.name.to_owned(),
            counted: end.counted,
            least,
        });
    }
    if end.counted > most {
        broken.push(Violation::Invented {
            key: key.name.to_owned(),
            counted: end.counted,
            most,
        });
    }
}

/// What was surely given back of what was admitted, and what was at most.
fn back(key: &OfKey<'_>) -> (u64, u64) {
    let (mut surely, mut maybe) = (0_u64, 0_u64);
    for amend in &key.amends {
        let Amended::Refund { units, of } = amend.what else {
            continue;
        };
        let named = of.map(|check| key.admissions.iter().find(|it| it.check == check));
        if named.is_some_and(|found| found.is_none()) {
            continue;
        }
        maybe = maybe.saturating_add(units);
        // One that names no check takes no more than there is then; one that a crash follows may be lost.
        let kept = amend.answered.is_some() && of.is_some() && !may_be_lost(key, amend.asked);
        if kept {
            surely = surely.saturating_add(units);
        }
    }
    (surely, maybe)
}

/// Whether what happened at an instant may be forgotten again.
fn may_be_lost(key: &OfKey<'_>, at: Nanos) -> bool {
    let crash = |fault: &&Fault| matches!(fault, Fault::Crash { .. });
    let crashes = key.history.faults.iter().filter(crash);
    crashes.into_iter().any(|crash| crash.at_or_after(at))
}

/// What crashes may have lost.
fn lost(key: &OfKey<'_>) -> u64 {
    let known: Vec<_> = key
        .admissions
        .iter()
        .filter(|it| !it.degraded)
        .copied()
        .collect();
    let owners = allowance::crash(key, &known, Nanos::MAX, u64::MAX);
    // What a node admitted in another's stead, and had not told the owner yet.
    let untold = key.admissions.iter().filter(|answer| {
        let stead = answer.degraded || answer.by == DecidedBy::Standby;
        stead
            && key.history.faults.iter().any(|fault| match fault {
                Fault::Crash { boot, .. } => *boot == answer.boot,
                Fault::Cut { .. } | Fault::Pause { .. } | Fault::Accused { .. } => false,
            })
    });
    untold.fold(owners, |sum, answer| sum.saturating_add(answer.admitted()))
}

/// What may have been counted without an answer, or twice: what was under way while messages were lost.
fn unknown(key: &OfKey<'_>) -> u64 {
    let under_way = |answer: &&&Answer| {
        let charges = match answer.said {
            Said::Admitted | Said::Given | Said::Refused(_) | Said::Nothing => true,
            Said::Peeked => false,
        };
        let over = answer.asked.saturating_add(key.history.terms.deadline);
        let over = over.saturating_add(key.history.terms.deadline);
        let loses = |fault: &Fault| {
            fault.loses_messages() && fault.since() <= over && answer.asked <= fault.until()
        };
        charges && key.history.faults.iter().any(loses)
    };
    let costs = key.answers.iter().filter(under_way).map(|it| it.cost);
    costs.fold(0, u64::saturating_add)
}
