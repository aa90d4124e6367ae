//! Whole backtests of real logs, as the report tells them.

use std::{path::PathBuf, sync::atomic::AtomicU64};

use serde_json::Value;
use tollgate_limit::{AlgorithmSpec, HashKey, Limit, LimitNumber, LimitSpec, Nanos, Policies};

use super::{Engine, Plans, Progress, SortBounds, reading, replay};
use crate::access_log::{Fields, Log};

/// A file of real traffic; `None`, and a line that says so, where it is absent.
fn data(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data")).join(name);
    if path.is_file() {
        return Some(path);
    }
    crate::output::note(format_args!("skipped: {} is absent", path.display()));
    None
}

/// One limit in each policy.
fn policies(
    limits: impl IntoIterator<Item = (&'static str, &'static [&'static str], u64, AlgorithmSpec)>,
) -> Policies {
    let mut policies = Policies::new();
    for (policy, key, limit, algorithm) in limits {
        let mut spec = LimitSpec::new("l", LimitNumber::One(limit), algorithm);
        spec.key = key.iter().map(|name| (*name).to_owned()).collect();
        let limit = Limit::new(policy, spec, &HashKey::new([0; 16])).unwrap();
        policies.add(policy, limit).unwrap();
    }
    policies
}

fn report(log: PathBuf, cost: &[&str], policies: Policies, bounds: SortBounds) -> Value {
    let plans = Plans::new(&policies, None).unwrap();
    let fields = Fields {
        attributes: plans.wanted.clone(),
        time: None,
        cost: cost.iter().map(|name| (*name).to_owned()).collect(),
    };
    let log = Log::open(&log, None, fields).unwrap();
    let ordered = reading::read(log, bounds, &AtomicU64::new(0)).unwrap();
    let engine = Engine::new(policies);
    let report = replay(&engine, &plans, ordered, (None, &Progress::default())).unwrap();
    serde_json::to_value(report).unwrap()
}

fn numbers<const N: usize>(report: &Value, policy: usize, names: [&str; N]) -> [u64; N] {
    let limit = &report["policies"][policy]["limits"][0];
    names.map(|name| limit[name].as_u64().unwrap())
}

const MINUTE: Nanos = Nanos::from_millis(60_000);
const FIXED: AlgorithmSpec = AlgorithmSpec::FixedWindow { window: MINUTE };
const BUCKET: AlgorithmSpec = AlgorithmSpec::TokenBucket {
    window: MINUTE,
    burst: None,
};
const SLIDING: AlgorithmSpec = AlgorithmSpec::SlidingWindow {
    window: MINUTE,
    slices: 10,
    hard: false,
};
const PERMITS: AlgorithmSpec = AlgorithmSpec::Concurrency { ttl: MINUTE };

/// So little memory that each run holds a few requests.
const TINY: SortBounds = SortBounds {
    bytes: 4096,
    fan_in: 3,
};

#[test]
fn a_log_that_is_not_sorted_gives_the_same_with_little_memory() {
    let Some(log) = data("access.log") else {
        return;
    };
    let limits = || policies([("p", &["ip"][..], 30, SLIDING)]);
    let in_memory = report(log.clone(), &[], limits(), SortBounds::default());
    let in_files = report(log, &[], limits(), TINY);
    assert_eq!(in_memory, in_files);
    assert_eq!(numbers(&in_memory, 0, ["admitted", "refused"]), [9544, 456]);
    let limit = &in_memory["policies"][0]["limits"][0];
    assert_eq!(limit["most_refused"][0]["values"][0], "10.0.0.97");
    assert_eq!(limit["most_refused"][0]["refused"], 146);
    let peak = &limit["peaks"][0];
    assert_eq!(
        ["keys", "p99", "p999", "most"].map(|name| peak[name].as_u64()),
        [1753, 33, 75, 108].map(Some)
    );
}

#[test]
fn fixed_windows_and_buckets_admit_in_one_pass_what_they_should() {
    let Some(log) = data("access.log") else {
        return;
    };
    let policies = policies([
        ("bucket", &["ip"][..], 30, BUCKET),
        ("fixed", &["ip"], 30, FIXED),
        ("permits", &["ip"], 1, PERMITS),
    ]);
    let report = report(log, &[], policies, SortBounds::default());
    let names = ["admitted", "refused"];
    assert_eq!(numbers(&report, 0, names), [9908, 92]);
    assert_eq!(numbers(&report, 1, names), [9544, 456]);
    let first = &report["policies"][1]["limits"][0]["most_refused"][0];
    assert_eq!(
        (&first["values"][0], &first["refused"]),
        (&"10.0.0.97".into(), &146.into())
    );
    let permits = &report["policies"][2];
    assert_eq!(
        (&permits["skipped"][0], &permits["limits"]),
        (&"l".into(), &Value::Array(Vec::new()))
    );
    let checks = ["admitted", "refused", "faulty"].map(|name| permits[name].as_u64());
    assert_eq!(checks, [10_000, 0, 0].map(Some));
}

#[test]
fn tokens_of_a_language_model_are_counted_by_their_sum() {
    let Some(log) = data("llm-tokens.csv") else {
        return;
    };
    let policies = policies([("p", &[][..], 500_000, FIXED)]);
    let cost = ["ContextTokens", "GeneratedTokens"];
    let report = report(log, &cost, policies, SortBounds::default());
    let names = ["admitted", "refused", "admitted_units", "refused_units"];
    assert_eq!(
        numbers(&report, 0, names),
        [18_005, 1361, 24_321_637, 2_128_898]
    );
    assert_eq!(
        report["policies"][0]["limits"][0]["peaks"][0]["most"],
        780_667
    );
}
