//! What events, metrics and the log cost an uncontended pair while nobody listens: the signals of a pair by themselves,
//! beside the pair, on the memory store and on Redis (if `redis-server` is installed).
//!
//! ```sh
//! cargo bench -p bandog --bench signals     # about 10 seconds
//! ```
//!
//! Prints one table and fails if the bar is missed. Both figures are of the same run, taken in turns. How to read it:
//! `docs/benchmarks.md`.

use std::process::ExitCode;

use bandog::{Clock, LockName, Locks, Mutex};
use bandog_rig::Server;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

/// The part of a pair that its signals may take.
const BAR: f64 = 0.03;
const ROUNDS: usize = 101;
/// Signals are too short for one look at the clock.
const REPEATS: u32 = 2_000;

fn main() -> ExitCode {
    println!("{:<24} {:>12} {:>14} {:>8}  bar", "ns, median of 101 rounds", "the pair", "its signals", "part");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let near = Locks::builder().build().expect("the defaults are valid");
    // On one thread its own time: other programs do not count.
    let mut met = row("memory", &runtime, &near, 4_000, || nanos(clock_gettime(ClockId::ThreadCPUTime)));
    if bandog_rig::is_installed() {
        let server = Server::start();
        let far = runtime.block_on(Locks::connect(&server.url())).expect("a server of our own");
        met &= row("Redis, TCP", &runtime, &far, 100, || Clock::system().now().nanos());
    }
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(store: &str, runtime: &Runtime, locks: &Locks, turns: u32, clock: impl Fn() -> u64) -> bool {
    let (lock, name) = (locks.mutex("job"), LockName::new("job").expect("a name"));
    let timed = |count: u32, work: &mut dyn FnMut()| {
        let start = clock();
        work();
        (clock() - start) as f64 / f64::from(count)
    };
    let pair = || timed(turns, &mut || runtime.block_on(pairs(&lock, turns)));
    let signals = || timed(REPEATS, &mut || (0..REPEATS).for_each(|_| locks.tell_of_a_pair(&name)));
    pair();
    let (pairs, told): (Vec<f64>, Vec<f64>) = (0..ROUNDS).map(|_| (pair(), signals())).unzip();
    let (pair, told) = (median(pairs), median(told));
    let (part, bar) = (told / pair, BAR * 100.0);
    let word = if part <= BAR { "met" } else { "MISSED" };
    println!("{store:<24} {pair:>12.0} {told:>14.1} {:>7.2}%  ≤ {bar} %: {word}", part * 100.0);
    part <= BAR
}

async fn pairs(lock: &Mutex, turns: u32) {
    for _ in 0..turns {
        lock.acquire().await.expect("free").release().await.expect("held");
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn nanos(time: rustix::time::Timespec) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
