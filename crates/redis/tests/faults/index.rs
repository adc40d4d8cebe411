//! Every fault schedule that a single server can play has a test, and the documentation lists them all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The schedules for one server. The others need several servers, slots, a command around a child, or are played elsewhere.
const SCHEDULES: [u32; 20] = [1, 2, 3, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 26];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|kind| kind == "rs") {
            found.push(entry);
        }
    }
}

/// The names of all tests that play a schedule, by its number.
fn tests() -> BTreeMap<u32, Vec<String>> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut files);
    let mut tests: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let attributed = text.lines().zip(text.lines().skip(1)).filter(|(above, _)| above.trim() == "#[test]");
        for name in attributed.filter_map(|(_, line)| line.trim().strip_prefix("fn schedule_")?.split('(').next()) {
            let number = name.get(..2).and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{name}"));
            tests.entry(number).or_default().push(format!("schedule_{name}"));
        }
    }
    tests
}

#[test]
fn every_schedule_has_a_test() {
    let tests = tests();
    let missing: Vec<u32> = SCHEDULES.into_iter().filter(|number| !tests.contains_key(number)).collect();
    assert!(missing.is_empty(), "no test plays {missing:?}");
}

#[test]
fn every_test_of_a_schedule_is_listed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/redis-schedules.md");
    let page = std::fs::read_to_string(page).unwrap();
    let listed = |number: u32| page.lines().find(|line| line.starts_with(&format!("| {number} |"))).unwrap_or_default();
    let mut named = 0;
    for (number, names) in tests() {
        for name in names {
            assert!(
                listed(number).contains(&format!("`{name}`")),
                "{name} is not in row {number} of docs/redis-schedules.md"
            );
            named += 1;
        }
    }
    assert_eq!(page.matches("`schedule_").count(), named, "docs/redis-schedules.md names a test that does not exist");
}
