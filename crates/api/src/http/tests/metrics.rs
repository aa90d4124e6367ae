//! The metrics text, read with a parser of its own.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_limit::{DecidedBy, Reason};

use super::Tester;
use crate::fakes::REFUSED;

/// Samples by name and labels.
type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Reads OpenMetrics text and checks its form: HELP and TYPE once and before the samples of a metric,
/// samples of one metric in one place, names and suffixes right, no sample twice, EOF last.
fn parse(text: &str) -> Samples {
    let body = text.strip_suffix("# EOF\n").expect("it ends in EOF");
    let (mut samples, mut helped, mut typed) = (Samples::new(), BTreeSet::new(), BTreeMap::new());
    let mut open = String::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(help.len() > 5, "{line}");
            assert!(helped.insert(name.to_owned()), "{line}");
            open = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name, open, "HELP stands before TYPE");
            assert!(
                typed.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{line}"
            );
        } else {
            let (name, labels, value) = sample(line);
            let kind = typed
                .get(&open)
                .unwrap_or_else(|| panic!("no TYPE for {line}"));
            let suffix = name
                .strip_prefix(&open)
                .unwrap_or_else(|| panic!("{line} in {open}"));
            let right: &[&str] = match kind.as_str() {
                "counter" => &["_total"],
                "histogram" => &["_sum", "_count", "_bucket"],
                _ => &[""],
            };
            assert!(right.contains(&suffix), "{line} is a {kind}");
            assert!(name.starts_with("tollgate_"), "{line}");
            assert!(
                samples.insert((name, labels), value).is_none(),
                "{line} stands twice"
            );
        }
    }
    samples
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    assert!(name.bytes().all(legal), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.trim_start_matches(',').split_once("=\"").unwrap();
            assert!(label.bytes().all(legal), "{line}");
            let (mut value, mut chars) = (String::new(), after.char_indices());
            loop {
                match chars.next().expect("a label value ends") {
                    (_, '\\') => match chars.next().unwrap().1 {
                        'n' => value.push('\n'),
                        escaped @ ('"' | '\\') => value.push(escaped),
                        other => panic!("escape {other} in {line}"),
                    },
                    (at, '"') => {
                        rest = &after[at + 1..];
                        break;
                    }
                    (_, plain) => value.push(plain),
                }
            }
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    (name.to_owned(), labels, value.parse().unwrap())
}

fn value(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let labels = labels
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()));
    samples.get(&(name.to_owned(), labels.collect())).copied()
}

#[tokio::test]
async fn metrics_are_openmetrics_text() {
    let tester = Tester::new();
    tester.check("{}").await;
    tester.check("{\"cost\":-1}").await;
    tester.checker.can("per-key", REFUSED, DecidedBy::Owner);
    tester
        .check("{\"policy\":\"api\",\"attributes\":{\"api_key\":\"k\"}}")
        .await;
    tester.get("/nowhere").await;
    tester.get("/elsewhere").await;
    tester.post("/v1/checks", "{\"checks\":[]}").await;
    let answer = tester.get("/metrics").await;
    assert_eq!(answer.status, 200);
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("content-type"), Some(media));
    let samples = parse(&answer.text);
    let requests = |call, status| {
        let labels = [("call", call), ("status", status)];
        value(&samples, "tollgate_http_requests_total", &labels)
    };
    assert_eq!(requests("check", "200"), Some(1.0));
    assert_eq!(requests("check", "400"), Some(1.0));
    assert_eq!(requests("check", "429"), Some(1.0));
    assert_eq!(requests("checks", "200"), Some(1.0));
    assert_eq!(requests("unknown", "404"), Some(2.0));
    for reason in Reason::ALL {
        let labels = [
            ("policy", ""),
            ("limit", "inline"),
            ("reason", reason.as_str()),
        ];
        let refusals = value(&samples, "tollgate_limit_refusals_total", &labels);
        assert_eq!(refusals, Some(0.0), "{reason:?}");
    }
    assert_eq!(
        requests("metrics", "200"),
        None,
        "it is counted once it is answered"
    );
    let odd = ("policy", "we\"ird\\pol\nicy");
    let skipped = value(
        &samples,
        "tollgate_limit_skipped_total",
        &[odd, ("limit", "per-key")],
    );
    assert_eq!(skipped, Some(3.0));
    let inline = [
        ("policy", ""),
        ("limit", "inline"),
        ("outcome", "refused"),
        ("decided_by", "fallback"),
    ];
    assert_eq!(
        value(&samples, "tollgate_limit_checks_total", &inline),
        Some(0.0)
    );
    let open = value(&samples, "tollgate_peer_breaker_open", &[("peer", "n2")]);
    assert_eq!(open, Some(1.0));
    let active = value(&samples, "tollgate_cluster_members", &[("phase", "active")]);
    assert_eq!(active, Some(3.0));
    let build = value(&samples, "tollgate_build_info", &[("version", "0.1.0")]);
    assert_eq!(build, Some(1.0));
    assert_eq!(value(&samples, "tollgate_store_keys", &[]), Some(5.0));
    assert_eq!(
        value(&samples, "tollgate_store_used_bytes", &[]),
        Some(640.0)
    );
}

