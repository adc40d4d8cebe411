//! A worker that waits in line for one lock, once, as a job does: it says when it stands in line, and then how its turn was.
//!
//! A line `turn TOKEN GRANTED RELEASED` tells of the turn: when it had the lock, and when it began to give it back. `gave-up` is said by one
//! that had no turn.

use std::io;

use bandog::{Event, Locks};
use tokio::runtime::{Builder, Runtime};

use crate::args::{Break, Duty};
use crate::clock::nanos;
use crate::crew::wrong;

use super::client::address;
use super::say;

/// The one lock.
pub(crate) const LOCK: &str = "line";
/// Longer than any line here takes.
const WAIT: std::time::Duration = std::time::Duration::from_secs(3600);
/// How long a broken worker waits.
const IMPATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

pub(super) fn play(duty: &Duty) -> io::Result<()> {
    // One thread, as the command has.
    let runtime: Runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(wait(duty))
}

async fn wait(duty: &Duty) -> io::Result<()> {
    let locks = Locks::connect(&address(duty)).await.map_err(|error| wrong(error.to_string()))?;
    let mut events = locks.events();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if matches!(event, Event::Waiting { .. }) {
                say(format_args!("queued"));
                return;
            }
        }
    });
    // A broken one gives up, and comes back when those behind it have passed.
    let is_broken = duty.broken == Some(Break::Unfair) && duty.number.is_multiple_of(2);
    if is_broken && locks.mutex(LOCK).fair().wait(IMPATIENCE).acquire().await.is_err() {
        say(format_args!("gave-up"));
    }
    match locks.mutex(LOCK).fair().wait(WAIT).acquire().await {
        Ok(guard) => {
            let (granted, token) = (nanos(), guard.token());
            let released = nanos();
            guard.release().await.map_err(|error| wrong(error.to_string()))?;
            say(format_args!("turn {token} {granted} {released}"));
        }
        Err(error) => {
            eprintln!("{error}");
            say(format_args!("gave-up"));
        }
    }
    locks.shutdown().await.map_err(|error| wrong(error.to_string()))
}
