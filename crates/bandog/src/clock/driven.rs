//! Virtual time: stands still until a test moves it, and waits for the threads that live by it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog_core::time::Moment;

use crate::sync::{Condvar, Mutex, MutexGuard};

use super::{Clock, Kind};

/// A clock that stands still until it is moved. For tests of code that holds locks.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::{Locks, MemoryStore, VirtualClock};
/// use std::time::Duration;
///
/// let clock = VirtualClock::new();
/// let store = MemoryStore::with_clock(clock.clock());
/// let locks = Locks::builder().store(store).clock(clock.clock()).build()?;
/// let guard = locks.mutex("job").max_renewals(0).acquire().await?;
/// clock.advance(Duration::from_secs(31)).await;
/// assert!(!guard.is_held());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct VirtualClock(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    settled: Condvar,
}

struct State {
    now: Moment,
    sleepers: BTreeMap<(Moment, u64), Waker>,
    next_id: u64,
    /// Threads that are waited for, by the number they were given.
    workers: BTreeMap<u64, Mood>,
}

impl Default for State {
    fn default() -> Self {
        // Not at zero: deadlines in the past must be expressible.
        let now = Moment::ZERO + Duration::from_secs(1_000_000);
        Self { now, sleepers: BTreeMap::new(), next_id: 0, workers: BTreeMap::new() }
    }
}

impl VirtualClock {
    /// A clock that has not moved yet.
    ///
    /// ```
    /// let clock = bandog::VirtualClock::new();
    /// assert_eq!(clock.now(), clock.now());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle for [`Locks`](crate::Locks) and [`MemoryStore`](crate::MemoryStore).
    ///
    /// ```
    /// let clock = bandog::VirtualClock::new();
    /// let store = bandog::MemoryStore::with_clock(clock.clock());
    /// ```
    pub fn clock(&self) -> Clock {
        Clock(Kind::Virtual(self.clone()))
    }

    /// The time now.
    ///
    /// ```
    /// let clock = bandog::VirtualClock::new();
    /// let began = clock.now();
    /// clock.pause(std::time::Duration::from_secs(1));
    /// assert_eq!(clock.now().since(began).as_secs(), 1);
    /// ```
    pub fn now(&self) -> Moment {
        self.lock().now
    }

    /// Moves on by `by`, stopping at every timer on the way and letting what it wakes run.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the clock where it got to, somewhere between the start and the end.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Locks, MemoryStore, VirtualClock};
    /// use std::time::Duration;
    ///
    /// let clock = VirtualClock::new();
    /// let store = MemoryStore::with_clock(clock.clock());
    /// let locks = Locks::builder().store(store).clock(clock.clock()).build()?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// clock.advance(Duration::from_secs(3600)).await;
    /// assert!(guard.is_held(), "renewed all the while");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn advance(&self, by: Duration) {
        let target = self.now() + by;
        self.fire();
        self.let_run().await;
        while self.step(target) {
            self.fire();
            self.let_run().await;
        }
    }

    /// Like [`advance`](Self::advance), for tests without a runtime.
    ///
    /// ```
    /// use bandog::{Locks, MemoryStore, VirtualClock, blocking};
    /// use std::time::Duration;
    ///
    /// let clock = VirtualClock::new();
    /// let store = MemoryStore::with_clock(clock.clock());
    /// let locks = blocking::Locks::from(Locks::builder().store(store).clock(clock.clock()).build()?);
    /// let guard = locks.mutex("job").acquire()?;
    /// clock.advance_blocking(Duration::from_secs(3600));
    /// assert!(guard.is_held(), "renewed all the while");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_blocking(&self, by: Duration) {
        let target = self.now() + by;
        self.fire();
        while self.step(target) {
            self.fire();
        }
    }

    /// Jumps by `by` as if every thread of the process had been stopped meanwhile: no timer runs before the end.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::{Locks, MemoryStore, VirtualClock};
    /// use std::time::Duration;
    ///
    /// let clock = VirtualClock::new();
    /// let store = MemoryStore::with_clock(clock.clock());
    /// let locks = Locks::builder().store(store).clock(clock.clock()).build()?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// clock.pause(Duration::from_secs(31));
    /// assert!(!guard.is_held(), "nobody could renew it");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn pause(&self, by: Duration) {
        let mut state = self.lock();
        state.now = state.now + by;
    }

    // To the next timer, or to the target if there is none before it. False when the target was reached before.
    fn step(&self, target: Moment) -> bool {
        let mut state = self.wait_for_workers();
        let moved = state.now < target;
        // A thread that rests may not have set its timer yet.
        let rests = state.workers.values().filter_map(|mood| mood.rests_until()).min();
        let timer = state.sleepers.first_key_value().map(|((at, _), _)| *at);
        let next = timer.into_iter().chain(rests).min().unwrap_or(target);
        state.now = state.now.max(next.min(target));
        moved
    }

    // Wakes everything whose time has come.
    fn fire(&self) {
        let mut state = self.lock();
        let now = state.now;
        let later = state.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    async fn let_run(&self) {
        // Tasks on the caller's own runtime get turns by yielding; threads of bandog's are waited for.
        for _ in 0..8 {
            yield_now().await;
            drop(self.wait_for_workers());
        }
    }

    fn wait_for_workers(&self) -> MutexGuard<'_, State> {
        let here = runtime_id();
        let busy = |state: &mut State| state.workers.values().any(|mood| mood.is_busy(state.now, here));
        self.0.settled.wait_while(self.lock(), busy).unwrap_or_else(PoisonError::into_inner)
    }

    /// Time does not pass while what this returns lives. For stores of tests that answer later, by a task on the current runtime.
    #[doc(hidden)]
    pub fn busy(&self) -> Busy {
        let worker = self.add_worker();
        self.lock().workers.insert(worker.id, Mood::Task(runtime_id()));
        Busy(worker)
    }

    pub(super) fn wake_at(&self, at: Moment, waker: Waker) {
        let mut state = self.lock();
        state.next_id += 1;
        let id = state.next_id;
        state.sleepers.insert((at, id), waker);
    }

    pub(super) fn add_worker(&self) -> Arc<WorkerState> {
        let mut state = self.lock();
        state.next_id += 1;
        let id = state.next_id;
        state.workers.insert(id, Mood::Busy);
        Arc::new(WorkerState { clock: self.clone(), id })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualClock({:?})", self.now())
    }
}

