//! Requests for threads: the async ones, with the thread as owner and an interrupt.

use std::time::Duration;

use bandog_core::lock::Recovery;

use super::guard::{self, Guard};
use super::interrupt::Interrupt;
use super::park::block_on_until;
use super::thread;
use crate::config::LockConfig;
use crate::error::{AcquireError, ReleaseError, RunError};
use crate::held::{Held, Mutual, Permits, Reading, Writing};
use crate::inside;

/// A read-write lock, for threads.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let cfg = locks.rwlock("cfg");
/// cfg.read().acquire()?.release()?;
/// cfg.write().acquire()?.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RwLock(pub(super) crate::RwLock);

impl RwLock {
    /// A request for the read side.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let reader = locks.rwlock("cfg").read().acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(&self) -> Read {
        Request::new(self.0.read())
    }

    /// A request for the write side.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let writer = locks.rwlock("cfg").write().acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write(&self) -> Write {
        Request::new(self.0.write())
    }
}

/// A request for a lock, for threads. Options as on [`crate::Request`].
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// use std::time::Duration;
/// let request = locks
///     .mutex("job")
///     .wait(Duration::from_secs(5))
///     .lease(Duration::from_secs(20))
///     .renew_every(Duration::from_secs(5))
///     .max_hold(Duration::from_secs(3600))
///     .fair();
/// let guard = request.acquire()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until acquire() or try_acquire()"]
pub struct Request<K: Held> {
    request: crate::Request<K>,
    interrupt: Option<Interrupt>,
}

/// A request for a lock that one holder has at a time.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let request: bandog::blocking::Mutex = locks.mutex("job");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Mutex = Request<Mutual>;
/// A request for some of a semaphore's permits.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let request: bandog::blocking::Semaphore = locks.semaphore("gpu", 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Semaphore = Request<Permits>;
/// A request for the read side of a read-write lock.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let request: bandog::blocking::Read = locks.rwlock("cfg").read();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Read = Request<Reading>;
/// A request for the write side of a read-write lock.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let request: bandog::blocking::Write = locks.rwlock("cfg").write();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Write = Request<Writing>;

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*);)+) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $($arg: $type),*) -> Self {
            self.request = self.request.$name($($arg),*);
            self
        }
    )+};
}

impl<K: Held> Request<K> {
    pub(crate) fn new(request: crate::Request<K>) -> Self {
        Self { request, interrupt: None }
    }

    options! {
        /// Waits at most this long; without it, as long as it takes.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").wait(std::time::Duration::from_secs(5)).acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        wait(wait: Duration);
        /// The length of the lease.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").lease(std::time::Duration::from_secs(10)).acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        lease(lease: Duration);
        /// Stands in the store's queue in person.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").fair().acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        fair();
        /// Renews every so often.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").renew_every(std::time::Duration::from_secs(5)).acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        renew_every(every: Duration);
        /// Renews after this share of the lease.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").renew_at(1, 2).acquire()?; // at half-time
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        renew_at(num: u32, den: u32);
        /// Renews by itself at most so often; with 0 the lease is fixed.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").max_renewals(0).acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        max_renewals(max: u32);
        /// Loses the lock when it is held for longer than this.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").max_hold(std::time::Duration::from_secs(60)).acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        max_hold(max: Duration);
        /// Loses the lock when its holder gives no sign of [progress](crate::Guard::progress) for longer than this.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").progress_within(std::time::Duration::from_secs(60)).acquire()?;
        /// guard.progress();
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        progress_within(within: Duration);
        /// What to do when the lock is lost, besides telling its guard.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let guard = locks.mutex("job").recovery(bandog::Recovery::Release).acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        recovery(recovery: Recovery);
        /// Keeps the lock held in the store for at least this long, even if it is released before.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let nightly = locks.mutex("nightly").lock_at_least(std::time::Duration::from_secs(40));
        /// nightly.acquire()?.release()?;
        /// assert!(nightly.try_acquire()?.is_none(), "somebody has just done it");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        lock_at_least(least: Duration);
        /// Takes all options from a configuration, except its name.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let careful = bandog::LockConfig::builder().fair(true).build()?;
        /// let guard = locks.mutex("job").config(&careful).acquire()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        config(config: &LockConfig);
        /// Lets this thread enter again while it holds the lock.
        ///
        /// ```
        /// let locks = bandog::blocking::Locks::connect("memory:")?;
        /// let outer = locks.mutex("job").reentrant().acquire()?;
        /// let inner = locks.mutex("job").reentrant().acquire()?;
        /// assert_eq!(inner.depth(), 2);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        reentrant();
    }

