//! What the formula adds for faults: `X_crash`, `X_dual` and `X_open` of one window.
//!
//! `X_open` is what was answered degraded. `X_crash` is, for each node that lost its memory in the window, what
//! it had admitted and may not have copied yet. `X_dual` is what was admitted by owners of which the one that
//! admitted last need not have known: those that were owners at the same time, and standbys. An owner that was
//! cut off had told nothing since.

use std::collections::BTreeSet;

use tollgate_limit::{DecidedBy, Nanos, NodeId, SEND_AFTER};
use tollgate_wire::identity::BootId;

use super::of_key::OfKey;
use crate::history::{Answer, Fault, Held};

/// How often nodes look for what is due to be copied.
const PUMP: Nanos = Nanos::from_millis(5);
/// Shorter windows are not copied.
const MIN_COPIED_WINDOW: Nanos = Nanos::from_millis(2_000);
/// Within so long, and the delay of a message, who is handed a key decides for it.
const HAND_OVER: Nanos = Nanos::from_millis(20);
/// The part of a limit that is copied at once.
const URGENT_PART: u64 = 32;

/// The terms of the formula for one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) crash: u64,
    pub(super) dual: u64,
    pub(super) open: u64,
}

impl Allowance {
    /// Of a window that holds these admissions, ends with `to` and may hold `most`.
    pub(super) fn of(key: &OfKey<'_>, admissions: &[&Answer], to: Nanos, most: u64) -> Self {
        let known: Vec<_> = admissions
            .iter()
            .filter(|it| !it.degraded)
            .copied()
            .collect();
        let open = admissions.iter().filter(|answer| answer.degraded);
        Self {
            crash: crash(key, &known, to, most),
            dual: dual(key, &known),
            open: sum(open.copied()),
        }
    }

    pub(super) const fn sum(&self) -> u64 {
        self.crash
            .saturating_add(self.dual)
            .saturating_add(self.open)
    }
}

fn sum<'a>(answers: impl Iterator<Item = &'a Answer>) -> u64 {
    let units = answers.map(Answer::admitted);
    units.fold(0, u64::saturating_add)
}

/// What crashes up to `to` may have lost of these admissions.
pub(super) fn crash(key: &OfKey<'_>, known: &[&Answer], to: Nanos, most: u64) -> u64 {
    let mut lost = 0_u64;
    for fault in &key.history.faults {
        let Fault::Crash { boot, at, .. } = fault else {
            continue;
        };
        if *at > to {
            continue;
        }
        lost = lost.saturating_add(one_crash(key, known, (*boot, *at), most));
    }
    lost
}

fn one_crash(key: &OfKey<'_>, known: &[&Answer], crash: (BootId, Nanos), most: u64) -> u64 {
    let (boot, at) = crash;
    let before = || known.iter().copied().filter(|it| it.earliest() <= at);
    if !is_alone(key, boot, at) {
        // The copy may have been incomplete, or lost with it.
        let held = key.holds.iter().any(|held| held.boot == boot);
        let decided = key.answers.iter().any(|answer| answer.boot == boot);
        return if held || decided {
            most.min(sum(before()))
        } else {
            0
        };
    }
    let own = || before().filter(|answer| answer.boot == boot);
    if key.rule.window().span() < MIN_COPIED_WINDOW {
        return most.min(sum(own()));
    }
    let within = |span: Nanos| {
        let from = at.saturating_sub(span);
        sum(own().filter(|answer| answer.latest() >= from))
    };
    let urgent = PUMP.saturating_add(key.history.terms.longest_delay);
    let lazy = SEND_AFTER.saturating_add(urgent);
    let part = (key.rule.capacity() / URGENT_PART).max(1);
    let late = part.saturating_add(within(urgent));
    most.min(within(lazy)).min(late)
}

/// Whether nothing else had happened shortly before a crash.
fn is_alone(key: &OfKey<'_>, boot: BootId, at: Nanos) -> bool {
    let recovery = key.history.terms.recovery;
    let is_other = |fault: &&Fault| !matches!(fault, Fault::Crash { boot: it, .. } if *it == boot);
    let others = key.history.faults.iter().filter(is_other);
    let changes = &key.history.changes;
    !others.into_iter().any(|fault| key.is_felt(fault, at))
        && !changes
            .iter()
            .any(|change| *change <= at && at <= change.saturating_add(recovery))
}

/// What the last to admit need not have known of.
fn dual(key: &OfKey<'_>, known: &[&Answer]) -> u64 {
    let Some(last) = known.iter().max_by_key(|answer| answer.latest()) else {
        return 0;
    };
    // What a standby was not told when it began to decide.
    let stands_in = |it: &&&Answer| it.boot == last.boot && it.by == DecidedBy::Standby;
    let since = known.iter().filter(stands_in).map(|it| it.earliest()).min();
    let is_unheard = |answer: &Answer| {
        since.is_some_and(|since| {
            answer.latest() >= told_until(key, (&answer.node, &last.node), since)
        })
    };
    let others = known.iter().copied().filter(|it| it.boot != last.boot);
    if began_apart(key, last) {
        return sum(others);
    }
    sum(others.filter(|answer| is_untold(key, answer) || is_unheard(answer)))
}

