//! The watchdog: a thread that runs a [tick](super::tick) every period, and the results of the last ticks.
//!
//! It is not the renewal thread, so that it can find that one dead, and it needs no runtime, so that nothing of the user's
//! holds it up: what it asks the store goes through the renewal thread. It ends with the client.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::lock::Tally;
use bandog_core::time::Moment;
use tokio::sync::Notify;

use super::calls::first;
use super::health::ConnectionLog;
use super::shield::shielded;
use super::tracked::attended;
use super::{Driver, lock};
use crate::blocking::block_on;
use crate::clock::{Clock, Worker};
use crate::signals::Check;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, thread};

/// What the rest of the driver sees of the watchdog.
pub(crate) struct Watchdog {
    bell: Notify,
    /// Rung once, at the end.
    ended: Notify,
    worker: Worker,
    /// Nanoseconds from round to round.
    period: AtomicU64,
    finishing: AtomicBool,
    findings: [AtomicU64; Check::WORDS.len()],
    worked: AtomicU64,
    failed: AtomicU64,
    log: Mutex<Log>,
}

/// What the last rounds have seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) ticks: u64,
    pub(super) last: Option<Moment>,
    pub(super) tally: Tally,
    /// Since when the renewal thread could not be got to work.
    pub(super) stalled: Option<Moment>,
    pub(super) connections: [ConnectionLog; 3],
    /// When something was recovered, as long as it matters for the alert.
    recoveries: VecDeque<Moment>,
}

impl Watchdog {
    pub(super) fn new(clock: &Clock, period: Duration) -> Self {
        Self {
            bell: Notify::new(),
            ended: Notify::new(),
            worker: clock.worker(),
            period: AtomicU64::new(nanos(period)),
            finishing: AtomicBool::new(false),
            findings: Default::default(),
            worked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            log: Mutex::default(),
        }
    }

    pub(crate) fn period(&self) -> Duration {
        Duration::from_nanos(self.period.load(Ordering::Acquire))
    }

    /// Goes its rounds at least this often from now on.
    pub(crate) fn hurry(&self, period: Duration) {
        if self.period.fetch_min(nanos(period), Ordering::AcqRel) > nanos(period) {
            self.bell.notify_one();
        }
    }

    /// Nobody uses the client any more.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
        self.ended.notify_one();
        self.bell.notify_one();
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Acquire)
    }

    pub(super) fn note_found(&self, check: Check) {
        self.findings[check as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a recovery, and says whether this makes `limit` of them within its time: then they are counted anew.
    pub(super) fn note_recovered(&self, now: Moment, worked: bool, limit: Option<(u32, Duration)>) -> bool {
        let counter = if worked { &self.worked } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        let Some((count, within)) = limit else { return false };
        let recent = &mut lock(&self.log).recoveries;
        recent.push_back(now);
        while recent.front().is_some_and(|at| now.since(*at) > within) {
            recent.pop_front();
        }
        let alert = recent.len() >= usize::try_from(count).unwrap_or(usize::MAX);
        if alert {
            recent.clear();
        }
        alert
    }

    pub(super) fn findings(&self, check: Check) -> u64 {
        self.findings[check as usize].load(Ordering::Relaxed)
    }

    pub(super) fn recoveries(&self) -> (u64, u64) {
        (self.worked.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    pub(super) fn log(&self) -> Log {
        lock(&self.log).clone()
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Log)) {
        change(&mut lock(&self.log));
    }

    /// Rests until then, or until the bell rings.
    async fn rest(&self, clock: &Clock, until: Moment) {
        first(pin!(self.bell.notified()), pin!(clock.sleep_until(until))).await;
    }
}

fn nanos(period: Duration) -> u64 {
    u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)
}

/// Starts the watchdog of a driver.
pub(super) fn spawn(driver: Arc<Driver>) -> std::io::Result<()> {
    let worker = driver.watchdog.worker.clone();
    let body = move || block_on(attended(watch(driver), worker));
    thread::Builder::new().name("bandog-watchdog".into()).spawn(body).map(drop)
}

async fn watch(driver: Arc<Driver>) {
    let mut last = driver.clock.now();
    while !driver.watchdog.is_finishing() {
        let (now, next) = (driver.clock.now(), last + driver.watchdog.period());
        if now < next {
            driver.watchdog.rest(&driver.clock, next).await;
            continue;
        }
        // Recorders and subscribers are the user's, and must not end the watch.
        let tick = shielded("the watchdog's round", driver.tick(now.since(last)));
        first(pin!(tick), pin!(driver.watchdog.ended.notified())).await;
        last = now;
    }
}
