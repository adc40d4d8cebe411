//! One run of one contender in one scenario: a fresh server, its processes, and what they and the kernel say.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use bandog_rig::Server;
use peers::clock::now;
use peers::histogram::Histogram;
use peers::stamps::{self, Stamp};
use serde::Deserialize;

use crate::contenders::{Contender, Installed};
use crate::delay;
use crate::meter::{Reading, Used, memory_kib, process_seconds};
use crate::monitor::{Commands, Monitor};
use crate::process::{Process, Trouble, pin};
use crate::scenarios::Scenario;

/// For what takes no time by itself. To look after a million locks takes some.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one process is waited for before another is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// The line of one process.
#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    pub(crate) version: String,
    rss_before_kib: f64,
    pub(crate) elapsed_ns: u64,
    complete_ns: u64,
    pub(crate) acquisitions: Vec<u64>,
    wait: BTreeMap<usize, u64>,
    wait_max_ns: u64,
    pair: BTreeMap<usize, u64>,
    pair_max_ns: u64,
    still_waiting_ns: u64,
    pub(crate) errors: u64,
    pub(crate) error: Option<String>,
    pub(crate) lost: u64,
}

/// All processes together.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) told: Vec<Told>,
    pub(crate) used: Used,
    /// Of all processes, shortly before they end, beyond what they had before they began.
    pub(crate) grown_kib: f64,
    pub(crate) peak_kib: f64,
    /// Whether everybody had come when they were weighed.
    pub(crate) weighed_all: bool,
    /// By number of the process.
    pub(crate) stamps: Vec<(usize, Stamp)>,
    /// When everybody had come.
    pub(crate) complete: u64,
    pub(crate) commands: Option<Commands>,
    /// At the server, when they were weighed.
    pub(crate) keys: u64,
    pub(crate) server_bytes: u64,
    /// When: of a crowd since it had formed, and until the first of the processes was over.
    pub(crate) counted: Range<u64>,
}

impl Outcome {
    pub(crate) fn acquisitions(&self) -> u64 {
        self.told.iter().flat_map(|told| &told.acquisitions).sum()
    }

    pub(crate) fn waits(&self) -> Histogram {
        self.merged(|told| Histogram::from_sparse(&told.wait, told.wait_max_ns))
    }

    pub(crate) fn pairs(&self) -> Histogram {
        self.merged(|told| Histogram::from_sparse(&told.pair, told.pair_max_ns))
    }

    fn merged(&self, of: impl Fn(&Told) -> Histogram) -> Histogram {
        let mut all = Histogram::default();
        self.told.iter().for_each(|told| all.merge(&of(told)));
        all
    }

    /// The acquisitions for which commands were counted.
    pub(crate) fn counted(&self, scenario: &Scenario) -> u64 {
        match scenario.is_crowded() {
            true => self.stamps.iter().filter(|(_, stamp)| self.counted.contains(&stamp.held)).count() as u64,
            false => self.acquisitions(),
        }
    }

    /// The longest wait, over or not.
    pub(crate) fn worst_wait(&self) -> u64 {
        self.told.iter().map(|told| told.wait_max_ns.max(told.still_waiting_ns)).max().unwrap_or_default()
    }
}

