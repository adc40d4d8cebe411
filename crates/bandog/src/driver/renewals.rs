//! The renewal thread: sleeps to the next timer, wakes the machines that are due, and sends what they want in batches.
//!
//! It has its own runtime and its own connection to the store, so a blocked runtime of the user's loses no lease. It lives as
//! long as anybody uses the client, and then until the releases are drained, within bounds.
//!
//! If it stalls or dies, the [watchdog](super::watchdog) [replaces](Driver::revive) it by another thread with another runtime and
//! another connection. The old thread, if it ever goes on, sees that its generation is over, and ends.

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
pub(super) struct RenewalThread {
    wheel: Mutex<Wheel<Weak<Cohort>>>,
    outbox: Mutex<Vec<OutboxEntry>>,
    wakeup: Arc<Notify>,
    worker: Worker,
    runtime: Mutex<Handle>,
    /// Numbers the threads: all but the last must end.
    generation: AtomicU64,
    drain_within: Duration,
    /// The time until which the thread sleeps, in nanoseconds.
    asleep_until: AtomicU64,
    finishing: AtomicBool,
}

/// A timer in the wheel.
pub(super) struct Timer {
    key: Key,
    pub(super) at: Moment,
}

/// A call for this thread to send, and the cohort it belongs to.
pub(super) type OutboxEntry = (Arc<Cohort>, Outgoing);

fn due((_, outgoing): &OutboxEntry) -> Moment {
    outgoing.due.unwrap_or(Moment::ZERO)
}

impl RenewalThread {
    pub(super) fn new(clock: &Clock, drain_within: Duration) -> std::io::Result<(Self, Runtime)> {
        let (runtime, wakeup) = (sync::runtime()?, Arc::new(Notify::new()));
        let thread = Self {
            wheel: Mutex::new(Wheel::new(clock.now().millis())),
            outbox: Mutex::default(),
            wakeup,
            worker: clock.worker(),
            runtime: Mutex::new(runtime.handle().clone()),
            generation: AtomicU64::new(0),
            drain_within,
            asleep_until: AtomicU64::new(0),
            finishing: AtomicBool::new(false),
        };
        Ok((thread, runtime))
    }

    /// Sets or moves a cohort's timer.
    pub(super) fn schedule(&self, old: Option<Timer>, at: Moment, cohort: &Arc<Cohort>) -> Timer {
        let mut wheel = lock(&self.wheel);
        if let Some(old) = old {
            wheel.cancel(old.key);
        }
        // Rounded up: a timer that fires early would find nothing to do, and not be set again.
        let key = wheel.schedule(at.nanos().div_ceil(1_000_000), Arc::downgrade(cohort));
        drop(wheel);
        if at.nanos() < self.asleep_until.load(Ordering::Acquire) {
            self.ring();
        }
        Timer { key, at }
    }

    /// Puts calls into the outbox: calls that are put in together are sent together.
    pub(super) fn post(&self, entries: impl IntoIterator<Item = OutboxEntry>) {
        lock(&self.outbox).extend(entries);
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
            drop(runtime.spawn(tracked(task, self.worker.clone(), Arc::clone(&self.wakeup))));
            return self.ring();
        }
        drop(runtime.spawn(task));
    }

    pub(super) fn runs_on(&self, runtime: &Handle) -> bool {
        lock(&self.runtime).id() == runtime.id()
    }

    /// By how much the first timer is overdue.
    pub(super) fn overdue(&self, now: Moment) -> Duration {
        let next = lock(&self.wheel).next();
        next.map_or(Duration::ZERO, |millis| now.since(Moment::ZERO + Duration::from_millis(millis)))
    }

    /// The client has no users left: drain the releases and end.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
        self.ring();
    }

    fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    pub(super) fn ring(&self) {
        self.worker.rouse();
        self.wakeup.notify_one();
    }

    /// Takes out the calls that are due.
    fn take_due(&self, now: Moment) -> Vec<OutboxEntry> {
        lock(&self.outbox).extract_if(.., |entry| due(entry) <= now).collect()
    }

    /// The next cohort whose timer is due. One at a time: if this thread stalls, its successor finds the others.
    fn next_due(&self, now: Moment) -> Option<Arc<Cohort>> {
        let mut wheel = lock(&self.wheel);
        std::iter::from_fn(|| wheel.poll(now.millis())).find_map(|cohort| cohort.upgrade())
    }

    /// Sleeps until the next timer, until a call is due, or until it is woken.
    async fn sleep(&self, clock: &Clock, at_most: Duration) {
        // Announced before the wheel is read: a timer set in between wakes this thread.
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
            // Precise to 0.1 ms; a nap may take 2 ms longer.
            let _ = first(pin!(self.wakeup.notified()), pin!(clock.sleep_until(until))).await;
        } else if timer < Moment::FAR {
            let _ = first(pin!(self.wakeup.notified()), pin!(clock.nap_until(timer, at_most))).await;
        } else {
            self.wakeup.notified().await;
        }
    }
}

