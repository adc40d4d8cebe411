//! `deaf`: every push is dropped on its way, and each waiter finds its grant with a heartbeat all the same.
//!
//! One process holds many locks, two others (one async, one blocking) wait for them through a proxy that swallows news. The locks
//! are released one by one at any time of a claim window. Heartbeats go out every half window, so none may take longer, but for the way.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bandog_rig::Proxy;

use crate::args::{Duty, Orders, Role, Style};
use crate::clock::length;
use crate::crew::{Worker, is_over, wrong};
use crate::report::{Report, milliseconds, span};
use crate::stage::Stage;

use super::ending::nothing_left;
use super::puppets::{Terms, duty};

const LEASE: Duration = Duration::from_secs(10);
const WINDOW: Duration = Duration::from_secs(1);
/// Of a round: tasks, and threads.
const AT_ONCE: [u64; 2] = [400, 100];

/// One wait that was served.
#[derive(Debug, Clone, Copy)]
struct Served {
    /// From just before the release.
    took: u64,
    at: u64,
}

struct Deaf<'a> {
    stage: &'a Stage,
    holder: Worker,
    waiters: [Worker; 2],
}

pub(super) fn play(count: usize, orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("deaf", count, orders)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let proxy = runtime.block_on(Proxy::of(&stage.server));
    proxy.deafen(true);
    let waits = rounds(&stage, &proxy, count)?;
    let mut report = Report::new("deaf");
    let latest = waits.iter().max_by_key(|served| served.took);
    let worst = latest.map_or(u64::MAX, |served| served.took);
    let bound = WINDOW / 2 + stage.slack;
    let limit = format!("{} ms (half a claim window, and {} ms)", bound.as_millis(), stage.slack.as_millis());
    let seen = format!("{:.1} ms at worst", milliseconds(worst));
    report.bar("served after the release", limit, seen, worst <= length(bound));
    let swallowed = proxy.swallowed();
    let all = format!("{} or more", waits.len());
    report.bar("pushes swallowed", all, swallowed.to_string(), swallowed >= waits.len());
    report.figure("waits", waits.len());
    report.figure("at once", AT_ONCE.iter().sum::<u64>());
    if let Some(Served { took, at }) = latest {
        report.figure("in the worst case the machine stood still for", span(stage.witness.during(at - took, *at)));
    }
    report.spread("served after the release", waits.iter().map(|served| served.took));
    nothing_left(&stage, &mut report)?;
    stage.finish(report)
}

fn rounds(stage: &Stage, proxy: &Proxy, count: usize) -> io::Result<Vec<Served>> {
    let base = duty(stage, Role::Crowd, Terms { window: Some(WINDOW), ..Terms::new(Style::Async, LEASE) });
    let window = Some(if stage.broken { WINDOW * 6 } else { WINDOW });
    let waiter = |style| Worker::start(&Duty { style, url: proxy.url(), window, ..base.clone() });
    let mut deaf =
        Deaf { stage, holder: Worker::start(&base)?, waiters: [waiter(Style::Async)?, waiter(Style::Blocking)?] };
    deaf.holder.expect("ready")?;
    deaf.waiters.iter_mut().try_for_each(|waiter| waiter.expect("ready").map(drop))?;
    let mut waits = Vec::new();
    while waits.len() < count {
        waits.extend(deaf.round()?);
        stage.done(waits.len());
        // A broken run hears again after its first round.
        proxy.deafen(!stage.broken);
    }
    deaf.waiters.iter_mut().try_for_each(Worker::end)?;
    deaf.holder.end()?;
    Ok(waits)
}

impl Deaf<'_> {
    fn round(&mut self) -> io::Result<Vec<Served>> {
        let count: u64 = AT_ONCE.iter().sum();
        self.holder.tell(&format!("hold 0 {count}"))?;
        self.holder.expect("held")?;
        let [tasks, threads] = AT_ONCE;
        self.waiters[0].tell(&format!("wait 0 {tasks}"))?;
        self.waiters[1].tell(&format!("wait {tasks} {threads}"))?;
        self.until_all_wait(count)?;
        self.holder.tell(&format!("give {}", WINDOW.as_millis()))?;
        let gave = times(&mut self.holder, "gave", count)?;
        let mut got = times(&mut self.waiters[0], "got", tasks)?;
        got.extend(times(&mut self.waiters[1], "got", threads)?);
        let served = |(lock, at): (u64, u64)| match gave.get(&lock) {
            Some(gave) => Ok(Served { took: at.saturating_sub(*gave), at }),
            None => Err(wrong("served without a release")),
        };
        got.into_iter().map(served).collect()
    }

    fn until_all_wait(&self, count: u64) -> io::Result<()> {
        loop {
            let locks = self.stage.locks.list("crowd-*").map_err(|error| wrong(error.to_string()))?;
            if locks.iter().map(|lock| lock.record.queue as u64).sum::<u64>() >= count {
                return Ok(());
            }
            if is_over() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// When each lock was given or got.
fn times(worker: &mut Worker, word: &str, count: u64) -> io::Result<BTreeMap<u64, u64>> {
    let line = |_| match worker.expect(word)?[..] {
        [lock, at, ..] => Ok((lock, at)),
        _ => Err(wrong(format!("{word} without a lock and a time"))),
    };
    (0..count).map(line).collect()
}
