//! The program's exit codes and what it prints, without a cluster.

use std::fs;

use crate::harness::{run, text};

/// An address where nobody listens.
const NOBODY: &str = "http://127.0.0.1:9";

fn code(arguments: &[&str]) -> Option<i32> {
    run(arguments).status.code()
}

#[test]
fn wrong_arguments_exit_with_two() {
    for arguments in [
        &["fly"][..],
        &["node"],
        &["check", "ip"],
        &["policies", "check", "/dev/null", "ip=1", "ip=2"],
        &["check", "--to", "https://127.0.0.1:7600", "ip=1"],
        &["dev", "--nodes", "0"],
        &["dev", "--check-deadline", "7 parsecs"],
        &["certs", "issue"],
        &["certs", "issue", "--node", "a", "--client", "b"],
        &["certs", "init", "--cluster", "No Such Name"],
        &["replay", "--log", "/nonexistent/access.log"],
    ] {
        assert_eq!(code(arguments), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_node_that_cannot_be_reached_is_told_by_the_exit_code() {
    assert_eq!(code(&["check", "--to", NOBODY, "ip=1"]), Some(2));
    assert_eq!(code(&["health", "--to", NOBODY]), Some(1));
    assert_eq!(code(&["status", "--to", NOBODY]), Some(3));
}

#[test]
fn a_replay_without_a_node_counts_errors() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let line = "192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1\n";
    fs::write(&log, format!("{line}not a line of a log\n{line}")).unwrap();
    let output = run(&[
        "replay",
        "--json",
        "--log",
        &log.display().to_string(),
        "--to",
        NOBODY,
    ]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = ["sent", "admitted", "errors", "unreadable"].map(|name| &report[name]);
    assert_eq!(counts, [2, 0, 2, 1], "{report}");
    assert_eq!(output.status.code(), Some(3), "nothing was answered");
    fs::write(&log, "not a line of a log\n").unwrap();
    let none = run(&["replay", "--log", &log.display().to_string()]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no line is one of an access log"));
}

#[test]
fn certificates_are_made_once_and_keys_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    assert_eq!(
        code(&["certs", "init", "--cluster", "demo", "--out", &path]),
        Some(0)
    );
    let issue = [
        "certs",
        "issue",
        "--node",
        "n1",
        "--authority",
        &path,
        "--out",
        &path,
    ];
    assert_eq!(code(&issue), Some(0));
    let key = fs::read(folder.path().join("n1.key")).unwrap();
    assert_eq!(code(&issue), Some(2), "a key must not be overwritten");
    assert_eq!(fs::read(folder.path().join("n1.key")).unwrap(), key);
    #[cfg(unix)]
    for name in ["authority.key", "hash.key", "n1.key"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name} is readable by others");
    }
}

#[test]
fn certs_leave_no_half_set_of_files() {
    for there in ["authority.pem", "authority.key", "hash.key", "cluster.toml"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(there), "mine").unwrap();
        let path = folder.path().display().to_string();
        let output = run(&["certs", "init", "--cluster", "demo", "--out", &path]);
        assert_eq!(output.status.code(), Some(2), "{there}");
        let told = text(&output.stderr);
        assert!(
            told.contains(&format!(
                "{there}: is there already; nothing is overwritten"
            )),
            "{told}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{there}");
    }
}

#[test]
fn a_certificate_that_is_never_valid_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let init = ["certs", "init", "--cluster", "demo", "--out", &path];
    assert_eq!(code(&[&init[..], &["--valid-for", "0s"]].concat()), Some(2));
    assert_eq!(code(&init), Some(0));
    let issue = ["certs", "issue", "--node", "n1", "--authority", &path];
    let output = run(&[&issue[..], &["--out", &path, "--valid-for", "0s"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--valid-for"));
    assert!(!folder.path().join("n1.pem").exists());
}

#[test]
fn an_attribute_that_stands_twice_is_refused_before_anyone_is_asked() {
    let output = run(&["check", "--to", NOBODY, "ip=1", "ip=2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("\"ip\" stands twice"));
}

#[test]
fn policies_check_says_that_there_is_no_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policies.toml");
    fs::write(&file, "# later\n").unwrap();
    let output = run(&["policies", "check", &file.display().to_string(), "ip=1"]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    assert!(told.contains("nothing is limited"), "{told}");
}

/// What `policies check` says of each limit of a file, for such a request.
fn policies_check(file: &str, attributes: &[&str]) -> String {
    let output = run(&[&["policies", "check", file], attributes].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn policies_check_says_how_each_limit_meets_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policies.toml").display().to_string();
    fs::write(&file, POLICIES).unwrap();
    let told = policies_check(
        &file,
        &["plan=free", "ip=2001:db8::7", "tokens=30", "user=u"],
    );
    for line in [
        "api/tiers: applies: 60 per 1m, sliding-window, 10 slices, 12 of it set aside for others; \
         cost: that of the request, else 1; counter: ip=2001:db8::/64",
        "api/tokens: applies: 100 per month in Europe/Berlin, fixed-window; cost: 30 from tokens; \
         counter: one for all",
        "api/bad-logins: applies: 5 per 15m, sliding-log, bans for 1h, then 1.5 times as long, up to 1d, \
         shadow: never refuses, counts failures; cost: that of the request, else 1; counter: user=u",
        "api/open: applies: 3 at once, concurrency, each for 30s at most, asked by acquire alone, without \
         its owner: deny; cost: that of the request, else 1; counter: user=u",
        "api/staff: passed by: plan=free does not match",
        "api/partners: passed by: partner is absent, so that it does not match",
    ] {
        assert!(told.contains(&format!("{line}\n")), "no {line}:\n{told}");
    }
    let told = policies_check(
        &file,
        &["plan=pro", "priority=1", "tokens=0", "ip=192.0.2.1:80"],
    );
    for line in [
        "api/tiers: passed by: its tier is unlimited",
        "cost: 0: admitted, not counted; counter: one for all",
        "api/bad-logins: refuses the check as faulty: limit `bad-logins` requires attribute `user`",
        "api/open: passed by: key attribute user is absent",
    ] {
        assert!(told.contains(&format!("{line}\n")), "no {line}:\n{told}");
    }
    let told = policies_check(
        &file,
        &["plan=other", "priority=1", "ip=192.0.2.1:80", "tokens=x"],
    );
    for line in [
        "api/tiers: applies: 30 per 1m, sliding-window, 10 slices; cost: that of the request, else 1; \
         counter: ip=192.0.2.1",
        "api/tokens: refuses the check as faulty: limit `tokens` takes its cost from attribute `tokens`, \
         which is not a whole number from 0 to 2^53",
    ] {
        assert!(told.contains(&format!("{line}\n")), "no {line}:\n{told}");
    }
    let told = policies_check(&file, &["plan=staff", "user=u"]);
    for line in [
        "api/staff: applies: unlimited, no limit of this policy is asked",
        "api/bad-logins: passed by: staff exempts from the policy",
    ] {
        assert!(told.contains(&format!("{line}\n")), "no {line}:\n{told}");
    }
    let told = policies_check(&file, &["plan=free"]);
    assert!(
        told.contains("api/tokens: passed by: tokens, its cost, is absent\n"),
        "{told}"
    );
}

const POLICIES: &str = r#"
[[limit]]
policy = "api"
name = "tiers"
key = ["ip"]
limit = { by = "plan", values = { free = 60, pro = "unlimited" }, default = 30 }
window = "1m"
set_aside = { by = "priority", values = 1, share = 0.2 }

[[limit]]
policy = "api"
name = "tokens"
algorithm = "fixed-window"
limit = 100
calendar = "month"
time_zone = "Europe/Berlin"
cost = "tokens"

[[limit]]
policy = "api"
name = "bad-logins"
key = ["user"]
required = true
algorithm = "sliding-log"
limit = 5
window = "15m"
count = "failures"
ban = { for = "1h", escalate = 1.5 }
shadow = true

[[limit]]
policy = "api"
name = "open"
key = ["user"]
algorithm = "concurrency"
limit = 3
ttl = "30s"
fallback = "deny"

[[limit]]
policy = "api"
name = "partners"
match = { partner = "*" }
limit = 1000
window = "1s"

[[limit]]
policy = "api"
name = "staff"
match = { plan = "staff" }
unlimited = true
"#;
