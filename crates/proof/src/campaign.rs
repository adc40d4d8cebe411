//! Many schedules at once: progress while they run, a summary when they are done.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::engine::{Choice, Engine};
use crate::judge::judge;
use crate::plan::{FaultKind, Plan};
use crate::sim::{Coverage, EVENTS, World};

/// A range of seeds to play.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// How many.
    pub schedules: u64,
    /// The first.
    pub seed: u64,
    /// How many at once.
    pub threads: usize,
    /// What their stores run on.
    pub store: Choice,
}

/// What came of a campaign.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many were played.
    pub schedules: u64,
    /// On what their stores ran.
    pub store: Choice,
    /// On how many threads.
    pub threads: usize,
    /// Seeds that broke a promise, and which.
    pub failures: Vec<(u64, &'static str)>,
    /// What happened how often.
    pub coverage: Coverage,
    /// Stale writes at the resource that trusts.
    pub unfenced: u64,
    /// Schedules in which belief had to be exclusive.
    pub strict: u64,
    /// How long it took.
    pub took: Duration,
}

const CHUNK: u64 = 64;

impl Campaign {
    /// Plays them all.
    pub fn run(&self, show: bool) -> Summary {
        let bar = if show { bar(self.schedules) } else { ProgressBar::hidden() };
        let next = AtomicU64::new(0);
        let total = Mutex::new(Summary { store: self.store, threads: self.threads, ..Summary::default() });
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| self.work(&next, &total, &bar));
            }
        });
        let took = bar.elapsed();
        bar.finish_and_clear();
        let mut summary = total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        summary.failures.sort_unstable();
        Summary { took, ..summary }
    }

    fn work(&self, next: &AtomicU64, total: &Mutex<Summary>, bar: &ProgressBar) {
        let (mut mine, engine) = (Summary::default(), self.store.engine());
        loop {
            let from = next.fetch_add(CHUNK, Ordering::Relaxed);
            if from >= self.schedules {
                break;
            }
            let to = (from + CHUNK).min(self.schedules);
            (from..to).for_each(|index| mine.play(self.seed + index, &engine));
            bar.inc(to - from);
        }
        total.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(mine);
    }
}

impl Summary {
    fn play(&mut self, seed: u64, engine: &Engine) {
        let plan = Plan::new(seed);
        let played = World::play(&plan, engine, false);
        self.schedules += 1;
        self.strict += u64::from(plan.keeps_belief());
        self.coverage.add(&played.coverage);
        self.unfenced += played.resource.stale_writes;
        if let Some(failure) = judge(&plan, &played) {
            self.failures.push((seed, failure.promise));
        }
    }

    fn add(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.failures.extend(other.failures);
        self.coverage.add(&other.coverage);
        self.unfenced += other.unfenced;
        self.strict += other.strict;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64().max(1e-9);
        let rate = self.schedules as f64 / seconds;
        writeln!(
            f,
            "{} schedules in {seconds:.1} s on {} threads with the store {}: {rate:.0} per second",
            self.schedules, self.threads, self.store
        )?;
        writeln!(f, "{} of them within every assumption: belief must be exclusive there", self.strict)?;
        writeln!(f, "{} stale writes at the resource that does not check tokens", self.unfenced)?;
        writeln!(f, "faults:")?;
        for (class, count) in FaultKind::CLASSES.iter().zip(self.coverage.faults) {
            writeln!(f, "  {class:<24}{count:>12}")?;
        }
        writeln!(f, "and:")?;
        for (event, count) in EVENTS.iter().zip(self.coverage.events) {
            writeln!(f, "  {event:<24}{count:>12}")?;
        }
        match self.failures.as_slice() {
            [] => write!(f, "every promise kept"),
            failures => {
                write!(f, "{} schedules broke a promise:", failures.len())?;
                failures.iter().take(20).try_for_each(|(seed, promise)| write!(f, "\n  seed {seed}: {promise}"))
            }
        }
    }
}

/// Cores to use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn bar(schedules: u64) -> ProgressBar {
    let bar = ProgressBar::new(schedules);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} schedules, {per_sec}, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Runs something and says how long it took.
#[expect(clippy::disallowed_methods, reason = "measures the prover, not a lease")]
pub fn stopwatch<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let began = std::time::Instant::now();
    let result = run();
    (result, began.elapsed())
}