#[tokio::test]
async fn every_call_and_every_reason_has_its_series() {
    let tester = Tester::new();
    for (path, body) in [
        ("/v1/reserve", "{}"),
        ("/v1/settle", "{\"id\":\"x\",\"cost\":1}"),
        ("/v1/refund", "{\"peek\":true}"),
        ("/v1/report", ""),
        ("/v1/acquire", "{}"),
        ("/v1/release", "{\"permit_id\":\"x\"}"),
    ] {
        tester.post(path, body).await;
    }
    tester.put("/v1/switches/kill", "{\"on\":true}").await;
    tester.put("/v1/switches/shadow", "{}").await;
    let samples = parse(&tester.get("/metrics").await.text);
    let requests = |call, status| {
        let labels = [("call", call), ("status", status)];
        value(&samples, "tollgate_http_requests_total", &labels)
    };
    assert_eq!(requests("kill_switch", "200"), Some(1.0));
    assert_eq!(requests("shadow_switch", "400"), Some(1.0));
    assert_eq!(requests("reserve", "200"), Some(1.0));
    assert_eq!(requests("settle", "404"), Some(1.0));
    assert_eq!(requests("refund", "400"), Some(1.0));
    assert_eq!(requests("report", "400"), Some(1.0));
    assert_eq!(requests("acquire", "200"), Some(1.0));
    assert_eq!(requests("release", "404"), Some(1.0));
}

#[tokio::test]
async fn what_a_node_counts_for_and_of_its_peers_is_told() {
    let samples = parse(&Tester::new().get("/metrics").await.text);
    let outcome = |outcome| ("tollgate_owner_checks_total", vec![("outcome", outcome)]);
    let peer = |name| (name, vec![("peer", "n2")]);
    for ((name, labels), told) in [
        (outcome("decided"), 11.0),
        (outcome("repeated"), 12.0),
        (outcome("not_owner"), 13.0),
        (outcome("too_late"), 14.0),
        (("tollgate_owner_refunds_total", vec![]), 15.0),
        (("tollgate_fallback_keys", vec![]), 16.0),
        (("tollgate_node_pauses_total", vec![]), 17.0),
        (("tollgate_degraded_admissions_total", vec![]), 30.0),
        (("tollgate_policies_reloads_total", vec![]), 18.0),
        (("tollgate_policies_reload_failures_total", vec![]), 19.0),
        (("tollgate_policies_rejected", vec![]), 1.0),
        (peer("tollgate_peer_breaker_openings_total"), 4.0),
        (peer("tollgate_peer_connects_total"), 5.0),
    ] {
        assert_eq!(value(&samples, name, &labels), Some(told), "{name}");
    }
}

#[tokio::test]
async fn counts_on_their_way_and_switches_are_told() {
    let tester = Tester::new();
    let samples = parse(&tester.get("/metrics").await.text);
    let moving = |way| ("tollgate_cluster_moving_slots", vec![("direction", way)]);
    let peer = |name| (name, vec![("peer", "n2")]);
    for ((name, labels), told) in [
        (moving("in"), 20.0),
        (moving("out"), 21.0),
        (("tollgate_replica_handed_over_slots_total", vec![]), 22.0),
        (("tollgate_replica_taken_in_series_total", vec![]), 23.0),
        (("tollgate_replica_reconciled_series_total", vec![]), 24.0),
        (("tollgate_replica_lost_series_total", vec![]), 25.0),
        (("tollgate_replica_owed_slots", vec![]), 26.0),
        (("tollgate_store_foreign_series", vec![]), 27.0),
        (("tollgate_known_denials_keys", vec![]), 28.0),
        (("tollgate_replica_sent_series_total", vec![]), 29.0),
        (peer("tollgate_replication_lag_seconds"), 0.25),
        (peer("tollgate_replication_waiting_series"), 31.0),
        (peer("tollgate_replication_waiting_slots"), 32.0),
    ] {
        assert_eq!(value(&samples, name, &labels), Some(told), "{name}");
    }
    for (switch, path) in [
        ("kill", "/v1/switches/kill"),
        ("shadow", "/v1/switches/shadow"),
    ] {
        for (on, told) in [(false, 0.0), (true, 1.0)] {
            tester.put(path, format!("{{\"on\": {on}}}")).await;
            let samples = parse(&tester.get("/metrics").await.text);
            let shown = value(&samples, "tollgate_switch_on", &[("switch", switch)]);
            assert_eq!(shown, Some(told), "{switch}");
        }
    }
}

#[tokio::test]
async fn histograms_are_cumulative() {
    let samples = parse(&Tester::new().get("/metrics").await.text);
    let name = "tollgate_forward_latency_seconds";
    for (bound, count) in [("0.001", 2.0), ("0.01", 5.0), ("+Inf", 7.0)] {
        let bucket = value(&samples, &format!("{name}_bucket"), &[("le", bound)]);
        assert_eq!(bucket, Some(count), "le {bound}");
    }
    assert_eq!(value(&samples, &format!("{name}_count"), &[]), Some(7.0));
    assert_eq!(value(&samples, &format!("{name}_sum"), &[]), Some(0.5));
}

#[tokio::test]
async fn no_request_adds_a_series() {
    let tester = Tester::new();
    let before = parse(&tester.get("/metrics").await.text).len();
    for number in 0..200 {
        tester.get(&format!("/path/{number}")).await;
        let limit = format!("{{\"name\":\"l{number}\",\"limit\":5,\"window\":\"1m\"}}");
        let key = format!("{{\"limit\":{limit},\"key\":{{\"user\":{number}}}}}");
        assert_eq!(tester.check(&key).await.status, 200);
    }
    let after = parse(&tester.get("/metrics").await.text).len();
    // Answered metrics, checks of status 200 and unknown paths, one series each.
    assert_eq!(after, before + 3);
}
