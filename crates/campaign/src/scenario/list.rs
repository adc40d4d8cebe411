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
/// A call in the log of slow calls is made again so often, and the report tells how long it takes then. The log goes by the wall clock: one
/// that is slow by itself is slow each time, one whose server had to wait for a core is not.
const AGAIN: usize = 5;
/// So many of those calls are told one by one.
const SHOWN: usize = 3;
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
    let (mut seen, mut others) = (Vec::new(), HashSet::new());
    while stage.turn() {
        // No listing is there: whoever is, is none of them.
        others.extend(clients(&stage));
        seen.push(listing(&stage, &[], holds, orders.broken)?);
    }
    others.extend(clients(&stage));
    let slow: Vec<Slow> = stage.server.run("SLOWLOG GET 1000");
    let (of_others, slow): (Vec<Slow>, Vec<Slow>) =
        slow.into_iter().partition(|(.., client, _)| others.contains(client));
    let _: String = stage.server.run("CONFIG SET slowlog-log-slower-than 0");
    let again = slow.iter().map(|(.., words, _, _)| fastest(&stage, words)).collect::<io::Result<Vec<_>>>()?;
    crowd.end()?;
    hoard.end()?;
    report_all(&mut report, &seen, &few, holds, orders.slack);
    report.none(format!("calls of a listing that kept the server for {} or longer", span(brief)), slow.len());
    for ((_, _, micros, words, ..), fastest) in slow.iter().zip(again).take(SHOWN) {
        let command = words.iter().take(4).map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
        let took = span(Duration::from_micros(*micros));
        report.figure("one of them", format!("{command}: {took}, and {fastest:?} when made again"));
    }
    report.figure("calls of the holders and waiters in it", of_others.len());
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

/// How long the server takes for a call that stands in its log, the fastest of several times.
fn fastest(stage: &Stage, words: &[Vec<u8>]) -> io::Result<Duration> {
    let mut connection = stage.server.connection();
    let mut call = || -> redis::RedisResult<u64> {
        redis::cmd("SLOWLOG").arg("RESET").exec(&mut connection)?;
        // On a connection of its own: some calls, such as a subscription, change what theirs may ask.
        let mut again = redis::Cmd::new();
        again.arg(words).query::<redis::Value>(&mut stage.server.connection())?;
        let logged: Vec<Slow> = redis::cmd("SLOWLOG").arg("GET").arg(1_000).query(&mut connection)?;
        let ours = logged.iter().find(|(.., said, _, _)| said == words);
        Ok(ours.map_or(u64::MAX, |(_, _, micros, ..)| *micros))
    };
    let times = (0..AGAIN).map(|_| call()).collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.to_string()))?;
    Ok(Duration::from_micros(times.into_iter().min().unwrap_or(u64::MAX)))
}

/// The addresses of those who are there now.
fn clients(stage: &Stage) -> HashSet<String> {
    let list: String = stage.server.run("CLIENT LIST");
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
