//! The renewal thread: sleeps to the next timer, wakes the machines that are due, and sends what they want in batches.
//!
//! It has its own runtime and its own lane to the store, so a blocked runtime of the user's loses no lease. It lives as
//! long as anybody uses the client, and then until the releases are drained, within bounds.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use bandog_core::lock::Errand;
use bandog_core::name::LockName;
use bandog_core::op::{Op, Reply};
use bandog_core::store::StoreError;
use bandog_core::time::Moment;
use bandog_core::wheel::{Key, Wheel};
use tokio::sync::Notify;

use super::calls::{first, poll_once};
use super::shield::{shield, shielded};
use super::tracked::tracked;
use super::{Cohort, Driver, lock};
use crate::clock::{Clock, Worker};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{self, Handle, Mutex, Runtime, thread};

/// What the rest of the driver sees of the renewal thread.
pub(super) struct Keeper {
    wheel: Mutex<Wheel<Weak<Cohort>>>,
    outbox: Mutex<Vec<Letter>>,
    bell: Arc<Notify>,
    worker: Worker,
    runtime: Handle,
    /// Nanoseconds of the time until which the thread sleeps.
    asleep_until: AtomicU64,
    finishing: AtomicBool,
}

/// A timer in the wheel.
pub(super) struct Timer {
    key: Key,
    pub(super) at: Moment,
}

struct Letter {
    cohort: Arc<Cohort>,
    errand: Errand,
    op: Op,
}

impl Keeper {
    pub(super) fn new(clock: &Clock) -> std::io::Result<(Self, Runtime)> {
        let runtime = sync::runtime()?;
        let keeper = Self {
            wheel: Mutex::new(Wheel::new(clock.now().millis())),
            outbox: Mutex::default(),
            bell: Arc::default(),
            worker: clock.worker(),
            runtime: runtime.handle().clone(),
            asleep_until: AtomicU64::new(0),
            finishing: AtomicBool::new(false),
        };
        Ok((keeper, runtime))
    }

    /// Sets or moves a cohort's timer.
    pub(super) fn schedule(&self, old: Option<Timer>, at: Moment, cohort: &Arc<Cohort>) -> Timer {
        let mut wheel = lock(&self.wheel);
        if let Some(old) = old {
            wheel.cancel(old.key);
        }
        // Rounded up: a timer that came early would find nothing to do, and not be set again.
        let key = wheel.schedule(at.nanos().div_ceil(1_000_000), Arc::downgrade(cohort));
        drop(wheel);
        if at.nanos() < self.asleep_until.load(Ordering::Acquire) {
            self.ring();
        }
        Timer { key, at }
    }

    /// Hands a request to the renewal thread.
    pub(super) fn post(&self, cohort: Arc<Cohort>, errand: Errand, op: Op) {
        lock(&self.outbox).push(Letter { cohort, errand, op });
        self.ring();
    }

    /// Runs a task on the renewal thread.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.worker.is_virtual() {
            drop(self.runtime.spawn(tracked(task, self.worker.clone(), Arc::clone(&self.bell))));
            return self.ring();
        }
        drop(self.runtime.spawn(task));
    }

    pub(super) fn runs_on(&self, runtime: &Handle) -> bool {
        self.runtime.id() == runtime.id()
    }

    /// Nobody uses the client any more: drain and end.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        self.worker.rouse();
        self.bell.notify_one();
    }

    fn due(&self, now: Moment) -> Vec<Arc<Cohort>> {
        let mut wheel = lock(&self.wheel);
        std::iter::from_fn(|| wheel.poll(now.millis())).filter_map(|cohort| cohort.upgrade()).collect()
    }

    /// Sleeps until the next timer or until the bell rings.
    async fn sleep(&self, clock: &Clock, at_most: Duration) {
        // Announced before the wheel is read: a timer set in between rings the bell.
        self.asleep_until.store(u64::MAX, Ordering::Release);
        let next = lock(&self.wheel).next();
        let until = next.map_or(Moment::FAR, |millis| Moment::ZERO + Duration::from_millis(millis));
        self.asleep_until.store(until.nanos(), Ordering::Release);
        if next.is_some_and(|millis| millis <= clock.now().millis()) {
            return;
        }
        if !self.worker.rest(until) {
            return;
        }
        match next {
            Some(_) => drop(first(self.bell.notified(), clock.nap_until(until, at_most)).await),
            None => self.bell.notified().await,
        }
    }
}

