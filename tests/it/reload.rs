//! Policies that change while nodes run: in force without a restart, or told why not.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{
    Dev, DevOptions, Node, PATIENT, Signal, is_node, run, send_signal, text, until,
};

/// A change is in force on its node within this.
const IN_FORCE: Duration = Duration::from_secs(2);
/// How long what is not promised in seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const CLIENT: &str = "203.0.113.7";

fn per_ip(limit: u64) -> String {
    format!("[[limit]]\nname = \"per-ip\"\nkey = [\"ip\"]\nlimit = {limit}\nwindow = \"1h\"\n")
}

fn start(nodes: u16) -> Dev {
    Dev::start(&DevOptions {
        nodes,
        policies: &per_ip(5),
        more: &PATIENT,
    })
}

/// The folder of a cluster's files.
fn folder(cluster: &Dev) -> PathBuf {
    cluster.nodes[0].config.parent().unwrap().to_owned()
}

fn policies(cluster: &Dev) -> PathBuf {
    folder(cluster).join("policies.toml")
}

/// What a peek says of the client's limit.
fn peek(node: &mut Node) -> Value {
    let body = json!({ "attributes": { "ip": CLIENT }, "peek": true });
    let answer = node.post("/v1/check", body.to_string()).unwrap();
    answer.limit().clone()
}

fn until_limit_is(node: &mut Node, limit: u64) {
    until("the new limit is in force", IN_FORCE, || {
        (peek(node)["limit"] == limit).then_some(())
    });
}

fn cluster_body(node: &mut Node) -> Value {
    node.get("/v1/cluster").unwrap().body
}

/// The number of a metric without labels, or with those that the name ends in.
fn metric(node: &mut Node, name: &str) -> u64 {
    let text = node.get("/metrics").unwrap().text;
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = values.next().unwrap_or_else(|| panic!("no {name}: {text}"));
    value.trim().parse().unwrap()
}

#[test]
fn a_file_changed_in_place_is_in_force_and_counts_go_on() {
    let cluster = start(1);
    let mut node = cluster.node(0);
    let before = cluster_body(&mut node);
    for _ in 0..5 {
        assert!(node.check(CLIENT).unwrap().is_allowed());
    }
    assert!(!node.check(CLIENT).unwrap().is_allowed());
    fs::write(policies(&cluster), per_ip(7)).unwrap();
    until_limit_is(&mut node, 7);
    assert_eq!(peek(&mut node)["remaining"], 2, "five are used already");
    for _ in 0..2 {
        assert!(node.check(CLIENT).unwrap().is_allowed());
    }
    assert!(!node.check(CLIENT).unwrap().is_allowed());
    // The limit's numbers go on, too.
    let labels = "policy=\"default\",limit=\"per-ip\",outcome=\"allowed\",decided_by=\"owner\"";
    let name = format!("tollgate_limit_checks_total{{{labels}}}");
    assert!(metric(&mut node, &name) >= 7);
    assert_eq!(metric(&mut node, "tollgate_policies_reloads_total"), 1);
    let after = cluster_body(&mut node);
    assert_ne!(before["policies"], after["policies"]);
    let log = fs::read_to_string(folder(&cluster).join("n1.log")).unwrap();
    let told = log
        .lines()
        .find(|line| line.contains("new policies are in force"));
    let told = told.unwrap_or_else(|| panic!("{log}"));
    for seen in [&before, &after] {
        assert!(told.contains(seen["policies"].as_str().unwrap()), "{told}");
    }
    fs::write(policies(&cluster), per_ip(3)).unwrap();
    until_limit_is(&mut node, 3);
    assert_eq!(peek(&mut node)["remaining"], 0, "seven are used, of three");
}

#[test]
fn a_file_replaced_by_a_rename_is_in_force_with_its_headers() {
    let cluster = start(1);
    let mut node = cluster.node(0);
    let headers = node.check(CLIENT).unwrap().headers;
    assert!(headers.contains_key("x-ratelimit-limit"));
    let beside = folder(&cluster).join("policies.toml.new");
    let headers = "[[policy]]\nname = \"default\"\nheaders = [\"none\"]\n";
    fs::write(&beside, per_ip(9) + headers).unwrap();
    fs::rename(beside, policies(&cluster)).unwrap();
    until_limit_is(&mut node, 9);
    let headers = node.check(CLIENT).unwrap().headers;
    assert!(!headers.contains_key("x-ratelimit-limit"));
    assert_eq!(peek(&mut node)["remaining"], 7);
}

/// Puts a folder with that file where `..data` points, in one step, as the kubelet does.
fn publish(folder: &Path, version: &str, policies: &str) {
    let real = folder.join(version);
    fs::create_dir(&real).unwrap();
    fs::write(real.join("policies.toml"), policies).unwrap();
    let beside = folder.join("..data_tmp");
    symlink(version, &beside).unwrap();
    fs::rename(beside, folder.join("..data")).unwrap();
}

