//! Time for the driver and the memory store: the system's, or a virtual one that tests drive.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog_core::time::Moment;

/// Where `Locks` takes its time from.
#[derive(Clone, Default)]
pub struct Clock(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    System,
    Virtual(VirtualClock),
}

impl Clock {
    /// The system's clock, which goes on while the machine sleeps.
    pub fn system() -> Self {
        Self::default()
    }

    /// The time now.
    pub fn now(&self) -> Moment {
        match &self.0 {
            Kind::System => boot_time(),
            Kind::Virtual(clock) => clock.now(),
        }
    }

    /// Resolves at `at`. The system's clock needs a tokio runtime.
    pub(crate) async fn sleep_until(&self, at: Moment) {
        match &self.0 {
            Kind::System => tokio::time::sleep(at.since(self.now())).await,
            Kind::Virtual(clock) => VirtualSleep { clock: clock.clone(), at, id: None }.await,
        }
    }

    /// Registers a thread that a virtual clock has to wait for.
    pub(crate) fn worker(&self) -> Worker {
        match &self.0 {
            Kind::System => Worker(None),
            Kind::Virtual(clock) => Worker(Some(clock.add_worker())),
        }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.0, Kind::Virtual(_))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_virtual() { "Clock(virtual)" } else { "Clock(system)" })
    }
}

// CLOCK_BOOTTIME goes on during suspend; CLOCK_MONOTONIC does not, and a lease would look valid after it ended.
fn boot_time() -> Moment {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    let nanos = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
    Moment::from_nanos(nanos)
}

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
    workers: Vec<Weak<WorkerState>>,
}

impl Default for State {
    fn default() -> Self {
        // Not at zero: deadlines in the past must be expressible.
        let now = Moment::ZERO + Duration::from_secs(1_000_000);
        Self { now, sleepers: BTreeMap::new(), next_id: 0, workers: Vec::new() }
    }
}

impl VirtualClock {
    /// A clock that has not moved yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle for [`Locks`](crate::Locks) and [`MemoryStore`](crate::MemoryStore).
    pub fn clock(&self) -> Clock {
        Clock(Kind::Virtual(self.clone()))
    }

    /// The time now.
    pub fn now(&self) -> Moment {
        self.lock().now
    }

    /// Moves on by `by`, stopping at every timer on the way and letting what it wakes run.
    pub async fn advance(&self, by: Duration) {
        let target = self.now() + by;
        self.let_run().await;
        while self.step(target) {
            self.let_run().await;
        }
        self.let_run().await;
    }

    /// Like [`advance`](Self::advance), for tests without a runtime.
    pub fn advance_blocking(&self, by: Duration) {
        let target = self.now() + by;
        self.wait_for_workers();
        while self.step(target) {
            self.wait_for_workers();
        }
        self.wait_for_workers();
    }

    /// Jumps by `by` as if every thread of the process had been stopped meanwhile: no timer runs before the end.
    pub fn pause(&self, by: Duration) {
        self.lock().now = self.now() + by;
    }

    // To the next timer, or to the target if there is none before it. False when the target is reached.
    fn step(&self, target: Moment) -> bool {
        let mut state = self.lock();
        let next = state.sleepers.first_key_value().map(|((at, _), _)| *at).filter(|at| *at <= target);
        state.now = state.now.max(next.unwrap_or(target));
        let now = state.now;
        let later = state.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.sleepers, later);
        for worker in state.workers.iter().filter_map(Weak::upgrade) {
            worker.wake_by(now);
        }
        drop(state);
        due.into_values().for_each(Waker::wake);
        next.is_some()
    }

    async fn let_run(&self) {
        // Tasks on the caller's own runtime get turns by yielding; threads of bandog's are waited for.
        for _ in 0..8 {
            yield_now().await;
            self.wait_for_workers();
        }
    }

    fn wait_for_workers(&self) {
        let busy =
            |state: &mut State| state.workers.iter().filter_map(Weak::upgrade).any(|worker| !worker.rests(state.now));
        let guard = self.lock();
        drop(self.0.settled.wait_while(guard, busy).unwrap_or_else(PoisonError::into_inner));
    }

    fn add_worker(&self) -> Arc<WorkerState> {
        let worker = Arc::new(WorkerState { clock: Arc::downgrade(&self.0), rest: Mutex::new(None) });
        self.lock().workers.push(Arc::downgrade(&worker));
        worker
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualClock({:?})", self.now())
    }
}

/// A thread that a virtual clock waits for: it says when it rests, and until when.
pub(crate) struct Worker(Option<Arc<WorkerState>>);

pub(crate) struct WorkerState {
    clock: Weak<Shared>,
    /// `Some(at)` while the thread rests until `at` at the latest.
    rest: Mutex<Option<Moment>>,
}

impl Worker {
    /// There is nothing to do before `until`.
    pub(crate) fn rest(&self, until: Moment) {
        if let Some(worker) = &self.0 {
            worker.set(Some(until));
        }
    }

    /// Something came up; to be called before the thread is woken.
    pub(crate) fn rouse(&self) {
        if let Some(worker) = &self.0 {
            worker.set(None);
        }
    }
}

impl WorkerState {
    fn set(&self, rest: Option<Moment>) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = rest;
        if let Some(clock) = self.clock.upgrade() {
            // Taking the lock orders this with the waiting thread's look at us.
            drop(clock.state.lock().unwrap_or_else(PoisonError::into_inner));
            clock.settled.notify_all();
        }
    }

    fn wake_by(&self, now: Moment) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        *rest = rest.filter(|until| *until > now);
    }

    fn rests(&self, now: Moment) -> bool {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| until > now)
    }
}

impl Drop for WorkerState {
    fn drop(&mut self) {
        if let Some(clock) = self.clock.upgrade() {
            clock.settled.notify_all();
        }
    }
}

struct VirtualSleep {
    clock: VirtualClock,
    at: Moment,
    id: Option<u64>,
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
