//! The encoding stays what its bytes were made with, and one crate names it.

use std::{fs, path::Path};

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
}

/// bincode 3.0.0 cannot be compiled, and 2.0.1 is the last release whose bytes these are.
#[test]
fn bincode_is_locked() {
    let lock = fs::read_to_string(workspace().join("Cargo.lock")).unwrap();
    let locked: Vec<&str> = lock
        .split("[[package]]")
        .filter(|package| package.contains("\nname = \"bincode\"\n"))
        .filter_map(|package| package.lines().find(|line| line.starts_with("version")))
        .collect();
    assert_eq!(locked, ["version = \"2.0.1\""]);
}

#[test]
fn bincode_is_named_by_wire_alone() {
    let mut crates = vec![workspace().to_path_buf(), workspace().join("bench")];
    let entries = fs::read_dir(workspace().join("crates")).unwrap();
    crates.extend(entries.map(|entry| entry.unwrap().path()));
    let names_it = |folder: &Path| {
        let manifest: String = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let mut outside_pin = manifest.lines().filter(|line| !line.contains("=2.0.1"));
        outside_pin.any(|line| line.starts_with("bincode"))
    };
    let naming: Vec<_> = crates.iter().filter(|folder| names_it(folder)).collect();
    assert_eq!(naming, [Path::new(env!("CARGO_MANIFEST_DIR"))]);
}
