//! What a report says beside its numbers.

use tollgate_limit::{
    AlgorithmSpec, Counted, HashKey, KeyHash, Limit, LimitNumber, LimitSpec, Nanos, Policies,
    StoreStats,
};

use super::{LogSummary, Report, share};
use crate::command::backtest::{
    engine::Plans,
    tally::{self, PolicyTally},
};

fn plans(change: impl FnOnce(&mut LimitSpec)) -> Plans {
    let algorithm = AlgorithmSpec::SlidingWindow {
        window: Nanos::from_millis(3_600_000),
        slices: 10,
        hard: false,
    };
    let mut spec = LimitSpec::new("per-ip", LimitNumber::One(10), algorithm);
    spec.key = vec!["ip".to_owned()];
    change(&mut spec);
    let mut policies = Policies::new();
    let limit = Limit::new("api", spec, &HashKey::new([0; 16])).unwrap();
    policies.add("api", limit).unwrap();
    Plans::new(&policies, None).unwrap()
}

fn report(change: impl FnOnce(&mut PolicyTally), stats: &StoreStats) -> Report {
    report_of(|_| (), change, stats)
}

fn report_of(
    spec: impl FnOnce(&mut LimitSpec),
    change: impl FnOnce(&mut PolicyTally),
    stats: &StoreStats,
) -> Report {
    let plans = plans(spec);
    let mut tallies = tally::new(&plans.plans, Nanos::ZERO, Nanos::from_millis(1000));
    change(&mut tallies[0]);
    let log = LogSummary {
        form: "json",
        requests: 5,
        unreadable: 0,
        faults: Vec::new(),
        from: "a".to_owned(),
        to: "b".to_owned(),
        has_costs: false,
    };
    Report::new(log, (&plans.plans, &tallies), stats, Some(0.0))
}

#[test]
fn nothing_is_noted_where_all_is_well() {
    let report = report(|_| (), &StoreStats::default());
    assert_eq!(report.notes(), Vec::<String>::new());
    let text = report.to_string();
    assert!(
        text.contains("applies to no request: none matches and has ip"),
        "{text}"
    );
    assert!(report.page().contains("Applies to no request"));
}

#[test]
fn counters_that_were_dropped_are_told() {
    let stats = StoreStats {
        max_bytes: 256 << 20,
        evicted: 1000,
        evicted_at_limit: 7,
        ..StoreStats::default()
    };
    let report = report(|_| (), &stats);
    let told = "did not fit into 256 MiB: 1 007 were dropped, 7 of these at their limit";
    assert!(report.to_string().contains(told), "{report}");
    assert!(report.page().contains(told));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["counters"]["evicted_at_limit"], 7);
}

#[test]
fn limits_that_are_passed_over_and_requests_that_are_no_check_are_told() {
    let permits = |spec: &mut LimitSpec| {
        spec.algorithm = AlgorithmSpec::Concurrency {
            ttl: Nanos::from_millis(1000),
        };
    };
    let change = |tally: &mut PolicyTally| {
        tally.count_fault(&"limit `per-ip` requires attribute `ip`");
        tally.count_fault(&"another");
    };
    let report = report_of(permits, change, &StoreStats::default());
    let text = report.to_string();
    assert!(
        text.contains("api/per-ip was passed over: it counts permits"),
        "{text}"
    );
    let told = "2 requests are no check of policy api: limit `per-ip` requires attribute `ip`.";
    assert!(text.contains(told), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["policies"][0]["skipped"][0], "per-ip");
}

#[test]
fn limits_that_are_tested_in_another_way_than_they_run_are_told() {
    let change = |spec: &mut LimitSpec| {
        spec.shadow = true;
        spec.count = Counted::Failures;
    };
    let report = report_of(change, |_| (), &StoreStats::default());
    let notes = report.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("api/per-ip is in shadow"), "{notes:?}");
    assert!(
        notes[1].starts_with("api/per-ip counts failures"),
        "{notes:?}"
    );
}

#[test]
fn counts_of_a_sketch_are_told_as_ranges() {
    let change = |tally: &mut PolicyTally| {
        let limit = tally.limits[0].as_mut().unwrap();
        limit.most_refused = crate::command::backtest::refused::MostRefused::new(1);
        for (key, value) in [(1, "a"), (1, "a"), (2, "b")] {
            let key = KeyHash::from_halves(key, key);
            limit.most_refused.count(key, [value].into_iter());
        }
    };
    let report = report(change, &StoreStats::default());
    let limit = &report.policies[0].limits[0];
    assert!(!limit.most_refused_exact);
    assert_eq!(limit.most_refused[0].count(), "1 to 3");
    assert_eq!(limit.refused_title(), "refused, about");
}

#[test]
fn a_share_of_nothing_is_nothing() {
    assert!(share(0, 0).abs() < f64::EPSILON);
    assert!((share(1, 3) - 0.25).abs() < f64::EPSILON);
    assert!((share(u64::MAX, u64::MAX) - 1.0).abs() < f64::EPSILON);
}
