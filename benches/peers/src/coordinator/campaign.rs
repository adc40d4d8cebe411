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
    for scenario in &task.scenarios {
        let played = one(task, scenario, (&record.commit, &record.machine), &mut record.versions);
        record.scenarios.push(played);
        record.took_seconds = (now() - start) as f64 / 1e9;
        // After each, so that a run of an hour that is cut off has not been for nothing.
        if let Some(path) = &task.json {
            record::write(path, &record)?;
        }
    }
    Ok(record)
}

fn one(
    task: &Task,
    scenario: &Scenario,
    (commit, machine): (&str, &str),
    versions: &mut BTreeMap<String, String>,
) -> Played {
    eprintln!("({}) {}", scenario.letter, scenario.title);
    let wanted = |contender: &Contender| {
        task.contenders.is_empty() || task.contenders.iter().any(|wanted| wanted.id == contender.id)
    };
    let contenders: Vec<Contender> = scenario.who().filter_map(find).filter(wanted).collect();
    let mut cells: Vec<Cell> = contenders
        .iter()
        .map(|contender| Cell {
            contender: contender.id.to_owned(),
            trouble: task.installed.trouble(*contender),
            ..Cell::default()
        })
        .collect();
    let rounds = task.rounds;
    // The first time round counts commands; it is not timed.
    let first = usize::from(!scenario.counts);
    for round in first..=rounds * (1 + SPARE) {
        // Each begins with another, so that nobody always follows the same one.
        for place in 0..contenders.len() {
            let at = (place + round) % contenders.len();
            let (contender, cell) = (contenders[at], &mut cells[at]);
            if cell.trouble.is_none() && cell.kept.len() < scenario.rounds(contender.id, rounds) {
                run_once(task, scenario, contender, cell, round, versions);
            }
        }
    }
    let (id, title) = (scenario.id.to_owned(), scenario.title.to_owned());
    Played { id, title, letter: scenario.letter, commit: commit.to_owned(), machine: machine.to_owned(), cells }
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
                cell.commands_per_acquisition = Some(commands as f64 / outcome.counted(scenario).max(1) as f64);
                cell.commands_per_hand_off = figures::hand_offs(&outcome).map(|all| commands as f64 / all as f64);
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

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let processors = info.lines().filter(|line| line.starts_with("processor")).count();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().trim_end_matches(" kB").parse::<u64>().ok());
    format!("{} × {}, {} GiB", processors, model.unwrap_or("unknown"), kib.unwrap_or_default() / 1_048_576)
}
