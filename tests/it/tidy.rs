//! What lints cannot hold: the length of files, their headers, and which crate may know which.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use toml::{Table, Value};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The longest file of code, in lines.
const MAX_LINES: usize = 400;
/// The longest file of tests, in lines.
const MAX_TEST_LINES: usize = 600;

/// All Rust files of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<_> = ["src", "tests", "crates", "bench"]
        .map(|it| Path::new(ROOT).join(it))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 100, "the sources were not found");
    found
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

#[test]
fn files_are_short_and_say_what_they_are() {
    let mut faults = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        let most = if is_test(&path) {
            MAX_TEST_LINES
        } else {
            MAX_LINES
        };
        if lines > most {
            faults.push(format!("{}: {lines} lines, at most {most}", path.display()));
        }
        if !text.starts_with("//! ") {
            faults.push(format!("{}: does not open with //!", path.display()));
        }
        if path.ends_with("mod.rs") {
            faults.push(format!("{}: write foo.rs beside foo/", path.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What a crate of ours may know of the others.
const EDGES: [(&str, &[&str]); 8] = [
    ("crates/limit", &[]),
    ("crates/wire", &["limit"]),
    ("crates/cluster", &["limit", "wire"]),
    ("crates/node", &["limit", "wire", "cluster"]),
    ("crates/api", &["limit", "wire"]),
    ("crates/client", &["limit", "wire"]),
    ("crates/sim", &["limit", "wire", "cluster", "node"]),
    ("bench", &["wire", "limit", "client"]),
];

/// The dependencies of a package, for the program and for its tests.
fn dependencies(folder: &str, sections: &[&str]) -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(ROOT).join(folder).join("Cargo.toml")).unwrap();
    let manifest: Table = text.parse().unwrap();
    let tables = sections
        .iter()
        .filter_map(|section| manifest.get(*section)?.as_table());
    tables.flat_map(Table::keys).cloned().collect()
}

#[test]
fn crates_know_only_those_below_them() {
    for (folder, allowed) in EDGES {
        let ours = dependencies(folder, &["dependencies"]);
        let ours = ours
            .iter()
            .filter_map(|name| name.strip_prefix("tollgate-"));
        let wrong: Vec<_> = ours.filter(|name| !allowed.contains(name)).collect();
        assert!(wrong.is_empty(), "{folder} must not know {wrong:?}");
    }
}

#[test]
fn only_wire_names_bincode_and_few_name_quinn() {
    let folders = EDGES.map(|(folder, _)| folder).into_iter().chain(["."]);
    for folder in folders {
        let all = dependencies(folder, &["dependencies", "dev-dependencies"]);
        assert_eq!(
            all.contains("bincode"),
            folder == "crates/wire",
            "{folder} and bincode"
        );
        let may_quinn = ["crates/node", "crates/client", "crates/sim", "bench"].contains(&folder);
        assert!(may_quinn || !all.contains("quinn"), "{folder} and quinn");
    }
}

#[test]
fn bincode_stays_at_the_last_release_that_works() {
    let lock = fs::read_to_string(Path::new(ROOT).join("Cargo.lock")).unwrap();
    let lock: Table = lock.parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let versions: Vec<_> = packages
        .iter()
        .filter(|package| package.get("name").and_then(Value::as_str) == Some("bincode"))
        .map(|package| package["version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["2.0.1"]);
}

#[test]
fn the_pure_crates_have_no_runtime_below_them() {
    for package in ["tollgate-limit", "tollgate-wire", "tollgate-cluster"] {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--offline",
                "--locked",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "-p",
                package,
            ])
            .current_dir(ROOT)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let tree = String::from_utf8_lossy(&output.stdout);
        let runtimes = ["tokio ", "quinn", "mio ", "async-std", "smol "];
        let wrong: Vec<_> = tree
            .lines()
            .filter(|line| runtimes.iter().any(|it| line.starts_with(it)))
            .collect();
        assert!(wrong.is_empty(), "{package} has {wrong:?}");
    }
}
