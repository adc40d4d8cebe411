//! The renewal thread: sleeps to the next timer, wakes the machines that are due, and sends what they want in batches.
//!
//! It has its own runtime and its own connection to the store, so a blocked runtime of the user's loses no lease. It lives as
//! long as anybody uses the client, and then until the releases are drained, within bounds.
//!
//! Should it stand still or die, the [watchdog](super::watchdog) starts it [anew](Driver::revive): another thread with another
//! runtime and another connection. The old one, if it ever comes round, sees that its turn is over.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bandog_core::time::Moment;
use bandog_core::wheel::{Key, Wheel};
use tokio::sync::Notify;

use super::calls::{Outgoing, first};
use super::shield::shield;
use super::tracked::tracked;
use super::{Cohort, Driver, lock};
use crate::clock::{Clock, Worker};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{self, Handle, Mutex, Runtime, thread};

/// What the rest of the driver sees of the renewal thread.
pub(super) struct Keeper {
    wheel: Mutex<Wheel<Weak<Cohort>>>,
    outbox: Mutex<Vec<Posted>>,
    bell: Arc<Notify>,
    worker: Worker,
    runtime: Mutex<Handle>,
    /// Counts the threads so far: all but the last are to end.
    turn: AtomicU64,
    drain_within: Duration,
    /// Nanoseconds of the time until which the thread sleeps.
    asleep_until: AtomicU64,
    finishing: AtomicBool,
}

/// A timer in the wheel.
pub(super) struct Timer {
    key: Key,
    pub(super) at: Moment,
}

/// A call for this thread to send, and whose it is.
pub(super) type Posted = (Arc<Cohort>, Outgoing);

fn due((_, outgoing): &Posted) -> Moment {
    outgoing.due.unwrap_or(Moment::ZERO)
}

impl Keeper {
    pub(super) fn new(clock: &Clock, drain_within: Duration) -> std::io::Result<(Self, Runtime)> {
        let (runtime, bell) = (sync::runtime()?, Arc::new(Notify::new()));
        let keeper = Self {
            wheel: Mutex::new(Wheel::new(clock.now().millis())),
            outbox: Mutex::default(),
            bell,
            worker: clock.worker(),
            runtime: Mutex::new(runtime.handle().clone()),
            turn: AtomicU64::new(0),
            drain_within,
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

    /// Hands calls to the renewal thread: what comes together is sent together.
    pub(super) fn post(&self, posted: impl IntoIterator<Item = Posted>) {
        lock(&self.outbox).extend(posted);
        self.ring();
    }

    /// The runtime of the renewal thread.
    pub(super) fn runtime(&self) -> Handle {
        lock(&self.runtime).clone()
    }

    /// Runs a task on the renewal thread.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let runtime = self.runtime();
        if self.worker.is_virtual() {
            drop(runtime.spawn(tracked(task, self.worker.clone(), Arc::clone(&self.bell))));
            return self.ring();
        }
        drop(runtime.spawn(task));
    }

    pub(super) fn runs_on(&self, runtime: &Handle) -> bool {
        lock(&self.runtime).id() == runtime.id()
    }

    /// How long ago the first timer should have been served, if it was not.
    pub(super) fn overdue(&self, now: Moment) -> Duration {
        let next = lock(&self.wheel).next();
        next.map_or(Duration::ZERO, |millis| now.since(Moment::ZERO + Duration::from_millis(millis)))
    }

    /// Nobody uses the client any more: drain and end.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
        self.ring();
    }

    fn is_turn(&self, turn: u64) -> bool {
        self.turn.load(Ordering::Acquire) == turn
    }

    pub(super) fn ring(&self) {
        self.worker.rouse();
        self.bell.notify_one();
    }

    /// Takes out the calls that are due.
    fn take_due(&self, now: Moment) -> Vec<Posted> {
        lock(&self.outbox).extract_if(.., |posted| due(posted) <= now).collect()
    }

    /// The next cohort whose timer is due. One at a time: should this thread stand still, the others are found by its successor.
    fn next_due(&self, now: Moment) -> Option<Arc<Cohort>> {
        let mut wheel = lock(&self.wheel);
        std::iter::from_fn(|| wheel.poll(now.millis())).find_map(|cohort| cohort.upgrade())
    }

