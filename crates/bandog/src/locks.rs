//! `Locks`: the client. Knows one store, makes requests, keeps every lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Drift;
use bandog_core::lock::Settings;
use bandog_core::mode::Mode;
use bandog_core::store::Store;

use crate::clock::Clock;
use crate::config::{ConfigError, EVERY, LockConfig, OPTIONS, duration, variable};
use crate::driver::{Driver, Handle, JanitorStats, Parts};
use crate::error::ShutdownError;
use crate::memory::MemoryStore;
use crate::request::{Mutex, Request, RwLock, Semaphore};
use crate::sync;

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
    /// `memory:` is a store of its own in this process; `memory:NAME` is shared by everyone in this process who names it.
    /// Options come from the query (`memory:?lease=10s&fair=true`), before that from the environment (`BANDOG_LEASE`),
    /// before that from the defaults.
    ///
    /// # Errors
    /// [`ConfigError`] names what is wrong with the URL or an option.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no client behind; a store in memory needs no connection, so it is ready at its first poll.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:?lease=10s").await?;
    /// # Ok::<(), bandog::ConfigError>(()) }).unwrap();
    /// ```
    pub async fn connect(url: &str) -> Result<Self, ConfigError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let Some(name) = address.strip_prefix("memory:") else {
            return Err(ConfigError::BadUrl { url: redacted(url) });
        };
        let store = if name.is_empty() { MemoryStore::new() } else { MemoryStore::named(name) };
        let mut builder = Self::builder().store(store).set_from_env()?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (option, value) = pair.split_once('=').unwrap_or((pair, ""));
            builder = builder.set(option, value)?;
        }
        builder.build()
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
const JANITOR_LIMIT: usize = 65_536;

// An address may carry a password.
fn redacted(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => url.to_owned(),
    }
}

/// Builds a [`Locks`].
///
/// ```
/// use bandog::{Locks, MemoryStore};
/// use std::time::Duration;
///
/// let locks = Locks::builder()
///     .store(MemoryStore::named("shop"))
///     .label("billing")
///     .claim_window(Duration::from_secs(1))
///     .unavailable_after(Duration::from_secs(30))
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[must_use = "call build()"]
pub struct LocksBuilder {
    store: Option<Arc<dyn Store>>,
    defaults: LockConfig,
    clock: Clock,
    settings: Settings,
    label: String,
    reentrant: bool,
    janitor_limit: Option<usize>,
}

