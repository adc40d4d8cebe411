//! What a client is made of: its store, its clock, its options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::checkup::Pace;
use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Drift;
use bandog_core::lock::Settings;
use bandog_core::store::Store;

use crate::clock::Clock;
use crate::config::{ConfigError, EVERY, LockConfig, OPTIONS, duration, unknown_option, variable};
use crate::driver::{Driver, Parts};
use crate::memory::MemoryStore;
use crate::signals::Grouping;
use crate::sync;

use super::{DRAIN_WITHIN, Locks};

/// Releases under way in the background, unless somebody says otherwise.
const JANITOR_LIMIT: usize = 65_536;

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
    group_by: Option<Grouping>,
}

impl LocksBuilder {
    /// Every option that [`set`](Self::set) knows.
    ///
    /// ```
    /// assert!(bandog::LocksBuilder::OPTIONS.contains(&"lease"));
    /// ```
    pub const OPTIONS: &'static [&'static str] = EVERY;

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

    /// How often and how long a lock may be passed on in this process while somebody elsewhere waits. In the second half of that time
    /// it goes only to who already waited when it began.
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
            _ => return Err(unknown_option(option, EVERY)),
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

    /// Gives metrics of single locks a label `group`, made by this function from the lock name.
    ///
    /// Every group makes series of its own in the recorder, for as long as the process lives: a handful of groups is right, one
    /// per lock name is not. It is called for each signal, also by the renewal thread: it should be quick.
    ///
    /// ```
    /// let before_colon = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    /// let locks = bandog::Locks::builder().group_by(before_colon).build()?; // order:1001 counts as order
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn group_by(mut self, group: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.group_by = Some(Arc::new(group));
        self
    }

    /// The times that a client of these options would go by.
    pub(super) fn pace(self) -> Result<Pace, ConfigError> {
        check(&self.settings)?;
        let defaults = self.defaults.checked()?;
        let Settings { response, window, drift, .. } = self.settings;
        Ok(Pace {
            lease: defaults.lease(),
            response_timeout: response,
            claim_window: window.min(defaults.lease() / 2),
            watchdog_period: defaults.options.watchdog_period,
            drift,
        })
    }

    /// Checks the options and starts the renewal thread.
    ///
    /// # Errors
    /// [`ConfigError`] names the option and both sides of the inequality it breaks.
    ///
    /// ```
    /// let locks = bandog::Locks::builder().build()?;
    /// let wrong = bandog::Locks::builder().claim_window(std::time::Duration::ZERO).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "claim_window (0s) must be at least 1ms");
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
            group_by: self.group_by,
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