    /// Sleeps until the next timer, until a call is due, or until the bell rings.
    async fn sleep(&self, clock: &Clock, at_most: Duration) {
        // Announced before the wheel is read: a timer set in between rings the bell.
        self.asleep_until.store(u64::MAX, Ordering::Release);
        let timer = lock(&self.wheel).next();
        let timer = timer.map_or(Moment::FAR, |millis| Moment::ZERO + Duration::from_millis(millis));
        let call = lock(&self.outbox).iter().map(due).min().unwrap_or(Moment::FAR);
        let until = timer.min(call);
        self.asleep_until.store(until.nanos(), Ordering::Release);
        if until <= clock.now() {
            return;
        }
        if !self.worker.rest(until) {
            return;
        }
        if call < Moment::FAR {
            // To the tenth of a millisecond, where a nap may take two more.
            let _ = first(pin!(self.bell.notified()), pin!(clock.sleep_until(until))).await;
        } else if timer < Moment::FAR {
            let _ = first(pin!(self.bell.notified()), pin!(clock.nap_until(timer, at_most))).await;
        } else {
            self.bell.notified().await;
        }
    }
}

/// The runtime of a thread that may fail to start, and whose caller may be inside a runtime of its own.
struct Unstarted(Option<Runtime>);

impl Drop for Unstarted {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            sync::end(runtime);
        }
    }
}

/// Starts the renewal thread of a driver, for its turn: until that has begun it waits.
pub(super) fn spawn(driver: Arc<Driver>, runtime: Runtime, turn: u64) -> std::io::Result<()> {
    let mut unstarted = Unstarted(Some(runtime));
    let body = move || {
        if let Some(runtime) = unstarted.0.take() {
            runtime.block_on(keep(driver, turn));
        }
    };
    thread::Builder::new().name("bandog-keeper".into()).spawn(body).map(drop)
}

async fn keep(driver: Arc<Driver>, turn: u64) {
    let mut end = None;
    while driver.keeper.turn.load(Ordering::Acquire) < turn {
        driver.keeper.bell.notified().await;
    }
    while driver.keeper.is_turn(turn) {
        driver.keeper.worker.attend();
        let now = driver.clock.now();
        while let Some(cohort) = driver.keeper.next_due(now) {
            shield("the timer of a lock", || driver.wake(&cohort));
        }
        if !driver.keeper.is_turn(turn) {
            break;
        }
        shield("sending renewals", || driver.flush());
        // Tasks of this thread come first: they may have more for it to do.
        tokio::task::yield_now().await;
        if driver.keeper.finishing.load(Ordering::Acquire) {
            let end = *end.get_or_insert(now + driver.keeper.drain_within);
            if driver.janitor.stats().pending == 0 || now >= end {
                return driver.keeper.worker.retire();
            }
            let drained = async { driver.janitor.drained(&driver.clock, end).await.unwrap_or_default() };
            let asleep = pin!(driver.keeper.sleep(&driver.clock, driver.defaults.options.watchdog_period));
            let _ = first(asleep, pin!(drained)).await;
        } else {
            driver.keeper.sleep(&driver.clock, driver.defaults.options.watchdog_period).await;
        }
    }
    // What woke this one was meant for its successor.
    driver.keeper.bell.notify_one();
}

impl Driver {
    /// The renewal thread stands still or is dead: another takes over, and catches up.
    pub(super) fn revive(self: &Arc<Self>) -> std::io::Result<()> {
        let runtime = sync::runtime()?;
        let (handle, turn) = (runtime.handle().clone(), self.keeper.turn.load(Ordering::Acquire) + 1);
        // Before the old one's turn ends: it may only have been slow, and is better than none.
        spawn(Arc::clone(self), runtime, turn)?;
        // The old thread may hold up what uses its connection.
        *lock(&self.renewals) = self.store.connection();
        *lock(&self.keeper.runtime) = handle;
        self.keeper.turn.store(turn, Ordering::Release);
        self.keeper.ring();
        Ok(())
    }

    /// Sends everything in the outbox that is due together, without waiting for the answers.
    fn flush(&self) {
        let mut posted = self.keeper.take_due(self.clock.now());
        posted.retain(|(cohort, outgoing)| is_wanted(cohort, outgoing));
        if !posted.is_empty() {
            self.submit(&self.renewals(), posted.into_iter().map(|(_, outgoing)| outgoing.call).collect());
        }
    }
}

/// Whether a call is still to be sent: it may have been given up, and what it was for may be over if it was kept.
fn is_wanted(cohort: &Cohort, outgoing: &Outgoing) -> bool {
    let mut state = cohort.lock();
    let Some(context) = state.calls.context(outgoing.id).cloned() else { return false };
    let is_wanted = outgoing.due.is_none() || state.machine.handle_due(&context);
    if !is_wanted {
        state.calls.end(outgoing.id);
    }
    is_wanted
}
