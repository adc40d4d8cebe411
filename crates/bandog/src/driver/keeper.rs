//! The renewal thread: sleeps to the next timer, wakes the machines that are due, and sends what they want in batches.
//!
//! It has its own runtime and its own lane to the store, so a blocked runtime of the user's loses no lease. It lives as
//! long as anybody uses the client, and then until the releases are drained, within bounds. What nobody waits for yet wakes it
//! [behind](Keeper::post_behind) whoever was handed a lock (decision 0028).
//!
//! Should it stand still or die, the [watchdog](super::watchdog) starts it [anew](Driver::revive): another thread with another
//! runtime and another lane. The old one, if it ever comes round, sees that its turn is over.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bandog_core::op::Reply;
use bandog_core::store::StoreError;
use bandog_core::time::Moment;
use bandog_core::wheel::{Key, Wheel};
use tokio::sync::Notify;

use super::calls::{first, poll_once};
use super::letter::{Errands, Letter};
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
    /// Rings the bell for whoever let others run first.
    ringer: Waker,
    /// Whether something was posted for which the bell has yet to ring.
    unrung: AtomicBool,
    worker: Worker,
    runtime: Mutex<Handle>,
    /// Counts the threads so far: all but the last are to end.
    turn: AtomicU64,
    underway: Mutex<Underway>,
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

/// What was sent and is not answered yet. Whoever takes a batch out answers it: the thread that sent it, or the watchdog.
#[derive(Default)]
struct Underway {
    next: u64,
    batches: HashMap<u64, Errands>,
}

