//! Whole backtests of real logs, as the report tells them.

use std::{path::PathBuf, sync::atomic::AtomicU64};

use serde_json::Value;
use tollgate_limit::{AlgorithmSpec, Fallback, HashKey, Limit, LimitSpec, Nanos, Policies};

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

fn policies(
    limits: impl IntoIterator<Item = (&'static str, &'static [&'static str], AlgorithmSpec)>,
) -> Policies {
    let mut policies = Policies::new();
    for (policy, key, algorithm) in limits {
        let spec = LimitSpec {
            name: "l".to_owned(),
            matches: Vec::new(),
            key: key.iter().map(|name| (*name).to_owned()).collect(),
            algorithm,
            fallback: Fallback::LocalFull,
            required: false,
        };
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

fn sliding(limit: u64, slices: u64) -> AlgorithmSpec {
    AlgorithmSpec::SlidingWindow {
        limit,
        window: Nanos::from_millis(60_000),
        slices,
        hard: false,
    }
}

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
    let limits = || policies([("p", &["ip"][..], sliding(30, 10))]);
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
