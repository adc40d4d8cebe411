//! Keeps `docs/coverage.md` honest: every row is complete, and every test that a row names exists.
//!
//! A table row is `| seed | mechanism | bandog | shown by |`. The last cell has the tests that show it, in back-ticks:
//! `some::path::test_name`, or `crate/tests/file.rs::test_name` when the file matters (paths start below `crates/`). A test is a
//! function with a test attribute, or a promise of the conformance suite. What is measured and not tested is `played SCENARIO`, one of
//! those that `lab/results/README.md` has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const COLUMNS: usize = 4;

#[test]
fn every_row_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/coverage.md")).unwrap();
    let tests = all_tests(&root.join("crates")).unwrap();
    let proofs = Proofs { tests, results: fs::read_to_string(root.join("lab/results/README.md")).unwrap() };
    let rows = rows(&page);
    assert!(rows.len() > 100, "docs/coverage.md has only {} rows: is the table still parsed?", rows.len());
    let bad: Vec<String> = rows
        .iter()
        .map(|row| (row.line, row.faults(&proofs)))
        .filter(|(_, faults)| !faults.is_empty())
        .map(|(line, faults)| format!("line {line}: {}", faults.join("; ")))
        .collect();
    assert!(bad.is_empty(), "docs/coverage.md has {} bad rows:\n{}", bad.len(), bad.join("\n"));
    assert_eq!(strays(&page), [0; 0], "lines of docs/coverage.md that look like rows and stand in no table");
    assert!(page.contains(&format!("\n{} rows.\n", rows.len())), "docs/coverage.md has {} rows", rows.len());
}

#[test]
fn rows_outside_a_table_are_found() {
    let table = "| seed | mechanism | bandog | shown by |\n|---|---|---|---|\n| 000 | m | b | `t` |\n";
    assert_eq!(strays(table), [0; 0]);
    assert_eq!(
        strays(&format!("{table}\n| 000 | m | b | `t` |\n| 000 | m | b | `t` |\n")),
        [5, 6],
        "after a blank line"
    );
    assert_eq!(strays(&format!("{table}## Next\n")), [4], "a heading right below");
    assert_eq!(strays("| 000 | m | b | `t` |\n"), [1], "without a head");
}

#[test]
fn faulty_rows_are_found() {
    let tests = BTreeMap::from([("core/src/a.rs".to_owned(), tests("#[test]\nfn exists() {}\nfn helps() {}"))]);
    let proofs = Proofs { tests, results: "| scenario | commit |\n| `pair` | `1234567` |\n".to_owned() };
    let faults = |line: &str| rows(line).iter().flat_map(|row| row.faults(&proofs)).collect::<Vec<_>>();
    for good in [
        "| 000 | m | b | `exists` |",
        "| 000 | m | b | `core::a::tests::exists`, `core/src/a.rs::exists` |",
        "| 000 | a \\| b | `x \\| y` | played pair |",
        "| 000 | m | b | `exists` · played pair |",
        "| 000 | m | b | no issue yet |",
        "| 000 | m | b | `a_second_claim_waits` |",
        "| seed | mechanism | bandog | shown by |",
        "|---|---|---|---|",
        "no table",
    ] {
        assert_eq!(faults(good), Vec::<String>::new(), "{good}");
    }
    for bad in [
        "| 000 | m | b |",
        "| 000 | m | b | c | played pair |",
        "| 000 | m |  | played pair |",
        "| 000 | m | b | played pairs |",
        "| 000 | m | b | issue 9 |",
        "| 000 | m | b | later |",
        "| 000 | m | b | exists |",
        "| 000 | m | b | `exist` |",
        "| 000 | m | b | `helps` |",
        "| 000 | m | b | `core/src/b.rs::exists` |",
        "| 000 | m | b | `exists` and more |",
    ] {
        assert_eq!(faults(bad).len(), 1, "{bad}");
    }
}

/// What a row can name.
struct Proofs {
    /// The tests of every Rust file, by its path below `crates`.
    tests: BTreeMap<String, BTreeSet<String>>,
    /// The page of the lab that lists what was played.
    results: String,
}

