//! `tollgate backtest` over the real program: what it prints, what it writes, how it exits.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;

use crate::harness::{run, text};

const ACCESS_LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/access-excerpt.log");
const TOKENS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/llm-tokens-excerpt.csv"
);

const TWO_POLICIES: &str = r#"
[[limit]]
policy = "ten"
name = "per-ip"
key = ["ip"]
limit = 10
window = "1m"
slices = 1

[[limit]]
policy = "many"
name = "per-ip"
key = ["ip"]
limit = 1000
window = "1h"
"#;

/// A folder with a log and policies.
struct Files {
    folder: tempfile::TempDir,
    log: PathBuf,
    policies: PathBuf,
}

impl Files {
    fn new(log: &str, policies: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = Self {
            log: folder.path().join("a.log"),
            policies: folder.path().join("policies.toml"),
            folder,
        };
        fs::write(&files.log, log).unwrap();
        fs::write(&files.policies, policies).unwrap();
        files
    }

    fn backtest(&self, more: &[&str]) -> Output {
        backtest(&self.log, &self.policies, more)
    }
}

fn backtest(log: &Path, policies: &Path, more: &[&str]) -> Output {
    let (log, policies) = (log.display().to_string(), policies.display().to_string());
    let named = ["backtest", "--log", &log, "--policies", &policies];
    run(&[&named[..], more].concat())
}

