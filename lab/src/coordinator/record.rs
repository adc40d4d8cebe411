//! All that was seen, as it is kept in the JSON file and as reports are made from it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::contenders::keeps_the_line;
use crate::figures::{Figures, Middle, middle};
use crate::scenarios;
use crate::unit::{COMMANDS, COMMANDS_EACH_HAND_OFF};

/// Among the figures of a run: in which round it was played.
pub(crate) const ROUND: &str = "round";

/// A whole run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) commit: String,
    pub(crate) machine: String,
    pub(crate) server: String,
    pub(crate) took_seconds: f64,
    pub(crate) rule: String,
    /// By contender: its version, or why it did not take part.
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) scenarios: Vec<Played>,
}

impl Record {
    /// One run that was played in parts. What one part has played, the other has not.
    pub(crate) fn with(mut self, part: Self) -> Result<Self, String> {
        let setting = |record: &Self| {
            let Self { quick, rounds, server, rule, .. } = record;
            (*quick, *rounds, server.clone(), rule.clone())
        };
        if setting(&self) != setting(&part) {
            return Err("not parts of one run: they differ in length, rounds, server or rule".to_owned());
        }
        if let Some(twice) = part.scenarios.iter().find(|played| self.scenarios.iter().any(|own| own.id == played.id)) {
            return Err(format!(
                "{} was played in two of the parts: which one counts is not for this tool to choose",
                twice.id
            ));
        }
        self.took_seconds += part.took_seconds;
        for (who, version) in part.versions {
            let own = self.versions.entry(who).or_default();
            // Nobody is compared between parts, so a newer version spoils none; both are told.
            if !own.split("; ").any(|known| known == version) {
                *own = if own.is_empty() { version } else { format!("{own}; {version}") };
            }
        }
        self.scenarios.extend(part.scenarios);
        Ok(self)
    }
}

/// A scenario.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Played {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) letter: char,
    #[serde(default)]
    pub(crate) commit: String,
    /// Whoever is compared was on the same one.
    #[serde(default)]
    pub(crate) machine: String,
    /// Of those whose rounds alternate, an equal part.
    #[serde(default)]
    pub(crate) took_seconds: f64,
    pub(crate) cells: Vec<Cell>,
}

/// A contender in a scenario.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) contender: String,
    /// Why there are no figures.
    pub(crate) trouble: Option<String>,
    /// The first error that the contender met.
    pub(crate) error: Option<String>,
    pub(crate) kept: Vec<Figures>,
    /// Runs beside which others used too much of the processors.
    pub(crate) dropped: Vec<Figures>,
    /// From the run with `MONITOR`, which is not timed.
    pub(crate) commands_per_acquisition: Option<f64>,
    /// The same for each time that the lock went to another process, without bandog's heartbeats.
    #[serde(default)]
    pub(crate) commands_per_hand_off: Option<f64>,
}

impl Cell {
    pub(crate) fn figure(&self, name: &str) -> Option<Middle> {
        let of = |runs: &[Figures]| runs.iter().filter_map(|figures| figures.get(name).copied()).collect::<Vec<_>>();
        match name {
            COMMANDS => self.commands_per_acquisition.map(Middle::one),
            COMMANDS_EACH_HAND_OFF => self.commands_per_hand_off.map(Middle::one),
            // Once is enough, whatever ran beside it.
            "lost" => largest(self.kept.iter().chain(&self.dropped).filter_map(lost).collect()),
            "overlaps" => largest([of(&self.kept), of(&self.dropped)].concat()),
            "inversions" if keeps_the_line(&self.contender) => largest(of(&self.kept)),
            "wait_worst_us" => largest(of(&self.kept)),
            _ => middle(of(&self.kept)),
        }
    }

    /// A figure of each round. Before rounds had numbers, no run of those with a ratio was dropped.
    pub(crate) fn rounds(&self, name: &str) -> BTreeMap<usize, f64> {
        let numbered = |(at, figures): (usize, &Figures)| {
            Some((figures.get(ROUND).map_or(at + 1, |round| *round as usize), *figures.get(name)?))
        };
        self.kept.iter().enumerate().filter_map(numbered).collect()
    }

    /// Whether a mark, such as a p99, has at least five values beyond it in every run.
    pub(crate) fn is_sampled(&self, name: &str) -> bool {
        let count = if name.starts_with("hand_off_p") { "hand_offs" } else { "acquisitions" };
        let needed = match name.rsplit('_').nth(1) {
            Some("p50") => 10.0,
            Some("p99") => 500.0,
            Some("p999") => 5_000.0,
            _ => return true,
        };
        self.kept.iter().all(|figures| figures.get(count).is_none_or(|count| *count >= needed))
    }
}

