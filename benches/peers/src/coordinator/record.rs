//! All that was seen, as it is kept in the JSON file and as reports are made from it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::figures::{Figures, Middle, middle};

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
            let Self { quick, rounds, machine, server, rule, .. } = record;
            (*quick, *rounds, machine.clone(), server.clone(), rule.clone())
        };
        let newer = |(who, version): (&String, &String)| part.versions.get(who).is_some_and(|other| other != version);
        if setting(&self) != setting(&part) || self.versions.iter().any(newer) {
            return Err(
                "not parts of one run: they differ in length, rounds, machine, server, rule or versions".to_owned()
            );
        }
        if let Some(twice) = part.scenarios.iter().find(|played| self.scenarios.iter().any(|own| own.id == played.id)) {
            return Err(format!(
                "{} was played in two of the parts: which one counts is not for this tool to choose",
                twice.id
            ));
        }
        self.took_seconds += part.took_seconds;
        self.versions.extend(part.versions);
        self.scenarios.extend(part.scenarios);
        Ok(self)
    }
}

/// A scenario.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Played {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) letter: char,
    #[serde(default)]
    pub(crate) commit: String,
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
}

impl Cell {
    pub(crate) fn figure(&self, name: &str) -> Option<Middle> {
        if name == "commands_per_acquisition" {
            return self.commands_per_acquisition.map(|value| Middle { median: value, min: value, max: value });
        }
        middle(self.kept.iter().filter_map(|figures| figures.get(name).copied()).collect())
    }
}

pub(crate) fn read(path: &Path) -> Result<Record, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut record: Record = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let unnamed = record.scenarios.iter_mut().filter(|played| played.commit.is_empty());
    unnamed.for_each(|played| played.commit.clone_from(&record.commit));
    Ok(record)
}

pub(crate) fn write(path: &Path, record: &Record) -> Result<(), String> {
    let text = serde_json::to_string_pretty(record).map_err(|error| error.to_string())?;
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
