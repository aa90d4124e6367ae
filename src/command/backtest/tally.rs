//! What the limits said, counted for a report.
//!
//! Must not know how anything was decided. Bounds: [`PEAK_KEYS`] keys with their peaks and
//! [`REFUSED_KEYS`] refused keys, over all limits of all policies.

use tollgate_limit::{Algorithm, Alignment, Limit, Nanos, Rule};

use super::{
    engine::{Plan, Said, counted_rule},
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
    /// Its limits, in the order of the file; `None` where a log cannot say what the limit counts, or
    /// where it limits nothing.
    pub(super) limits: Vec<Option<LimitTally>>,
}

/// What one limit said.
#[derive(Debug)]
pub(super) struct LimitTally {
    /// What it is told by; checks of other tiers may have other numbers.
    pub(super) rule: Rule,
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
    let limits = limits.filter(|limit| counted_rule(limit).is_some());
    let limits = limits.count().max(1);
    let timeline = Timeline::new(first, last);
    let tally = |limit: &Limit| {
        let rule = *counted_rule(limit)?;
        let peaks = periods(&rule).into_iter();
        Some(LimitTally {
            rule,
            admitted: Sum::default(),
            refused: Sum::default(),
            most_refused: MostRefused::new(REFUSED_KEYS / limits),
            busiest: BusiestMinute::default(),
            peaks: peaks
                .map(|period| Peaks::new(period, PEAK_KEYS / 2 / limits))
                .collect(),
            timeline: timeline.clone(),
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

/// The periods that peaks are told of. Those of a calendar are not all equally long: they have none.
fn periods(rule: &Rule) -> Vec<Nanos> {
    let window = match rule.algorithm {
        Algorithm::FixedWindow(fixed) => match fixed.alignment {
            Alignment::Epoch(window) => window.span(),
            Alignment::Calendar(..) => MINUTE,
        },
        Algorithm::SlidingWindow(_)
        | Algorithm::SlidingLog(_)
        | Algorithm::TokenBucket(_)
        | Algorithm::LeakyBucket(_)
        | Algorithm::Concurrency(_) => rule.window().span(),
    };
    let mut periods = vec![MINUTE, window];
    periods.dedup();
    periods
}

impl PolicyTally {
    /// Counts a check.
    pub(super) fn count(&mut self, plan: &Plan, now: Nanos, values: &[&str], said: &[Said]) {
        if said.iter().any(|said| said.refuses) {
            self.refused += 1;
        } else {
            self.admitted += 1;
        }
        for said in said {
            if let Some(Some(limit)) = self.limits.get_mut(said.limit) {
                limit.count(now, said);
                if !said.is_admitted {
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
    fn count(&mut self, now: Nanos, said: &Said) {
        let sum = if said.is_admitted {
            &mut self.admitted
        } else {
            &mut self.refused
        };
        sum.requests += 1;
        sum.units = sum.units.saturating_add(said.cost.units());
        self.busiest.count(now);
        self.timeline.count(now, said.is_admitted);
        for peaks in &mut self.peaks {
            peaks.count(now, said.key, said.cost.units());
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
