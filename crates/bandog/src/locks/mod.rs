//! `Locks`: the client. Knows one store, makes requests, keeps every lease.

mod builder;
mod checkup;
mod url;

use std::fmt;
use std::time::Duration;

use bandog_core::mode::Mode;

use crate::config::{ConfigError, LockConfig};
use crate::driver::{Handle, Health, JanitorStats};
use crate::error::ShutdownError;
use crate::request::{Mutex, Request, RwLock, Semaphore};
use crate::signals::{Events, ROOM, Signals};

pub use builder::LocksBuilder;
pub use checkup::checkup;
#[cfg(feature = "fuzzing")]
pub(crate) use url::read;
pub use url::without_login;

/// A client of one store. Cheap to clone; clones share everything.
///
/// When the last clone, guard and future are gone, releases on their way are finished in the background for at most
/// five seconds. The end of the process ends that too, so a release that was only dropped may be left to its lease end when
/// `main` returns: call [`shutdown`](Self::shutdown) before, which waits.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let clone = locks.clone();
/// let guard = locks.mutex("job").acquire().await?;
/// assert!(clone.mutex("job").try_acquire().await?.is_none());
/// drop(guard);
/// locks.shutdown().await?; // before `main` ends
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Locks {
    pub(crate) handle: Handle,
}

impl Locks {
    /// Connects to the store that a URL names.
    ///
    /// | URL | store |
    /// |---|---|
    /// | `memory:` | one of its own in this process |
    /// | `memory:NAME` | shared by everyone in this process who names it |
    /// | `sqlite:PATH` | a file, shared by the processes of one machine (feature `sqlite`) |
    /// | `sqlite:` | the file `bandog/locks.db` in the user's state directory |
    /// | `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]` | a Redis server (feature `redis`, on by default) |
    /// | `rediss://…` | the same over TLS |
    /// | `redis+unix://[[USER]:PASSWORD@]/PATH` | the same over a socket |
    ///
    /// A file is opened, and made where it is missing, there and then; a server is connected to, and checked. Options come from the query (`memory:?lease=10s&fair=true`), before that from the environment (`BANDOG_LEASE`),
    /// before that from the defaults.
    ///
    /// # Errors
    /// [`ConfigError`] names what is wrong with the URL or an option.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no client behind. Memory and files need no connection: there it is ready at its first poll.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:?lease=10s").await?;
    /// # Ok::<(), bandog::ConfigError>(()) }).unwrap();
    /// ```
    pub async fn connect(url: &str) -> Result<Self, ConfigError> {
        Self::builder().set_from_env()?.connect(url).await
    }

    /// A client made from parts.
    ///
    /// ```
    /// use bandog::{LockConfig, Locks, MemoryStore};
    /// use std::time::Duration;
    ///
    /// let defaults = LockConfig::builder().lease(Duration::from_secs(10)).build()?;
    /// let locks = Locks::builder().store(MemoryStore::new()).defaults(defaults).label("billing").build()?;
    /// # Ok::<(), bandog::ConfigError>(())
    /// ```
    pub fn builder() -> LocksBuilder {
        LocksBuilder::default()
    }

    /// What requests of this client start from.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:?lease=10s").await?;
    /// assert_eq!(locks.defaults().lease(), std::time::Duration::from_secs(10));
    /// # Ok::<(), bandog::ConfigError>(()) }).unwrap();
    /// ```
    pub fn defaults(&self) -> &LockConfig {
        &self.handle.defaults
    }

    /// A request for a lock that one holder has at a time.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("order:1001").acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Request::new(self.handle.clone(), name.as_ref(), Ok(Mode::Exclusive))
    }

    /// A read-write lock: many readers, or one writer. A writer that waits is not passed by new readers.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let cfg = locks.rwlock("cfg");
    /// let reader = cfg.read().acquire().await?;
    /// assert!(cfg.write().try_acquire().await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn rwlock(&self, name: impl AsRef<str>) -> RwLock {
        RwLock { handle: self.handle.clone(), name: name.as_ref().to_owned() }
    }

    /// A request for one of `capacity` permits; more with [`permits`](Semaphore::permits).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let two = locks.semaphore("gpu", 4).permits(2).acquire().await?;
    /// let rest = locks.semaphore("gpu", 4).permits(2).acquire().await?;
    /// assert!(locks.semaphore("gpu", 4).try_acquire().await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn semaphore(&self, name: impl AsRef<str>, capacity: u32) -> Semaphore {
        let mode = Mode::permits(1, capacity).map_err(ConfigError::from);
        Request::new(self.handle.clone(), name.as_ref(), mode)
    }

    /// A mutex with the name and all options of a configuration.
    ///
    /// # Errors
    /// [`ConfigError::NoName`] when the configuration has no name.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let nightly = bandog::LockConfig::builder().name("nightly").fair(true).build()?;
    /// let guard = locks.configured(&nightly)?.acquire().await?;
    /// assert_eq!(guard.name(), "nightly");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn configured(&self, config: &LockConfig) -> Result<Mutex, ConfigError> {
        let name = config.name().ok_or(ConfigError::NoName)?;
        Ok(self.mutex(name).config(config))
    }

    /// Releases everything, refuses everything new, and waits until the store has confirmed, at most five seconds.
    ///
    /// Guards that still live are lost with [`LossReason::Shutdown`](crate::LossReason::Shutdown).
    ///
    /// # Errors
    /// [`ShutdownError`] says how many releases are unconfirmed; their leases end them.
    ///
    /// # Cancel safety
    /// Everything is under way with the first poll; dropping the future only stops the waiting.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// locks.shutdown().await?;
    /// assert!(!guard.is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        let within = DRAIN_WITHIN;
        let store = self.handle.store.to_string().into();
        self.handle.close(within).await.map_err(|pending| ShutdownError { pending, store, within })
    }

    /// Listens to what happens to the locks of this client, from now on; see [`Events`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let mut events = locks.events();
    /// let guard = locks.mutex("job").acquire().await?;
    /// println!("{}", events.next().await.expect("the client lives"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn events(&self) -> Events {
        self.events_with_room(ROOM)
    }

    /// As [`events`](Self::events), with room for so many events that the listener has not taken yet, at least one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use bandog::Event;
    ///
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let mut events = locks.events_with_room(1);
    /// drop(locks.mutex("job").acquire().await?);
    /// assert!(matches!(events.next().await, Some(Event::Acquired { .. })));
    /// assert_eq!(events.next().await, Some(Event::Missed { count: 1 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn events_with_room(&self, room: usize) -> Events {
        self.handle.signals.listen(room)
    }

    /// How this client is, as the watchdog last saw it: fit for a readiness probe, since nothing is sent for it.
    ///
    /// Not ready means that the store does not answer, that renewals do not run, or that the client was shut down. A store
    /// that went away is noticed within a watchdog period and the response timeout.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// assert!(locks.health().ready);
    /// locks.shutdown().await?;
    /// assert_eq!(locks.health().problems, ["the client is shut down"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn health(&self) -> Health {
        self.handle.health()
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.handle.signals
    }

    /// What the releases in the background are doing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// drop(locks.mutex("job").acquire().await?);
    /// println!("{} releases under way", locks.janitor().pending);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn janitor(&self) -> JanitorStats {
        self.handle.janitor.stats()
    }

    /// How many locks this client holds, waits for, or has just used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").acquire().await?;
    /// assert_eq!(locks.locks_in_use(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn locks_in_use(&self) -> usize {
        self.handle.locks_in_use()
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locks({})", self.handle.store)
    }
}

const DRAIN_WITHIN: Duration = Duration::from_secs(5);
