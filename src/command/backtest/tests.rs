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
    println!("skipped: {} is absent", path.display());
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