/// Whether another may have decided for the key without knowing of this admission.
fn is_untold(key: &OfKey<'_>, answer: &Answer) -> bool {
    if answer.by == DecidedBy::Standby {
        return true;
    }
    // What it admitted when it held the key before counts too: that may be all that it has not told.
    let holds = |held: &&&Held| held.boot == answer.boot && answer.earliest() <= held.until;
    key.holds.iter().filter(holds).any(|own| {
        let others = key.holds.iter().filter(|held| held.boot != answer.boot);
        let since = others.filter_map(|other| apart_since(key, own, other).map(|at| (other, at)));
        since.into_iter().any(|(other, since)| {
            answer.latest() >= told_until(key, (&own.node, &other.node), since)
        })
    })
}

/// Since when two held a key without the one's last word to the other: both at once, or one after the other by
/// way of nobody, since who was to hold it in between was taken for dead, or one of the two was. Who is taken for
/// dead puts down what it holds, and the next does not wait for it.
fn apart_since(key: &OfKey<'_>, own: &Held, other: &Held) -> Option<Nanos> {
    if other.since < own.until && own.since < other.until {
        return Some(own.since.max(other.since));
    }
    let terms = &key.history.terms;
    let is_next = own.until <= other.since
        && other.since <= own.until.saturating_add(terms.recovery)
        && !key
            .holds
            .iter()
            .any(|held| held.since < other.since && own.until < held.until);
    let handed_over = own.until.saturating_add(HAND_OVER);
    let late = handed_over.saturating_add(terms.longest_delay) < other.since;
    let is_one = |node: &NodeId| *node == own.node || *node == other.node;
    let mut felt = key
        .history
        .faults
        .iter()
        .filter(|fault| key.is_felt(fault, own.until));
    let disturbed = felt.any(|fault| match fault {
        Fault::Crash { .. } => late,
        Fault::Pause { node, .. } | Fault::Accused { node, .. } => late || is_one(node),
        Fault::Cut { from, to, .. } => late || is_one(from) || is_one(to),
    });
    (is_next && disturbed).then_some(own.until)
}

/// Whether the one that decided took over while it was cut off from several.
fn began_apart(key: &OfKey<'_>, answer: &Answer) -> bool {
    let holds = |held: &&&Held| {
        held.boot == answer.boot && held.since <= answer.latest() && answer.earliest() <= held.until
    };
    let mut own = key.holds.iter().filter(holds);
    own.any(|held| is_apart(key, &held.node, held.since))
}

/// Whether a node was cut off from several: then neither owner nor standby need be on its side, and it may have
/// begun to decide with no copy at all.
fn is_apart(key: &OfKey<'_>, node: &NodeId, at: Nanos) -> bool {
    let faults = key.history.faults.iter();
    let others = faults.filter_map(|fault| match fault {
        Fault::Cut { from, to, .. } if key.is_felt(fault, at) && from == node => Some(to),
        Fault::Cut { from, to, .. } if key.is_felt(fault, at) && to == node => Some(from),
        Fault::Cut { .. } | Fault::Crash { .. } | Fault::Pause { .. } | Fault::Accused { .. } => {
            None
        }
    });
    others.collect::<BTreeSet<_>>().len() > 1
}

/// Up to when one node had told the other all, when at `at` both began to decide.
fn told_until(key: &OfKey<'_>, nodes: (&NodeId, &NodeId), at: Nanos) -> Nanos {
    let (one, other) = nodes;
    let is_short = key.rule.window().span() < MIN_COPIED_WINDOW;
    if is_short || [one, other].iter().any(|node| is_apart(key, node, at)) {
        return Nanos::ZERO;
    }
    let concerns = |fault: &Fault| match fault {
        Fault::Crash { node, .. } | Fault::Pause { node, .. } | Fault::Accused { node, .. } => {
            node == one || node == other
        }
        Fault::Cut { from, to, .. } => (from == one && to == other) || (from == other && to == one),
    };
    let mut told = at;
    loop {
        let felt = key.history.faults.iter();
        let felt = felt.filter(|fault| concerns(fault) && key.is_felt(fault, told));
        match felt.map(Fault::since).min() {
            Some(since) if since < told => told = since,
            Some(_) | None => break,
        }
    }
    let lag = SEND_AFTER.saturating_add(PUMP);
    told.saturating_sub(lag.saturating_add(key.history.terms.longest_delay))
}