#[cfg(not(all(test, shuttle)))]
type RuntimeId = tokio::runtime::Id;
#[cfg(all(test, shuttle))]
type RuntimeId = ();

/// The runtime that the caller is in.
fn runtime_id() -> Option<RuntimeId> {
    #[cfg(not(all(test, shuttle)))]
    return tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.id());
    #[cfg(all(test, shuttle))]
    None
}

/// Something that a virtual clock waits for, while it lives.
#[doc(hidden)]
pub struct Busy(#[expect(dead_code, reason = "it is only dropped")] Arc<WorkerState>);

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Busy")
    }
}

/// A thread that a virtual clock waits for: it says when it rests, and until when.
#[derive(Clone)]
pub(crate) struct Worker(pub(super) Option<Arc<WorkerState>>);

pub(crate) struct WorkerState {
    clock: VirtualClock,
    id: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// A task of this runtime.
    Task(Option<RuntimeId>),
    /// Looks at what there is to do.
    Busy,
    /// Something came up that it may have overlooked.
    Roused,
    /// Nothing to do before then.
    Resting(Moment),
}

impl Mood {
    fn rests_until(self) -> Option<Moment> {
        match self {
            Self::Resting(until) => Some(until),
            Self::Busy | Self::Roused | Self::Task(_) => None,
        }
    }

    // A thread whose time has come is busy, whether or not it has noticed. A task of our own runtime runs when we let it.
    fn is_busy(self, now: Moment, here: Option<RuntimeId>) -> bool {
        match self {
            Self::Task(runtime) => runtime.is_none() || runtime != here,
            mood => mood.rests_until().is_none_or(|until| until <= now),
        }
    }
}

impl Worker {
    /// The thread looks at everything there is to do.
    pub(crate) fn attend(&self) {
        self.change(|_| Mood::Busy);
    }

    /// There is nothing to do before `until`. False when something came up since [`attend`](Self::attend).
    pub(crate) fn rest(&self, until: Moment) -> bool {
        let rests = |mood| if mood == Mood::Roused { mood } else { Mood::Resting(until) };
        self.change(rests).is_none_or(|mood| mood != Mood::Roused)
    }

    /// Something came up; to be called before the thread is woken.
    pub(crate) fn rouse(&self) {
        self.change(|_| Mood::Roused);
    }

    /// Whether anybody waits for it.
    pub(crate) fn is_virtual(&self) -> bool {
        self.0.is_some()
    }

    /// The thread ends.
    pub(crate) fn retire(&self) {
        if let Some(worker) = &self.0 {
            worker.leave();
        }
    }

    fn change(&self, change: impl FnOnce(Mood) -> Mood) -> Option<Mood> {
        let worker = self.0.as_ref()?;
        let mut state = worker.clock.lock();
        let mood = state.workers.get_mut(&worker.id)?;
        *mood = change(*mood);
        let changed = *mood;
        drop(state);
        worker.clock.0.settled.notify_all();
        Some(changed)
    }
}

impl WorkerState {
    fn leave(&self) {
        self.clock.lock().workers.remove(&self.id);
        self.clock.0.settled.notify_all();
    }
}

impl Drop for WorkerState {
    fn drop(&mut self) {
        self.leave();
    }
}

pub(crate) struct VirtualSleep {
    pub(super) clock: VirtualClock,
    pub(super) at: Moment,
    pub(super) id: Option<u64>,
}

impl Future for VirtualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let clock = self.clock.clone();
        let mut state = clock.lock();
        if at <= state.now {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            state.next_id += 1;
            state.next_id
        });
        state.sleepers.insert((at, id), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for VirtualSleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.lock().sleepers.remove(&(self.at, id));
        }
    }
}

async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
