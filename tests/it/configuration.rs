//! Mistakes in files are told with file, line, field and the right form, and the samples are valid.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tollgate::config::{Environment, NodeFile, PolicyFile};
use tollgate_limit::HashKey;

use crate::harness::{run, text, tollgate};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster-config");

/// What a mistaken policy file is told.
fn told(policies: &str) -> String {
    let parsed = PolicyFile::parse(Path::new("policies.toml"), policies, &HashKey::new([0; 16]));
    match parsed {
        Ok(_) => panic!("taken for right:\n{policies}"),
        Err(error) => error.to_string(),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of mistakes")]
fn a_mistake_in_policies_names_line_field_and_right_form() {
    let head = "[[limit]]\nname = \"a\"\n";
    let numbers = "limit = 5\nwindow = \"1m\"\n";
    for (text, place, words) in [
        (
            format!("{head}{numbers}colour = 1\n"),
            "5:1",
            "unknown field `colour`",
        ),
        (
            format!("{head}limit = -1\nwindow = \"1m\"\n"),
            "3:9",
            "from 0 to 2^53",
        ),
        (
            format!("{head}limit = 1.5\nwindow = \"1m\"\n"),
            "3:9",
            "from 0 to 2^53",
        ),
        (
            format!("{head}limit = 9007199254740993\nwindow = \"1m\"\n"),
            "3:9",
            "from 0 to 2^53",
        ),
        (
            format!("{head}limit = 5\nwindow = \"7 parsecs\"\n"),
            "4:10",
            "1h30m",
        ),
        (
            format!("{head}limit = 5\nwindow = \"0s\"\n"),
            "4:10",
            "from 1ms",
        ),
        (format!("{head}limit = 5\n"), "1:1", "window"),
        (
            format!("{head}{numbers}slices = 61\n"),
            "5:10",
            "from 1 to 60",
        ),
        (
            format!("{head}{numbers}slices = 1\nhard = true\n"),
            "6:8",
            "slices",
        ),
        (
            format!("{head}{numbers}key = [\"ip\", \"ip\"]\n"),
            "5:7",
            "each name once",
        ),
        (
            format!("{head}{numbers}match = {{ plan = [] }}\n"),
            "5:18",
            "one pattern",
        ),
        (
            format!("{head}{numbers}fallback = \"pray\"\n"),
            "5:12",
            "\"deny\"",
        ),
        (
            format!("{head}{numbers}fallback = \"deny\"\nshare = \"fair\"\n"),
            "6:9",
            "local",
        ),
        (
            format!("{head}{numbers}algorithm = \"token-bucket\"\n"),
            "5:13",
            "not available in this version",
        ),
        (
            format!("{head}{numbers}algorithm = \"magic\"\n"),
            "5:13",
            "not an algorithm",
        ),
        (
            format!("{head}{numbers}{head}{numbers}"),
            "6:8",
            "the first is in line 2",
        ),
        (
            format!("{head}{numbers}policy = \"a b\"\n"),
            "5:10",
            "1 to 64 characters",
        ),
        (
            format!("{head}{numbers}[[policy]]\nname = \"x\"\n"),
            "6:8",
            "has no limit",
        ),
        (
            format!("{head}{numbers}[[policy]]\nname = \"default\"\nheaders = [\"draft-3\"]\n"),
            "7:12",
            "\"draft-10\"",
        ),
        ("[[limit]\n".to_owned(), "1:9", "expected"),
    ] {
        let told = told(&text);
        assert!(
            told.starts_with(&format!("policies.toml:{place}: ")),
            "{told}"
        );
        assert!(told.contains(words), "wanted {words:?}:\n{told}");
    }
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