impl LocksBuilder {
    /// The store; a fresh memory store if none is given.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().store(bandog::MemoryStore::named("shop")).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Options for requests that do not say otherwise.
    ///
    /// ```
    /// use bandog::{LockConfig, Locks};
    /// let fair = LockConfig::builder().fair(true).build()?;
    /// let locks = Locks::builder().defaults(fair).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn defaults(mut self, defaults: LockConfig) -> Self {
        self.defaults = defaults;
        self
    }

    /// Where to take the time from; for tests.
    ///
    /// ```
    /// let time = bandog::VirtualClock::new();
    /// let store = bandog::MemoryStore::with_clock(time.clock());
    /// let locks = bandog::Locks::builder().store(store).clock(time.clock()).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// What to call this process in listings and messages.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().label("billing").build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// How long a grant from the queue may stay unconfirmed. It bounds what a dead waiter costs the others.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().claim_window(std::time::Duration::from_secs(1)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn claim_window(mut self, window: Duration) -> Self {
        self.settings.window = window;
        self
    }

    /// How long a request may stay unanswered.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().response_timeout(std::time::Duration::from_millis(500)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn response_timeout(mut self, response: Duration) -> Self {
        self.settings.response = response;
        self
    }

    /// After how long a store that cannot be reached is an error.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().unavailable_after(std::time::Duration::from_secs(30)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unavailable_after(mut self, after: Duration) -> Self {
        self.settings.unavailable_after = after;
        self
    }

    /// How far clocks may differ in rate, in thousandths, and how coarse they are.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().drift(20, std::time::Duration::from_millis(5)).build()?; // 2 % and 5 ms
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drift(mut self, per_mille: u32, constant: Duration) -> Self {
        self.settings.drift = Drift { per_mille, constant };
        self
    }

    /// How often and how long a lock may be passed on in this process while somebody elsewhere waits.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().local_passing(16, std::time::Duration::from_millis(1)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn local_passing(mut self, max_passes: u32, max_time: Duration) -> Self {
        (self.settings.max_passes, self.settings.max_passing) = (max_passes, max_time);
        self
    }

    /// Lets every owner and thread enter again what it holds, as if each request said
    /// [`reentrant`](crate::Request::reentrant). Requests without an owner are not touched.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::builder().reentrant().build()?;
    /// let me = bandog::Owner::new();
    /// let outer = locks.mutex("job").owner(&me).acquire().await?;
    /// let inner = locks.mutex("job").owner(&me).acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn reentrant(mut self) -> Self {
        self.reentrant = true;
        self
    }

    /// Sets one option by its name, as in a URL's query: those of [`LockConfig::set`], and `claim_window`,
    /// `response_timeout`, `unavailable_after` and `label`.
    ///
    /// # Errors
    /// [`ConfigError::UnknownOption`] or [`ConfigError::BadValue`] name what was wrong.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().set("lease", "45s")?.set("label", "billing")?.build()?;
    /// assert!(bandog::Locks::builder().set("leese", "45s").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(mut self, option: &str, value: &str) -> Result<Self, ConfigError> {
        match option {
            "claim_window" => self.settings.window = duration(option, value)?,
            "response_timeout" => self.settings.response = duration(option, value)?,
            "unavailable_after" => self.settings.unavailable_after = duration(option, value)?,
            "label" => value.clone_into(&mut self.label),
            _ if OPTIONS.contains(&option) => self.defaults.set(option, value)?,
            _ => return Err(ConfigError::UnknownOption { option: option.to_owned(), known: EVERY }),
        }
        Ok(self)
    }

    /// Sets every option that the environment names: `BANDOG_LEASE`, `BANDOG_CLAIM_WINDOW` and so on.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    ///
    /// ```
    /// let locks = bandog::Locks::builder().set_from_env()?.build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_from_env(mut self) -> Result<Self, ConfigError> {
        for option in EVERY {
            if let Ok(value) = std::env::var(variable(option)) {
                self = self.set(option, &value)?;
            }
        }
        Ok(self)
    }

    /// How many releases may be under way in the background; past it, dropped guards are left to their lease end.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().janitor_limit(1_000).build()?;
    /// assert_eq!(locks.janitor().limit, 1_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn janitor_limit(mut self, limit: usize) -> Self {
        self.janitor_limit = Some(limit);
        self
    }

    /// Checks the options and starts the renewal thread.
    ///
    /// # Errors
    /// [`ConfigError`] names the option and both sides of the inequality it breaks.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().build()?;
    /// let wrong = bandog::Locks::builder().claim_window(std::time::Duration::ZERO).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "claim_window (0ns) must be at least 1ms");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<Locks, ConfigError> {
        let mut settings = self.settings;
        check(&settings)?;
        let defaults = self.defaults.checked()?;
        settings.backoff = defaults.options.backoff()?;
        let parts = Parts {
            store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
            client: Client::new(random_id()?, who(self.label)),
            clock: self.clock,
            settings,
            defaults,
            reentrant: self.reentrant,
            janitor_limit: self.janitor_limit.unwrap_or(JANITOR_LIMIT),
            drain_within: DRAIN_WITHIN,
        };
        let handle = Driver::start(parts).map_err(|error| ConfigError::Thread(error.to_string()))?;
        Ok(Locks { handle })
    }
}

impl fmt::Debug for LocksBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocksBuilder")
            .field("store", &self.store)
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}

fn check(settings: &Settings) -> Result<(), ConfigError> {
    let named = [
        ("claim_window", settings.window),
        ("response_timeout", settings.response),
        ("unavailable_after", settings.unavailable_after),
    ];
    let rule = "must be at least 1ms";
    match named.into_iter().find(|(_, value)| *value < Duration::from_millis(1)) {
        Some((option, value)) => Err(ConfigError::Setting { option, value, rule }),
        None if settings.drift.per_mille >= 500 => {
            let value = Duration::from_millis(settings.drift.per_mille.into());
            Err(ConfigError::Setting { option: "drift per second", value, rule: "must be less than half" })
        }
        None => Ok(()),
    }
}

fn random_id() -> Result<ClientId, ConfigError> {
    let mut bits = [0; 16];
    sync::random(&mut bits).map_err(|error| ConfigError::Randomness(error.to_string()))?;
    Ok(ClientId::from_random(u128::from_le_bytes(bits)))
}

fn who(label: String) -> Who {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Who { host, pid: std::process::id(), label }
}
