//! The options of a lock, by name: in code, from a URL's query, from the environment. Checked when built.

use std::time::Duration;

use bandog_core::backoff::{Backoff, BackoffError};
use bandog_core::lease::{Drift, Lease, LeaseError};
use bandog_core::lock::Recovery;
use bandog_core::mode::ModeError;
use bandog_core::name::NameError;
use bandog_core::pattern::PatternError;
use bandog_core::renewal::{Every, RenewalError, RenewalPolicy, Terms};

use crate::error::ErrorKind;

/// Options of one lock, or the defaults of all locks of a [`Locks`](crate::Locks).
///
/// ```
/// use bandog::LockConfig;
/// use std::time::Duration;
///
/// let config = LockConfig::builder()
///     .name("order:1001")
///     .lease(Duration::from_secs(30))
///     .renew_every(Duration::from_secs(10))
///     .fair(true)
///     .build()?;
/// assert_eq!(config.name(), Some("order:1001"));
///
/// let wrong = LockConfig::builder().lease(Duration::from_secs(5)).renew_every(Duration::from_secs(5)).build();
/// assert_eq!(wrong.unwrap_err().to_string(), "renew_every is 5s and the lease 5s: it must be at least 1ms and shorter than the lease");
/// # Ok::<(), bandog::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockConfig {
    name: Option<String>,
    pub(crate) options: Options,
}

/// The values, unchecked until [`Options::check`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Options {
    pub(crate) lease: Duration,
    pub(crate) every: Every,
    pub(crate) max_renewals: Option<u32>,
    pub(crate) fair: bool,
    pub(crate) wait: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) recovery: Recovery,
    pub(crate) alerts: Alerts,
    pub(crate) watchdog_period: Duration,
    pub(crate) retry: (Duration, Duration),
}

/// What is worth a warning in the log.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Alerts {
    pub(crate) hold: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) renewal: Option<Duration>,
}

impl Alerts {
    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        (self.hold.is_some() || self.wait.is_some()).then(|| Box::new(self))
    }
}

/// Options after the check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked {
    pub(crate) lease: Lease,
    pub(crate) policy: RenewalPolicy,
}

impl Default for Options {
    fn default() -> Self {
        let retry = Backoff::default();
        Self {
            lease: Duration::from_secs(30),
            every: RenewalPolicy::default().every,
            max_renewals: None,
            fair: false,
            wait: None,
            max_hold: None,
            recovery: Recovery::Notify,
            alerts: Alerts::default(),
            watchdog_period: Duration::from_secs(5),
            retry: (retry.first(), retry.max()),
        }
    }
}

impl Options {
    /// Checks every inequality; the error names both sides.
    pub(crate) fn check(&self) -> Result<Checked, ConfigError> {
        let lease = Lease::new(self.lease)?;
        let policy = RenewalPolicy { every: self.every, max_renewals: self.max_renewals };
        if let Some(max_hold) = self.max_hold.filter(|max| max.is_zero()) {
            return Err(ConfigError::MaxHold { max_hold });
        }
        if self.watchdog_period < Duration::from_millis(1) {
            let (option, value) = ("watchdog_period", self.watchdog_period);
            return Err(ConfigError::Setting { option, value, rule: "must be at least 1ms" });
        }
        Ok(Checked { lease, policy })
    }

    pub(crate) fn backoff(&self) -> Result<Backoff, ConfigError> {
        Ok(Backoff::new(self.retry.0, self.retry.1)?)
    }
}