    /// Lets another thread end the wait.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let stop = bandog::blocking::Interrupt::new();
    /// let guard = locks.mutex("job").interruptible(&stop).acquire()?; // `stop.interrupt()` would end the wait
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interruptible(mut self, interrupt: &Interrupt) -> Self {
        self.interrupt = Some(interrupt.clone());
        self
    }

    /// Acquires the lock, parking the thread until it is there.
    ///
    /// # Errors
    /// As [`crate::Request::acquire`], and [`AcquireError::Interrupted`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// println!("fencing token {}", guard.token());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire(&self) -> Result<Guard<K>, AcquireError> {
        self.block_on(self.owned().acquire()).map(guard::bound)
    }

    /// Acquires the lock if it is free, or becomes free within [`wait`](Self::wait).
    ///
    /// # Errors
    /// As [`crate::Request::try_acquire`], and [`AcquireError::Interrupted`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let held = locks.mutex("job").acquire()?.unbind();
    /// assert!(locks.mutex("job").try_acquire()?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire(&self) -> Result<Option<Guard<K>>, AcquireError> {
        self.block_on(self.owned().try_acquire()).map(|guard| guard.map(guard::bound))
    }

    /// Acquires the lock, runs the closure, and releases it. The closure can look at the [`Hold`](crate::Hold); it is
    /// not stopped.
    ///
    /// # Errors
    /// [`RunError::Acquire`] when the lock was not acquired, [`RunError::Lost`] when it was lost while running.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let local = locks.mutex("job").run(|hold| hold.token().local())?;
    /// assert_eq!(local, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<T>(&self, work: impl FnOnce(crate::Hold) -> T) -> Result<T, RunError> {
        run(self.acquire()?, work)
    }

    /// As [`run`](Self::run), but as [`try_acquire`](Self::try_acquire) waits.
    pub(crate) fn try_run<T>(&self, work: impl FnOnce(crate::Hold) -> T) -> Result<T, RunError> {
        let acquire = self.owned().try_acquire().0;
        run(self.block_on(acquire).map(guard::bound)?, work)
    }

    fn owned(&self) -> crate::Request<K> {
        self.request.clone().owner(&thread::owner())
    }

    fn block_on<T>(&self, future: impl Future<Output = Result<T, AcquireError>>) -> Result<T, AcquireError> {
        let handle = &self.request.order.handle;
        let watch = self.interrupt.as_ref().map(|interrupt| interrupt.watch(&handle.clock));
        block_on_until(future, watch, |waited| match &self.request.order.name {
            Ok(name) => AcquireError::Interrupted { place: crate::acquire::place(handle, name), waited },
            Err((_, error)) => self.request.order.invalid(error.clone().into()),
        })
    }
}

fn run<K: Held, T>(guard: Guard<K>, work: impl FnOnce(crate::Hold) -> T) -> Result<T, RunError> {
    let hold = guard.hold();
    let output = inside::scope_blocking(guard.hold(), || work(hold));
    match guard.release() {
        Err(ReleaseError::Lost { place, reason }) => Err(RunError::Lost { place, reason }),
        _ => Ok(output),
    }
}

impl Request<Permits> {
    /// Asks for so many permits instead of one.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let two = locks.semaphore("gpu", 4).permits(2).acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn permits(mut self, count: u32) -> Self {
        self.request = self.request.permits(count);
        self
    }
}