/// Plays it. `shorter` divides the length; `counted` has the commands counted, and then nothing else is worth much.
pub(crate) fn play(
    scenario: &Scenario,
    contender: Contender,
    installed: &Installed,
    shorter: u32,
    counted: bool,
) -> Result<Outcome, Trouble> {
    let server = Server::with(&["--maxclients", "15000"]);
    let service = server.pid().as_raw_pid().unsigned_abs();
    let port = match scenario.delay_us {
        Some(delay) => delay::start(server.port, Duration::from_micros(delay.into())).map_err(failed)?,
        None => server.port,
    };
    let ms = scenario.ms(contender.id) / shorter;
    let length = Duration::from_millis(ms.into());
    let mut processes = Vec::new();
    for number in 0..scenario.processes {
        let mut command = installed.command(contender);
        command.args(words(scenario, contender, port, number, ms)).args(stamps_word(scenario, &server, number));
        // What it leaves there goes with the server.
        command.env("TMPDIR", server.directory());
        processes.push(Process::start(command)?);
    }
    let patience = Duration::from_secs(scenario.patience.into());
    processes.iter().try_for_each(|process| process.ready(patience))?;
    if scenario.pinned {
        processes.iter().try_for_each(|process| pin(process.id(), 0))?;
        pin(service, 1)?;
    }
    let monitor = counted.then(|| Monitor::start(&server.socket())).transpose().map_err(failed)?;
    let mut before_commands = monitor.as_ref().map(Monitor::seen);
    let ids: Vec<u32> = processes.iter().map(Process::id).collect();
    let before = Reading::take(service, &ids);
    processes.iter_mut().for_each(Process::go);
    // The time of each process begins when all its tasks have.
    let begun = processes.iter().map(|process| process.word("all", patience)).collect::<Result<Vec<_>, _>>()?;
    let start = begun.into_iter().min().unwrap_or_else(now);
    let mut counted_from = 0;
    if let Some(monitor) = monitor.as_ref().filter(|_| scenario.is_crowded()) {
        sleep_until(start, length / 2);
        (before_commands, counted_from) = (Some(monitor.seen()), now());
    }
    // Before anybody makes its report, which takes memory as well.
    sleep_until(start, length * 19 / 20);
    let resident: f64 = ids.iter().map(|id| memory_kib(*id, "VmRSS")).sum();
    let weighed = now();
    let (keys, server_bytes) = if scenario.play == "hold" { weigh(&server).map_err(failed)? } else { (0, 0) };
    let Ending { counted_until, commands, done } = Ending::wait(&processes, monitor.as_ref(), length + PATIENCE)?;
    let used = before.until(&Reading::take(service, &ids), done);
    let commands = commands.map(|commands| commands.since(before_commands.unwrap_or_default()));
    let lines = processes.iter().map(|process| process.line(PATIENCE)).collect::<Result<Vec<_>, _>>()?;
    let told = lines.iter().map(|(_, line)| serde_json::from_str(line));
    let told = told.collect::<Result<Vec<Told>, _>>().map_err(failed)?;
    let peak_kib = ids.iter().map(|id| memory_kib(*id, "VmHWM")).sum();
    let grown_kib = resident - told.iter().map(|told| told.rss_before_kib).sum::<f64>();
    let complete = told.iter().map(|told| told.complete_ns).max().unwrap_or_default();
    let weighed_all = complete <= weighed;
    drop(processes);
    let mut all = Vec::new();
    for number in 0..scenario.processes {
        let Some(path) = stamps_path(scenario, &server, number) else { break };
        all.extend(stamps::read(&path).map_err(failed)?.into_iter().map(|stamp| (number, stamp)));
    }
    Ok(Outcome {
        told,
        used,
        grown_kib,
        peak_kib,
        weighed_all,
        stamps: all,
        complete,
        commands,
        keys,
        server_bytes,
        counted: counted_from..counted_until,
    })
}

/// How a game ended.
struct Ending {
    /// The first of them was over.
    counted_until: u64,
    commands: Option<Commands>,
    /// What the processors had done for each process when its game was over.
    done: f64,
}

impl Ending {
    /// Each is looked at when it says so: one that is slow to begin is also the last to end.
    fn wait(processes: &[Process], monitor: Option<&Monitor>, within: Duration) -> Result<Self, Trouble> {
        let mut ending = Self { counted_until: 0, commands: None, done: 0.0 };
        let (mut running, until): (Vec<&Process>, _) = (processes.iter().collect(), now() + within.as_nanos() as u64);
        while let Some(process) = running.first().copied() {
            running.rotate_left(1);
            let Some((at, word)) = process.next(LOOK)? else {
                if now() > until {
                    return Err(Trouble::Failed(format!("its game was not over after {} s", within.as_secs())));
                }
                continue;
            };
            if word != "done" {
                return Err(Trouble::Failed(format!("not done, but {word:?}")));
            }
            running.pop();
            ending.done += process_seconds(process.id());
            if ending.counted_until == 0 {
                (ending.counted_until, ending.commands) = (at, monitor.map(Monitor::seen));
            }
        }
        Ok(ending)
    }
}

/// How many keys there are at a server, and what it has in memory.
fn weigh(server: &Server) -> Result<(u64, u64), redis::RedisError> {
    let memory: String = server.try_run("INFO memory")?;
    let bytes = memory.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok());
    Ok((server.try_run("DBSIZE")?, bytes.unwrap_or_default()))
}

fn failed(error: impl std::fmt::Display) -> Trouble {
    Trouble::Failed(error.to_string())
}

fn words(scenario: &Scenario, contender: Contender, port: u16, process: usize, ms: u32) -> Vec<String> {
    // A virtual machine compiles as it goes, and gets the time for it.
    let warm_ms = match contender.language {
        "java" => 15_000,
        "node" => 2_000,
        _ => 300,
    };
    vec![
        format!("peer={}", contender.id),
        format!("play={}", scenario.play),
        format!("url=redis://127.0.0.1:{port}"),
        format!("port={port}"),
        "name=job".to_owned(),
        format!("process={process}"),
        format!("processes={}", scenario.processes),
        format!("tasks={}", scenario.share(process)),
        format!("ms={ms}"),
        format!("section_us={}", scenario.section_us),
        format!("pause_us={}", scenario.pause_us),
        format!("step_us={}", scenario.step_us),
        format!("warm_ms={warm_ms}"),
    ]
}

fn stamps_path(scenario: &Scenario, server: &Server, process: usize) -> Option<PathBuf> {
    scenario.stamps.then(|| server.directory().join(format!("stamps-{process}")))
}

fn stamps_word(scenario: &Scenario, server: &Server, process: usize) -> Option<String> {
    stamps_path(scenario, server, process).map(|path| format!("stamps={}", path.display()))
}

/// Sleeps until so much has passed.
fn sleep_until(start: u64, passed: Duration) {
    std::thread::sleep(passed.saturating_sub(Duration::from_nanos(now() - start)));
}
