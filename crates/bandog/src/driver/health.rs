//! How the client is, from what the watchdog has seen: no request is made for it.

use std::fmt;
use std::time::Duration;

use bandog_core::lock::Tally;
use bandog_core::store::{Pulse, StoreError};

use super::{Driver, JanitorStats};
use crate::signals::{Check, Link};

/// How a client is. Made by [`Locks::health`](crate::Locks::health).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let health = locks.health();
/// let status = if health.ready { 200 } else { 503 };
/// println!("{status} {health}");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether locks can be taken and kept, as far as is known.
    pub ready: bool,
    /// Why not, one line each; also what is no reason yet, such as holds in doubt.
    pub problems: Vec<String>,
    /// The store, as it calls itself.
    pub store: String,
    /// The connections to the store: `claims`, `renewals`, `inbox`.
    pub connections: Vec<Connection>,
    /// Rounds that the watchdog has gone.
    pub rounds: u64,
    /// Since the last of them; `None` before the first.
    pub last_round: Option<Duration>,
    /// Holds, at the last round.
    pub holds: usize,
    /// Holds whose renewal was in doubt, at the last round.
    pub uncertain: usize,
    /// Waiters in this process, at the last round.
    pub waiters: usize,
    /// What the checks have found since the start.
    pub findings: Findings,
    /// Recoveries that worked, since the start.
    pub recoveries_worked: u64,
    /// Recoveries that did not.
    pub recoveries_failed: u64,
    /// Releases in the background.
    pub janitor: JanitorStats,
}

/// One connection to the store.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// for connection in locks.health().connections {
///     println!("{}: up {}", connection.name, connection.up);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// What it carries: `claims`, `renewals` or `inbox`.
    pub name: &'static str,
    /// Whether it answered when it was last asked, or has not been asked yet.
    pub up: bool,
    /// How long that took.
    pub round_trip: Option<Duration>,
    /// How often it was opened again.
    pub reconnects: u64,
    /// What it said instead.
    pub error: Option<String>,
}

/// What each check of the watchdog has found since the start.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// assert_eq!(locks.health().findings.total(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Findings {
    /// Renewals that were overdue or failed, and a renewal thread that stood still.
    pub renewal: u64,
    /// Records that did not name the hold, or another lease end.
    pub record: u64,
    /// Holders that ended, stood still, or held for too long.
    pub holder: u64,
    /// Connections that gave no answer.
    pub connection: u64,
    /// Recoveries that did not work.
    pub recovery: u64,
}

impl Findings {
    /// All of them.
    ///
    /// ```
    /// assert_eq!(bandog::Findings::default().total(), 0);
    /// ```
    pub fn total(&self) -> u64 {
        self.renewal + self.record + self.holder + self.connection + self.recovery
    }
}

/// What the probes of a connection have shown.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLog {
    pub(super) up: bool,
    pub(super) round_trip: Option<Duration>,
    pub(super) reconnects: u64,
    opened: u64,
    error: Option<String>,
}

impl Default for ConnectionLog {
    fn default() -> Self {
        Self { up: true, round_trip: None, reconnects: 0, opened: 0, error: None }
    }
}

impl ConnectionLog {
    /// It is not open, and nobody has asked for it.
    pub(super) fn rest(&mut self) {
        (self.up, self.round_trip, self.error) = (true, None, None);
    }

    /// What is known after another probe.
    pub(super) fn after(known: &Self, probed: Result<(Pulse, Duration), StoreError>) -> Self {
        match probed {
            Ok((pulse, took)) => {
                // The first is no reconnection; nor is what a new renewal thread's connection opens.
                let again = if known.opened == 0 { 0 } else { pulse.opened.saturating_sub(known.opened) };
                let reconnects = known.reconnects + again;
                Self { up: true, round_trip: Some(took), reconnects, opened: pulse.opened, error: None }
            }
            Err(error) => Self { up: false, round_trip: None, error: Some(error.to_string()), ..known.clone() },
        }
    }
}

impl Driver {
    pub(crate) fn health(&self) -> Health {
        let log = self.watchdog.log();
        let last_round = log.last.map(|last| self.clock.now().since(last));
        let Tally { holds, uncertain, waiters, .. } = log.tally;
        let mut problems: Vec<String> = Vec::new();
        for (link, known) in Link::ALL.iter().zip(&log.connections).filter(|(_, log)| !log.up) {
            let why = known.error.as_deref().unwrap_or("no answer");
            problems.push(format!("the connection for {link} is down: {why}"));
        }
        if let Some(since) = log.stalled {
            problems.push(format!("the renewal thread has stood still for {:?}", self.clock.now().since(since)));
        }
        let late = self.watchdog.period() * 2 + self.settings.response * 8;
        if last_round.is_some_and(|last| last > late) {
            problems.push("the watchdog does not go its rounds".into());
        }
        if self.is_closed() {
            problems.push("the client is shut down".into());
        }
        let ready = problems.is_empty();
        if uncertain > 0 {
            problems.push(format!("{uncertain} of {holds} holds are in doubt"));
        }
        let (recoveries_worked, recoveries_failed) = self.watchdog.recoveries();
        Health {
            ready,
            problems,
            store: self.store.to_string(),
            connections: Link::ALL.iter().zip(log.connections).map(|(link, log)| Connection::new(*link, log)).collect(),
            rounds: log.ticks,
            last_round,
            holds,
            uncertain,
            waiters,
            findings: self.findings(),
            recoveries_worked,
            recoveries_failed,
            janitor: self.janitor.stats(),
        }
    }

    fn findings(&self) -> Findings {
        let of = |check| self.watchdog.findings(check);
        Findings {
            renewal: of(Check::Renewal),
            record: of(Check::Record),
            holder: of(Check::Holder),
            connection: of(Check::Connection),
            recovery: of(Check::Recovery),
        }
    }
}

impl Connection {
    fn new(link: Link, log: ConnectionLog) -> Self {
        let ConnectionLog { up, round_trip, reconnects, error, .. } = log;
        Self { name: link.as_str(), up, round_trip, reconnects, error }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, holds, waiters, .. } = self;
        let word = if self.ready { "ready" } else { "not ready" };
        write!(f, "{word}: {store}, {holds} holds, {waiters} waiters")?;
        self.problems.iter().try_for_each(|problem| write!(f, "; {problem}"))
    }
}
