//! Many locks at once: held and then released one by one, or waited for, as tasks or as threads. Or many in line for one lock.

use std::io;
use std::time::Duration;

use bandog::{Guard, Locks};
use tokio::runtime::Runtime;

use crate::args::{Duty, Style};
use crate::clock::{nanos, up_to};
use crate::crew::wrong;

use super::client::{PATIENCE, address, runtime};
use super::{listen, say};

pub(super) fn play(duty: &Duty) -> io::Result<()> {
    let runtime = runtime()?;
    let connect = || runtime.block_on(Locks::connect(&address(duty))).map_err(|error| wrong(error.to_string()));
    let (locks, mut others) = (connect()?, Vec::new());
    let mut held = Vec::new();
    say(format_args!("ready"));
    while let Some(line) = listen() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().map_err(io::Error::other);
        match *words {
            ["hold", from, count] => held = hold(&runtime, &locks, number(from)?, number(count)?)?,
            ["give", spread] => give(&runtime, std::mem::take(&mut held), Duration::from_millis(number(spread)?)),
            ["line", lock, count] => {
                let locks = connect()?;
                line_up(&runtime, &locks, lock, number(count)?);
                others.push(locks);
            }
            ["wait", from, count] => wait(&runtime, &locks, duty.style, number(from)?, number(count)?),
            _ => return Err(wrong(format!("told {words:?}"))),
        }
    }
    others.into_iter().for_each(|locks| drop(runtime.block_on(locks.shutdown())));
    // Guards are dropped here, and their releases go on in the background: not to be cut off by the end of the process.
    runtime.block_on(locks.shutdown()).map_err(|error| wrong(error.to_string()))
}

fn hold(runtime: &Runtime, locks: &Locks, from: u64, count: u64) -> io::Result<Vec<(u64, Guard)>> {
    let acquire = |lock: u64| runtime.spawn(locks.mutex(name(lock)).wait(PATIENCE).acquire());
    let tasks: Vec<_> = (from..from + count).map(|lock| (lock, acquire(lock))).collect();
    let mut held = Vec::new();
    for (lock, task) in tasks {
        let acquired = runtime.block_on(task).map_err(io::Error::other)?;
        held.push((lock, acquired.map_err(|error| wrong(error.to_string()))?));
    }
    say(format_args!("held"));
    Ok(held)
}

/// Each at a time of its own.
fn give(runtime: &Runtime, held: Vec<(u64, Guard)>, spread: Duration) {
    for (lock, guard) in held {
        runtime.spawn(async move {
            tokio::time::sleep(up_to(spread)).await;
            let from = nanos();
            match guard.release().await {
                Ok(()) => say(format_args!("gave {lock} {from}")),
                Err(error) => say(format_args!("failed {error}")),
            }
        });
    }
}

fn wait(runtime: &Runtime, locks: &Locks, style: Style, from: u64, count: u64) {
    for lock in from..from + count {
        let locks = locks.clone();
        match style {
            Style::Async => drop(runtime.spawn(async move {
                match locks.mutex(name(lock)).wait(PATIENCE).acquire().await {
                    Ok(guard) => got(lock, &guard),
                    Err(error) => say(format_args!("failed {error}")),
                }
            })),
            Style::Blocking => drop(std::thread::spawn(move || {
                match bandog::blocking::Locks::from(locks).mutex(name(lock)).wait(PATIENCE).acquire() {
                    Ok(guard) => got(lock, &guard),
                    Err(error) => say(format_args!("failed {error}")),
                }
            })),
        }
    }
}

/// Each in person, to the end of this process. They are of a client of their own: its heartbeat names them all.
fn line_up(runtime: &Runtime, locks: &Locks, lock: &str, count: u64) {
    for _ in 0..count {
        runtime.spawn(locks.mutex(lock).fair().wait(PATIENCE * 10).acquire());
    }
}

fn got(lock: u64, guard: &Guard) {
    let at = nanos();
    say(format_args!("got {lock} {at} {}", guard.token()));
}

fn name(lock: u64) -> String {
    format!("crowd-{lock}")
}