impl LockConfig {
    /// Starts from the defaults in `docs/defaults.md`.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().lease(std::time::Duration::from_secs(10)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> LockConfigBuilder {
        LockConfigBuilder(Self::default())
    }

    /// The lock name, if one was given.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().name("nightly").build()?;
    /// assert_eq!(config.name(), Some("nightly"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Sets one option by its name, as in a URL's query or the environment.
    ///
    /// # Errors
    /// [`ConfigError::UnknownOption`] or [`ConfigError::BadValue`] name what was wrong.
    ///
    /// ```
    /// let mut config = bandog::LockConfig::default();
    /// config.set("lease", "45s")?;
    /// assert!(config.set("leese", "45s").is_err());
    /// # Ok::<(), bandog::ConfigError>(())
    /// ```
    pub fn set(&mut self, option: &str, value: &str) -> Result<(), ConfigError> {
        let bad = |expected| ConfigError::BadValue { option: option.to_owned(), value: value.to_owned(), expected };
        let duration = || duration(option, value);
        let number = || value.parse::<u32>().map_err(|_| bad("a whole number"));
        let yes_no = || value.parse::<bool>().map_err(|_| bad("true or false"));
        let options = &mut self.options;
        match option {
            "lease" => options.lease = duration()?,
            "wait" => options.wait = Some(duration()?),
            "renew_every" => options.every = Every::Period(duration()?),
            "max_renewals" => options.max_renewals = Some(number()?),
            "max_hold" => options.max_hold = Some(duration()?),
            "fair" => options.fair = yes_no()?,
            "recovery" => options.recovery = recovery(value).ok_or_else(|| bad("notify or release"))?,
            "alert_hold" => options.alerts.hold = Some(duration()?),
            "alert_wait" => options.alerts.wait = Some(duration()?),
            "alert_renewal" => options.alerts.renewal = Some(duration()?),
            "watchdog_period" => options.watchdog_period = duration()?,
            "retry_first" => options.retry.0 = duration()?,
            "retry_max" => options.retry.1 = duration()?,
            _ => return Err(ConfigError::UnknownOption { option: option.to_owned(), known: OPTIONS }),
        }
        Ok(())
    }

    /// Sets every option that the environment names: `BANDOG_LEASE`, `BANDOG_WAIT` and so on.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    ///
    /// ```
    /// let mut config = bandog::LockConfig::default();
    /// config.set_from_env()?; // BANDOG_LEASE=45s in the environment would be the lease now
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_from_env(&mut self) -> Result<(), ConfigError> {
        self.set_from(|key| std::env::var(key).ok())
    }

    fn set_from(&mut self, look_up: impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        for option in OPTIONS {
            if let Some(value) = look_up(&variable(option)) {
                self.set(option, &value)?;
            }
        }
        Ok(())
    }

    pub(crate) fn checked(self) -> Result<Self, ConfigError> {
        let Checked { lease, policy } = self.options.check()?;
        Terms::new(policy, lease, Drift::default(), lease.length())?;
        self.options.backoff()?;
        Ok(self)
    }
}

/// Reads a duration that was given for an option.
pub(crate) fn duration(option: &str, value: &str) -> Result<Duration, ConfigError> {
    humantime::parse_duration(value).map_err(|_| ConfigError::BadValue {
        option: option.to_owned(),
        value: value.to_owned(),
        expected: "a duration such as 30s or 1h30m",
    })
}

fn recovery(value: &str) -> Option<Recovery> {
    match value {
        "notify" => Some(Recovery::Notify),
        "release" => Some(Recovery::Release),
        _ => None,
    }
}

/// The environment variable of an option.
pub(crate) fn variable(option: &str) -> String {
    format!("BANDOG_{}", option.to_uppercase())
}

/// Every option that is settable by name: those of a lock, then those of a client.
pub(crate) const EVERY: &[&str] = &[
    "lease",
    "wait",
    "renew_every",
    "max_renewals",
    "max_hold",
    "fair",
    "retry_first",
    "retry_max",
    "recovery",
    "alert_hold",
    "alert_wait",
    "alert_renewal",
    "watchdog_period",
    "claim_window",
    "response_timeout",
    "unavailable_after",
    "label",
];

/// Every option that [`LockConfig::set`] knows.
pub(crate) const OPTIONS: &[&str] = EVERY.split_at(13).0;

/// Builds a [`LockConfig`].
///
/// ```
/// use bandog::LockConfig;
/// use std::time::Duration;
///
/// let config = LockConfig::builder()
///     .name("nightly")
///     .lease(Duration::from_secs(60))
///     .renew_at(1, 2)
///     .wait(Duration::from_secs(5))
///     .max_hold(Duration::from_secs(3600))
///     .fair(true)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "call build()"]
pub struct LockConfigBuilder(LockConfig);

