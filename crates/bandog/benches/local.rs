//! What a lock costs inside one process, beside `tokio::sync::Mutex`: both in one run, turn by turn.
//!
//! ```sh
//! cargo bench -p bandog --bench local              # about 20 seconds
//! cargo bench -p bandog --bench local -- --quick   # about 5 seconds
//! ```
//!
//! Prints one table and fails if a bar is missed. Every bar but one is a ratio of two figures of the same run, so a slow
//! machine does not fail it; and what runs on one thread is measured in that thread's own time, so a busy machine does
//! not either. How to read the table: `docs/benchmarks.md`.

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bandog::{Clock, Locks, Owner};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime, RuntimeFlavor};
use tokio::sync::{Mutex, Notify};
use tokio::task::yield_now;

/// A hand-off between local waiters, times tokio's.
const HAND_OFF_BAR: f64 = 5.0;
/// Entering and leaving again, in nanoseconds.
const REENTRY_BAR: f64 = 200.0;
/// How much more a hand-off costs with 10,000 waiters than with 2, times tokio's.
const GROWTH_BAR: f64 = 1.3;
const WAITERS: [usize; 5] = [2, 16, 128, 1_000, 10_000];

fn main() -> ExitCode {
    let effort = if std::env::args().any(|arg| arg == "--quick") { Effort::QUICK } else { Effort::FULL };
    let locks = Locks::builder().build().expect("the defaults are valid");
    let mut report = Report::new();
    uncontended(&effort, &locks, &mut report);
    reentry(&effort, &locks, &mut report);
    contended(&effort, &locks, &mut report);
    growth(&effort, &locks, &mut report);
    report.verdict()
}

/// How often and how long to measure.
struct Effort {
    rounds: usize,
    turns: usize,
}

impl Effort {
    const FULL: Self = Self { rounds: 301, turns: 4_000 };
    const QUICK: Self = Self { rounds: 61, turns: 4_000 };
}

/// A lock of either kind.
trait Lock: Clone + Send + Sync + 'static {
    /// Acquires and releases.
    fn turn(&self) -> impl Future<Output = ()> + Send;

    /// Acquires, and releases when the future is told to.
    fn hold(&self, during: impl Future<Output = u64> + Send) -> impl Future<Output = u64> + Send;
}

impl Lock for Arc<Mutex<()>> {
    async fn turn(&self) {
        drop(self.lock().await);
    }

    async fn hold(&self, during: impl Future<Output = u64> + Send) -> u64 {
        let _guard = self.lock().await;
        during.await
    }
}

impl Lock for bandog::Mutex {
    async fn turn(&self) {
        drop(self.acquire().await.expect("the memory store does not fail"));
    }

    async fn hold(&self, during: impl Future<Output = u64> + Send) -> u64 {
        let _guard = self.acquire().await.expect("the memory store does not fail");
        during.await
    }
}

/// Makes a request for every turn, as most code does.
#[derive(Clone)]
struct ByName(Locks);

impl Lock for ByName {
    async fn turn(&self) {
        self.0.mutex("by name").turn().await;
    }

    async fn hold(&self, during: impl Future<Output = u64> + Send) -> u64 {
        self.0.mutex("by name").hold(during).await
    }
}

fn uncontended(effort: &Effort, locks: &Locks, report: &mut Report) {
    let (runtime, plain) = (current_thread(), Arc::new(Mutex::new(())));
    let kept = locks.mutex("kept");
    let name = "uncontended acquire + release";
    let pair = Pair::measure(effort, || alone(effort, &runtime, &plain), || alone(effort, &runtime, &kept));
    report.row(name, &pair, None);
    let by_name = ByName(locks.clone());
    let pair = Pair::measure(effort, || alone(effort, &runtime, &plain), || alone(effort, &runtime, &by_name));
    report.row("the same, request made each time", &pair, None);
}

fn reentry(effort: &Effort, locks: &Locks, report: &mut Report) {
    let (runtime, me) = (current_thread(), Owner::new());
    let request = locks.mutex("re-entry").owner(&me).reentrant();
    let outer = runtime.block_on(request.acquire()).expect("nobody else wants it");
    let samples = Samples((0..effort.rounds).map(|_| alone(effort, &runtime, &request)).collect());
    drop(outer);
    report.single("re-entry, enter + leave", &samples, REENTRY_BAR);
}

fn contended(effort: &Effort, locks: &Locks, report: &mut Report) {
    for (name, runtime) in [("one thread", current_thread()), ("2 workers", two_workers())] {
        let pair = hand_offs(effort, &runtime, locks, 16);
        report.row(&format!("hand-off among 16 tasks, {name}"), &pair, Some(HAND_OFF_BAR));
    }
}

fn growth(effort: &Effort, locks: &Locks, report: &mut Report) {
    let runtime = current_thread();
    let measured = WAITERS.map(|waiters| {
        let pair = hand_offs(effort, &runtime, locks, waiters);
        report.row(&format!("hand-off, {waiters} waiters, one thread"), &pair, None);
        pair
    });
    let [few, .., many] = measured;
    let (plain, ours) = (many.tokio.median() / few.tokio.median(), many.bandog.median() / few.bandog.median());
    report.growth(plain, ours);
}

fn hand_offs(effort: &Effort, runtime: &Runtime, locks: &Locks, waiters: usize) -> Pair {
    let (plain, ours) = (Arc::new(Mutex::new(())), locks.mutex(format!("queue of {waiters}")));
    Pair::measure(effort, || queue(effort, runtime, &plain, waiters), || queue(effort, runtime, &ours, waiters))
}

