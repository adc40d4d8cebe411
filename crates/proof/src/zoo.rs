//! The bug zoo: each known mistake is let loose in the real ledger and machine, and the schedules must find it.

use std::time::Duration;

use bandog_core::zoo::{self, Bug};

use crate::engine::Engine;
use crate::judge::{Failure, judge};
use crate::plan::Plan;
use crate::sim::World;

/// How a bug was found.
#[derive(Debug)]
pub struct Catch {
    /// Which.
    pub bug: Bug,
    /// The seed that found it, after how many others.
    pub seed: u64,
    /// What broke.
    pub failure: Failure,
}

/// Seeds to try before a bug counts as uncaught.
pub const PATIENCE: u64 = 20_000;

/// Plays schedules with a bug until one breaks a promise.
pub fn hunt(bug: Bug, seed: u64) -> Option<Catch> {
    let engine = Engine::ledger();
    (seed..seed + PATIENCE).find_map(|seed| {
        let plan = Plan::new(seed);
        let failure = zoo::with(Some(bug), || judge(&plan, &World::play(&plan, &engine, false)))?;
        Some(Catch { bug, seed, failure })
    })
}

/// One line of the zoo's register.
pub fn line(bug: Bug, found: Option<&Catch>, took: Duration) -> String {
    let name = format!("{bug:?}");
    match found {
        Some(found) => format!("{name:<26} seed {:>6} {:>8.1?}  {}", found.seed, took, found.failure.promise),
        None => format!("{name:<26} NOT FOUND within {PATIENCE} schedules ({took:.1?})"),
    }
}
