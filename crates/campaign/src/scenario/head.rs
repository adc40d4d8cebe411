//! `head`: the waiter at the head of the queue is dead when its turn comes, and the next is served within the claim window.
//!
//! Each lane: one holds, a newcomer queues and is killed, another queues behind it, the holder releases. The two that live change
//! places each time. The kill comes up to three claim windows before the release: with less than two the store cannot know yet and grants
//! the lock to the dead one; with more it passes it over.

use std::io;
use std::time::Duration;

use crate::args::{Break, Orders, Style};
use crate::clock::{length, nanos, pause};
use crate::crew::Worker;
use crate::report::{Report, milliseconds, span};
use crate::stage::Stage;

use super::ending::nothing_left;
use super::puppets::{Terms, puppet, until_queued};

const LEASE: Duration = Duration::from_secs(10);
const WINDOWS: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1_000)];

struct Death {
    window: u64,
    /// From just before the release to the grant of the next.
    took: u64,
    /// From the kill to the release.
    before: u64,
    /// When the next was granted.
    at: u64,
}

pub(super) fn play(count: usize, orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("head", count, orders)?;
    let deaths = stage.lanes(orders.lanes.min(count), |lane| queue(&stage, lane))?;
    let mut report = Report::new("head");
    let over = |death: &&Death| death.took.saturating_sub(death.window);
    let latest = deaths.iter().max_by_key(over);
    let worst = latest.as_ref().map_or(u64::MAX, over);
    let (limit, seen) = (stage.slack.as_millis(), format!("{:.1} ms over at worst", milliseconds(worst)));
    let kept = worst <= length(stage.slack);
    report.bar("the next is served within the claim window", format!("+ {limit} ms"), seen, kept);
    nothing_left(&stage, &mut report)?;
    report.figure("waiters killed at the head", deaths.len());
    if let Some(Death { at, took, .. }) = latest {
        report.figure("in the worst case the machine stood still for", span(stage.witness.during(at - took, *at)));
    }
    let granted = |death: &&Death| death.before < 2 * death.window;
    for (window, name) in WINDOWS.iter().zip(["served after the release, window 500 ms", "window 1 s"]) {
        let of_window = deaths.iter().filter(|death| death.window == length(*window)).filter(granted);
        report.spread(name, of_window.map(|death| death.took));
    }
    let long_dead = deaths.iter().filter(|death| !granted(death));
    report.spread("dead for two windows and more", long_dead.map(|death| death.took));
    stage.finish(report)
}

fn queue(stage: &Stage, lane: usize) -> io::Result<Vec<Death>> {
    let (name, window) = (format!("head-{lane}"), WINDOWS[lane % WINDOWS.len()]);
    let broken = stage.broken.then_some(Break::Late);
    let start = |n: usize| {
        let terms = Terms::new(Style::nth(lane / 2 + n), LEASE);
        puppet(stage, Terms { window: Some(window), broken, ..terms })
    };
    let (mut holder, mut next, mut deaths) = (start(0)?, start(1)?, Vec::new());
    holder.take(&name)?;
    holder.held()?;
    while stage.turn() {
        let mut doomed = start(deaths.len())?;
        doomed.take(&name)?;
        until_queued(stage, &name, 1)?;
        next.take(&name)?;
        until_queued(stage, &name, 2)?;
        deaths.push(die(&mut doomed, &mut holder, &mut next, window)?);
        std::mem::swap(&mut holder, &mut next);
    }
    holder.give()?;
    holder.end()?;
    next.end()?;
    Ok(deaths)
}

fn die(doomed: &mut Worker, holder: &mut Worker, next: &mut Worker, window: Duration) -> io::Result<Death> {
    let killed = nanos();
    doomed.kill()?;
    pause(window * 3);
    let released = holder.give()?;
    let at = next.held()?.at;
    Ok(Death { window: length(window), took: at.saturating_sub(released), before: released - killed, at })
}
