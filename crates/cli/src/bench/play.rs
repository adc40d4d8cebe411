//! The scenarios themselves: tasks that take turns at a lock and write down how long each took. Nothing here prints.
//!
//! All tasks share one thread with each other and with whoever watches. A store may answer without a pause, so each task steps aside after
//! its turn; that is not in its time, but in the turns per second.

use std::pin::{Pin, pin};
use std::time::Duration;

use bandog::{Acquire, AcquireError, Clock, Event, Events, Guard, Locks, Moment, Mutex, Mutual, ReleaseError};
use tokio::task::JoinSet;

use super::record::Shared;
use crate::args::Scenario;
use crate::exit::{BUSY, Exit};
use crate::failure::Failure;
use crate::screen::harmless;

/// One scenario, ready to begin.
#[derive(Debug)]
pub(crate) struct Game<'a> {
    /// Each with connections of its own.
    pub(crate) clients: [&'a Locks; 2],
    pub(crate) name: String,
    pub(crate) length: Duration,
    pub(crate) record: Shared,
}

impl Game<'_> {
    /// Starts the tasks, once everything is warm.
    pub(crate) async fn begin(&self, scenario: Scenario) -> Result<Players, Failure> {
        for client in self.clients {
            self.warm_up(client).await?;
        }
        let mut tasks = JoinSet::new();
        let until = Clock::system().now() + self.length;
        if scenario == Scenario::HandOff {
            let sides =
                self.clients.map(|client| Side { lock: client.mutex(&self.name).fair(), events: client.events() });
            tasks.spawn(hand_offs(sides, until, self.record.clone()));
        } else {
            for seat in 0..self.record.seats() {
                tasks.spawn(pairs(self.clients[0].mutex(&self.name), until, seat, self.record.clone()));
            }
        }
        Ok(Players(tasks))
    }

    /// One turn that does not count. A lock that others hold would be waited for without end.
    async fn warm_up(&self, client: &Locks) -> Result<(), Failure> {
        let tried = client.mutex(&self.name).wait(Duration::ZERO).try_acquire().await;
        let Some(guard) = tried.map_err(not_acquired)? else {
            let text = format!("{}: held by another; measure on names of your own with --name", harmless(&self.name));
            return Err(Failure::new("busy", Exit::Busy(BUSY), text).about(&self.name));
        };
        guard.release().await.map_err(not_released)
    }
}

/// The tasks of a scenario that runs.
#[derive(Debug)]
pub(crate) struct Players(JoinSet<Result<(), Failure>>);

impl Players {
    /// Resolves when all have had their last turn, or one could not. Cancel-safe.
    pub(crate) async fn over(&mut self) -> Result<(), Failure> {
        while let Some(ended) = self.0.join_next().await {
            ended.map_err(|error| Failure::new("system", Exit::Unavailable, error.to_string()))??;
        }
        Ok(())
    }

    /// Ends those who are left, wherever they are: what they hold is released, what they wait for is given up.
    pub(crate) async fn stop(mut self) {
        self.0.shutdown().await;
    }
}

/// Acquires and releases, again and again.
async fn pairs(lock: Mutex, until: Moment, seat: usize, record: Shared) -> Result<(), Failure> {
    let clock = Clock::system();
    loop {
        let began = clock.now();
        if began >= until {
            return Ok(());
        }
        let guard = lock.acquire().await.map_err(not_acquired)?;
        guard.release().await.map_err(not_released)?;
        record.add(seat, clock.now().since(began));
        tokio::task::yield_now().await;
    }
}

/// One of the two clients between which the lock goes to and fro.
struct Side {
    lock: Mutex,
    events: Events,
}

impl Side {
    /// Resolves when this client stands in line; with the guard if it need not.
    async fn stand_in_line(&mut self, acquire: Pin<&mut Acquire<Mutual>>) -> Result<Option<Guard>, Failure> {
        let queued = async {
            while let Some(event) = self.events.next().await {
                if matches!(event, Event::Waiting { .. }) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            held = acquire => held.map(Some).map_err(not_acquired),
            () = queued => Ok(None),
        }
    }
}

/// The one who holds lets go as soon as the other stands in line: each time is from there until the other holds.
async fn hand_offs(mut sides: [Side; 2], until: Moment, record: Shared) -> Result<(), Failure> {
    let clock = Clock::system();
    let mut guard = sides[0].lock.acquire().await.map_err(not_acquired)?;
    let mut next = 1;
    while clock.now() < until {
        let mut acquire = pin!(sides[next].lock.acquire());
        guard = match sides[next].stand_in_line(acquire.as_mut()).await? {
            // The lease of the one before must have been lost: that is no hand-off.
            Some(early) => early,
            None => {
                let began = clock.now();
                let arrival = async { acquire.await.map(|guard| (guard, clock.now())) };
                let (released, arrived) = tokio::join!(guard.release(), arrival);
                released.map_err(not_released)?;
                let (guard, at) = arrived.map_err(not_acquired)?;
                record.add(next, at.since(began));
                guard
            }
        };
        next = 1 - next;
        tokio::task::yield_now().await;
    }
    guard.release().await.map_err(not_released)
}

fn not_acquired(error: AcquireError) -> Failure {
    Failure::of(error.kind(), &error)
}

fn not_released(error: ReleaseError) -> Failure {
    Failure::of(error.kind(), &error)
}