impl LockConfigBuilder {
    /// The lock name, for [`Locks::configured`](crate::Locks::configured).
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().name("nightly").build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = Some(name.into());
        self
    }

    /// How long a grant lasts without renewal.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().lease(std::time::Duration::from_secs(10)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lease(mut self, lease: Duration) -> Self {
        self.0.options.lease = lease;
        self
    }

    /// How often to renew; less than the lease.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().renew_every(std::time::Duration::from_secs(5)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew_every(mut self, every: Duration) -> Self {
        self.0.options.every = Every::Period(every);
        self
    }

    /// After which share of the lease to renew, such as 9 of 10.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().renew_at(9, 10).build()?;
    /// assert!(bandog::LockConfig::builder().renew_at(10, 9).build().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew_at(mut self, num: u32, den: u32) -> Self {
        self.0.options.every = Every::Fraction { num, den };
        self
    }

    /// How often to renew by itself at most; 0 makes the lease fixed. [`Guard::renew`](crate::Guard::renew) renews all the same.
    ///
    /// ```
    /// let fixed = bandog::LockConfig::builder().max_renewals(0).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_renewals(mut self, max: u32) -> Self {
        self.0.options.max_renewals = Some(max);
        self
    }

    /// Whether waiters stand in the store's queue in person: strict order across processes.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().fair(true).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fair(mut self, fair: bool) -> Self {
        self.0.options.fair = fair;
        self
    }

    /// How long to wait for the lock; without it, as long as it takes.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().wait(std::time::Duration::from_secs(5)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(mut self, wait: Duration) -> Self {
        self.0.options.wait = Some(wait);
        self
    }

    /// How long the lock may be held; after that it is lost.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().max_hold(std::time::Duration::from_secs(3600)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_hold(mut self, max: Duration) -> Self {
        self.0.options.max_hold = Some(max);
        self
    }

    /// What to do when the lock is lost, besides telling its guard.
    ///
    /// ```
    /// use bandog::{LockConfig, Recovery};
    /// let config = LockConfig::builder().recovery(Recovery::Release).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.0.options.recovery = recovery;
        self
    }

    /// Warns in the log when the lock was held for longer than this.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().alert_hold(std::time::Duration::from_secs(60)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alert_hold(mut self, longer_than: Duration) -> Self {
        self.0.options.alerts.hold = Some(longer_than);
        self
    }

    /// Warns in the log when the wait for the lock took longer than this.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().alert_wait(std::time::Duration::from_secs(10)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alert_wait(mut self, longer_than: Duration) -> Self {
        self.0.options.alerts.wait = Some(longer_than);
        self
    }

    /// Warns in the log when a renewal was answered later than this. Counts for the client, in its defaults.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().alert_renewal(std::time::Duration::from_secs(1)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alert_renewal(mut self, later_than: Duration) -> Self {
        self.0.options.alerts.renewal = Some(later_than);
        self
    }

    /// How often the renewal thread looks at the clock even if no timer is due: a machine that slept is noticed within
    /// it. Counts for the client, in its defaults.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().watchdog_period(std::time::Duration::from_secs(5)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watchdog_period(mut self, period: Duration) -> Self {
        self.0.options.watchdog_period = period;
        self
    }

    /// The pause between tries at a store that fails: from `first`, doubling, up to `max`.
    ///
    /// It belongs to the client: only in its [defaults](crate::LocksBuilder::defaults) does it count. In the configuration of
    /// one request it is checked and then passed over.
    ///
    /// ```
    /// use bandog::{LockConfig, Locks};
    /// use std::time::Duration;
    /// let patient = LockConfig::builder().retry(Duration::from_millis(200), Duration::from_secs(5)).build()?;
    /// let locks = Locks::builder().defaults(patient).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry(mut self, first: Duration, max: Duration) -> Self {
        self.0.options.retry = (first, max);
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`ConfigError`] names the option and both sides of the inequality it breaks.
    ///
    /// ```
    /// let wrong = bandog::LockConfig::builder().lease(std::time::Duration::ZERO).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "a lease of 0ns is too short; the shortest is 10ms");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<LockConfig, ConfigError> {
        self.0.checked()
    }
}