/// One row of the table, with the line it stands on.
struct Row {
    line: usize,
    cells: Vec<String>,
}

fn rows(page: &str) -> Vec<Row> {
    let is_row = |line: &str| line.starts_with('|') && !line.starts_with("| seed |") && !line.starts_with("|--");
    page.lines()
        .enumerate()
        .filter(|(_, line)| is_row(line))
        .map(|(at, line)| Row { line: at + 1, cells: cells(line) })
        .collect()
}

/// Lines that break a table, or look like rows and stand in none: a table begins with its head, and its rows follow without a gap.
fn strays(page: &str) -> Vec<usize> {
    let (mut found, mut is_table, mut before) = (Vec::new(), false, "");
    for (number, line) in (1..).zip(page.lines()) {
        let is_head = line.starts_with("| seed |") && before.is_empty();
        is_table = line.starts_with('|') && (is_table || is_head);
        let runs_on = !line.starts_with('|') && !line.is_empty() && before.starts_with('|');
        if runs_on || line.starts_with('|') && !is_table {
            found.push(number);
        }
        before = line;
    }
    found
}

fn cells(line: &str) -> Vec<String> {
    // An escaped bar belongs to its cell; no control character stands in the page, so one can stand for it.
    let line = line.replace("\\|", "\u{1}");
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

impl Row {
    fn faults(&self, proofs: &Proofs) -> Vec<String> {
        if self.cells.len() != COLUMNS {
            return vec![format!("{} cells instead of {COLUMNS}: {:?}", self.cells.len(), self.cells)];
        }
        if let Some(column) = self.cells.iter().position(String::is_empty) {
            return vec![format!("cell {} is empty: {:?}", column + 1, self.cells)];
        }
        let shown_by = &self.cells[COLUMNS - 1];
        shown_by.split([',', '·']).map(str::trim).filter_map(|proof| fault(proof, proofs)).collect()
    }
}

/// What is wrong with one proof, if anything.
fn fault(proof: &str, proofs: &Proofs) -> Option<String> {
    if proof == "no issue yet" {
        return None;
    }
    if let Some(scenario) = proof.strip_prefix("played ") {
        let played = proofs.results.lines().any(|line| line.starts_with(&format!("| `{scenario}` |")));
        return (!played).then(|| format!("lab/results/README.md says nothing of a scenario `{scenario}`"));
    }
    let Some(path) = proof.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) else {
        return Some(format!("{proof:?} is neither `played SCENARIO` nor a test name in back-ticks"));
    };
    let (place, name) = path.rsplit_once("::").unwrap_or(("", path));
    let known = if place.ends_with(".rs") {
        proofs.tests.get(place).is_some_and(|tests| tests.contains(name))
    } else {
        is_promise(name) || proofs.tests.values().any(|tests| tests.contains(name))
    };
    (!known).then(|| format!("there is no test `{path}`"))
}

/// The names of the functions in `text` that have a test attribute above them.
fn tests(text: &str) -> BTreeSet<String> {
    let (mut found, mut is_test) = (BTreeSet::new(), false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") || line.starts_with("//") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            continue;
        }
        let name =
            line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ").and_then(|rest| rest.split_once('('));
        found.extend(name.filter(|_| is_test).map(|(name, _)| name.to_owned()));
        is_test = false;
    }
    found
}

/// Whether the conformance suite makes a test of `name` for every store.
fn is_promise(name: &str) -> bool {
    bandog_conformance::PROMISES.iter().any(|promise| promise.rsplit("::").next() == Some(name))
}

/// The tests of every Rust file below `crates`, by its path from there.
fn all_tests(crates: &Path) -> io::Result<BTreeMap<String, BTreeSet<String>>> {
    let mut found = BTreeMap::new();
    let mut open: Vec<PathBuf> = vec![crates.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let name = path.strip_prefix(crates).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                // This file names tests in its own examples; it proves nothing about locks.
                if !path.ends_with("bandog/tests/coverage.rs") {
                    found.insert(name, tests(&fs::read_to_string(path)?));
                }
            }
        }
    }
    Ok(found)
}
