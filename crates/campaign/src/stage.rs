//! What every scenario stands on: a server, lanes that work at once, turns to share, a progress line, and a witness of stalls.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bandog::blocking::Locks;
use bandog_rig::Server;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Orders;
use crate::clock::nanos;
use crate::crew::{is_over, wrong};
use crate::report::Report;
use crate::witness::Witness;

/// One scenario's server and what looks at it.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) server: Server,
    /// A client that only looks.
    pub(crate) locks: Locks,
    pub(crate) slack: Duration,
    pub(crate) broken: bool,
    progress: ProgressBar,
    turns: AtomicUsize,
    count: usize,
    pub(crate) witness: Witness,
    began: u64,
}

impl Stage {
    pub(crate) fn new(scenario: &'static str, count: usize, orders: &Orders) -> io::Result<Self> {
        let server = Server::start();
        let locks = Locks::connect(&server.url()).map_err(|error| wrong(error.to_string()))?;
        let progress = ProgressBar::new(count as u64).with_message(scenario);
        let style = ProgressStyle::with_template("{msg:8} {wide_bar} {pos}/{len} {elapsed}, {eta} left");
        progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (turns, witness, began) = (AtomicUsize::new(0), Witness::start(), nanos());
        Ok(Self { server, locks, slack: orders.slack, broken: orders.broken, progress, turns, count, witness, began })
    }

    /// Whether there is another turn to take; taken by asking.
    pub(crate) fn turn(&self) -> bool {
        let turn = !is_over() && self.turns.fetch_add(1, Ordering::Relaxed) < self.count;
        self.progress.inc(turn.into());
        turn
    }

    /// Moves the progress line, for scenarios that take no turns.
    pub(crate) fn done(&self, count: usize) {
        self.progress.set_position(count as u64);
    }

    /// Where the progress line stands.
    pub(crate) fn position(&self) -> usize {
        usize::try_from(self.progress.position()).unwrap_or(usize::MAX)
    }

    /// Plays lanes at once and gathers what they saw. The first that fails ends the others.
    pub(crate) fn lanes<T: Send>(
        &self,
        lanes: usize,
        lane: impl Fn(usize) -> io::Result<Vec<T>> + Sync,
    ) -> io::Result<Vec<T>> {
        let play = |number| lane(number).inspect_err(|_| self.turns.store(self.count, Ordering::Relaxed));
        thread::scope(|scope| {
            let play = &play;
            let threads: Vec<_> = (0..lanes).map(|number| scope.spawn(move || play(number))).collect();
            let seen =
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(wrong("a lane panicked"))));
            seen.collect::<io::Result<Vec<_>>>().map(|lanes| lanes.into_iter().flatten().collect())
        })
    }

    /// Ends the progress line and adds what was measured beside it.
    pub(crate) fn finish(self, mut report: Report) -> io::Result<Report> {
        self.progress.finish_and_clear();
        if is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        report.took = Duration::from_nanos(nanos() - self.began);
        report.stall = self.witness.worst();
        if let Some(share) = self.witness.pressure() {
            report.figure("of that time somebody waited for a core", format!("{share:.0} %"));
        }
        Ok(report)
    }
}
