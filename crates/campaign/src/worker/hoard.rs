//! A worker that holds many locks and does nothing else; it tells how its client is, and what that took.
//!
//! A line `health HELD ROUNDS RECONNECTS FINDINGS…` has the findings of each check, in the order of [`bandog::Findings`]. A line
//! `counted CLAIMS RENEWALS LOOKS OTHERS TRIPS` has what went to the store so far.

use std::io;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use bandog::{Findings, Guard, Locks};
use tokio::runtime::Runtime;

use crate::args::Duty;
use crate::crew::wrong;

use super::client::{PATIENCE, WORKERS, connect, runtime};
use super::counts::Counts;
use super::{listen, say};

pub(super) fn play(duty: &Duty) -> io::Result<()> {
    let (runtime, counts) = (runtime()?, Arc::<Counts>::default());
    let locks = runtime.block_on(connect(duty, &counts))?;
    let guards = hold(&runtime, &locks, duty)?;
    say(format_args!("ready"));
    while let Some(line) = listen() {
        match *line.split(' ').collect::<Vec<_>>() {
            ["health"] => health(&locks, &guards),
            ["count"] => {
                let [claims, renewals, looks, others, trips] = counts.all();
                say(format_args!("counted {claims} {renewals} {looks} {others} {trips}"));
            }
            ["block", millis] => block(&runtime, Duration::from_millis(millis.parse().map_err(io::Error::other)?)),
            _ => return Err(wrong(format!("told {line:?}"))),
        }
    }
    drop(guards);
    // What a broken run has lost or cut off cannot all be released, and the scenario is over.
    drop(runtime.block_on(locks.shutdown()));
    Ok(())
}

fn hold(runtime: &Runtime, locks: &Locks, duty: &Duty) -> io::Result<Vec<Guard>> {
    let name = |lock: u64| format!("hoard-{}-{lock}", duty.number);
    let acquire = |lock: u64| runtime.spawn(locks.mutex(name(lock)).wait(PATIENCE).acquire());
    let tasks: Vec<_> = (0..duty.locks).map(acquire).collect();
    let acquired = tasks.into_iter().map(|task| runtime.block_on(task).map_err(io::Error::other));
    acquired.map(|guard| guard?.map_err(|error| wrong(error.to_string()))).collect()
}

fn health(locks: &Locks, guards: &[Guard]) {
    let held = guards.iter().filter(|guard| guard.is_held()).count();
    let health = locks.health();
    let reconnects: u64 = health.connections.iter().map(|connection| connection.reconnects).sum();
    let Findings { renewal, record, holder, connection, recovery, .. } = health.findings;
    let rounds = health.rounds;
    say(format_args!("health {held} {rounds} {reconnects} {renewal} {record} {holder} {connection} {recovery}"));
}

/// Blocks every worker of the runtime at once: each waits for the others before it sleeps.
fn block(runtime: &Runtime, length: Duration) {
    let together = Arc::new(Barrier::new(WORKERS));
    let sleepers: Vec<_> = (0..WORKERS).map(|_| Arc::clone(&together)).collect();
    let sleepers = sleepers.into_iter().map(|together| {
        runtime.spawn(async move {
            together.wait();
            std::thread::sleep(length);
        })
    });
    let slept = sleepers.collect::<Vec<_>>().into_iter().try_for_each(|sleeper| runtime.block_on(sleeper));
    say(format_args!("blocked {}", u8::from(slept.is_ok())));
}