/// Locks that were lost in a run: as the contender knows, or as the server does, where each has a key. Not everybody hears of a lock
/// that is gone.
fn lost(run: &Figures) -> Option<f64> {
    let figure = |name: &str| run.get(name).copied();
    let gone = figure("held").zip(figure("keys")).map_or(0.0, |(held, keys)| held - keys);
    figure("lost").map(|told| told.max(gone))
}

fn largest(values: Vec<f64>) -> Option<Middle> {
    middle(values).map(|all| Middle { median: all.max, ..all })
}

/// One run of all these files, and of those in these folders, in the order of the scenarios.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Record, String> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let entries = entries.map_err(|error| format!("{}: {error}", path.display()))?;
            let mut found: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
            found.retain(|file| is_packed(file) || file.extension().is_some_and(|end| end == "json"));
            found.sort();
            files.append(&mut found);
        } else {
            files.push(path.clone());
        }
    }
    let (first, others) = files.split_first().ok_or_else(|| format!("there is no run in {}", paths[0].display()))?;
    let mut whole = others.iter().try_fold(read(first)?, |all, part| all.with(read(part)?))?;
    whole.scenarios.sort_by_key(|played| scenarios::place(&played.id));
    Ok(whole)
}

fn read(path: &Path) -> Result<Record, String> {
    let text = if is_packed(path) { unpacked(path) } else { std::fs::read(path) };
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let mut record: Record = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let part = record.took_seconds / record.scenarios.len().max(1) as f64;
    for played in &mut record.scenarios {
        if played.took_seconds == 0.0 {
            played.took_seconds = part;
        }
        if played.commit.is_empty() {
            played.commit.clone_from(&record.commit);
        }
        if played.machine.is_empty() {
            played.machine.clone_from(&record.machine);
        }
    }
    Ok(record)
}

pub(crate) fn write(path: &Path, record: &Record) -> Result<(), String> {
    let text = serde_json::to_string(record).map_err(|error| error.to_string())?;
    let written = if is_packed(path) { write_packed(path, &text) } else { std::fs::write(path, text) };
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn is_packed(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".json.gz")
}

fn unpacked(path: &Path) -> std::io::Result<Vec<u8>> {
    let output = Command::new("gzip").arg("-dc").arg(path).output()?;
    if output.status.success() { Ok(output.stdout) } else { Err(said(&output.stderr)) }
}

/// Without a name and a time inside, so that the same run is the same file.
fn write_packed(path: &Path, text: &str) -> std::io::Result<()> {
    let file = std::fs::File::create(path)?;
    let mut gzip = Command::new("gzip").arg("-9nc").stdin(Stdio::piped()).stdout(file).spawn()?;
    if let Some(mut input) = gzip.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    if gzip.wait()?.success() { Ok(()) } else { Err(said(b"gzip failed")) }
}

fn said(words: &[u8]) -> std::io::Error {
    std::io::Error::other(String::from_utf8_lossy(words).trim().to_owned())
}

