//! `bandog ls` over many locks, one of them with a crowd: its first lines are there soon, its memory does not grow with the locks, and no call of it keeps
//! the server from others.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::args::{Orders, Role, Style};
use crate::clock::nanos;
use crate::crew::{Worker, is_over, wrong};
use crate::report::{Report, span};
use crate::stage::Stage;

use super::hoard::{Hoard, LEASE};
use super::puppets::{Terms, duty, until_queued};

const HOLDS: u64 = 100_000;
/// So many wait for one of the locks, of so many clients: a heartbeat names all who wait at its client.
const CROWD: usize = 5_000;
const CLIENTS: usize = 25;
const ROUNDS: usize = 5;
/// The bar for the first line is this and the slack.
const SOON: Duration = Duration::from_millis(100);
/// No call may keep the server for longer than this part of the slack.
const BRIEF: u32 = 20;
/// How much more memory a listing of all may take than one of a few, in KiB.
const GROWTH: u64 = 4 * 1024;
/// Lines left unread keep a listing alive while its memory is looked at: more than a pipe holds.
const UNREAD: usize = 2_000;
/// A listing of a few.
const FEW: u64 = UNREAD as u64 * 2;

/// An entry of the server's log of slow calls: number, time, microseconds, words, client and its name.
type Slow = (u64, u64, u64, Vec<Vec<u8>>, String, String);

pub(super) fn play(orders: &Orders) -> io::Result<Report> {
    let holds = orders.holds.unwrap_or(HOLDS).max(FEW);
    let stage = Stage::new("list", ROUNDS, orders)?;
    let mut report = Report::new("list");
    report.figure("locks, waiters for one of them", format!("{holds}, {CROWD}"));
    let hoard = Hoard::start(&stage, 1, holds, LEASE)?;
    let mut crowd = crowd(&stage)?;
    let brief = if orders.broken { Duration::ZERO } else { orders.slack / BRIEF };
    let _: String = stage.server.run(&format!("CONFIG SET slowlog-log-slower-than {}", brief.as_micros()));
    let _: String = stage.server.run("CONFIG SET slowlog-max-len 1000");
    let _: String = stage.server.run("SLOWLOG RESET");
    let few = listing(&stage, &["--limit", &FEW.to_string()], FEW, false)?;
    let mut seen = Vec::new();
    while stage.turn() {
        seen.push(listing(&stage, &[], holds, orders.broken)?);
    }
    let slow: Vec<Slow> = stage.server.run("SLOWLOG GET 1000");
    // The listings are over: whoever is still there was not one of them.
    let others = clients(&stage.server.run::<String>("CLIENT LIST"));
    let (of_others, slow): (Vec<Slow>, Vec<Slow>) =
        slow.into_iter().partition(|(.., client, _)| others.contains(client));
    crowd.end()?;
    hoard.end()?;
    report_all(&mut report, &seen, &few, holds, orders.slack);
    report.none(format!("calls of a listing that kept the server for {} or longer", span(brief)), slow.len());
    report.figure("such calls of the holders and waiters", of_others.len());
    if let Some((_, _, micros, words, ..)) = slow.iter().max_by_key(|(_, _, micros, ..)| micros) {
        let command = words.iter().take(4).map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
        report.figure("the longest of them", format!("{command}, {}", span(Duration::from_micros(*micros))));
    }
    stage.finish(report)
}

/// A process whose tasks stand in line for the first lock.
fn crowd(stage: &Stage) -> io::Result<Worker> {
    let mut worker = Worker::start(&duty(stage, Role::Crowd, Terms::new(Style::Async, LEASE)))?;
    worker.expect("ready")?;
    for _ in 0..CLIENTS {
        worker.tell(&format!("line hoard-1-0 {}", CROWD / CLIENTS))?;
    }
    until_queued(stage, "hoard-1-0", CROWD)?;
    Ok(worker)
}

/// The addresses of those who are there now.
fn clients(list: &str) -> HashSet<String> {
    let address = |line: &str| line.split(' ').find_map(|word| word.strip_prefix("addr=")).map(str::to_owned);
    list.lines().filter_map(address).collect()
}

fn report_all(report: &mut Report, seen: &[Seen], few: &Seen, holds: u64, slack: Duration) {
    let mut firsts: Vec<u64> = seen.iter().map(|seen| seen.first).collect();
    firsts.sort_unstable();
    let median = Duration::from_nanos(firsts.get(firsts.len() / 2).copied().unwrap_or(u64::MAX));
    let limit = SOON + slack;
    report.bar("first line after, median", format!("≤ {}", span(limit)), span(median), median <= limit);
    let peak = seen.iter().map(|seen| seen.memory).max().unwrap_or(u64::MAX);
    let growth = peak.saturating_sub(few.memory);
    let most = format!("≤ {GROWTH} KiB");
    report.bar(format!("memory beyond that of a listing of {FEW}"), most, format!("{growth} KiB"), growth <= GROWTH);
    let missing = seen.iter().filter(|seen| seen.lines != holds).count();
    report.none("listings without every lock", missing);
    report.spread("first line after", firsts);
    report.spread("all lines after", seen.iter().map(|seen| seen.all));
    report.figure("memory at its peak", format!("{peak} KiB"));
}

/// What was seen of one listing.
struct Seen {
    /// Nanoseconds to the first line, and to the end.
    first: u64,
    all: u64,
    lines: u64,
    /// At its peak, in KiB.
    memory: u64,
}

fn listing(stage: &Stage, options: &[&str], expected: u64, broken: bool) -> io::Result<Seen> {
    let (url, pattern) = (stage.server.url(), if broken { "hoard-1-?*[1-9]" } else { "*" });
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("bandog").args(broken.then_some("--broken")).args(["--", "ls", pattern, "--store", &url]);
    command.args(options).stdout(Stdio::piped()).stderr(Stdio::null());
    let began = nanos();
    let mut process = Process(command.spawn()?);
    let out = process.0.stdout.take().ok_or_else(|| wrong("no standard output"))?;
    let mut lines = BufReader::new(out).lines().skip(1);
    lines.next().ok_or_else(|| wrong("ls printed nothing"))??;
    let mut seen = Seen { first: nanos() - began, all: 0, lines: 1, memory: 0 };
    for line in lines {
        line?;
        seen.lines += 1;
        if seen.lines + UNREAD as u64 == expected || seen.memory == 0 {
            seen.memory = seen.memory.max(peak(process.0.id())?);
        }
        if is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    seen.all = nanos() - began;
    Ok(seen)
}

/// Ended when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The most memory that a process had so far, in KiB.
fn peak(id: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    number.ok_or_else(|| wrong("a process without a peak of memory"))
}
