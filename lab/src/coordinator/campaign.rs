//! The rounds: every contender of a scenario in turn, then the next round, so that whatever disturbs one disturbs all.

use std::collections::BTreeMap;
use std::process::Command;

use peers::clock::now;

use crate::args::Task;
use crate::contenders::{Contender, find};
use crate::figures::{self, Figures};
use crate::process::Trouble;
use crate::record::{self, Cell, Played, ROUND, Record};
use crate::round::play;
use crate::scenarios::Scenario;

/// A run is dropped when others used more than this part of one processor beside it. Fixed before the first run.
const OTHER_CORES: f64 = 0.25;
/// So many runs may be dropped for every one that is wanted, until the cell has to live with fewer.
const SPARE: usize = 1;

pub(crate) fn run(task: &Task) -> Result<Record, String> {
    let start = now();
    let mut record = Record {
        quick: task.quick,
        rounds: task.rounds,
        commit: told("git", &["describe", "--always", "--dirty"]),
        machine: machine(),
        server: told("redis-server", &["--version"]),
        took_seconds: 0.0,
        rule: format!("a run is dropped when others used more than {OTHER_CORES} of one processor beside it"),
        versions: BTreeMap::new(),
        scenarios: Vec::new(),
    };
    for group in task.scenarios.chunk_by(Scenario::is_played_with) {
        let begun = now();
        let places = together(task, group, &mut record.versions);
        let took_seconds = (now() - begun) as f64 / 1e9 / group.len() as f64;
        let played = |place: Place<'_>| Played { took_seconds, ..place.played(&record.commit, &record.machine) };
        record.scenarios.extend(places.into_iter().map(played));
        record.took_seconds = (now() - start) as f64 / 1e9;
        // After each, so that a run of an hour that is cut off has not been for nothing.
        if let Some(path) = &task.json {
            record::write(path, &record)?;
        }
    }
    Ok(record)
}

/// A scenario while it is played.
struct Place<'a> {
    scenario: &'a Scenario,
    contenders: Vec<Contender>,
    cells: Vec<Cell>,
}

/// A round of one scenario, then of the next, and so on.
fn together<'a>(task: &Task, group: &'a [Scenario], versions: &mut BTreeMap<String, String>) -> Vec<Place<'a>> {
    let mut places: Vec<_> = group.iter().map(|scenario| Place::new(task, scenario)).collect();
    for round in 0..=task.rounds * (1 + SPARE) {
        places.iter_mut().for_each(|place| place.play(task, round, versions));
    }
    places
}

impl<'a> Place<'a> {
    fn new(task: &Task, scenario: &'a Scenario) -> Self {
        let wanted = |contender: &Contender| {
            task.contenders.is_empty() || task.contenders.iter().any(|wanted| wanted.id == contender.id)
        };
        let contenders: Vec<Contender> = scenario.who().filter_map(find).filter(wanted).collect();
        let cell = |contender: &Contender| Cell {
            contender: contender.id.to_owned(),
            trouble: task.installed.trouble(*contender),
            ..Cell::default()
        };
        let cells = contenders.iter().map(cell).collect();
        Self { scenario, contenders, cells }
    }

    /// Everybody who has yet to play, once. The first time round counts commands; it is not timed.
    fn play(&mut self, task: &Task, round: usize, versions: &mut BTreeMap<String, String>) {
        let Self { scenario, contenders, cells } = self;
        if round == 0 && !scenario.counts {
            return;
        }
        let plays = |contender: &Contender, cell: &Cell| {
            cell.trouble.is_none() && cell.kept.len() < scenario.rounds(contender.id, task.rounds)
        };
        if contenders.iter().zip(&*cells).any(|(contender, cell)| plays(contender, cell)) {
            eprintln!("({}) {}, round {round}", scenario.letter, scenario.title);
        }
        // Each begins with another, so that nobody always follows the same one.
        for place in 0..contenders.len() {
            let at = (place + round) % contenders.len();
            let (contender, cell) = (contenders[at], &mut cells[at]);
            if plays(&contender, cell) {
                run_once(task, scenario, contender, cell, round, versions);
            }
        }
    }

    fn played(self, commit: &str, machine: &str) -> Played {
        let Scenario { id, title, letter, pinned, .. } = *self.scenario;
        let (id, title, commit) = (id.to_owned(), title.to_owned(), commit.to_owned());
        let machine =
            machine.to_owned() + if pinned { ", clients on one processor, the server on the other" } else { "" };
        Played { id, title, letter, commit, machine, cells: self.cells, ..Played::default() }
    }
}

fn run_once(
    task: &Task,
    scenario: &Scenario,
    contender: Contender,
    cell: &mut Cell,
    round: usize,
    versions: &mut BTreeMap<String, String>,
) {
    let counted = round == 0;
    let shorter = if task.quick || counted { 3 } else { 1 };
    match play(scenario, contender, &task.installed, shorter, counted) {
        Ok(outcome) => {
            versions.extend(outcome.told.first().map(|told| (contender.id.to_owned(), told.version.clone())));
            cell.error = cell.error.take().or_else(|| outcome.told.iter().find_map(|told| told.error.clone()));
            if let Some(commands) = outcome.commands {
                cell.commands_per_acquisition = Some(commands.all as f64 / outcome.counted(scenario).max(1) as f64);
                let besides = (commands.all - commands.heartbeats) as f64;
                cell.commands_per_hand_off = figures::hand_offs(&outcome).map(|all| besides / all as f64);
                return;
            }
            let mut figures = figures::of(scenario, &outcome);
            figures.insert(ROUND.to_owned(), round as f64);
            let others = figures.get("other_cores").copied().unwrap_or_default();
            say(scenario, contender, &figures);
            if others > OTHER_CORES { cell.dropped.push(figures) } else { cell.kept.push(figures) }
        }
        Err(Trouble::Lacks(lack)) => cell.trouble = Some(format!("does not apply: {lack}")),
        Err(Trouble::Failed(reason)) => cell.trouble = Some(format!("failed: {reason}")),
    }
    if let Some(trouble) = &cell.trouble {
        eprintln!("  {:<18} {trouble}", contender.id);
    }
}

fn say(scenario: &Scenario, contender: Contender, figures: &Figures) {
    let unit = scenario.main.unit();
    let value = figures.get(unit.name).map_or_else(|| "nothing".to_owned(), |value| unit.shown(*value));
    let other = figures.get("other_cores").copied().unwrap_or_default();
    eprintln!("  {:<18} {value:>16}   others {other:.2}", contender.id);
}

fn told(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

/// Family and model tell apart what is sold, or lent, under one name.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let said = |key: &str| {
        let mut values = info.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() == key);
        values.next().map_or("unknown", |(_, value)| value.trim())
    };
    let processors = info.lines().filter(|line| line.starts_with("processor")).count();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let (name, family, model) = (said("model name"), said("cpu family"), said("model"));
    format!("{processors} × {name} (family {family}, model {model}), {} GiB", kib.unwrap_or_default() / 1_048_576)
}
