//! The driver in many orders: the tests in here run under [shuttle](https://docs.rs/shuttle), thousands of times each, and every
//! time another thread gets its turn at another point. Built with `--cfg shuttle` only; `CONTRIBUTING.md` says how.
//!
//! *Explored*: the order of everything that goes through `crate::sync`: cohorts, shards, wheel, outbox, janitor, clock and
//! memory store; the real renewal loop, as a shuttle thread that must come to its end in every run; requests that are
//! answered late, as shuttle tasks; parking of the blocking side. A run in which somebody waits forever is a deadlock and
//! fails: virtual time moves only when a test moves it, so no timer hides a lost wake-up.
//!
//! *Not explored*: weak memory (every atomic is sequentially consistent); the inside of tokio's `Notify` and `watch` and of
//! reference counts, each call of which is one step that never blocks; tokio's own scheduling, and the user's runtime.
#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

mod drops;
mod endings;
mod hand_off;
mod rounds;
pub(crate) mod stand_in;
mod world;

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

/// Where the schedules start from; a failing run prints its own schedule, too.
const SEED: u64 = 0xba_d0_96;
/// Order constraints that PCT looks for at once. Few bugs need more than three.
const DEPTH: usize = 3;

/// Runs a test in `runs` random schedules and as many of PCT's; or in the one that `BANDOG_SCHEDULE` holds.
fn explore(what: &str, runs: usize, test: fn()) {
    if let Ok(schedule) = std::env::var("BANDOG_SCHEDULE") {
        run(ReplayScheduler::new_from_encoded(&schedule), test);
        return;
    }
    let random = run(RandomScheduler::new_from_seed(SEED, runs), test);
    let pct = run(PctScheduler::new_from_seed(SEED, DEPTH, runs), test);
    println!("{what}: {random} random schedules, {pct} of PCT with depth {DEPTH}");
}

fn run(scheduler: impl Scheduler + 'static, test: fn()) -> usize {
    let mut config = Config::new();
    config.stack_size = 0x2_0000;
    config.max_steps = MaxSteps::FailAfter(20_000);
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test)
}