/// Nanoseconds per turn of a single task.
fn alone(effort: &Effort, runtime: &Runtime, lock: &impl Lock) -> f64 {
    let now = stopwatch(runtime);
    let took = runtime.block_on(async {
        let start = now();
        for _ in 0..effort.turns {
            lock.turn().await;
        }
        now() - start
    });
    per(took, effort.turns)
}

/// Nanoseconds per hand-off among tasks that take turns until each has had its share.
///
/// All of them stand in line before the clock starts; from then on whoever leaves goes to the end of the line.
fn queue(effort: &Effort, runtime: &Runtime, lock: &impl Lock, waiters: usize) -> f64 {
    let turns = effort.turns.div_ceil(waiters).max(4);
    let now = stopwatch(runtime);
    let race = Arc::new(Race { left: AtomicUsize::new(waiters), ..Race::default() });
    let start = runtime.block_on(lock.hold(async {
        for _ in 0..waiters {
            tokio::spawn(Arc::clone(&race).run(lock.clone(), turns, now));
        }
        while race.ready.load(Ordering::Acquire) < waiters {
            yield_now().await;
        }
        now()
    }));
    runtime.block_on(race.over.notified());
    per(race.end.load(Ordering::Acquire) - start, waiters * turns)
}

#[derive(Default)]
struct Race {
    ready: AtomicUsize,
    left: AtomicUsize,
    end: AtomicU64,
    over: Notify,
}

impl Race {
    async fn run(self: Arc<Self>, lock: impl Lock, turns: usize, now: Stopwatch) {
        let mut first = std::pin::pin!(lock.turn());
        // Counted once it stands in line, not before.
        let mut queued = false;
        std::future::poll_fn(|cx| {
            let poll = first.as_mut().poll(cx);
            if !std::mem::replace(&mut queued, true) {
                self.ready.fetch_add(1, Ordering::AcqRel);
            }
            poll
        })
        .await;
        for _ in 1..turns {
            lock.turn().await;
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end.store(now(), Ordering::Release);
            self.over.notify_one();
        }
    }
}

/// What was measured, in nanoseconds, in the order of the rounds.
struct Samples(Vec<f64>);

impl Samples {
    fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index into a short list")]
        let at = ((sorted.len() - 1) as f64 * part).round() as usize;
        sorted[at]
    }

    fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Both locks under the same load.
struct Pair {
    tokio: Samples,
    bandog: Samples,
}

impl Pair {
    /// One after the other, round by round: what disturbs one disturbs the other.
    fn measure(effort: &Effort, mut tokio: impl FnMut() -> f64, mut bandog: impl FnMut() -> f64) -> Self {
        // Once for the caches.
        tokio();
        bandog();
        let (plain, ours) = (0..effort.rounds).map(|_| (tokio(), bandog())).unzip();
        Self { tokio: Samples(plain), bandog: Samples(ours) }
    }

    /// The ratio of each round.
    fn ratio(&self) -> f64 {
        Samples(self.tokio.0.iter().zip(&self.bandog.0).map(|(plain, ours)| ours / plain).collect()).median()
    }
}

/// The table, and whether every bar was met.
struct Report {
    missed: usize,
}

impl Report {
    fn new() -> Self {
        println!("{:<40} {:>20} {:>22} {:>7}  bar", "ns, median (10 % to 90 %)", "tokio Mutex", "bandog", "ratio");
        Self { missed: 0 }
    }

    fn row(&mut self, name: &str, pair: &Pair, bar: Option<f64>) {
        let ratio = pair.ratio();
        let bar = bar.map_or(String::new(), |bar| self.bar(ratio, bar, "×"));
        println!("{name:<40} {:>20} {:>22} {ratio:>6.2}×  {bar}", shown(&pair.tokio), shown(&pair.bandog));
    }

    fn single(&mut self, name: &str, samples: &Samples, bar: f64) {
        let bar = self.bar(samples.median(), bar, " ns");
        println!("{name:<40} {:>20} {:>22} {:>7}  {bar}", "-", shown(samples), "");
    }

    fn growth(&mut self, plain: f64, ours: f64) {
        let bar = self.bar(ours / plain, GROWTH_BAR, "×");
        let [few, .., many] = WAITERS;
        let name = format!("growth from {few} to {many} waiters");
        println!("{name:<40} {plain:>19.2}× {ours:>21.2}× {:>6.2}×  {bar}", ours / plain);
    }

    fn bar(&mut self, value: f64, bar: f64, unit: &str) -> String {
        let met = value <= bar;
        self.missed += usize::from(!met);
        format!("≤ {bar}{unit}: {}", if met { "met" } else { "MISSED" })
    }

    fn verdict(&self) -> ExitCode {
        match self.missed {
            0 => ExitCode::SUCCESS,
            missed => {
                println!("{missed} bars missed");
                ExitCode::FAILURE
            }
        }
    }
}

fn shown(samples: &Samples) -> String {
    format!("{:.0} ({:.0} to {:.0})", samples.median(), samples.quantile(0.1), samples.quantile(0.9))
}

fn per(nanos: u64, turns: usize) -> f64 {
    nanos as f64 / turns as f64
}

/// Reads nanoseconds.
type Stopwatch = fn() -> u64;

/// On one thread, the time that it ran: other programs do not count. On several, the time that passed.
fn stopwatch(runtime: &Runtime) -> Stopwatch {
    match runtime.handle().runtime_flavor() {
        RuntimeFlavor::CurrentThread => || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
        },
        _ => || Clock::system().now().nanos(),
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

fn two_workers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).build().expect("a runtime")
}
