//! What a backtest found, as plain values that JSON, text and HTML are made of.

mod page;
mod text;
mod words;

use serde::{Serialize, Serializer};
use tollgate_limit::{CostSource, Counted, Limit, Nanos, StoreStats};

use self::words::every;
pub(super) use self::words::instant;
use super::{
    engine::Plan,
    peaks::PeakSummary,
    reading::LogSummary,
    tally::{LimitTally, PolicyTally},
    timeline::Timeline,
};
use crate::output::shown;

/// Keys that are shown.
const SHOWN_KEYS: usize = 10;

/// What a backtest found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) log: LogSummary,
    pub(super) policies: Vec<PolicyReport>,
    pub(super) counters: Counters,
    /// Whether requests cost other than 1, so that units are worth telling.
    #[serde(skip)]
    pub(super) has_costs: bool,
    /// The limits that refused a larger share than they may.
    pub(super) exceeded: Vec<String>,
}

/// The counters that were kept, and those that had to go.
#[derive(Debug, Serialize)]
pub(super) struct Counters {
    keys: u64,
    max_bytes: u64,
    evicted: u64,
    evicted_at_limit: u64,
}

/// What became of a policy's checks.
#[derive(Debug, Serialize)]
pub(super) struct PolicyReport {
    name: String,
    admitted: u64,
    refused: u64,
    faulty: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    limits: Vec<LimitReport>,
    /// Limits that a log cannot say enough of.
    skipped: Vec<String>,
}

/// What one limit said.
#[derive(Debug, Serialize)]
pub(super) struct LimitReport {
    name: String,
    algorithm: &'static str,
    /// What a reader must know of it.
    caveats: Vec<Caveat>,
    capacity: u64,
    #[serde(rename = "window_ms", serialize_with = "millis")]
    window: Nanos,
    admitted: u64,
    refused: u64,
    admitted_units: u64,
    refused_units: u64,
    refused_share: f64,
    /// The attributes that it counts by.
    key: Vec<String>,
    most_refused: Vec<KeyReport>,
    most_refused_exact: bool,
    busiest_minute: Option<MinuteReport>,
    peaks: Vec<PeakReport>,
    #[serde(skip)]
    timeline: Timeline,
}

/// In what a limit differs from one that refuses what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Caveat {
    /// It only watches.
    InShadow,
    /// It counts failures, and a log does not say which requests failed.
    CountsFailures,
}

/// A key and how often it was refused.
#[derive(Debug, Serialize)]
pub(super) struct KeyReport {
    values: Vec<String>,
    refused: u64,
    too_high_by: u64,
}

/// The busiest minute.
#[derive(Debug, Serialize)]
pub(super) struct MinuteReport {
    start: String,
    requests: u64,
}

/// What keys ask for at most in one period.
#[derive(Debug, Serialize)]
pub(super) struct PeakReport {
    #[serde(rename = "period_ms", serialize_with = "millis")]
    period: Nanos,
    keys: u64,
    exact: bool,
    p99: u64,
    p999: u64,
    most: u64,
    #[serde(skip)]
    by_power: Vec<u64>,
}

impl Report {
    /// Gathers all that was counted. A limit that refuses more than `may_refuse` of its requests is told.
    pub(super) fn new(
        log: LogSummary,
        (plans, tallies): (&[Plan], &[PolicyTally]),
        stats: &StoreStats,
        may_refuse: Option<f64>,
    ) -> Self {
        let policies: Vec<_> = plans
            .iter()
            .zip(tallies)
            .map(|(plan, tally)| PolicyReport::new(plan, tally))
            .collect();
        let mut exceeded = Vec::new();
        for policy in &policies {
            let above =
                |limit: &&LimitReport| may_refuse.is_some_and(|may| limit.refused_share > may);
            let names = policy.limits.iter().filter(above);
            exceeded.extend(names.map(|limit| format!("{}/{}", policy.name, limit.name)));
        }
        Self {
            has_costs: log.has_costs || plans.iter().any(has_own_cost),
            log,
            policies,
            counters: Counters {
                keys: stats.keys,
                max_bytes: stats.max_bytes,
                evicted: stats.evicted,
                evicted_at_limit: stats.evicted_at_limit,
            },
            exceeded,
        }
    }
}

