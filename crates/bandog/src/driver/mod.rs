//! The I/O shell: runs the lock machines of one client against its store.
//!
//! Requests and guards call in, the store delivers [answers and pushes](receiver), and the [renewal thread](renewals) serves timers. Each of
//! them locks one [`Cohort`] and takes one [step](Driver::step): it feeds the machine, drains its actions and events, unlocks, and performs
//! them. [Calls](calls) go out to the store; the renewal thread sends renewals, heartbeats and the releases that nobody else can send. The
//! [watchdog](watchdog) checks all of it.
//!
//! Invariant: no lock of ours is held while a store answers, a waker wakes or is dropped, or a user's code runs. Two small
//! things happen under a cohort's lock: a waker is cloned, and [`Store::time`] is read, which must not call back.

mod ask;
mod calls;
mod cohort;
mod health;
mod janitor;
mod notice;
mod receiver;
mod renewals;
mod report;
#[cfg(all(test, shuttle))]
pub(crate) mod schedules;
pub(crate) mod shield;
mod stay;
mod table;
mod tick;
pub(crate) mod tracked;
mod watchdog;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bandog_core::holder::Client;
use bandog_core::lock::{HoldKey, Machine, Released, Settings};
use bandog_core::name::LockName;
use bandog_core::store::{Capabilities, Store};
use bandog_core::time::Moment;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::config::LockConfig;
use crate::signals::{Grouping, Herald, Signals, detailed};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};

pub(crate) use ask::AskResult;
use calls::Outgoing;
pub(crate) use calls::first;
use cohort::State;
pub(crate) use cohort::{Cohort, LossReceiver};
pub use health::{Connection, Findings, Health};
use janitor::Janitor;
pub use janitor::JanitorStats;
use notice::Notice;
use receiver::DriverReceiver;
use renewals::RenewalThread;
pub(crate) use stay::Stays;
pub(crate) use table::Key;
use table::Table;
pub(crate) use watchdog::Watchdog;

/// One client: its store, its machines, its threads.
pub(crate) struct Driver {
    pub(crate) store: Arc<dyn Store>,
    /// The renewal thread's own connection to the same store.
    renewal_store: Mutex<Arc<dyn Store>>,
    pub(crate) capabilities: Capabilities,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) settings: Arc<Settings>,
    pub(crate) defaults: LockConfig,
    /// Whether owners may enter again by default.
    pub(crate) reentrant: bool,
    pub(crate) janitor: Janitor,
    pub(crate) signals: Signals,
    pub(crate) herald: Herald,
    renewal_thread: RenewalThread,
    pub(crate) watchdog: Watchdog,
    receiver: Arc<DriverReceiver>,
    cohorts: Table,
    /// The id of the next call: no other call of this client has it.
    next_call: AtomicU64,
    /// Claims whose hold went on without us; see [`Guard::detach`](crate::Guard::detach).
    detached: Mutex<BTreeSet<u64>>,
    /// Those of them that stay for a while only, with the task to notify of a revocation.
    staying: Mutex<BTreeMap<u64, Arc<Notify>>>,
    inbox_up: AtomicBool,
    inbox_was_up: AtomicBool,
    closed: AtomicBool,
}

/// What `Locks`, requests and guards hold. When the last one goes, the renewal thread drains the releases and ends.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Life>);

struct Life(Arc<Driver>);

impl Deref for Handle {
    type Target = Arc<Driver>;

    fn deref(&self) -> &Arc<Driver> {
        &self.0.0
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.renewal_thread.finish();
        self.0.watchdog.finish();
        self.0.herald.finish();
    }
}

/// The arguments of [`Driver::start`].
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) defaults: LockConfig,
    pub(crate) reentrant: bool,
    pub(crate) janitor_limit: usize,
    pub(crate) drain_within: Duration,
    pub(crate) group_by: Option<Grouping>,
}

