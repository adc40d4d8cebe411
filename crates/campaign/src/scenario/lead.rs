//! `lead`: holds are lost in every way there is, and `lost()` must resolve before the lease ends.
//!
//! Each lane has a server and a process of its own, with a few locks of random leases that begin at random times. Then, at any time, the
//! server is stopped or killed, or each key is deleted, or the process is paused for longer than any lease. The process says when each
//! loss was told and when the last confirmed lease ends ([ends](crate::worker)); the lead is what lies between.
//!
//! A process that does not run cannot be told: those that were paused are judged by their first look instead, and the time for which the
//! machine did not let it run around the end, as its own heartbeat shows, is taken off.

use std::io;
use std::time::Duration;

use bandog_rig::Server;

use crate::args::{Break, Duty, Orders, Role, Style};
use crate::clock::{below, boot, pause};
use crate::crew::{Worker, numbers, wrong};
use crate::report::{Report, span};
use crate::stage::Stage;

use super::leads::report_leads;
use super::puppets::{Terms, duty};

const SHORTEST: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_millis(1_500);
/// Locks of one round.
const LOCKS: u64 = 4;
/// Each is a server and a process; more of them only take the cores from each other.
const LANES: usize = 6;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Stopped,
    Killed,
    Deleted,
    Paused,
}

/// One loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    /// `None` when it was lost before anything was done.
    pub(super) kind: Option<Kind>,
    pub(super) told: u64,
    pub(super) end: u64,
    /// From the end of the pause, if it was paused.
    pub(super) late: u64,
    /// For so long the process did not run between the beginning of its margin and the telling.
    pub(super) away: u64,
    pub(super) paused: bool,
}

/// What a lane saw in one round.
struct Round {
    losses: Vec<Loss>,
    /// Guards that said held at the first look after a pause.
    believed: u64,
}

pub(super) fn play(count: usize, orders: &Orders) -> io::Result<Report> {
    let rounds = count.div_ceil(usize::try_from(LOCKS).unwrap_or(1));
    let stage = Stage::new("lead", rounds, orders)?;
    let lanes = orders.lanes.min(LANES).min(rounds);
    let rounds = stage.lanes(lanes, |lane| Lane::play(&stage, lane))?;
    let believed: u64 = rounds.iter().map(|round| round.believed).sum();
    let losses: Vec<Loss> = rounds.into_iter().flat_map(|round| round.losses).collect();
    let mut report = Report::new("lead");
    report_leads(&losses, &mut report);
    let looks = "guards that said held at the first look after a pause";
    report.none(looks, usize::try_from(believed).unwrap_or(usize::MAX));
    report.figure("leases", format!("{} to {}", span(SHORTEST), span(LONGEST)));
    report.figure("servers and processes", lanes);
    stage.finish(report)
}

struct Lane {
    server: Server,
    worker: Worker,
    /// The number of the next lock.
    next: u64,
    /// What is still to be done before everything has its turn again.
    bag: Vec<Kind>,
}

impl Lane {
    fn play(stage: &Stage, lane: usize) -> io::Result<Vec<Round>> {
        let server = Server::start();
        let broken = stage.broken.then_some(Break::Numb);
        let base = duty(stage, Role::Loser, Terms { broken, ..Terms::new(Style::Async, LONGEST) });
        let mut worker = Worker::start(&Duty { url: server.url(), number: lane as u64, ..base })?;
        worker.expect("ready")?;
        let (mut lane, mut rounds) = (Self { server, worker, next: 0, bag: Vec::new() }, Vec::new());
        while stage.turn() {
            rounds.push(lane.round()?);
        }
        lane.worker.end()?;
        Ok(rounds)
    }

    fn round(&mut self) -> io::Result<Round> {
        let (from, kind) = (self.next, self.draw());
        self.next += LOCKS;
        self.worker.tell(&format!("hold {from} {LOCKS} {} {}", SHORTEST.as_millis(), LONGEST.as_millis()))?;
        let mut heard = Heard::default();
        heard.until(&mut self.worker, |heard| heard.held)?;
        pause(LONGEST);
        let began = boot();
        let mut resumed = None;
        match kind {
            Kind::Stopped => self.server.stop(),
            Kind::Killed => self.server.kill(),
            Kind::Deleted => (from..self.next).try_for_each(|lock| self.delete(lock))?,
            Kind::Paused => {
                self.worker.stop()?;
                std::thread::sleep(LONGEST + LONGEST / 10);
                self.worker.tell("look")?;
                resumed = Some(boot());
                self.worker.go_on()?;
                heard.until(&mut self.worker, |heard| heard.looked.is_some())?;
            }
        }
        heard.until(&mut self.worker, |heard| heard.lost.len() as u64 == LOCKS)?;
        match kind {
            Kind::Stopped => self.server.go_on(),
            Kind::Killed => self.server.restart(),
            Kind::Deleted | Kind::Paused => {}
        }
        let loss = |[told, end, away]: [u64; 3]| Loss {
            kind: (told >= began).then_some(kind),
            told,
            end,
            late: told.saturating_sub(resumed.unwrap_or(told)),
            away,
            paused: resumed.is_some() && told >= began,
        };
        Ok(Round { losses: heard.lost.into_iter().map(loss).collect(), believed: heard.looked.unwrap_or_default() })
    }

    /// Any of those that are left in the bag.
    fn draw(&mut self) -> Kind {
        if self.bag.is_empty() {
            self.bag = vec![Kind::Stopped, Kind::Killed, Kind::Deleted, Kind::Paused];
        }
        let at = usize::try_from(below(self.bag.len() as u64)).unwrap_or_default();
        self.bag.swap_remove(at)
    }

    fn delete(&self, lock: u64) -> io::Result<()> {
        pause(SHORTEST);
        match self.server.run(&format!("DEL lock:lead-{lock}")) {
            1 => Ok(()),
            _ => Err(wrong(format!("no record of lock {lock} to delete"))),
        }
    }
}

/// What a worker has said, in whatever order.
#[derive(Default)]
struct Heard {
    held: bool,
    looked: Option<u64>,
    lost: Vec<[u64; 3]>,
}

impl Heard {
    fn until(&mut self, worker: &mut Worker, enough: impl Fn(&Self) -> bool) -> io::Result<()> {
        while !enough(self) {
            let line = worker.hear()?.ok_or_else(|| wrong("a worker ended"))?;
            if line == "held" {
                self.held = true;
            } else if let Some([held]) = numbers(&line, "looked").as_deref() {
                self.looked = Some(*held);
            } else if let Some([_, told, end, away]) = numbers(&line, "lost").as_deref() {
                self.lost.push([*told, *end, *away]);
            } else {
                return Err(wrong(format!("a worker said {line:?}")));
            }
        }
        Ok(())
    }
}
