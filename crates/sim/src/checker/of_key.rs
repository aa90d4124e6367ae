//! What a history says of one key, in order.

use tollgate_limit::{DecidedBy, Nanos, Rule};

use crate::history::{Amend, Amended, Answer, Fault, Held, History};

/// One key of a history.
#[derive(Debug)]
pub(super) struct OfKey<'a> {
    pub(super) history: &'a History,
    pub(super) name: &'a str,
    pub(super) rule: Rule,
    /// In the order in which they were asked.
    pub(super) answers: Vec<&'a Answer>,
    /// Those that admitted something, in the order of their latest instants.
    pub(super) admissions: Vec<&'a Answer>,
    /// In the order in which they were asked.
    pub(super) amends: Vec<&'a Amend>,
    pub(super) holds: Vec<&'a Held>,
}

impl<'a> OfKey<'a> {
    pub(super) fn of(history: &'a History, name: &'a str, rule: Rule) -> Self {
        let answers = history.answers.iter().filter(|answer| answer.key == name);
        let mut answers: Vec<_> = answers.collect();
        answers.sort_by_key(|answer| answer.asked);
        let admissions = answers.iter().filter(|answer| answer.admitted() > 0);
        let mut admissions: Vec<_> = admissions.copied().collect();
        admissions.sort_by_key(|answer| answer.latest());
        let amends = history.amends.iter().filter(|amend| amend.key == name);
        let mut amends: Vec<_> = amends.collect();
        amends.sort_by_key(|amend| amend.asked);
        let holds = history.holds.iter().filter(|held| held.key == name);
        Self {
            history,
            name,
            rule,
            answers,
            admissions,
            amends,
            holds: holds.collect(),
        }
    }

    /// Whether a fault was in force at an instant or so shortly before that copies may miss something.
    pub(super) fn is_disturbed(&self, at: Nanos) -> bool {
        let faults = &self.history.faults;
        faults.iter().any(|fault| self.is_felt(fault, at))
    }

    /// Whether a fault is still felt at an instant.
    pub(super) fn is_felt(&self, fault: &Fault, at: Nanos) -> bool {
        let over = fault.until().saturating_add(self.history.terms.recovery);
        fault.since() <= at && at <= over
    }

    /// Whether all of the run was without faults and changes, but for its start.
    pub(super) fn is_calm(&self) -> bool {
        let changed = |at: &Nanos| *at > Nanos::ZERO;
        self.history.faults.is_empty() && !self.history.changes.iter().any(changed)
    }

    /// What was given back up to `to` of these admissions of a window, all after `from`.
    pub(super) fn given_back(&self, of_these: &[&Answer], from: Nanos, to: Nanos) -> u64 {
        let mut sum = 0_u64;
        let reset = self.reset_by(to);
        for amend in &self.amends {
            let Amended::Refund { units, of } = amend.what else {
                continue;
            };
            let counts = match of {
                // Of a check that charged nothing here nothing goes back. What a reset has forgotten may be taken
                // from what came after it.
                Some(check) => {
                    let named = |answer: &&&Answer| answer.check == check;
                    let is_after = amend.answered.is_none_or(|at| at > from);
                    of_these.iter().any(|answer| named(&answer))
                        || self.admissions.iter().find(named).is_some_and(|it| {
                            reset.is_some_and(|reset| it.earliest() <= reset)
                                || (is_after && self.may_be_unknown(it, amend))
                        })
                }
                None => amend.answered.is_none_or(|at| at > from),
            };
            if counts && amend.asked <= to {
                sum = sum.saturating_add(units);
            }
        }
        sum
    }

    /// Whether who gives it back need not know of a charge: what a standby admitted and has not told yet, and
    /// what a crash has lost. Then as much of another is given back (docs/decisions/0010).
    fn may_be_unknown(&self, charge: &Answer, amend: &Amend) -> bool {
        let lost = self.history.faults.iter().any(|fault| match fault {
            Fault::Crash { boot, at, .. } => {
                *boot == charge.boot && amend.answered.is_none_or(|answered| *at <= answered)
            }
            Fault::Cut { .. } | Fault::Pause { .. } | Fault::Accused { .. } => false,
        });
        charge.by == DecidedBy::Standby || lost
    }

    /// The instant up to which nothing counts at `to`, for a reset.
    pub(super) fn reset_by(&self, to: Nanos) -> Option<Nanos> {
        let resets = self
            .amends
            .iter()
            .filter(|amend| amend.what == Amended::Reset);
        let done = resets.filter(|amend| amend.asked <= to);
        done.map(|amend| amend.answered.unwrap_or(Nanos::MAX)).max()
    }
}
