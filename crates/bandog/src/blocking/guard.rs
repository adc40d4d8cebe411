//! Guards for threads: bound to the thread that acquired them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use crate::error::{AcquireError, ErrorKind, Not, ReleaseError, RenewError};
use crate::guard as free;
use crate::held::{Held, Mutual, Permits, Reading, Writing};

use super::park::{Blocking, block_on};
use super::thread;

/// A held lock, bound to its thread. Dropping it releases the lock in the background.
///
/// Everything for looking comes from [`crate::Guard`] by deref: `token`, `is_held`, `remaining`, `state`, `lost`.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let guard = locks.mutex("job").acquire()?;
/// println!("{} is mine, under token {}", guard.name(), guard.token());
/// drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It does not leave its thread; [`unbind`](Self::unbind) makes one that may:
///
/// ```compile_fail,E0277
/// let locks = bandog::blocking::Locks::connect("memory:").unwrap();
/// let guard = locks.mutex("job").acquire().unwrap();
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "if unused, the lock is released at once"]
#[clippy::has_significant_drop]
pub struct Guard<K: Held = Mutual> {
    guard: Option<free::Guard<K>>,
    // The thread is the owner: the guard must not leave it.
    bound: PhantomData<*const ()>,
}

/// The guard of a reader.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let reader: bandog::blocking::ReadGuard = locks.rwlock("cfg").read().acquire()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ReadGuard = Guard<Reading>;
/// The guard of a writer.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let writer: bandog::blocking::WriteGuard = locks.rwlock("cfg").write().acquire()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type WriteGuard = Guard<Writing>;
/// The guard of a semaphore's permits.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let permit: bandog::blocking::PermitGuard = locks.semaphore("gpu", 4).acquire()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PermitGuard = Guard<Permits>;

pub(super) fn bound<K: Held>(guard: free::Guard<K>) -> Guard<K> {
    thread::enter(guard.as_hold());
    Guard { guard: Some(guard), bound: PhantomData }
}

impl<K: Held> Guard<K> {
    /// Renews the lease now, out of turn.
    ///
    /// # Errors
    /// As [`crate::Guard::renew`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// guard.renew()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew(&self) -> Result<(), RenewError> {
        block_on((**self).renew())
    }

    /// Releases the lock and waits for the store's answer.
    ///
    /// # Errors
    /// As [`crate::Guard::release`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// guard.release()?;
    /// assert!(locks.mutex("job").try_acquire()?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(self) -> Result<(), ReleaseError> {
        let _blocking = Blocking::begin();
        block_on(self.leave().release())
    }

    /// A guard that may go to another thread. This thread is no longer its owner: it may wait for the lock again.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?.unbind();
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// assert!(locks.mutex("job").acquire()?.is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unbind(self) -> free::Guard<K> {
        let guard = self.leave();
        guard.as_hold().unbind();
        guard
    }

    fn leave(mut self) -> free::Guard<K> {
        let Some(guard) = self.guard.take() else { unreachable!("taken only by methods that consume the guard") };
        thread::leave(guard.as_hold());
        guard
    }
}

impl Guard<Reading> {
    /// Becomes a writer, before all queued writers.
    ///
    /// # Errors
    /// As [`crate::ReadGuard::upgrade`]: the read guard comes back.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let reader = locks.rwlock("cfg").read().acquire()?;
    /// let writer = reader.upgrade()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upgrade(self) -> Result<WriteGuard, UpgradeError> {
        exchanged(block_on(self.leave().upgrade()))
    }

    /// Like [`upgrade`](Self::upgrade), but gives the read guard back after `wait`.
    ///
    /// # Errors
    /// As [`crate::ReadGuard::upgrade_within`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let reader = locks.rwlock("cfg").read().acquire()?;
    /// let writer = reader.upgrade_within(std::time::Duration::from_secs(1))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upgrade_within(self, wait: Duration) -> Result<WriteGuard, UpgradeError> {
        exchanged(block_on(self.leave().upgrade_within(wait)))
    }
}

fn exchanged(result: Result<free::WriteGuard, free::UpgradeError>) -> Result<WriteGuard, UpgradeError> {
    match result {
        Ok(guard) => Ok(bound(guard)),
        Err(free::UpgradeError { guard, reason }) => Err(UpgradeError { guard: bound(guard), reason }),
    }
}

impl Guard<Writing> {
    /// Becomes a reader, keeping the token.
    ///
    /// # Errors
    /// As [`crate::WriteGuard::downgrade`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let writer = locks.rwlock("cfg").write().acquire()?;
    /// let reader = writer.downgrade()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn downgrade(self) -> Result<ReadGuard, RenewError> {
        block_on(self.leave().downgrade()).map(bound)
    }
}

impl<K: Held> Deref for Guard<K> {
    type Target = free::Guard<K>;

    fn deref(&self) -> &free::Guard<K> {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("taken only by methods that consume the guard"),
        }
    }
}

impl<K: Held> Drop for Guard<K> {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            let _blocking = Blocking::begin();
            thread::leave(guard.as_hold());
            drop(guard);
        }
    }
}

impl<K: Held> fmt::Debug for Guard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Why an upgrade did not happen, with the read guard back.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let other = locks.rwlock("cfg").read().acquire()?.unbind();
/// let reader = locks.rwlock("cfg").read().acquire()?;
/// let error = reader.upgrade_within(std::time::Duration::from_millis(5)).unwrap_err();
/// println!("{error}");
/// error.guard.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}", Not("upgraded", reason))]
pub struct UpgradeError {
    /// The read guard, as it was.
    pub guard: ReadGuard,
    /// Why.
    pub reason: Box<AcquireError>,
}

impl UpgradeError {
    /// What sort of error it is: that of its reason.
    ///
    /// ```
    /// use bandog::{ErrorKind, blocking::Locks};
    /// use std::time::Duration;
    ///
    /// let locks = Locks::connect("memory:")?;
    /// let other = locks.rwlock("cfg").read().acquire()?.unbind();
    /// let one = locks.rwlock("cfg").read().acquire()?;
    /// let error = one.upgrade_within(Duration::from_millis(5)).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Timeout);
    /// assert!(error.guard.is_held(), "it still reads");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.reason.kind()
    }
}
