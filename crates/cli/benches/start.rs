//! How long `bandog run` takes to the first instruction of its command, beside `flock(1)`: both in one run, turn by turn.
//!
//! ```sh
//! cargo bench -p bandog-cli --bench start              # about 10 seconds
//! cargo bench -p bandog-cli --bench start -- --quick
//! ```
//!
//! Also prints what a waiting `bandog run` weighs (resident memory, its supervisor apart) and the size of the binary. The
//! command that is run is this program itself, which prints the clock and ends. Fails if an aim is missed; see
//! `docs/benchmarks.md`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const BANDOG: &str = env!("CARGO_BIN_EXE_bandog");
/// Start to the first instruction of the command, in milliseconds.
const START_AIM: f64 = 8.0;
/// Resident memory of a wrapper that waits, in kilobytes.
const MEMORY_AIM: u64 = 12 * 1024;

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--stamp") {
        println!("{}", now());
        return ExitCode::SUCCESS;
    }
    let rounds = if std::env::args().any(|arg| arg == "--quick") { 60 } else { 300 };
    let stage = Stage::new();
    let start = starts(&stage, rounds);
    let memory = memory(&stage);
    let size = fs::metadata(BANDOG).unwrap().len();
    println!("binary: {:.1} MB (release, not stripped)", size as f64 / 1e6);
    if start <= START_AIM && memory <= MEMORY_AIM { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A folder of its own, taken away at the end.
struct Stage(PathBuf);

impl Stage {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("bandog-start-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn bandog(&self) -> Command {
        let mut command = Command::new(BANDOG);
        command.env("BANDOG_STORE", format!("sqlite:{}", self.0.join("locks.db").display()));
        command.args(["run", "start"]);
        command
    }

    fn flock(&self) -> Command {
        let mut command = Command::new("flock");
        command.arg(self.0.join("lock"));
        command
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Milliseconds from before the start to the command's first line, and to the end of it all.
fn turn(mut command: Command) -> [f64; 2] {
    let began = now();
    let output = command.stdout(Stdio::piped()).output().unwrap();
    let ended = now();
    let first: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    [first, ended].map(|at| (at - began) as f64 / 1e6)
}

fn starts(stage: &Stage, rounds: usize) -> f64 {
    let stamp = std::env::current_exe().unwrap();
    let stamp = [stamp.to_str().unwrap(), "--stamp"];
    let lines: [(&str, &dyn Fn() -> Command); 3] = [
        ("no lock", &|| {
            let mut command = Command::new(stamp[0]);
            command.args(&stamp[1..]);
            command
        }),
        ("flock(1)", &|| {
            let mut command = stage.flock();
            command.args(stamp);
            command
        }),
        ("bandog run", &|| {
            let mut command = stage.bandog();
            command.arg("--").args(stamp);
            command
        }),
    ];
    let mut times = lines.map(|_| Vec::new());
    for round in 0..rounds + 5 {
        for (which, (_, command)) in lines.iter().enumerate() {
            let time = turn(command());
            // The first rounds warm the caches and make the store.
            if round >= 5 {
                times[which].push(time);
            }
        }
    }
    println!("{:<12} {:>24} {:>24}", "ms", "to the first instruction", "to the end");
    let mut median = 0.0;
    for ((name, _), times) in lines.iter().zip(&times) {
        let [first, end] = [0, 1].map(|column| spread(times.iter().map(|time| time[column]).collect()));
        println!("{name:<12} {:>24} {:>24}", show(first), show(end));
        median = first[1];
    }
    println!("aim: at most {START_AIM} ms to the first instruction; {rounds} rounds, in brackets the middle 80 %");
    median
}

fn spread(mut times: Vec<f64>) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [times[times.len() / 10], times[times.len() / 2], times[times.len() * 9 / 10]]
}

fn show([low, median, high]: [f64; 3]) -> String {
    format!("{median:.1} ({low:.1} to {high:.1})")
}

fn memory(stage: &Stage) -> u64 {
    let ready = stage.0.join("ready");
    let mut holder = stage.bandog();
    holder.args(["-c", &format!("touch {}; exec sleep 60", ready.display())]);
    let holder = Running(holder.spawn().unwrap());
    await_file(&ready);
    let waiter = Running(stage.bandog().args(["--", "true"]).stderr(Stdio::null()).spawn().unwrap());
    // Long enough to have everything that a wait needs.
    std::thread::sleep(Duration::from_secs(2));
    let resident = resident(waiter.0.id());
    let supervisor = children(waiter.0.id()).into_iter().map(self::resident).sum::<u64>();
    println!(
        "waiting bandog run: {resident} kB resident, its supervisor {supervisor} kB; aim: at most {MEMORY_AIM} kB"
    );
    drop(waiter);
    drop(holder);
    resident
}

/// Ended with TERM, so that it cleans up after itself.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

fn await_file(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}
