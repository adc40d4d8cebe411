//! `lockset`: read, sleep, write under the lock, while workers are stopped and killed; then count what was lost.
//!
//! The same work twice. With a resource that compares tokens no acknowledged update may be lost. With one that trusts, and the
//! same stops, some must be: otherwise the run proves nothing.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bandog_conformance::history::{History, Write};
use bandog_rig::Server;

use crate::args::{Duty, Orders, Role, Style};
use crate::clock::{below, pause};
use crate::crew::{Worker, is_over, numbers, wrong};
use crate::report::Report;
use crate::resource::{Decision, Resource};
use crate::stage::Stage;

use super::puppets::{Terms, duty};

const WORKERS: usize = 8;
const HANDS: u64 = 2;
const SETS: u64 = 4;
const LEASE: Duration = Duration::from_millis(400);
/// Past the lease, so that somebody else has held the lock meanwhile.
const STOPPED: Duration = Duration::from_millis(600);
/// The longest time between two blows.
const BETWEEN: Duration = Duration::from_millis(1_000);
/// One blow of so many is a kill.
const KILLED_OF: u64 = 6;

/// What came of one run of the work.
#[derive(Debug, Default)]
struct Outcome {
    acknowledged: usize,
    lost: usize,
    stale: usize,
    refused: usize,
    stops: usize,
    kills: usize,
}

pub(super) fn play(count: usize, orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("lockset", 2 * count, orders)?;
    let fenced = work(&stage, count, !stage.broken, true)?;
    // Without stops nobody is overtaken: a control that cannot fail, and must be noticed.
    let trusting = work(&stage, count, false, !stage.broken)?;
    let mut report = Report::new("lockset");
    report.none("acknowledged updates lost by the resource that compares tokens", fenced.lost);
    report.none("stale writes accepted by it", fenced.stale);
    let lost = trusting.lost;
    report.bar("acknowledged updates lost by the resource that trusts", "1 or more", lost.to_string(), lost > 0);
    for (name, outcome) in [("comparing tokens", &fenced), ("trusting", &trusting)] {
        let Outcome { acknowledged, refused, stops, kills, stale, .. } = outcome;
        let words = format!(
            "{acknowledged} acknowledged, {refused} refused, {stale} stale accepted; {stops} stops, {kills} kills"
        );
        report.figure(name, words);
    }
    stage.finish(report)
}

/// What the workers said so far.
#[derive(Debug, Default)]
struct Heard {
    added: Mutex<BTreeMap<u64, Vec<u64>>>,
    acknowledged: AtomicUsize,
    refused: AtomicUsize,
    stops: AtomicUsize,
    kills: AtomicUsize,
}

fn work(stage: &Stage, count: usize, fenced: bool, stops: bool) -> io::Result<Outcome> {
    let (resource, heard) = (Server::start(), Heard::default());
    let terms = Terms { resource: Some(resource.socket()), fenced, ..Terms::new(Style::Async, LEASE) };
    let base = Duty { hands: HANDS, locks: SETS, ..duty(stage, Role::Writer, terms) };
    let before = stage.position();
    let fate = |lane: usize| -> io::Result<Vec<()>> {
        let mut lives = 0;
        while heard.acknowledged.load(Ordering::Relaxed) < count && !is_over() {
            let number = (lives * WORKERS + lane) as u64;
            live(&Duty { style: Style::nth(lane), number, ..base.clone() }, &heard, stops, || {
                let acknowledged = heard.acknowledged.load(Ordering::Relaxed);
                stage.done(before + acknowledged);
                acknowledged < count && !is_over()
            })?;
            lives += 1;
        }
        Ok(Vec::new())
    };
    stage.lanes(WORKERS, fate)?;
    judge(&resource, heard)
}

/// One worker's life: it works, is stopped now and then, and in the end is killed, or ends by itself when the work is done.
fn live(duty: &Duty, heard: &Heard, stops: bool, goes_on: impl Fn() -> bool) -> io::Result<()> {
    std::thread::scope(|scope| {
        // Started in here, so that it is dropped, and the listener's pipe closed, before the listener is waited for.
        let mut worker = Worker::start(duty)?;
        let (mouth, (inside, entries)) = (worker.mouth(), channel());
        let listener = scope.spawn(|| heard.listen(mouth, inside));
        while goes_on() && !listener.is_finished() {
            pause(BETWEEN);
            // Half of the blows come at any time, the others when it is known to be between read and write.
            if below(2) == 0 && !is_inside(&entries) {
                continue;
            }
            if below(KILLED_OF) == 0 {
                heard.kills.fetch_add(1, Ordering::Relaxed);
                worker.kill()?;
                break;
            }
            if stops {
                heard.stops.fetch_add(1, Ordering::Relaxed);
                worker.stop()?;
                std::thread::sleep(STOPPED);
                worker.go_on()?;
            }
        }
        worker.end()?;
        listener.join().unwrap_or_else(|_| Err(wrong("a listener panicked")))
    })
}

/// Waits until the worker says that it has read, or for long enough.
fn is_inside(entries: &Receiver<()>) -> bool {
    while entries.try_recv().is_ok() {}
    entries.recv_timeout(LEASE).is_ok()
}

impl Heard {
    /// Hears all that a worker says until it ends. A line that death cut off does not count: it was not acknowledged.
    fn listen(&self, mouth: impl Iterator<Item = io::Result<String>>, inside: Sender<()>) -> io::Result<()> {
        for line in mouth {
            let line = line?;
            if line == "inside" {
                // Nobody asks any more when the worker's life is over.
                inside.send(()).unwrap_or(());
            } else if let Some([set, add]) = numbers(&line, "added").as_deref() {
                let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
                added.entry(*set).or_default().push(*add);
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            } else if numbers(&line, "refused").is_some() {
                self.refused.fetch_add(1, Ordering::Relaxed);
            } else {
                return Err(wrong(format!("a writer said {line:?}")));
            }
        }
        Ok(())
    }
}

fn judge(resource: &Server, heard: Heard) -> io::Result<Outcome> {
    let mut resource = Resource::open(&resource.socket(), true)?;
    let mut outcome = Outcome {
        acknowledged: heard.acknowledged.into_inner(),
        refused: heard.refused.into_inner(),
        stops: heard.stops.into_inner(),
        kills: heard.kills.into_inner(),
        ..Outcome::default()
    };
    for (set, acknowledged) in heard.added.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let key = format!("set-{set}");
        let survived = resource.survived(&key)?;
        outcome.lost += acknowledged.iter().filter(|add| !survived.contains(add)).count();
        let decided = resource.decisions(&key)?.into_iter().map(Write::from).collect();
        outcome.stale += stale(&History { writes: decided, ..History::default() });
    }
    Ok(outcome)
}

/// Stale writes accepted, by the history checker.
fn stale(history: &History) -> usize {
    usize::try_from(history.check().fencing.count).unwrap_or(usize::MAX)
}

impl From<Decision> for Write {
    fn from(Decision { token, add, accepted }: Decision) -> Self {
        // The order is the resource's; its times are nobody's.
        Self { token, at: 0, accepted, add: Some(add) }
    }
}
