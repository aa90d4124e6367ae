//! What the limits said, counted for a report.
//!
//! Must not know how anything was decided. Bounds: [`PEAK_KEYS`] keys with their peaks and
//! [`REFUSED_KEYS`] refused keys, over all limits of all policies.

use tollgate_limit::{Cost, Limit, Nanos};

use super::{
    engine::{Plan, Said, is_counted},
    peaks::Peaks,
    refused::MostRefused,
    timeline::Timeline,
};

/// Keys whose peaks are kept, over all limits; of more a fair part.
const PEAK_KEYS: usize = 1 << 19;
/// Refused keys that are told apart, over all limits.
const REFUSED_KEYS: usize = 1 << 16;
/// A minute, which peaks are told of.
pub(super) const MINUTE: Nanos = Nanos::from_millis(60_000);

/// What the limits of one policy said.
#[derive(Debug)]
pub(super) struct PolicyTally {
    /// Checks that every limit admitted.
    pub(super) admitted: u64,
    /// Checks that a limit refused.
    pub(super) refused: u64,
    /// Requests that are no check of the policy: a required attribute is missing.
    pub(super) faulty: u64,
    /// Why the first of these is none.
    pub(super) fault: Option<String>,
    /// Its limits, in the order of the file; `None` where a log cannot say what the limit counts.
    pub(super) limits: Vec<Option<LimitTally>>,
}

/// What one limit said.
#[derive(Debug)]
pub(super) struct LimitTally {
    pub(super) admitted: Sum,
    pub(super) refused: Sum,
    pub(super) most_refused: MostRefused,
    pub(super) busiest: BusiestMinute,
    /// Of a minute and, if that is another span, of the limit's window.
    pub(super) peaks: Vec<Peaks>,
    pub(super) timeline: Timeline,
}

/// Requests and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) requests: u64,
    pub(super) units: u64,
}

/// The minute, aligned to the epoch, with the most requests; of equal ones the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusiestMinute {
    number: u64,
    requests: u64,
    busiest: u64,
    most: u64,
}

/// Tallies of all policies, with nothing counted.
pub(super) fn new(plans: &[Plan], first: Nanos, last: Nanos) -> Vec<PolicyTally> {
    let limits = plans.iter().flat_map(Plan::limits);
    let limits = limits.filter(|limit| is_counted(limit)).count().max(1);
    let timeline = Timeline::new(first, last);
    let tally = |limit: &Limit| {
        is_counted(limit).then(|| {
            let mut periods = vec![MINUTE, limit.rule().window().span()];
            periods.dedup();
            LimitTally {
                admitted: Sum::default(),
                refused: Sum::default(),
                most_refused: MostRefused::new(REFUSED_KEYS / limits),
                busiest: BusiestMinute::default(),
                peaks: periods
                    .into_iter()
                    .map(|period| Peaks::new(period, PEAK_KEYS / 2 / limits))
                    .collect(),
                timeline: timeline.clone(),
            }
        })
    };
    let tallies = plans.iter().map(|plan| PolicyTally {
        admitted: 0,
        refused: 0,
        faulty: 0,
        fault: None,
        limits: plan.limits().iter().map(|limit| tally(limit)).collect(),
    });
    tallies.collect()
}

impl PolicyTally {
    /// Counts a check.
    pub(super) fn count(
        &mut self,
        plan: &Plan,
        now: Nanos,
        (values, cost): (&[&str], Cost),
        said: &[Said],
    ) {
        if said.iter().all(|said| said.verdict.is_allowed()) {
            self.admitted += 1;
        } else {
            self.refused += 1;
        }
        for said in said {
            if let Some(Some(limit)) = self.limits.get_mut(said.limit) {
                limit.count(now, cost, said);
                if !said.verdict.is_allowed() {
                    let values = plan.key_values(said.limit, values);
                    limit.most_refused.count(said.key, values);
                }
            }
        }
    }

    /// Counts a request that is no check of the policy.
    pub(super) fn count_fault(&mut self, why: &impl std::fmt::Display) {
        self.faulty += 1;
        self.fault.get_or_insert_with(|| why.to_string());
    }
}

impl LimitTally {
    fn count(&mut self, now: Nanos, cost: Cost, said: &Said) {
        let is_admitted = said.verdict.is_allowed();
        let sum = if is_admitted {
            &mut self.admitted
        } else {
            &mut self.refused
        };
        sum.requests += 1;
        sum.units = sum.units.saturating_add(cost.units());
        self.busiest.count(now);
        self.timeline.count(now, is_admitted);
        for peaks in &mut self.peaks {
            peaks.count(now, said.key, cost.units());
        }
    }
}

impl BusiestMinute {
    fn count(&mut self, now: Nanos) {
        let number = now.as_nanos() / MINUTE.as_nanos();
        if number != self.number {
            (self.number, self.requests) = (number, 0);
        }
        self.requests += 1;
        if self.requests > self.most {
            (self.busiest, self.most) = (number, self.requests);
        }
    }

    /// When it starts, and how many requests came; `None` if there was none.
    pub(super) fn found(&self) -> Option<(Nanos, u64)> {
        let start = Nanos::new(self.busiest.saturating_mul(MINUTE.as_nanos()));
        (self.most > 0).then_some((start, self.most))
    }
}
