//! The same locks for threads: a thin facade that parks the thread where the async side would await.
//!
//! The thread is the owner: asking again for a lock it holds is an error at once, or, with
//! [`reentrant`](Request::reentrant), a re-entry. Guards therefore stay on their thread (they are not `Send`) until
//! [`Guard::unbind`]. A thread that ends without releasing gives its locks back, and says so in the log.
//!
//! ```
//! use bandog::blocking::Locks;
//!
//! let locks = Locks::connect("memory:")?;
//! let outer = locks.mutex("job").reentrant().acquire()?;
//! let inner = locks.mutex("job").reentrant().acquire()?;
//! assert_eq!(outer.token(), inner.token());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod events;
mod guard;
mod interrupt;
mod park;
mod request;
mod scan;
mod thread;

use std::future::IntoFuture;
use std::time::Duration;

use bandog_core::checkup::Checkup;

use crate::admin::{Listed, LockInfo, RevokeRequest};
use crate::config::{ConfigError, LockConfig};
use crate::driver::{Health, JanitorStats};
use crate::error::{AdminError, ShutdownError};

pub use events::Events;
pub use guard::{Guard, PermitGuard, ReadGuard, UpgradeError, WriteGuard};
pub use interrupt::Interrupt;
pub(crate) use park::{block_on, is_blocking};
pub use request::{Mutex, Read, Request, RwLock, Semaphore, Write};
pub use scan::Scan;

/// As [`crate::checkup`].
///
/// # Errors
/// [`ConfigError`] names what is wrong with the URL or an option, or that the store cannot be reached.
///
/// ```
/// let found = bandog::blocking::checkup("memory:")?;
/// assert_eq!(found.worst(), bandog::Fitness::Fine);
/// # Ok::<(), bandog::ConfigError>(())
/// ```
pub fn checkup(url: &str) -> Result<Checkup, ConfigError> {
    block_on(crate::checkup(url))
}

/// A client of one store, for threads. Cheap to clone; clones share everything, also with the async side.
///
/// ```
/// let locks = bandog::blocking::Locks::connect("memory:")?;
/// let guard = locks.mutex("job").wait(std::time::Duration::from_secs(5)).acquire()?;
/// guard.release()?;
/// locks.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Locks(crate::Locks);

impl From<crate::Locks> for Locks {
    fn from(locks: crate::Locks) -> Self {
        Self(locks)
    }
}

impl Locks {
    pub(crate) fn free(&self) -> &crate::Locks {
        &self.0
    }

    /// As [`crate::Locks::connect`].
    ///
    /// # Errors
    /// [`ConfigError`] names what is wrong with the URL or an option.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:?lease=10s")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(url: &str) -> Result<Self, ConfigError> {
        block_on(crate::Locks::connect(url)).map(Self)
    }

    /// As [`crate::Locks::mutex`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Request::new(self.0.mutex(name))
    }

    /// As [`crate::Locks::rwlock`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let reader = locks.rwlock("cfg").read().acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rwlock(&self, name: impl AsRef<str>) -> RwLock {
        RwLock(self.0.rwlock(name))
    }

    /// As [`crate::Locks::semaphore`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let permit = locks.semaphore("gpu", 4).acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn semaphore(&self, name: impl AsRef<str>, capacity: u32) -> Semaphore {
        Request::new(self.0.semaphore(name, capacity))
    }

    /// As [`crate::Locks::configured`].
    ///
    /// # Errors
    /// [`ConfigError::NoName`] when the configuration has no name.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let nightly = bandog::LockConfig::builder().name("nightly").build()?;
    /// let guard = locks.configured(&nightly)?.acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn configured(&self, config: &LockConfig) -> Result<Mutex, ConfigError> {
        self.0.configured(config).map(Request::new)
    }

    /// As [`crate::Locks::list`].
    ///
    /// # Errors
    /// [`AdminError`] when the glob cannot be or the store fails.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("order:1001").acquire()?;
    /// assert_eq!(locks.list("order:*")?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self, pattern: impl AsRef<str>) -> Result<Listed, AdminError> {
        block_on(self.0.list(pattern))
    }

    /// As [`crate::Locks::scan`]: an iterator over pages.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("order:1001").acquire()?;
    /// for page in locks.scan("order:*").limit(100) {
    ///     page?.iter().for_each(|lock| println!("{}", lock.name));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan(&self, pattern: impl AsRef<str>) -> Scan {
        Scan(self.0.scan(pattern))
    }

    /// As [`crate::Locks::inspect`].
    ///
    /// # Errors
    /// [`AdminError`] when the name cannot be or the store fails.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// assert_eq!(locks.inspect("job")?.unwrap().record.holders.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inspect(&self, name: impl AsRef<str>) -> Result<Option<LockInfo>, AdminError> {
        block_on(self.0.inspect(name))
    }

    /// As [`crate::Locks::revoke`].
    ///
    /// # Errors
    /// [`AdminError`] when the name or the reason cannot be or the store fails.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// assert!(locks.revoke("job", "deploying")?.is_some());
    /// assert!(!guard.is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn revoke(&self, name: impl AsRef<str>, reason: impl Into<String>) -> Result<Option<Duration>, AdminError> {
        self.revoke_with(name, reason, |request| request)
    }

    /// As [`revoke`](Self::revoke), with the options of [`RevokeRequest`].
    ///
    /// # Errors
    /// [`AdminError`] when the name or the reason cannot be or the store fails.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// let left = locks.revoke_with("job", "its host is gone", |revoke| revoke.now())?;
    /// assert_eq!(left, Some(std::time::Duration::ZERO));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn revoke_with(
        &self,
        name: impl AsRef<str>,
        reason: impl Into<String>,
        options: impl FnOnce(RevokeRequest) -> RevokeRequest,
    ) -> Result<Option<Duration>, AdminError> {
        block_on(options(self.0.revoke(name, reason)).into_future())
    }

    /// As [`crate::Locks::shutdown`].
    ///
    /// # Errors
    /// [`ShutdownError`] says how many releases are unconfirmed.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let guard = locks.mutex("job").acquire()?;
    /// locks.shutdown()?;
    /// assert!(!guard.is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self) -> Result<(), ShutdownError> {
        block_on(self.0.shutdown())
    }

    /// As [`crate::Locks::health`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// assert!(locks.health().ready);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Health {
        self.0.health()
    }

    /// Listens to what happens to the locks of this client, from now on. As [`crate::Locks::events`], for threads.
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let events = locks.events();
    /// drop((locks.mutex("job").acquire()?, locks));
    /// for event in events {
    ///     println!("{event}"); // until the client has ended
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn events(&self) -> Events {
        Events(self.0.events())
    }

    /// As [`events`](Self::events), with room for so many. As [`crate::Locks::events_with_room`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// let mut events = locks.events_with_room(16);
    /// let guard = locks.mutex("job").acquire()?;
    /// assert!(matches!(events.next(), Some(bandog::Event::Acquired { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn events_with_room(&self, room: usize) -> Events {
        Events(self.0.events_with_room(room))
    }

    /// As [`crate::Locks::janitor`].
    ///
    /// ```
    /// let locks = bandog::blocking::Locks::connect("memory:")?;
    /// drop(locks.mutex("job").acquire()?);
    /// println!("{} releases under way", locks.janitor().pending);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn janitor(&self) -> JanitorStats {
        self.0.janitor()
    }
}
