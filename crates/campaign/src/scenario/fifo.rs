//! `fifo`: four processes of fair waiters, async and blocking, and nobody is passed by who came later.
//!
//! Each claim is noted where it goes to the store and where the store's answer "queued" comes back: it got its place in between. If one
//! was told before another was sent, the one must have the lower token. The history checker compares all of them, and looks at
//! exclusion and the order of tokens too.

use std::collections::BTreeMap;
use std::io;

use bandog_conformance::history::{History, Hold, Place};
use bandog_core::mode::Mode;

use crate::args::{Break, Duty, Orders, Role, Style};
use crate::crew::{Worker, numbers, wrong};
use crate::report::Report;
use crate::stage::Stage;

use super::ending::nothing_left;
use super::puppets::{Terms, duty};

const PROCESSES: usize = 4;
const HANDS: u64 = 8;
const LOCKS: u64 = 4;
const LEASE: std::time::Duration = std::time::Duration::from_secs(10);

/// One hold, as its worker told it.
#[derive(Debug, Clone, Copy)]
struct Turn {
    lock: u64,
    hold: Hold,
    /// Whether its claim was not seen on its way to the store: a local pass.
    unseen: bool,
}

pub(super) fn play(count: usize, orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("fifo", count, orders)?;
    let broken = stage.broken.then_some(Break::Unfair);
    let base = duty(&stage, Role::Line, Terms { broken, ..Terms::new(Style::Async, LEASE) });
    let rounds = (count as u64).div_ceil(PROCESSES as u64 * HANDS);
    let start = |n: usize| {
        let number = n as u64;
        Worker::start(&Duty { style: Style::nth(n), number, hands: HANDS, locks: LOCKS, rounds, ..base.clone() })
    };
    let mut crew = (0..PROCESSES).map(start).collect::<io::Result<Vec<_>>>()?;
    crew.iter_mut().try_for_each(|worker| worker.expect("ready").map(drop))?;
    crew.iter_mut().try_for_each(|worker| worker.tell("go"))?;
    let turns = std::thread::scope(|scope| {
        let stage = &stage;
        let listeners: Vec<_> = crew.iter_mut().map(|worker| scope.spawn(move || gather(stage, worker))).collect();
        let lines = listeners.into_iter().map(|it| it.join().unwrap_or_else(|_| Err(wrong("a listener panicked"))));
        lines.collect::<io::Result<Vec<_>>>()
    })?;
    crew.iter_mut().try_for_each(Worker::end)?;
    let mut report = judge(&turns.concat());
    nothing_left(&stage, &mut report)?;
    stage.finish(report)
}

fn gather(stage: &Stage, worker: &mut Worker) -> io::Result<Vec<Turn>> {
    let mut turns = Vec::new();
    loop {
        let line = worker.hear()?.ok_or_else(|| wrong("a worker ended before it was done"))?;
        if line == "done" {
            return Ok(turns);
        }
        stage.turn();
        turns.push(turn(&line).ok_or_else(|| wrong(format!("a worker said {line:?}")))?);
    }
}

/// What a line tells of.
fn turn(line: &str) -> Option<Turn> {
    let [lock, owner, token, asked, granted, place, told, from, to] = numbers(line, "hold")?[..] else { return None };
    let hold = Hold::new(owner, token, Mode::Exclusive, asked, granted).released(from, to);
    // One whose own claim was not seen still came when it asked: it may pass others.
    Some(Turn { lock, hold: if place == 1 { hold.queued(told) } else { hold }, unseen: place == 2 })
}

fn judge(turns: &[Turn]) -> Report {
    let mut histories: BTreeMap<u64, History> = BTreeMap::new();
    for Turn { lock, hold, .. } in turns {
        histories.entry(*lock).or_default().holds.push(*hold);
    }
    let found: Vec<_> = histories.values().map(History::check).collect();
    let count = |of: u64| usize::try_from(of).unwrap_or(usize::MAX);
    let mut report = Report::new("fifo");
    let inversions = found.iter().map(|found| count(found.fairness.inversions)).sum();
    report.none("grants that passed a waiter who was there before", inversions);
    let violations = found.iter().flat_map(|found| found.checks()).map(|(_, findings)| count(findings.count)).sum();
    report.none("violations of exclusion and of the order of tokens", violations);
    report.none("grants whose claim was not seen on its way", turns.iter().filter(|turn| turn.unseen).count());
    let queued = turns.iter().filter(|turn| matches!(turn.hold.place, Place::Queued(_))).count();
    report.figure("grants", turns.len());
    report.figure("of them after a place in the queue", queued);
    report.figure("processes, waiters in each, locks", format!("{PROCESSES}, {HANDS}, {LOCKS}"));
    if let Some(wrong) = found.iter().find(|found| !found.is_safe() || !found.is_fair()) {
        report.figure("the first history that is wrong", wrong);
    }
    report
}
