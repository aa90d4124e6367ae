//! Who decides: one owner at a time unless something went wrong, and a standby only where it must.

use tollgate_limit::{DecidedBy, Nanos, NodeId};

use super::{of_key::OfKey, violation::Violation};
use crate::history::{Answer, Fault, Held};

/// Who held a key, and who decided; says nothing where the history tells no holders.
pub(super) fn check(key: &OfKey<'_>, broken: &mut Vec<Violation>) {
    if key.holds.is_empty() {
        return;
    }
    two_owners(key, broken);
    for answer in &key.answers {
        let Some(at) = answer.decided else { continue };
        if answer.degraded {
            continue;
        }
        match answer.by {
            DecidedBy::Owner => no_owner(key, answer, at, broken),
            DecidedBy::Standby => needless_standby(key, answer, at, broken),
            DecidedBy::Cached | DecidedBy::Fallback | DecidedBy::Switch => {}
        }
    }
}

fn two_owners(key: &OfKey<'_>, broken: &mut Vec<Violation>) {
    for (at, one) in key.holds.iter().enumerate() {
        for other in key.holds.iter().skip(at.saturating_add(1)) {
            let since = one.since.max(other.since);
            let both = one.boot != other.boot && since < one.until.min(other.until);
            if both && !key.is_disturbed(since) {
                broken.push(Violation::TwoOwners {
                    key: key.name.to_owned(),
                    one: one.node.clone(),
                    other: other.node.clone(),
                    at: since,
                });
            }
        }
    }
}

fn holds_at(held: &Held, at: Nanos) -> bool {
    held.since <= at && at <= held.until
}

fn no_owner(key: &OfKey<'_>, answer: &Answer, at: Nanos, broken: &mut Vec<Violation>) {
    let mut own = key.holds.iter().filter(|held| held.boot == answer.boot);
    if !own.any(|held| holds_at(held, at)) {
        broken.push(Violation::NoOwner {
            key: key.name.to_owned(),
            check: answer.check,
            node: answer.node.clone(),
            at,
        });
    }
}

fn needless_standby(key: &OfKey<'_>, answer: &Answer, at: Nanos, broken: &mut Vec<Violation>) {
    let mut holders = key.holds.iter().filter(|held| holds_at(held, at));
    let Some(owner) = holders.next() else { return };
    let concerned = |node: &NodeId| *node == owner.node || *node == answer.node;
    let between = |fault: &&Fault| match fault {
        Fault::Crash { node, .. } | Fault::Pause { node, .. } | Fault::Accused { node, .. } => {
            concerned(node)
        }
        Fault::Cut { from, to, .. } => concerned(from) && concerned(to),
    };
    let faults = key.history.faults.iter().filter(between);
    let excused = faults.into_iter().any(|fault| key.is_felt(fault, at));
    let recovery = key.history.terms.recovery;
    let moved = at.saturating_sub(owner.since) <= recovery;
    if owner.boot != answer.boot && !excused && !moved {
        broken.push(Violation::NeedlessStandby {
            key: key.name.to_owned(),
            check: answer.check,
            standby: answer.node.clone(),
            owner: owner.node.clone(),
            at,
        });
    }
}