/// Starts the renewal thread of a driver.
pub(super) fn spawn(driver: Arc<Driver>, runtime: Runtime, drain_within: Duration) -> std::io::Result<()> {
    let body = move || runtime.block_on(keep(driver, drain_within));
    thread::Builder::new().name("bandog-keeper".into()).spawn(body).map(drop)
}

async fn keep(driver: Arc<Driver>, drain_within: Duration) {
    let mut end = None;
    loop {
        driver.keeper.worker.attend();
        let now = driver.clock.now();
        for cohort in driver.keeper.due(now) {
            shield("the timer of a lock", || driver.wake(&cohort));
        }
        shield("sending renewals", || driver.flush());
        // Tasks of this thread come first: they may have more for it to do.
        tokio::task::yield_now().await;
        if driver.keeper.finishing.load(Ordering::Acquire) {
            let end = *end.get_or_insert(now + drain_within);
            if driver.janitor.stats().pending == 0 || now >= end {
                return driver.keeper.worker.retire();
            }
            let drained = async { driver.janitor.drained(&driver.clock, end).await.unwrap_or_default() };
            let _ = first(driver.keeper.sleep(&driver.clock, driver.defaults.options.watchdog_period), drained).await;
        } else {
            driver.keeper.sleep(&driver.clock, driver.defaults.options.watchdog_period).await;
        }
    }
}

impl Driver {
    /// Sends everything in the outbox as one batch, without waiting for the answers.
    fn flush(self: &Arc<Self>) {
        let letters = std::mem::take(&mut *lock(&self.keeper.outbox));
        if letters.is_empty() {
            return;
        }
        let (errands, calls): (Vec<_>, Vec<_>) = letters.into_iter().map(Letter::open).unzip();
        let begun = shield("a store", || {
            let mut answers = self.renewals.batch(calls);
            let polled = poll_once(&mut answers);
            (answers, polled)
        });
        let answers = match begun {
            Some((_, Poll::Ready(answers))) => return self.replies(errands, answers),
            Some((answers, Poll::Pending)) => answers,
            // Nothing answered is everything unknown.
            None => return self.replies(errands, Vec::new()),
        };
        let driver = Arc::clone(self);
        let patience = self.clock.now() + self.settings.response;
        self.keeper.spawn(async move {
            let answers = first(shielded("a store", answers), driver.clock.sleep_until(patience)).await.flatten();
            let unknown = || Err(StoreError::unknown("the store did not answer in time"));
            let answers = answers.unwrap_or_else(|| errands.iter().map(|_| unknown()).collect());
            driver.replies(errands, answers);
        });
    }

    fn replies(self: &Arc<Self>, errands: Vec<(Arc<Cohort>, Errand)>, answers: Vec<Result<Reply, StoreError>>) {
        // A store that answers less than it was asked leaves the rest unknown.
        let missing = || Some(Err(StoreError::unknown("the store left a request of a batch unanswered")));
        let answers = answers.into_iter().chain(std::iter::from_fn(missing));
        for ((cohort, errand), answer) in errands.into_iter().zip(answers) {
            self.reply(&cohort, errand, answer);
        }
    }
}

impl Letter {
    fn open(self) -> ((Arc<Cohort>, Errand), (LockName, Op)) {
        let name = self.cohort.name().clone();
        ((self.cohort, self.errand), (name, self.op))
    }
}