#[test]
fn a_link_swapped_above_the_file_is_seen() {
    let cluster = start(1);
    let mut node = cluster.node(0);
    let folder = folder(&cluster);
    publish(&folder, "..2026_01", &per_ip(6));
    let link = folder.join("policies.link");
    symlink("..data/policies.toml", &link).unwrap();
    fs::rename(&link, policies(&cluster)).unwrap();
    until_limit_is(&mut node, 6);
    publish(&folder, "..2026_02", &per_ip(8));
    fs::remove_dir_all(folder.join("..2026_01")).unwrap();
    until_limit_is(&mut node, 8);
    assert_eq!(metric(&mut node, "tollgate_policies_reloads_total"), 2);
}

#[test]
fn a_bad_file_leaves_the_last_good_one_in_force_and_is_told() {
    let cluster = start(1);
    let mut node = cluster.node(0);
    let log = || fs::read_to_string(folder(&cluster).join("n1.log")).unwrap();
    let before = cluster_body(&mut node);
    assert!(before["policies_error"].is_null());
    assert_eq!(metric(&mut node, "tollgate_policies_rejected"), 0);
    let failures = "tollgate_policies_reload_failures_total";
    let rejected = |node: &mut Node, count: u64, word: &str| {
        until("the error is told", PATIENCE, || {
            (metric(node, failures) == count).then_some(())
        });
        let seen = cluster_body(node);
        let error = seen["policies_error"].as_str().unwrap();
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
        assert_eq!(seen["policies"], before["policies"]);
        assert_eq!(peek(node)["limit"], 5);
        assert_eq!(metric(node, "tollgate_policies_rejected"), 1);
        let lines = log();
        let errors = lines.matches("the last good ones stay in force").count();
        assert_eq!(errors, usize::try_from(count).unwrap(), "{lines}");
    };
    fs::write(policies(&cluster), "[[limit]]\nname = 1\n").unwrap();
    rejected(&mut node, 1, "policies.toml:2:8: name: ");
    assert!(log().contains("2 | name = 1"), "the log shows the place");
    let status = run(&["status", "--to", &cluster.nodes[0].http]);
    let status = text(&status.stdout);
    let told = "the newest policies of n1 are not in force: ";
    assert!(
        status.contains(told) && status.contains("policies.toml:2:8"),
        "{status}"
    );
    fs::write(policies(&cluster), per_ip(5).replace("1h", "1 hour")).unwrap();
    rejected(&mut node, 2, "policies.toml:5:10: window: ");
    fs::remove_file(policies(&cluster)).unwrap();
    rejected(&mut node, 3, "policies.toml: cannot be read: ");
    fs::write(policies(&cluster), per_ip(4)).unwrap();
    until_limit_is(&mut node, 4);
    assert_eq!(metric(&mut node, "tollgate_policies_rejected"), 0);
    assert_eq!(metric(&mut node, failures), 3);
    assert_eq!(metric(&mut node, "tollgate_policies_reloads_total"), 1);
    assert!(cluster_body(&mut node)["policies_error"].is_null());
    // Back to what is in force before it was looked at: nothing is to be done, and no error stays.
    fs::write(policies(&cluster), "[[limit]]\n").unwrap();
    rejected_then_restored(&cluster, &mut node);
}

fn rejected_then_restored(cluster: &Dev, node: &mut Node) {
    until("the error is told", PATIENCE, || {
        cluster_body(node)["policies_error"]
            .is_string()
            .then_some(())
    });
    fs::write(policies(cluster), per_ip(4)).unwrap();
    until("the error is gone", PATIENCE, || {
        cluster_body(node)["policies_error"].is_null().then_some(())
    });
    assert_eq!(peek(node)["limit"], 4);
}

#[test]
fn nodes_whose_policies_differ_are_seen_on_the_others() {
    let mut cluster = start(2);
    // The second node gets a file of its own, which is read when it starts.
    let config = cluster.nodes[1].config.clone();
    let text_before = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("policies = \"own.toml\"\n{text_before}")).unwrap();
    let own = folder(&cluster).join("own.toml");
    fs::write(&own, per_ip(5)).unwrap();
    send_signal(cluster.nodes[1].pid, Signal::Terminate);
    until("n2 has left", PATIENCE, || {
        (!is_node(&cluster.nodes[1])).then_some(())
    });
    cluster.restart(1);
    cluster.until_seen(0, "n2 is back", PATIENCE, |seen| seen.active().len() == 2);
    let mut first = cluster.node(0);
    until_told(&mut first, |own, other| own == other);
    let status = || text(&run(&["status", "--to", &cluster.nodes[0].http]).stdout);
    assert!(!status().contains("the policies differ"), "{}", status());
    fs::write(&own, per_ip(50)).unwrap();
    until_told(&mut first, |own, other| own != other);
    assert!(
        status().contains("the policies differ: n2 does not have those of n1"),
        "{}",
        status()
    );
    fs::write(policies(&cluster), per_ip(50)).unwrap();
    until_told(&mut first, |own, other| own == other);
}

/// Waits until a node sees its own fingerprint and the other node's so.
fn until_told(node: &mut Node, is_so: impl Fn(&Value, &Value) -> bool) {
    until("the fingerprint of n2 is told", PATIENCE, || {
        let seen = cluster_body(node);
        let members = seen["members"].as_array().unwrap();
        let other = members.iter().find(|member| member["id"] == "n2")?;
        let told = &other["policies"];
        (!told.is_null() && is_so(&seen["policies"], told)).then_some(())
    });
}
