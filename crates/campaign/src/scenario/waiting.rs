//! `waiting`: as many processes as told wait for one lock, in line, on SQLite and on Redis. What they cost while nothing happens, and then, one
//! turn after the other: does everybody have his, in the order of arrival, and how long does each hand-off take?
//!
//! They come one by one: the next is started when the one before says that it stands in line. So the order of arrival is known.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bandog::blocking::Locks;

use crate::args::{Break, Duty, Orders, Role, Style};
use crate::clock::{length, nanos};
use crate::crew::{Worker, is_over, wrong};
use crate::meter::{processor_time, scheduled};
use crate::report::{Report, Spread};
use crate::stage::Stage;
use crate::worker::LOCK;

use super::puppets::{Terms, duty};

/// The default of every client.
const LEASE: Duration = Duration::from_secs(30);
/// From the last arrival until the lookers of the first seconds have come to rest.
const REST: Duration = Duration::from_secs(5);
const COUNTS: [usize; 3] = [100, 300, 1000];
/// Of a core, for one process that waits, in percent.
const SHARE: f64 = 0.05;

/// One turn, as its worker told it.
struct Turn {
    token: u64,
    granted: u64,
    released: u64,
}

pub(super) fn play(orders: &Orders) -> io::Result<Report> {
    let counts = orders.count.map_or_else(|| COUNTS.to_vec(), |count| vec![count]);
    let stage = Stage::new("waiting", 2 * counts.iter().sum::<usize>(), orders)?;
    let directory = Scratch::new()?;
    let mut report = Report::new("waiting");
    for count in counts {
        line(&stage, orders, &format!("sqlite:{}/{count}.db", directory.0.display()), count, &mut report)?;
        line(&stage, orders, &stage.server.url(), count, &mut report)?;
    }
    stage.finish(report)
}

/// One line of waiters on one store.
fn line(stage: &Stage, orders: &Orders, url: &str, count: usize, report: &mut Report) -> io::Result<()> {
    let (store, _) = url.split_once(':').unwrap_or((url, ""));
    let label = format!("{count} processes on {store}: ");
    let failed = |error: &dyn std::fmt::Display| wrong(error.to_string());
    let locks = Locks::connect(url).map_err(|error| failed(&error))?;
    let guard = locks.mutex(LOCK).acquire().map_err(|error| failed(&error))?;
    let broken = stage.broken.then_some(Break::Unfair);
    let base =
        Duty { url: url.to_owned(), ..duty(stage, Role::Waiter, Terms { broken, ..Terms::new(Style::Async, LEASE) }) };
    let mut crew = Vec::with_capacity(count);
    for number in 0..count {
        let mut worker = Worker::start(&Duty { number: number as u64, ..base.clone() })?;
        worker.expect("queued")?;
        crew.push(worker);
        stage.turn();
    }
    std::thread::sleep(REST);
    let server = stage.server.pid().as_raw_nonzero().get().unsigned_abs();
    let (before, by_server, began) = (used(&crew), processor_time(server)?, nanos());
    std::thread::sleep(Duration::from_secs(orders.seconds));
    let took = Duration::from_nanos(nanos() - began).as_secs_f64();
    let share = (used(&crew) - before).as_secs_f64() * 100.0 / took;
    if store != "sqlite" {
        let by_server = (processor_time(server)? - by_server).as_secs_f64() * 100.0 / took;
        report.figure(format!("{label}of a core, the server meanwhile"), format!("{by_server:.1} %"));
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let each = share / count.max(1) as f64;
    report.figure(format!("{label}of a core while they wait"), format!("{share:.1} %, each {each:.4} %"));
    if !cfg!(debug_assertions) {
        let seen = format!("{each:.4} %");
        report.bar(format!("{label}of a core, each that waits"), format!("{SHARE} %"), seen, each <= SHARE);
    }
    let released = nanos();
    guard.release().map_err(|error| failed(&error))?;
    let (turns, gave_up) = turns(&mut crew)?;
    report.none(format!("{label}waiters that gave up"), gave_up);
    // In the order of arrival tokens grow.
    let passed = turns.windows(2).filter(|pair| matches!(pair, [one, next] if next.token < one.token)).count();
    report.none(format!("{label}waiters that were passed"), passed);
    let before = std::iter::once(released).chain(turns.iter().map(|turn| turn.released));
    let hand_offs = before.zip(&turns).map(|(released, turn)| turn.granted.saturating_sub(released));
    let spread = Spread::of(hand_offs);
    report.figure(format!("{label}hand-offs, from the release to the grant elsewhere"), spread);
    Ok(())
}

/// What all of them told, in the order of arrival, and how often somebody gave up.
fn turns(crew: &mut [Worker]) -> io::Result<(Vec<Turn>, usize)> {
    let (mut turns, mut gave_up) = (Vec::new(), 0);
    for worker in crew {
        while let Some(line) = worker.hear()? {
            match crate::crew::numbers(&line, "turn").as_deref() {
                Some([token, granted, released]) => {
                    turns.push(Turn { token: *token, granted: *granted, released: *released });
                }
                _ if line == "gave-up" => gave_up += 1,
                _ if line == "queued" => {}
                _ => return Err(wrong(format!("a waiter said {line:?}"))),
            }
        }
        if is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        worker.end()?;
    }
    Ok((turns, gave_up))
}

fn used(crew: &[Worker]) -> Duration {
    crew.iter().map(|worker| scheduled(worker.id())).sum()
}

/// A directory that goes with what is in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let path =
            std::env::temp_dir().join(format!("bandog-waiting-{}-{}", std::process::id(), length(LEASE) ^ nanos()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
