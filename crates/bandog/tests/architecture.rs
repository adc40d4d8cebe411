//! Keeps the paths in `docs/architecture.md` true: each file that one names exists, and the counts in its title are those of its list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PATHS: [&str; 4] = ["Acquire", "Release", "Renewal", "Push"];

#[test]
fn every_file_of_a_path_exists() {
    let page = page();
    let crates = root().join("crates");
    let gone: Vec<&str> = PATHS
        .iter()
        .flat_map(|title| files(section(&page, title).1))
        .filter(|file| !crates.join(file).is_file())
        .collect();
    assert!(gone.is_empty(), "docs/architecture.md names files that do not exist: {gone:#?}");
}

#[test]
fn the_counts_of_a_path_are_those_of_its_list() {
    let page = page();
    for title in PATHS {
        let (counts, list) = section(&page, title);
        assert_eq!(counts, counted(&files(list)), "docs/architecture.md, path {title:?}");
    }
}

#[test]
fn files_are_found_in_their_order_and_counted_once() {
    let list = "1. `a/src/one.rs` and `b/src/two.rs` (`call`)\n2. again `a/src/one.rs`, `c::d`, `b/src/lua/three.lua`, `b/README.md`\n";
    let found = files(list);
    assert_eq!(found, ["a/src/one.rs", "b/src/two.rs", "a/src/one.rs", "b/src/lua/three.lua"]);
    assert_eq!(counted(&found), "2 files, 1 Lua fragments, 3 crossings");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).expect("docs/architecture.md")
}

/// The counts in the title of a path, and its list.
fn section<'a>(page: &'a str, title: &str) -> (&'a str, &'a str) {
    let rest = page.split_once(&format!("\n### {title}: ")).map(|(_, rest)| rest);
    let path = rest.and_then(|rest| rest.split("\n##").next()?.split_once('\n'));
    path.unwrap_or_else(|| panic!("docs/architecture.md has no path {title:?}"))
}

/// The sources that a list names, in its order.
fn files(list: &str) -> Vec<&str> {
    let is_source = |word: &&str| word.contains("/src/") && (word.ends_with(".rs") || word.ends_with(".lua"));
    // Every other piece stands between back-ticks.
    list.split('`').skip(1).step_by(2).filter(is_source).collect()
}

fn counted(files: &[&str]) -> String {
    let distinct: BTreeSet<&str> = files.iter().copied().collect();
    let lua = distinct.iter().filter(|file| file.ends_with(".lua")).count();
    let crates = files.iter().map(|file| file.split('/').next());
    let crossings = crates.clone().zip(crates.skip(1)).filter(|(from, to)| from != to).count();
    format!("{} files, {lua} Lua fragments, {crossings} crossings", distinct.len() - lua)
}
