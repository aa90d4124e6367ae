//! P1, over real processes: counts are exact whatever node is asked, at any concurrency.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    thread,
};

use serde_json::Value;

use crate::harness::{Dev, DevOptions, PATIENT, run, text};

/// The real log, where it is there: 10 000 requests of 1 753 clients.
const REAL_LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/access.log");
/// What 20 an hour admits of the real log.
const REAL_ADMITTED: u64 = 7209;

const PER_IP: &str = r#"
[[limit]]
name = "per-ip"
key = ["ip"]
limit = 20
window = "1h"
hard = true
"#;

#[test]
fn a_real_log_is_counted_exactly_by_one_node() {
    replayed(1);
}

#[test]
fn a_real_log_is_counted_exactly_by_three_nodes() {
    replayed(3);
}

#[test]
fn a_real_log_is_counted_exactly_by_five_nodes() {
    replayed(5);
}

fn replayed(nodes: u16) {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path().join("access.log"));
    let (lines, admitted) = expected(&log);
    if log == Path::new(REAL_LOG) {
        assert_eq!((lines, admitted), (10_000, REAL_ADMITTED));
    }
    let cluster = Dev::start(&DevOptions {
        nodes,
        policies: PER_IP,
        more: &PATIENT,
    });
    let urls = cluster.urls();
    let log = log.display().to_string();
    let output = run(&[
        "replay", "--json", "--policy", "default", "--log", &log, "--to", &urls,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = [
        "sent",
        "admitted",
        "refused",
        "errors",
        "degraded",
        "unreadable",
    ];
    let counted = counts.map(|name| report[name].as_u64().unwrap());
    assert_eq!(
        counted,
        [lines, admitted, lines - admitted, 0, 0, 0],
        "{report}"
    );
    assert_eq!(report["limits"][0]["admitted"], admitted);
    assert_eq!(cluster.end(), Some(0));
}

/// The real log, or one of the same shape: some clients far above the limit, most below.
fn log(generated: PathBuf) -> PathBuf {
    if PathBuf::from(REAL_LOG).is_file() {
        return REAL_LOG.into();
    }
    let mut lines = String::new();
    for number in 0_u64..10_000 {
        // Numbers that are small far more often than large.
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let client = (random * random) >> 37;
        let (high, low) = (client / 250, client % 250);
        lines.push_str(&format!(
            "10.1.{high}.{low} - - [17/May/2015:10:05:03 +0000] \"GET /{number} HTTP/1.1\" 200 1 \"-\" \"-\"\n"
        ));
    }
    fs::write(&generated, lines).unwrap();
    generated
}

/// Lines of a log, and how many of them 20 for each client admits.
fn expected(log: &Path) -> (u64, u64) {
    let text = fs::read_to_string(log).unwrap();
    let mut clients: HashMap<&str, u64> = HashMap::new();
    for line in text.lines() {
        *clients.entry(line.split(' ').next().unwrap()).or_default() += 1;
    }
    (
        clients.values().sum(),
        clients.values().map(|count| count.min(&20)).sum(),
    )
}

#[test]
fn one_key_asked_everywhere_at_once_admits_its_limit() {
    let cluster = Dev::start(&DevOptions {
        nodes: 3,
        policies: &PER_IP.replace("limit = 20", "limit = 1000"),
        more: &PATIENT,
    });
    let mut clients = Vec::new();
    for client in 0..8 {
        let urls: Vec<_> = cluster.nodes.iter().map(|node| node.http.clone()).collect();
        clients.push(thread::spawn(move || {
            let mut nodes: Vec<_> = urls
                .iter()
                .map(|url| crate::harness::Node::new(url))
                .collect();
            let mut admitted = 0;
            for number in 0..500 {
                let place = (number + client) % nodes.len();
                let answer = nodes[place].check("192.0.2.1").unwrap();
                assert!(!answer.is_degraded(), "{}", answer.text);
                admitted += u64::from(answer.is_allowed());
            }
            admitted
        }));
    }
    let admitted: u64 = clients
        .into_iter()
        .map(|client| client.join().unwrap())
        .sum();
    assert_eq!(admitted, 1000);
}
