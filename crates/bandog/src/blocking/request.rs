//! Requests for threads: the async ones, with the thread as owner and an interrupt.

use std::time::Duration;

use super::guard::{self, Guard};
use super::interrupt::Interrupt;
use super::park::block_on_until;
use super::thread;
use crate::config::LockConfig;
use crate::error::{AcquireError, ReleaseError, RunError};
use crate::held::{Held, Mutual, Permits, Reading, Writing};

/// A read-write lock, for threads.
#[derive(Debug, Clone)]
pub struct RwLock(pub(super) crate::RwLock);

impl RwLock {
    /// A request for the read side.
    pub fn read(&self) -> Read {
        Request::new(self.0.read())
    }

    /// A request for the write side.
    pub fn write(&self) -> Write {
        Request::new(self.0.write())
    }
}

/// A request for a lock, for threads. Options as on [`crate::Request`].
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until acquire() or try_acquire()"]
pub struct Request<K: Held> {
    request: crate::Request<K>,
    interrupt: Option<Interrupt>,
}

/// A request for a lock that one holder has at a time.
pub type Mutex = Request<Mutual>;
/// A request for some of a semaphore's permits.
pub type Semaphore = Request<Permits>;
/// A request for the read side of a read-write lock.
pub type Read = Request<Reading>;
/// A request for the write side of a read-write lock.
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
    pub(super) fn new(request: crate::Request<K>) -> Self {
        Self { request, interrupt: None }
    }

    options! {
        /// Waits at most this long; without it, as long as it takes.
        wait(wait: Duration);
        /// The length of the lease.
        lease(lease: Duration);
        /// Stands in the store's queue in person.
        fair();
        /// Renews every so often.
        renew_every(every: Duration);
        /// Renews after this share of the lease.
        renew_at(num: u32, den: u32);
        /// Renews at most so often; with 0 the lease is fixed.
        max_renewals(max: u32);
        /// Loses the lock when it is held for longer than this.
        max_hold(max: Duration);
        /// Takes all options from a configuration, except its name.
        config(config: &LockConfig);
        /// Lets this thread enter again while it holds the lock.
        reentrant();
    }

    /// Lets another thread end the wait.
    pub fn interruptible(mut self, interrupt: &Interrupt) -> Self {
        self.interrupt = Some(interrupt.clone());
        self
    }

    /// Acquires the lock, parking the thread until it is there.
    ///
    /// # Errors
    /// As [`crate::Request::acquire`], and [`AcquireError::Interrupted`].
    pub fn acquire(&self) -> Result<Guard<K>, AcquireError> {
        self.block_on(self.owned().acquire()).map(guard::bound)
    }

    /// Acquires the lock if it is free, or becomes free within [`wait`](Self::wait).
    ///
    /// # Errors
    /// As [`crate::Request::try_acquire`], and [`AcquireError::Interrupted`].
    pub fn try_acquire(&self) -> Result<Option<Guard<K>>, AcquireError> {
        self.block_on(self.owned().try_acquire()).map(|guard| guard.map(guard::bound))
    }

    /// Acquires the lock, runs the closure, and releases it. The closure can look at the [`Hold`](crate::Hold); it is
    /// not stopped.
    ///
    /// # Errors
    /// [`RunError::Acquire`] when the lock was not acquired, [`RunError::Lost`] when it was lost while running.
    pub fn run<T>(&self, work: impl FnOnce(crate::Hold) -> T) -> Result<T, RunError> {
        let guard = self.acquire()?;
        let output = work(guard.hold());
        match guard.release() {
            Err(ReleaseError::Lost { place, reason }) => Err(RunError::Lost { place, reason }),
            _ => Ok(output),
        }
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

impl Request<Permits> {
    /// Asks for so many permits instead of one.
    pub fn permits(mut self, count: u32) -> Self {
        self.request = self.request.permits(count);
        self
    }
}