/// An option that cannot be.
///
/// ```
/// use bandog::{ConfigError, LockConfig, LeaseError};
/// let error = LockConfig::builder().lease(std::time::Duration::ZERO).build().unwrap_err();
/// assert!(matches!(error, ConfigError::Lease(LeaseError::TooShort { .. })));
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The lock name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The glob of a listing.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No lock name where one is needed.
    #[error("this configuration has no lock name; set one with name(..)")]
    NoName,
    /// Re-entry without an identity.
    #[error("reentrant() needs an owner: give one with owner(..), or run inside Owner::scope")]
    NoOwner,
    /// The lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The renewal period.
    #[error(transparent)]
    Renewal(#[from] RenewalError),
    /// The permits.
    #[error(transparent)]
    Permits(#[from] ModeError),
    /// The pause between tries.
    #[error(transparent)]
    Retry(#[from] BackoffError),
    /// The maximum hold.
    #[error("max_hold ({max_hold:?}) must be more than zero")]
    MaxHold {
        /// As given.
        max_hold: Duration,
    },
    /// A setting of the client.
    #[error("{option} ({value:?}) {rule}")]
    Setting {
        /// Its name.
        option: &'static str,
        /// As given.
        value: Duration,
        /// What it must be.
        rule: &'static str,
    },
    /// An option nobody knows.
    #[error("there is no option {option:?}; there are {}", known.join(", "))]
    UnknownOption {
        /// As given.
        option: String,
        /// What there is.
        known: &'static [&'static str],
    },
    /// A value that cannot be read.
    #[error("{option}={value:?} is not {expected}")]
    BadValue {
        /// The option.
        option: String,
        /// As given.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A store URL that cannot be read.
    #[error("{url:?} names no store; try \"memory:\" or \"memory:NAME\"")]
    BadUrl {
        /// As given.
        url: String,
    },
    /// The renewal thread could not be started.
    #[error("the renewal thread could not be started: {0}")]
    Thread(String),
    /// The system gave no random numbers, and ids that can be guessed protect nothing.
    #[error("the system gave no random numbers to make a client id from: {0}")]
    Randomness(String),
}

impl ConfigError {
    /// What sort of error it is: [`ErrorKind::System`] for a thread or random numbers that were not to be had,
    /// otherwise [`ErrorKind::Invalid`].
    ///
    /// ```
    /// use bandog::{ErrorKind, LockConfig};
    ///
    /// let error = LockConfig::default().set("leese", "45s").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Invalid);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Thread(_) | Self::Randomness(_) => ErrorKind::System,
            _ => ErrorKind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_set_by_its_name_and_environment_variable() {
        let values = |key: &str| match key {
            "BANDOG_LEASE" => Some("9s".to_owned()),
            "BANDOG_FAIR" => Some("true".to_owned()),
            "BANDOG_MAX_RENEWALS" => Some("7".to_owned()),
            "BANDOG_RETRY_FIRST" => Some("10ms".to_owned()),
            "BANDOG_RECOVERY" => Some("release".to_owned()),
            _ => Some("3s".to_owned()),
        };
        let mut config = LockConfig::default();
        config.set_from(values).unwrap();
        let three = Duration::from_secs(3);
        let expected = Options {
            lease: Duration::from_secs(9),
            every: Every::Period(three),
            max_renewals: Some(7),
            fair: true,
            wait: Some(three),
            max_hold: Some(three),
            recovery: Recovery::Release,
            alerts: Alerts { hold: Some(three), wait: Some(three), renewal: Some(three) },
            watchdog_period: three,
            retry: (Duration::from_millis(10), three),
        };
        assert_eq!(config.options, expected);
        let error = config.set("fair", "perhaps").unwrap_err();
        assert_eq!(error.to_string(), r#"fair="perhaps" is not true or false"#);
    }
}
