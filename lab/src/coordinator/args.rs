//! The words of the command line.

use std::path::PathBuf;

use crate::contenders::{self, Contender, Installed};
use crate::scenarios::{self, Scenario};

pub(crate) const USAGE: &str = "lab/run [OPTIONS]
  --quick           2 rounds, and a third of the time for each; for a look, not for a claim
  --all             every scenario, held-1000000 too, which takes three quarters of an hour by itself
  --only SCENARIO   this one alone, or all of 'hand-off-*'; may be given again (--list names them)
  --peer NAME       this contender alone; may be given again
  --rounds N        so many rounds instead of 5
  --json FILE       all numbers; packed with gzip if FILE ends in .gz
  --report DIR      tables and plots, as Markdown and SVG
  --from FILE       plays nothing: makes the report of an earlier FILE, or of all in a folder; may be given again for a run in parts
  --list            names scenarios and contenders";

/// What to do.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) installed: Installed,
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) contenders: Vec<Contender>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) report: Option<PathBuf>,
    pub(crate) from: Vec<PathBuf>,
}

pub(crate) fn read() -> Result<Task, String> {
    let folder =
        |name: &str| std::env::var(name).map(PathBuf::from).map_err(|_| format!("{name} is not set; start {USAGE}"));
    let installed = Installed { sources: folder("PEERS_SOURCES")?, work: folder("PEERS_WORK")? };
    let (scenarios, contenders) = (Vec::new(), Vec::new());
    let mut task =
        Task { installed, quick: false, rounds: 0, scenarios, contenders, json: None, report: None, from: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a word behind it\n{USAGE}"));
        match word.as_str() {
            "--quick" => task.quick = true,
            "--all" => task.scenarios.extend(scenarios::ALL.into_iter().chain([scenarios::LARGEST])),
            "--only" => task.scenarios.extend(scenarios_named(&value()?)?),
            "--peer" => task.contenders.push(known(&value()?, contenders::find, "contender")?),
            "--rounds" => task.rounds = value()?.parse().map_err(|_| "--rounds needs a number".to_owned())?,
            "--json" => task.json = Some(value()?.into()),
            "--report" => task.report = Some(value()?.into()),
            "--from" => task.from.push(value()?.into()),
            "--list" => return Err(list()),
            _ => return Err(format!("{word}?\n{USAGE}")),
        }
    }
    if task.rounds == 0 {
        task.rounds = if task.quick { 2 } else { 5 };
    }
    if task.scenarios.is_empty() {
        task.scenarios.extend(scenarios::ALL);
    }
    Ok(task)
}

/// One, or all that begin with what stands before a `*`.
fn scenarios_named(word: &str) -> Result<Vec<Scenario>, String> {
    let begin = word.strip_suffix('*').unwrap_or_default();
    let all: Vec<_> = scenarios::ALL.into_iter().filter(|one| !begin.is_empty() && one.id.starts_with(begin)).collect();
    if all.is_empty() { known(word, scenarios::find, "scenario").map(|one| vec![one]) } else { Ok(all) }
}

fn known<T>(id: &str, find: impl Fn(&str) -> Option<T>, what: &str) -> Result<T, String> {
    find(id).ok_or_else(|| format!("there is no {what} {id:?}\n{}", list()))
}

fn list() -> String {
    let scenarios = scenarios::ALL.iter().chain([&scenarios::LARGEST]);
    let scenarios = scenarios.map(|scenario| format!("  {:<16} ({}) {}", scenario.id, scenario.letter, scenario.title));
    let contenders = contenders::ALL.iter().map(|contender| format!("  {:<18} {}", contender.id, contender.label));
    let lines =
        ["scenarios".to_owned()].into_iter().chain(scenarios).chain(["contenders".to_owned()]).chain(contenders);
    lines.collect::<Vec<_>>().join("\n")
}