fn json(output: &Output) -> Value {
    let told = text(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"))
}

#[test]
fn a_real_log_is_tested_against_two_policies_in_one_pass() {
    let files = Files::new("", TWO_POLICIES);
    let output = backtest(ACCESS_LOG.as_ref(), &files.policies, &["--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    let [many, ten] = &report["policies"].as_array().unwrap()[..] else {
        panic!("{report}");
    };
    assert_eq!(
        (&many["name"], &many["refused"]),
        (&"many".into(), &0.into())
    );
    let limit = &ten["limits"][0];
    let numbers = ["admitted", "refused"].map(|name| limit[name].as_u64().unwrap());
    assert_eq!(numbers, [193, 61]);
    let first = &limit["most_refused"][0];
    assert_eq!(first["values"][0], "10.0.1.121");
    assert_eq!(first["refused"], 39);
    assert_eq!(limit["busiest_minute"]["start"], "2015-05-19T19:05:00Z");
    assert_eq!(limit["busiest_minute"]["requests"], 136);
    assert_eq!(limit["peaks"][0]["p999"], 49);
}

#[test]
fn the_exit_code_tells_of_a_limit_that_refuses_too_much() {
    let files = Files::new("", TWO_POLICIES);
    let run = |share: &str, more: &[&str]| {
        let arguments = [&["--max-refused-share", share], more].concat();
        backtest(ACCESS_LOG.as_ref(), &files.policies, &arguments)
    };
    let output = run("0.01", &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stdout);
    assert!(
        told.ends_with("--max-refused-share: ten/per-ip.\n"),
        "{told}"
    );
    assert_eq!(run("0.01", &["--policy", "many"]).status.code(), Some(0));
    assert_eq!(run("1", &[]).status.code(), Some(0));
    for wrong in ["-0.1", "1.1", "NaN", "much"] {
        let share = format!("--max-refused-share={wrong}");
        let output = files.backtest(&[&share]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn a_share_that_is_just_reached_is_not_exceeded() {
    let line = "{\"time\": 5, \"ip\": \"a\"}\n";
    let policies = TWO_POLICIES.replace("limit = 10\n", "limit = 3\n");
    let files = Files::new(&line.repeat(4), &policies);
    let code = |share: &str| {
        files
            .backtest(&["--max-refused-share", share])
            .status
            .code()
    };
    assert_eq!(code("0.25"), Some(0));
    assert_eq!(code("0.2499"), Some(1));
}

#[test]
fn tokens_are_counted_by_their_sum() {
    let all = "[[limit]]\nname = \"all\"\nlimit = 500000\nwindow = \"1m\"\nslices = 1\n";
    let files = Files::new("", all);
    let cost = ["--json", "--cost", "ContextTokens+GeneratedTokens"];
    let report = json(&backtest(TOKENS.as_ref(), &files.policies, &cost));
    let limit = &report["policies"][0]["limits"][0];
    let names = ["admitted", "refused", "admitted_units", "refused_units"];
    let numbers = names.map(|name| limit[name].as_u64().unwrap());
    assert_eq!(numbers, [311, 191, 499_931, 280_736]);
    let wrong = backtest(TOKENS.as_ref(), &files.policies, &["--cost", "Tokens"]);
    assert_eq!(wrong.status.code(), Some(2));
    let told = text(&wrong.stderr);
    assert!(
        told.contains("has no column `Tokens`; its columns are TIMESTAMP"),
        "{told}"
    );
}

#[test]
fn broken_lines_are_told_and_too_many_of_them_are_an_error() {
    let good = "192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1\n";
    let broken = "not a line of a log\n";
    let files = Files::new(&format!("{good}{broken}{good}{broken}"), TWO_POLICIES);
    let output = files.backtest(&[]);
    let told = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "half of them is not more than half"
    );
    assert!(
        told.contains("lines that cannot be read: 2\n  line 2: not of the common"),
        "{told}"
    );
    let report = json(&files.backtest(&["--json"]));
    assert_eq!(report["log"]["requests"], 2);
    assert_eq!(report["log"]["unreadable"], 2);
    fs::write(&files.log, format!("{good}{broken}{broken}")).unwrap();
    let output = files.backtest(&[]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(
        told.contains("2 of 3 lines cannot be read as access-log; line 2: "),
        "{told}"
    );
    assert!(output.stdout.is_empty(), "a report of half a log misleads");
}

#[test]
fn wrong_files_and_names_exit_with_two() {
    let files = Files::new("{\"time\": 5}\n", TWO_POLICIES);
    assert_eq!(files.backtest(&[]).status.code(), Some(0));
    let code = |log: &str, policies: &str| {
        let path = |name: &str| files.folder.path().join(name);
        let output = backtest(&path(log), &path(policies), &[]);
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(code("none", "policies.toml").0, Some(2));
    assert_eq!(code("a.log", "none").0, Some(2));
    fs::write(files.folder.path().join("empty"), "").unwrap();
    assert_eq!(code("empty", "policies.toml").0, Some(2));
    let (exit, told) = code("a.log", "empty");
    assert_eq!(exit, Some(2));
    assert!(told.contains("there is no [[limit]]"), "{told}");
    let output = files.backtest(&["--policy", "few"]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(
        told.contains("no policy \"few\"; there are: many, ten"),
        "{told}"
    );
    let output = files.backtest(&["--html", "/nonexistent/a.html"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_page_is_whole_and_escapes_what_a_log_says() {
    let evil = "/<script>alert('1')</script>&\"";
    let line = format!(
        "{{\"time\": 5, \"path\": {}}}\n",
        serde_json::to_string(evil).unwrap()
    );
    let broken = "{\"time\": \"<b>\"}\n";
    let policies = "[[limit]]\nname = \"p\"\nkey = [\"path\"]\nlimit = 1\nwindow = \"1m\"\n";
    let files = Files::new(&format!("{}{broken}", line.repeat(3)), policies);
    let page = files.folder.path().join("report.html");
    let output = files.backtest(&["--html", &page.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    let escaped = "/&lt;script&gt;alert('1')&lt;/script&gt;&amp;&quot;";
    assert!(page.contains(escaped), "{page}");
    assert!(
        page.contains("&quot;&lt;b&gt;&quot; is not a time"),
        "{page}"
    );
    for wrong in ["<script", "<b>", "http://", "https://", "url(", "@import"] {
        assert!(!page.contains(wrong), "{wrong}: {page}");
    }
    assert_eq!(
        page.matches("<svg").count(),
        2,
        "requests over time, and peaks"
    );
    assert!(page.contains("prefers-color-scheme: dark"));
}
