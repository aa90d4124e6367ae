//! The load generators against the yardsticks, through the bench program.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "test code: a failure is the test's"
)]

use std::process::Command;

use serde_json::Value;

#[test]
fn every_request_of_a_smoke_run_is_answered() {
    let bench = Command::new(env!("CARGO_BIN_EXE_tollgate-bench"))
        .args(["--smoke", "--json", "--scope", "yardsticks"])
        .output()
        .unwrap();
    assert!(
        bench.status.success(),
        "{}",
        String::from_utf8_lossy(&bench.stderr)
    );
    let findings: Value = serde_json::from_slice(&bench.stdout).unwrap();
    let measurements = findings["measurements"].as_array().unwrap();
    let answered: Vec<(&str, u64)> = measurements
        .iter()
        .map(|one| {
            (
                one["subject"].as_str().unwrap(),
                one["answered"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("yardstick-http", 3000),
        ("yardstick-quic", 3000),
        ("lone-yardstick", 200),
    ];
    assert_eq!(answered, expected);
    for one in measurements {
        let p50 = one["latency"]["p50_us"].as_f64().unwrap();
        assert!(
            p50 > 1.0 && one["latency"]["max_us"].as_f64().unwrap() >= p50,
            "{one}"
        );
    }
}