/// The runtime of a thread that may fail to start. It must not be dropped in place: the caller may be inside another runtime.
struct Unstarted(Option<Runtime>);

impl Drop for Unstarted {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            sync::end(runtime);
        }
    }
}

/// Starts a renewal thread. It waits until its generation is the current one.
pub(super) fn spawn(driver: Arc<Driver>, runtime: Runtime, generation: u64) -> std::io::Result<()> {
    let mut unstarted = Unstarted(Some(runtime));
    let body = move || {
        if let Some(runtime) = unstarted.0.take() {
            runtime.block_on(run(driver, generation));
        }
    };
    thread::Builder::new().name("bandog-renewals".into()).spawn(body).map(drop)
}

async fn run(driver: Arc<Driver>, generation: u64) {
    let mut end = None;
    while driver.renewal_thread.generation.load(Ordering::Acquire) < generation {
        driver.renewal_thread.wakeup.notified().await;
    }
    while driver.renewal_thread.is_current(generation) {
        driver.renewal_thread.worker.attend();
        let now = driver.clock.now();
        while let Some(cohort) = driver.renewal_thread.next_due(now) {
            shield("the timer of a lock", || driver.wake(&cohort));
        }
        if !driver.renewal_thread.is_current(generation) {
            break;
        }
        shield("sending renewals", || driver.flush());
        // Tasks of this runtime run first: they may put more into the outbox.
        tokio::task::yield_now().await;
        if driver.renewal_thread.finishing.load(Ordering::Acquire) {
            let end = *end.get_or_insert(now + driver.renewal_thread.drain_within);
            if driver.janitor.stats().pending == 0 || now >= end {
                return driver.renewal_thread.worker.retire();
            }
            let drained = async { driver.janitor.drained(&driver.clock, end).await.unwrap_or_default() };
            let asleep = pin!(driver.renewal_thread.sleep(&driver.clock, driver.defaults.options.watchdog_period));
            let _ = first(asleep, pin!(drained)).await;
        } else {
            driver.renewal_thread.sleep(&driver.clock, driver.defaults.options.watchdog_period).await;
        }
    }
    // This thread may have taken a wake-up that was meant for its successor.
    driver.renewal_thread.wakeup.notify_one();
}

impl Driver {
    /// Replaces a renewal thread that stalls or is dead.
    pub(super) fn revive(self: &Arc<Self>) -> std::io::Result<()> {
        let runtime = sync::runtime()?;
        let (handle, generation) =
            (runtime.handle().clone(), self.renewal_thread.generation.load(Ordering::Acquire) + 1);
        // Started before the old thread's generation ends: if the start fails, a slow thread is better than none.
        spawn(Arc::clone(self), runtime, generation)?;
        // The old thread may block its connection. Dropped unlocked: it may answer calls.
        let connection = self.store.connection();
        drop(std::mem::replace(&mut *lock(&self.renewal_store), connection));
        *lock(&self.renewal_thread.runtime) = handle;
        self.renewal_thread.generation.store(generation, Ordering::Release);
        self.renewal_thread.ring();
        Ok(())
    }

    /// Sends all calls of the outbox that are due in one batch, without waiting for the answers.
    fn flush(&self) {
        let mut entries = self.renewal_thread.take_due(self.clock.now());
        entries.retain(|(cohort, outgoing)| is_wanted(cohort, outgoing));
        if !entries.is_empty() {
            self.submit(&self.renewal_store(), entries.into_iter().map(|(_, outgoing)| outgoing.call).collect());
        }
    }
}

/// Whether a call must still be sent: it may have timed out, and a call that was held back may have lost its purpose.
fn is_wanted(cohort: &Cohort, outgoing: &Outgoing) -> bool {
    let mut state = cohort.lock();
    let Some(context) = state.calls.context(outgoing.id).cloned() else { return false };
    let is_wanted = outgoing.due.is_none() || state.machine.handle_due(&context);
    if !is_wanted {
        state.calls.end(outgoing.id);
    }
    is_wanted
}
