//! Mistakes in files are told with file, line, field and the right form, and the samples are valid.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use tollgate::config::{Environment, HttpSettings, NodeFile, PolicyFile};
use tollgate_limit::HashKey;

use crate::harness::{run, text, tollgate};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster-config");

#[test]
fn a_mistake_shows_its_line_and_place() {
    let policies = "[[limit]]\nname = \"a\"\nlimit = 5\nwindow = \"7 parsecs\"\n";
    let parsed = PolicyFile::parse(Path::new("p.toml"), policies, &HashKey::new([0; 16]));
    let told = parsed.map(|_file| ()).unwrap_err().to_string();
    let lines: Vec<_> = told.lines().collect();
    let [first, excerpt, place] = lines[..] else {
        panic!("{told}");
    };
    assert!(first.starts_with("p.toml:4:10: window: "), "{told}");
    assert_eq!(excerpt, " 4 | window = \"7 parsecs\"");
    assert_eq!(place, "   |          ^^^^^^^^^^^");
    let parsed = PolicyFile::parse(Path::new("p.toml"), "[[limit]\n", &HashKey::new([0; 16]));
    let told = parsed.map(|_file| ()).unwrap_err().to_string();
    assert!(told.starts_with("p.toml:1:9: "), "{told}");
}

/// A folder with a valid node.
fn node_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    for arguments in [
        &["certs", "init", "--cluster", "demo", "--out", &path][..],
        &[
            "certs",
            "issue",
            "--node",
            "n1",
            "--authority",
            &path,
            "--out",
            &path,
        ],
    ] {
        assert!(run(arguments).status.success());
    }
    for name in ["node.toml", "policies.toml"] {
        fs::copy(Path::new(SAMPLES).join(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn the_samples_are_valid() {
    let folder = node_folder();
    let cluster = Path::new(SAMPLES).join("cluster.toml");
    fs::copy(cluster, folder.path().join("cluster.toml")).unwrap();
    let node = NodeFile::load(&folder.path().join("node.toml"), &Environment::default()).unwrap();
    assert_eq!(node.node_id.unwrap().as_str(), "n1");
    assert!(node.policies.policies.policy("api").is_some());
}

#[test]
fn the_limits_of_the_documentation_are_valid() {
    let file = limits_shown_in("docs/configuration.md");
    assert!(file.policies.policy("login").is_some());
    assert_eq!(file.settings.of("login").deny_status, 403);
    let file = limits_shown_in("README.md");
    for policy in ["api", "login", "jobs"] {
        assert!(file.policies.policy(policy).is_some(), "{policy}");
    }
}

/// The policy file that all examples of a page make together.
fn limits_shown_in(page: &str) -> PolicyFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let page = fs::read_to_string(&path).unwrap();
    let blocks = page.split("```toml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("```").map(|(block, _)| block));
    let mut limits = String::new();
    for block in blocks.filter(|block| block.starts_with("[[")) {
        limits.push_str(block);
    }
    let parsed = PolicyFile::parse(&path, &limits, &HashKey::new([0; 16]));
    parsed.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn proxies_are_trusted_on_this_machine_alone_unless_told_otherwise() {
    let folder = node_folder();
    let file = folder.path().join("node.toml");
    let load = || NodeFile::load(&file, &Environment::default()).unwrap().http;
    let networks = |http: HttpSettings| {
        let all = http.trusted_proxies.iter().map(ToString::to_string);
        all.collect::<Vec<_>>()
    };
    let text = fs::read_to_string(&file).unwrap();
    let proxies = "trusted_proxies = [\"127.0.0.0/8\", \"::1/128\"]";
    assert!(text.contains(proxies) && text.contains("max_wait_ms = 5000"));
    fs::write(
        &file,
        text.replace(proxies, "").replace("max_wait_ms = 5000", ""),
    )
    .unwrap();
    assert_eq!(load().max_wait, Duration::from_secs(5));
    assert_eq!(networks(load()), ["127.0.0.0/8", "::1/128"]);
    let others = "trusted_proxies = [\"10.0.0.0/8\", \"192.0.2.7\"]\nmax_wait_ms = 60000";
    fs::write(
        &file,
        text.replace(proxies, others)
            .replace("max_wait_ms = 5000", ""),
    )
    .unwrap();
    assert_eq!(networks(load()), ["10.0.0.0/8", "192.0.2.7/32"]);
    assert_eq!(load().max_wait, Duration::from_secs(60));
    fs::write(&file, text.replace(proxies, "trusted_proxies = []")).unwrap();
    assert_eq!(networks(load()), [""; 0], "none at all");
}

#[test]
fn the_environment_goes_before_the_file() {
    let folder = node_folder();
    let environment = Environment {
        node_id: tollgate_limit::NodeId::new("other"),
        log_level: Some("debug".to_owned()),
    };
    let node = NodeFile::load(&folder.path().join("node.toml"), &environment).unwrap();
    assert_eq!(node.node_id.unwrap().as_str(), "other");
    assert_eq!(node.log.level, "debug");
}

#[test]
fn a_mistake_in_node_toml_names_line_field_and_right_form() {
    let folder = node_folder();
    let file = folder.path().join("node.toml");
    let right = fs::read_to_string(&file).unwrap();
    for (sound, mistaken, words) in [
        ("weight = 1", "weight = 0", "from 1 to 255"),
        ("weight = 1", "wieght = 1", "unknown field `wieght`"),
        ("max_memory_mb = 256", "max_memory_mb = 0", "from 1 to"),
        (
            "check_deadline_ms = 50",
            "check_deadline_ms = 10",
            "check_deadline_ms",
        ),
        ("clients = \"certificate\"", "clients = \"all\"", "\"open\""),
        (
            "listen = \"127.0.0.1:7600\"",
            "listen = \"localhost\"",
            "an IP address and a port",
        ),
        (
            "listen = \"0.0.0.0:7601\"",
            "listen = \"127.0.0.1:0\"",
            "an IP address and a port",
        ),
        (
            "advertise = \"10.0.0.1:7601\"",
            "advertise = \"0.0.0.0:7601\"",
            "reach",
        ),
        (
            "\"dns:tollgate-2.internal:7601\"",
            "\"tollgate-2.internal:7601\"",
            "dns:",
        ),
        (
            "max_wait_ms = 5000",
            "max_wait_ms = 60001",
            "http.max_wait_ms: 60001 is out of range; a whole number from 1 to 60000",
        ),
        (
            "\"::1/128\"",
            "\"::1/129\"",
            "http.trusted_proxies: \"::1/129\" is not a network; an address and a prefix length",
        ),
        (
            "\"127.0.0.0/8\"",
            "\"127.0.0.1/8\"",
            "http.trusted_proxies: \"127.0.0.1/8\" is not a network",
        ),
        ("level = \"info\"", "level = \"a=b=c\"", "debug"),
        ("level = \"info\"", "level = \"loud\"", "write \"off\""),
    ] {
        assert!(right.contains(sound), "the sample has no {sound}");
        fs::write(&file, right.replace(sound, mistaken)).unwrap();
        let error = NodeFile::load(&file, &Environment::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("node.toml:"), "{mistaken}: {error}");
        assert!(error.contains(words), "{mistaken}: {error}");
    }
}

#[test]
fn a_node_with_a_wrong_file_exits_with_two_and_binds_nothing() {
    let folder = node_folder();
    let file = folder.path().join("node.toml");
    fs::write(folder.path().join("policies.toml"), "[[limit]]\nname = 1\n").unwrap();
    let output = run(&["node", "--config", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("policies.toml:2:8"),
        "{}",
        text(&output.stderr)
    );
    assert!(!folder.path().join("data").exists());
}

#[test]
fn a_word_that_is_no_level_does_not_silence_the_log() {
    let output = tollgate()
        .args(["node", "--config", "/nonexistent/node.toml"])
        .env("TOLLGATE_LOG", "loud")
        .output()
        .unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.contains("TOLLGATE_LOG: \"loud\" is not a level; write \"off\""),
        "{told}"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = NodeFile::load(
        &PathBuf::from("/nonexistent/node.toml"),
        &Environment::default(),
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("/nonexistent/node.toml: ")
    );
}