/// Does nothing but to ring: a runtime that wakes it has the list of all that it wakes in its hands.
struct Ringer(Arc<Notify>);

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl Keeper {
    pub(super) fn new(clock: &Clock, drain_within: Duration) -> std::io::Result<(Self, Runtime)> {
        let (runtime, bell) = (sync::runtime()?, Arc::new(Notify::new()));
        let keeper = Self {
            wheel: Mutex::new(Wheel::new(clock.now().millis())),
            outbox: Mutex::default(),
            ringer: Waker::from(Arc::new(Ringer(Arc::clone(&bell)))),
            bell,
            unrung: AtomicBool::new(false),
            worker: clock.worker(),
            runtime: Mutex::new(runtime.handle().clone()),
            turn: AtomicU64::new(0),
            underway: Mutex::default(),
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

    /// Hands requests to the renewal thread: what comes together is sent together.
    pub(super) fn post(&self, letters: impl IntoIterator<Item = Letter>) {
        lock(&self.outbox).extend(letters);
        self.ring();
    }

    /// The same for a letter that can wait: the thread is woken when whoever was woken here before has run. Where cores are few it would
    /// be served first. Should this thread be kept busy, the letter goes with the hold's next timer, or with the next [release](Self::is_unrung).
    pub(super) fn post_behind(&self, letter: Letter) {
        lock(&self.outbox).push(letter);
        if self.worker.is_virtual() {
            return self.ring();
        }
        self.unrung.store(true, Ordering::Release);
        // Polled once: the runtime wakes its waker when it has nothing else to run. It may not be asked while it wakes others.
        let polled = || pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&self.ringer));
        if shield("a runtime", polled).is_none() {
            self.ring();
        }
    }

    /// Whether a letter was left without ringing. Whoever releases a guard rings for it then, but not for what the release itself leaves.
    #[inline]
    pub(super) fn is_unrung(&self) -> bool {
        self.unrung.load(Ordering::Acquire)
    }

    /// Runs a task on the renewal thread.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let runtime = lock(&self.runtime).clone();
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

    /// Notes what is sent, until it is [answered](Driver::answered).
    pub(super) fn begin(&self, errands: Errands) -> u64 {
        let mut underway = lock(&self.underway);
        underway.next += 1;
        let batch = underway.next;
        underway.batches.insert(batch, errands);
        batch
    }

    /// The errands of a batch, for whoever answers it; `None` for whoever comes too late.
    fn take(&self, batch: u64) -> Option<Errands> {
        let mut underway = lock(&self.underway);
        let errands = underway.batches.remove(&batch);
        if underway.batches.is_empty() {
            underway.batches = HashMap::new();
        }
        errands
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

    /// Takes out the letters that are due.
    fn take_due(&self, now: Moment) -> Vec<Letter> {
        lock(&self.outbox).extract_if(.., |letter| letter.due() <= now).collect()
    }

    /// The next cohort whose timer is due. One at a time: should this thread stand still, the others are found by its successor.
    fn next_due(&self, now: Moment) -> Option<Arc<Cohort>> {
        let mut wheel = lock(&self.wheel);
        std::iter::from_fn(|| wheel.poll(now.millis())).find_map(|cohort| cohort.upgrade())
    }

    /// Sleeps until the next timer, until a letter is due, or until the bell rings.
    async fn sleep(&self, clock: &Clock, at_most: Duration) {
        // Announced before the wheel is read: a timer set in between rings the bell.
        self.asleep_until.store(u64::MAX, Ordering::Release);
        let timer = lock(&self.wheel).next();
        let timer = timer.map_or(Moment::FAR, |millis| Moment::ZERO + Duration::from_millis(millis));
        let letter = lock(&self.outbox).iter().map(Letter::due).min().unwrap_or(Moment::FAR);
        let until = timer.min(letter);
        self.asleep_until.store(until.nanos(), Ordering::Release);
        if until <= clock.now() {
            return;
        }
        if !self.worker.rest(until) {
            return;
        }
        if letter < Moment::FAR {
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
        // What the old thread holds of its lane is not waited for.
        *lock(&self.renewals) = self.store.lane();
        *lock(&self.keeper.runtime) = handle;
        self.keeper.turn.store(turn, Ordering::Release);
        self.keeper.ring();
        let batches = std::mem::take(&mut lock(&self.keeper.underway).batches);
        batches.into_values().for_each(|errands| self.replies(errands, Vec::new()));
        Ok(())
    }

    /// Sends everything in the outbox that is due as one batch, without waiting for the answers.
    fn flush(self: &Arc<Self>) {
        self.keeper.unrung.store(false, Ordering::Release);
        let mut letters = self.keeper.take_due(self.clock.now());
        letters.retain(Letter::is_wanted);
        if letters.is_empty() {
            return;
        }
        let (errands, calls): (Errands, Vec<_>) = letters.into_iter().map(Letter::open).unzip();
        let batch = self.keeper.begin(errands);
        let begun = shield("a store", || {
            let mut answers = self.renewals().batch(calls);
            let polled = poll_once(&mut answers);
            (answers, polled)
        });
        let answers = match begun {
            Some((_, Poll::Ready(answers))) => return self.answered(batch, answers),
            Some((answers, Poll::Pending)) => answers,
            // Nothing answered is everything unknown.
            None => return self.answered(batch, Vec::new()),
        };
        let driver = Arc::clone(self);
        let patience = self.clock.now() + self.settings.response;
        self.keeper.spawn(async move {
            let (answers, silent) = (pin!(shielded("a store", answers)), pin!(driver.clock.sleep_until(patience)));
            let answers = first(answers, silent).await.flatten();
            driver.answered(batch, answers.unwrap_or_default());
        });
    }

    /// Answers what was noted, unless the watchdog has.
    pub(super) fn answered(self: &Arc<Self>, batch: u64, answers: Vec<Result<Reply, StoreError>>) {
        if let Some(errands) = self.keeper.take(batch) {
            self.replies(errands, answers);
        }
    }

    fn replies(self: &Arc<Self>, errands: Errands, answers: Vec<Result<Reply, StoreError>>) {
        // Whatever is not answered is unknown.
        let missing = || Some(Err(StoreError::unknown("the store did not answer in time")));
        let answers = answers.into_iter().chain(std::iter::from_fn(missing));
        for ((cohort, context), answer) in errands.into_iter().zip(answers) {
            self.reply(&cohort, context, answer);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use bandog_core::holder::{Client, ClientId, Who};
    use bandog_core::lock::{Machine, RequestContext, Settings};
    use bandog_core::name::LockName;
    use bandog_core::op::Op;

    use super::*;

    fn letter() -> Letter {
        let machine =
            Machine::new(Arc::new(Settings::default()), Client::new(ClientId::from_random(1), Who::default()), 0);
        let cohort = Arc::new(Cohort::new(LockName::new("job").expect("a good name"), machine));
        Letter { cohort, context: RequestContext::Release { key: 0 }, op: Op::Tend }
    }

    /// Whether the bell has rung since the last look.
    fn has_rung(keeper: &Keeper) -> bool {
        pin!(keeper.bell.notified()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn what_can_wait_rings_behind_others() {
        let keeper = Keeper::new(&Clock::system(), Duration::ZERO).expect("a keeper").0;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let keeper = runtime.block_on(runtime.spawn(async move {
            keeper.post_behind(letter());
            assert_eq!((lock(&keeper.outbox).len(), has_rung(&keeper)), (1, false), "it is there, and nobody is woken");
            tokio::task::yield_now().await;
            assert!(has_rung(&keeper), "others have run");
            assert!(keeper.is_unrung(), "nobody has taken it yet");
            keeper
        }));
        let keeper = keeper.expect("no panic");
        // Its worker has ended, and what it was to wake is woken.
        drop(runtime);
        while has_rung(&keeper) {}
        keeper.post_behind(letter());
        assert!(has_rung(&keeper), "at once where there is no runtime");
    }
}