#[cfg(test)]
impl Record {
    pub(crate) fn empty() -> Self {
        Self {
            quick: false,
            rounds: 5,
            commit: "one".to_owned(),
            machine: "this".to_owned(),
            server: "7.0".to_owned(),
            took_seconds: 60.0,
            rule: "none".to_owned(),
            versions: BTreeMap::new(),
            scenarios: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(scenarios: &[&str], versions: &[(&str, &str)]) -> Record {
        let played = |id: &&str| Played { id: (*id).to_owned(), ..Played::default() };
        let versions = versions.iter().map(|(who, version)| ((*who).to_owned(), (*version).to_owned()));
        Record { scenarios: scenarios.iter().map(played).collect(), versions: versions.collect(), ..Record::empty() }
    }

    #[test]
    fn parts_of_one_run_are_one_record() {
        let whole =
            part(&["pair"], &[("rslock", "0.10")]).with(part(&["across"], &[("redsync", "4"), ("rslock", "0.10")]));
        let whole = whole.unwrap();
        assert_eq!(whole.scenarios.iter().map(|played| played.id.as_str()).collect::<Vec<_>>(), ["pair", "across"]);
        assert_eq!((whole.took_seconds, whole.versions.len()), (120.0, 2));
    }

    #[test]
    fn other_rounds_are_other_runs() {
        let own = || part(&["pair"], &[("rslock", "0.10")]);
        for other in [Record { rounds: 4, ..part(&["across"], &[]) }, Record { quick: true, ..part(&["across"], &[]) }]
        {
            assert!(own().with(other).unwrap_err().starts_with("not parts of one run"));
        }
    }

    #[test]
    fn versions_that_differ_are_both_told() {
        let parts = [("pair", "0.10"), ("across", "0.11"), ("names-64", "0.10"), ("names-512", "0.11")];
        let mut parts = parts.into_iter().map(|(id, version)| part(&[id], &[("rslock", version)]));
        let first = parts.next().unwrap();
        let whole = parts.try_fold(first, Record::with).unwrap();
        assert_eq!(whole.versions["rslock"], "0.10; 0.11");
    }

    #[test]
    fn a_folder_is_the_parts_in_it() {
        let folder = std::env::temp_dir().join(format!("peers-parts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let empty = read_all(std::slice::from_ref(&folder)).unwrap_err();
        for (id, end) in [("pair", "json"), ("across", "json.gz")] {
            write(&folder.join(format!("{id}.{end}")), &part(&[id], &[])).unwrap();
        }
        // Rounds of these alternated: each has half of the time.
        write(&folder.join("hand-off.json"), &part(&["hand-off-2", "hand-off-10"], &[])).unwrap();
        std::fs::write(folder.join("README.md"), "no run").unwrap();
        let whole = read_all(std::slice::from_ref(&folder));
        let missing = read_all(&[folder.join("none.json")]);
        let unpackable = read_all(&[folder.join("none.json.gz")]);
        std::fs::remove_dir_all(&folder).unwrap();
        let whole = whole.unwrap();
        let parts: Vec<_> = whole.scenarios.iter().map(|played| (played.id.as_str(), played.took_seconds)).collect();
        assert_eq!(parts, [("pair", 60.0), ("across", 60.0), ("hand-off-2", 30.0), ("hand-off-10", 30.0)]);
        assert_eq!(empty, format!("there is no run in {}", folder.display()));
        assert!(missing.unwrap_err().contains("none.json"));
        assert!(unpackable.unwrap_err().contains("none.json.gz"));
    }

    #[test]
    fn what_must_never_be_is_told_of_dropped_runs_too() {
        let run =
            |lost: f64, worst: f64| Figures::from([("lost".to_owned(), lost), ("wait_worst_us".to_owned(), worst)]);
        let kept = vec![run(0.0, 1.0), run(0.0, 3.0), run(0.0, 2.0)];
        let cell = Cell { kept, dropped: vec![run(1.0, 9.0)], ..Cell::default() };
        let told = |name: &str| cell.figure(name).map(|figure| figure.median);
        assert_eq!((told("lost"), told("wait_worst_us")), (Some(1.0), Some(3.0)));
    }

    #[test]
    fn a_lock_is_lost_if_either_side_says_so() {
        for (told, keys, lost) in [(0.0, 9.0, 0.0), (0.0, 10.0, 0.0), (2.0, 9.0, 2.0), (0.0, 8.0, 1.0), (3.0, 8.0, 3.0)]
        {
            let run = [("lost", told), ("held", 9.0), ("keys", keys)].map(|(name, value)| (name.to_owned(), value));
            let cell = Cell { kept: vec![Figures::from(run)], ..Cell::default() };
            assert_eq!(cell.figure("lost").map(|figure| figure.median), Some(lost), "{told} told, {keys} keys of 9");
        }
    }

    #[test]
    fn who_promises_order_is_told_by_its_worst_round() {
        let kept = || [0.0, 0.25, 0.0].map(|part| Figures::from([("inversions".to_owned(), part)])).to_vec();
        for (who, told) in [("bandog-fair", 0.25), ("redisson-fair", 0.25), ("raw-line", 0.25), ("bandog", 0.0)] {
            let cell = Cell { contender: who.to_owned(), kept: kept(), ..Cell::default() };
            assert_eq!(cell.figure("inversions").map(|figure| figure.median), Some(told), "{who}");
        }
    }

    #[test]
    fn a_p99_of_a_few_is_none() {
        let run = |count: f64| Figures::from([("hand_offs".to_owned(), count), ("acquisitions".to_owned(), 9_999.0)]);
        let cell = Cell { kept: vec![run(600.0), run(499.0)], ..Cell::default() };
        let names = ["hand_off_p50_us", "hand_off_p99_us", "wait_p99_us", "wait_p999_us", "in_use"];
        assert_eq!(names.map(|name| cell.is_sampled(name)), [true, false, true, true, true]);
    }

    #[test]
    fn no_scenario_comes_from_two_parts() {
        let twice = part(&["pair", "across"], &[]).with(part(&["names-64", "across"], &[])).unwrap_err();
        assert!(twice.starts_with("across was played in two"), "{twice}");
    }
}
