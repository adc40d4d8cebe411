//! A worker that holds locks until they are lost, and tells when it heard of it.
//!
//! A line `lost LOCK TOLD END AWAY` tells of one loss, in nanoseconds of CLOCK_BOOTTIME: when `lost()` resolved, when the last confirmed
//! lease ends, and for how long the process was not scheduled between the margin that the library keeps of it and the telling.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bandog::{Hold, Locks};
use bandog_core::lease::Drift;
use tokio::runtime::Runtime;

use crate::args::{Break, Duty};
use crate::clock::{boot, length, up_to};
use crate::crew::wrong;

use super::beat::Beat;
use super::client::{PATIENCE, connect, runtime};
use super::ends::Ends;
use super::{listen, say};

/// Holds begin at any time of this, so that they are renewed at different times.
const SPREAD: Duration = Duration::from_millis(300);
/// Longer than any lease here.
const TOO_LATE: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Loser {
    locks: Locks,
    ends: Arc<Ends>,
    beat: Arc<Beat>,
    numb: bool,
}

pub(super) fn play(duty: &Duty) -> io::Result<()> {
    let (runtime, ends) = (runtime()?, Arc::<Ends>::default());
    let locks = runtime.block_on(connect(duty, &ends))?;
    let loser = Loser { locks, ends, beat: Arc::new(Beat::start()?), numb: duty.broken == Some(Break::Numb) };
    let mut holds = Vec::new();
    say(format_args!("ready"));
    while let Some(line) = listen() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().map_err(io::Error::other);
        match *words {
            ["hold", from, count, shortest, longest] => {
                let leases = [number(shortest)?, number(longest)?].map(Duration::from_millis);
                holds = loser.hold(&runtime, number(from)?, number(count)?, leases)?;
            }
            ["look"] => loser.look(&holds),
            _ => return Err(wrong(format!("told {words:?}"))),
        }
    }
    Ok(())
}

impl Loser {
    fn hold(&self, runtime: &Runtime, from: u64, count: u64, leases: [Duration; 2]) -> io::Result<Vec<Hold>> {
        let [shortest, longest] = leases;
        let lease = || shortest + up_to(longest - shortest);
        let tasks: Vec<_> =
            (from..from + count).map(|lock| runtime.spawn(self.clone().acquire(lock, lease()))).collect();
        let mut holds = Vec::new();
        for task in tasks {
            holds.push(runtime.block_on(task).map_err(io::Error::other)??);
        }
        say(format_args!("held"));
        Ok(holds)
    }

    async fn acquire(self, lock: u64, lease: Duration) -> io::Result<Hold> {
        tokio::time::sleep(up_to(SPREAD)).await;
        let request = self.locks.mutex(format!("lead-{lock}")).lease(lease).wait(PATIENCE);
        let guard = request.acquire().await.map_err(|error| wrong(error.to_string()))?;
        let hold = guard.hold();
        let id = hold.holder().ok_or_else(|| wrong("lost before it could be watched"))?;
        tokio::spawn(async move {
            let lost = tokio::time::timeout(PATIENCE, guard.lost()).await;
            if self.numb {
                tokio::time::sleep(TOO_LATE).await;
            }
            let told = boot();
            let margin = length(lease - Drift::default().safe(lease));
            match (lost, self.ends.take(id, told)) {
                (Ok(_), Some(end)) => {
                    let away = self.beat.away(end.saturating_sub(margin), told).await;
                    say(format_args!("lost {lock} {told} {end} {away}"));
                }
                (lost, end) => say(format_args!("failed {lock}: {lost:?}, lease end {end:?}")),
            }
        });
        Ok(hold)
    }

    fn look(&self, holds: &[Hold]) {
        let held = holds.iter().filter(|hold| self.numb || hold.is_held()).count();
        say(format_args!("looked {held}"));
    }
}