impl PolicyReport {
    fn new(plan: &Plan, tally: &PolicyTally) -> Self {
        let mut limits = Vec::new();
        let mut skipped = Vec::new();
        for (limit, tally) in plan.limits().iter().zip(&tally.limits) {
            match tally {
                Some(tally) => limits.push(LimitReport::new(limit, tally)),
                None if limit.is_concurrency() => skipped.push(limit.name().to_owned()),
                None => {}
            }
        }
        Self {
            name: plan.policy().to_owned(),
            admitted: tally.admitted,
            refused: tally.refused,
            faulty: tally.faulty,
            fault: tally.fault.clone(),
            limits,
            skipped,
        }
    }
}

impl LimitReport {
    fn new(limit: &Limit, tally: &LimitTally) -> Self {
        let most_refused = tally.most_refused.first(SHOWN_KEYS).into_iter();
        let (admitted, refused) = (tally.admitted, tally.refused);
        Self {
            name: limit.name().to_owned(),
            algorithm: tally.rule.algorithm.name(),
            caveats: caveats(limit, tally),
            capacity: tally.rule.capacity(),
            window: tally.rule.window().span(),
            admitted: admitted.requests,
            refused: refused.requests,
            admitted_units: admitted.units,
            refused_units: refused.units,
            refused_share: share(refused.requests, admitted.requests),
            key: limit.key().to_vec(),
            most_refused: most_refused
                .map(|key| KeyReport {
                    values: key.values,
                    refused: key.refused,
                    too_high_by: key.too_high_by,
                })
                .collect(),
            most_refused_exact: tally.most_refused.is_exact(),
            busiest_minute: tally.busiest.found().map(|(start, requests)| MinuteReport {
                start: instant(start),
                requests,
            }),
            peaks: tally
                .peaks
                .iter()
                .filter_map(|peaks| peaks.summary().map(PeakReport::new))
                .collect(),
            timeline: tally.timeline.clone(),
        }
    }
}

fn caveats(limit: &Limit, tally: &LimitTally) -> Vec<Caveat> {
    let in_shadow = (!tally.rule.is_enforced()).then_some(Caveat::InShadow);
    let failures = match limit.counted() {
        Counted::Requests => None,
        Counted::Failures => Some(Caveat::CountsFailures),
    };
    in_shadow.into_iter().chain(failures).collect()
}

impl PeakReport {
    fn new(summary: PeakSummary) -> Self {
        Self {
            period: summary.period,
            keys: summary.keys,
            exact: summary.exact,
            p99: summary.p99,
            p999: summary.p999,
            most: summary.most,
            by_power: summary.by_power,
        }
    }

    /// The proposal of numbers, in words.
    fn proposal(&self, has_costs: bool) -> String {
        let unit = if has_costs { " units" } else { "" };
        let period = every(self.period);
        if self.keys == 1 {
            let most = shown(self.most);
            return format!("the one key asks for at most {most}{unit} {period}");
        }
        let about = if self.exact { "" } else { "about " };
        format!(
            "99.9 % of keys stay within {}{unit} {period}, 99 % within {} ({about}{} keys, the most {})",
            shown(self.p999),
            shown(self.p99),
            shown(self.keys),
            shown(self.most),
        )
    }
}

/// Whether a limit has costs of its own.
fn has_own_cost(plan: &Plan) -> bool {
    let mut limits = plan.limits().iter();
    limits.any(|limit| matches!(limit.cost_source(), CostSource::Attribute(_)))
}

/// The share of one part in both.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than the 53 bits that are kept"
)]
fn share(part: u64, rest: u64) -> f64 {
    match part.saturating_add(rest) {
        0 => 0.0,
        all => part as f64 / all as f64,
    }
}

fn millis<S: Serializer>(span: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(span.ceil_millis())
}

#[cfg(test)]
mod tests;
