//! Habits that can be checked: small files, no unsafe code, and a core that knows of no runtime.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[expect(clippy::unwrap_used, reason = "a part of a test")]
fn files(folder: &Path, name_ends: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("target") {
            files(&entry, name_ends, found);
        } else if entry.to_string_lossy().ends_with(name_ends) {
            found.push(entry);
        }
    }
}

fn below_crates(name_ends: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root().join("crates"), name_ends, &mut found);
    found
}

#[test]
fn files_are_small() {
    let length = |path: &PathBuf| fs::read_to_string(path).unwrap().lines().count();
    let mut lengths: Vec<(usize, PathBuf)> =
        below_crates(".rs").into_iter().map(|path| (length(&path), path)).collect();
    lengths.sort();
    let (median, longest) = (lengths[lengths.len() / 2].0, lengths.last().unwrap());
    println!("{} files, median {median} lines, longest {longest:?}", lengths.len());
    assert!(median <= 150, "the median file has {median} lines");
    assert!(longest.0 <= 600, "{longest:?}");
}

#[test]
fn every_module_says_what_it_is() {
    let silent = |path: &&PathBuf| !fs::read_to_string(path).unwrap().starts_with("//!");
    assert_eq!(below_crates(".rs").iter().find(silent), None);
}

#[test]
fn unsafe_code_is_forbidden_everywhere() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""));
    for manifest in below_crates("Cargo.toml") {
        let text = fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{manifest:?} does not take the workspace's lints");
    }
}

#[test]
fn the_core_knows_of_no_runtime() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "bandog-core", "-e", "normal", "--prefix", "none"])
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    assert!(tree.starts_with("bandog-core"), "{tree}");
    for foreign in ["tokio", "mio", "async-std", "smol", "rustix", "libc"] {
        assert!(!tree.lines().any(|line| line.starts_with(&format!("{foreign} "))), "{tree}");
    }
}