impl Driver {
    /// Starts the renewal thread and begins to listen.
    pub(crate) fn start(parts: Parts) -> std::io::Result<Handle> {
        let Parts { store, client, clock, settings, defaults, reentrant, janitor_limit, drain_within, group_by } =
            parts;
        clock.start()?;
        let (renewal_thread, runtime) = RenewalThread::new(&clock, drain_within)?;
        let watchdog = Watchdog::new(&clock, defaults.options.watchdog_period);
        let driver = Arc::new_cyclic(|weak| Self {
            receiver: Arc::new(DriverReceiver(Weak::clone(weak))),
            renewal_store: Mutex::new(store.connection()),
            capabilities: store.capabilities(),
            store,
            client,
            renewal_thread,
            watchdog,
            clock,
            settings: Arc::new(settings),
            defaults,
            reentrant,
            janitor: Janitor::new(janitor_limit),
            signals: Signals::new(group_by),
            herald: Herald::default(),
            cohorts: Table::default(),
            next_call: AtomicU64::new(0),
            detached: Mutex::default(),
            staying: Mutex::default(),
            inbox_up: AtomicBool::new(false),
            inbox_was_up: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        driver.listen();
        renewals::spawn(Arc::clone(&driver), runtime, 0)?;
        watchdog::spawn(Arc::clone(&driver))?;
        Ok(Handle(Arc::new(Life(driver))))
    }

    /// Feeds the machine of a name, which it makes if there is none. Returns its cohort.
    pub(crate) fn enter<R>(
        self: &Arc<Self>,
        name: &Key,
        mut feed: impl FnMut(Moment, &mut Machine) -> R,
    ) -> (Arc<Cohort>, R) {
        loop {
            let cohort = self.cohort(name);
            let state = cohort.lock();
            // Retired between look-up and now, it is not in the table any more.
            if !state.retired {
                let result = self.step(&cohort, state, |now, state, _| feed(now, &mut state.machine));
                return (cohort, result);
            }
        }
    }

    /// Feeds one machine, and performs its actions.
    pub(crate) fn with<R>(self: &Arc<Self>, cohort: &Arc<Cohort>, feed: impl FnOnce(Moment, &mut Machine) -> R) -> R {
        self.step(cohort, cohort.lock(), |now, state, _| feed(now, &mut state.machine))
    }

    /// The one step of the driver: feeds a locked machine, drains it, unlocks it, and performs what was drained.
    pub(crate) fn step<R>(
        self: &Arc<Self>,
        cohort: &Arc<Cohort>,
        state: MutexGuard<'_, State>,
        feed: impl FnOnce(Moment, &mut State, &mut Vec<Notice>) -> R,
    ) -> R {
        let (result, outgoing) = self.step_unsent(cohort, state, feed);
        if !outgoing.is_empty() {
            self.send(cohort, outgoing);
        }
        result
    }

    /// A step without the sending, for callers that send for many locks together.
    fn step_unsent<R>(
        self: &Arc<Self>,
        cohort: &Arc<Cohort>,
        mut state: MutexGuard<'_, State>,
        feed: impl FnOnce(Moment, &mut State, &mut Vec<Notice>) -> R,
    ) -> (R, Vec<Outgoing>) {
        let (now, mut notices) = (self.clock.now(), Vec::new());
        let result = feed(now, &mut state, &mut notices);
        let effects = state.drain(now, self, cohort.name(), notices);
        if let Some(at) = effects.timer {
            state.timer = Some(self.renewal_thread.schedule(state.timer.take(), at, cohort));
        }
        if effects.begun > 0 {
            self.janitor.begun(effects.begun as usize);
        }
        drop(state);
        if effects.settled > 0 {
            self.janitor.settled(effects.settled as usize);
        }
        if !effects.notices.is_empty() {
            self.emit(cohort, effects.notices);
        }
        effects.wakers.into_iter().for_each(shield::wake);
        drop(effects.stale);
        (result, effects.outgoing)
    }

    /// Releases a hold. Listeners hear of it before anybody else can get the lock.
    #[inline]
    pub(crate) fn release(
        self: &Arc<Self>,
        cohort: &Arc<Cohort>,
        state: MutexGuard<'_, State>,
        (hold_key, heard): (HoldKey, bool),
        feed: impl FnOnce(Moment, &mut Machine) -> Released,
    ) -> Released {
        let (released, unheard, forgotten) = self.step(cohort, state, |now, state, notices| {
            let held = state.machine.since(hold_key).map(|since| now.since(since)).unwrap_or_default();
            let release = if heard { state.release_notice(hold_key, held) } else { None };
            let forgotten = state.forget_watchers(now, hold_key);
            let released = feed(now, &mut state.machine);
            // Listeners have heard of a lost hold already.
            let lost = matches!(released, Released::Now(Err(_)));
            let unheard = (release.is_none() && !lost).then_some(held);
            notices.extend(release.filter(|_| !lost));
            (released, unheard, forgotten)
        });
        if let Some(held) = unheard {
            shield::shield("a listener", || self.signals.held(cohort.name(), held));
        }
        if let Some(forgotten) = forgotten {
            forgotten.send();
        }
        released
    }

    /// True if there are event listeners or DEBUG tracing; metrics alone need less. Calls the subscriber: not to be called under a lock.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.signals.is_heard() || detailed()
    }

    #[cold]
    fn emit(&self, cohort: &Cohort, notices: Vec<Notice>) {
        notices.into_iter().for_each(|notice| notice.emit(self, cohort.name()));
    }

    /// Serves the timer of a cohort.
    pub(crate) fn wake(self: &Arc<Self>, cohort: &Arc<Cohort>) {
        let now = self.clock.now();
        let mut state = cohort.lock();
        // The timer may have been set again since it left the wheel.
        state.timer.take_if(|timer| timer.at <= now);
        if state.is_idle() {
            drop(state);
            return self.retire(cohort);
        }
        drop(state);
        self.end_overdue_calls(cohort);
        self.with(cohort, |now, machine| machine.handle_timeout(now));
    }

    /// Notes a detached hold: a late push of its grant must not be answered with a release.
    pub(crate) fn note_detached(&self, number: u64) {
        lock(&self.detached).insert(number);
    }

    /// The key of a name in this client's table of cohorts.
    pub(crate) fn key(&self, name: LockName) -> Key {
        self.cohorts.key(name)
    }

    fn cohort(&self, name: &Key) -> Arc<Cohort> {
        self.cohorts.get_or_insert(name, || {
            let mut machine = Machine::new(Arc::clone(&self.settings), self.client.clone(), name.hash());
            if !self.inbox_up.load(Ordering::Acquire) {
                machine.handle_inbox(self.clock.now(), false);
            }
            if self.closed.load(Ordering::Acquire) {
                machine.handle_close(self.clock.now());
            }
            Cohort::new(LockName::clone(name), machine)
        })
    }

    /// How many locks have a cohort in this client.
    pub(crate) fn locks_in_use(&self) -> usize {
        self.cohorts.len()
    }

    /// Closes every machine and waits for the releases, at most `within`.
    pub(crate) async fn close(self: &Arc<Self>, within: Duration) -> Result<(), usize> {
        self.closed.store(true, Ordering::Release);
        for cohort in self.all_cohorts() {
            self.with(&cohort, |now, machine| machine.handle_close(now));
        }
        let deadline = self.clock.now() + within;
        self.janitor.drained(&self.clock, deadline).await
    }

    // The flag is set under both locks: those who find the cohort later look its name up again.
    fn retire(&self, cohort: &Cohort) {
        self.cohorts.remove_if(cohort, || {
            let mut state = cohort.lock();
            let leaves = state.is_idle() && !state.retired;
            state.retired |= leaves;
            leaves
        });
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn renewal_store(&self) -> Arc<dyn Store> {
        Arc::clone(&lock(&self.renewal_store))
    }

    fn all_cohorts(&self) -> Vec<Arc<Cohort>> {
        self.cohorts.shards().flatten().collect()
    }

    fn knows(&self, name: &Key) -> bool {
        self.cohorts.has(name)
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Driver({}, {} locks in use)", self.store, self.locks_in_use())
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&**self, f)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves its data whole before anything that could panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
