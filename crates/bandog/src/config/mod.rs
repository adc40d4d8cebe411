//! The options of a lock, by name: in code, from a URL's query, from the environment. Checked when built.

mod builder;
mod error;

use std::sync::Arc;
use std::time::Duration;

use bandog_core::backoff::Backoff;
use bandog_core::lease::{Drift, Lease};
use bandog_core::lock::{HoldLimits, Recovery};
use bandog_core::renewal::{Every, RenewalPolicy, Terms};
use bandog_core::text::{discreet, discreet_name};

pub use builder::LockConfigBuilder;
pub use error::ConfigError;

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
    /// Shared by all requests that leave them as they are.
    pub(crate) options: Arc<Options>,
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
    pub(crate) progress_within: Option<Duration>,
    pub(crate) lock_at_least: Option<Duration>,
    pub(crate) recovery: Recovery,
    pub(crate) alerts: Alerts,
    pub(crate) watchdog_period: Duration,
    pub(crate) retry: (Duration, Duration),
}

/// What is worth an alert.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Alerts {
    pub(crate) hold: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) renewal: Option<Duration>,
    pub(crate) recoveries: Option<(u32, Duration)>,
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
            progress_within: None,
            lock_at_least: None,
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
        if let Some(value) = self.progress_within.filter(|within| within.is_zero()) {
            return Err(ConfigError::Setting { option: "progress_within", value, rule: "must be more than zero" });
        }
        if let Some((0, value)) = self.alerts.recoveries {
            return Err(ConfigError::Setting { option: "alert_recoveries within", value, rule: "needs at least one" });
        }
        if self.watchdog_period < Duration::from_millis(10) {
            let (option, value) = ("watchdog_period", self.watchdog_period);
            return Err(ConfigError::Setting { option, value, rule: "must be at least 10ms" });
        }
        Ok(Checked { lease, policy })
    }

    /// What the watchdog watches besides the lease.
    pub(crate) fn limits(&self) -> HoldLimits {
        let Alerts { hold: alert_hold, wait: alert_wait, renewal: alert_renewal, .. } = self.alerts;
        HoldLimits { max_hold: self.max_hold, progress: self.progress_within, alert_hold, alert_wait, alert_renewal }
    }

    pub(crate) fn backoff(&self) -> Result<Backoff, ConfigError> {
        Ok(Backoff::new(self.retry.0, self.retry.1)?)
    }
}

impl LockConfig {
    /// Starts from the defaults in [`docs/defaults.md`](https://github.com/bandog-lock/bandog/blob/main/docs/defaults.md).
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

    /// How long a hold lasts without renewal.
    ///
    /// ```
    /// assert_eq!(bandog::LockConfig::default().lease(), std::time::Duration::from_secs(30));
    /// ```
    pub fn lease(&self) -> Duration {
        self.options.lease
    }

    /// The time from one renewal to the next.
    ///
    /// ```
    /// assert_eq!(bandog::LockConfig::default().renewal_period(), std::time::Duration::from_secs(10));
    /// ```
    pub fn renewal_period(&self) -> Duration {
        match self.options.every {
            Every::Period(period) => period,
            Every::Fraction { num, den } => self.options.lease * num / den.max(1),
        }
    }

    fn options_mut(&mut self) -> &mut Options {
        Arc::make_mut(&mut self.options)
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
        let bad = |expected| bad_value(option, value, expected);
        let duration = || duration(option, value);
        let number = || value.parse::<u32>().map_err(|_| bad("a whole number"));
        let yes_no = || value.parse::<bool>().map_err(|_| bad("true or false"));
        let options = self.options_mut();
        match option {
            "lease" => options.lease = duration()?,
            "wait" => options.wait = Some(duration()?),
            "renew_every" => options.every = Every::Period(duration()?),
            "max_renewals" => options.max_renewals = Some(number()?),
            "max_hold" => options.max_hold = Some(duration()?),
            "progress_within" => options.progress_within = Some(duration()?),
            "lock_at_least" => options.lock_at_least = Some(duration()?),
            "fair" => options.fair = yes_no()?,
            "recovery" => options.recovery = recovery(value).ok_or_else(|| bad("notify, release or reacquire"))?,
            "alert_hold" => options.alerts.hold = Some(duration()?),
            "alert_wait" => options.alerts.wait = Some(duration()?),
            "alert_renewal" => options.alerts.renewal = Some(duration()?),
            "alert_recoveries" => {
                let wrong = || bad("a number and a duration such as 5/10m");
                options.alerts.recoveries = Some(recoveries(value).ok_or_else(wrong)?);
            }
            "watchdog_period" => options.watchdog_period = duration()?,
            "retry_first" => options.retry.0 = duration()?,
            "retry_max" => options.retry.1 = duration()?,
            _ => return Err(unknown_option(option, OPTIONS)),
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
    parse_duration(value).ok_or_else(|| bad_value(option, value, "a duration such as 30s, 1h30m or 0.5 (seconds)"))
}

/// An option with a wrong value, which may be the address of a store that ended up there.
fn bad_value(option: &str, value: &str, expected: &'static str) -> ConfigError {
    ConfigError::BadValue { option: option.to_owned(), value: discreet(value).to_owned(), expected }
}

/// An option that there is not; it may be a piece of a password.
pub(crate) fn unknown_option(option: &str, known: &'static [&'static str]) -> ConfigError {
    ConfigError::UnknownOption { option: discreet_name(option).to_owned(), known }
}

/// Reads a duration as options have it: `90s`, `1h30m`, `500ms`, or a number of seconds such as `0.5`.
///
/// ```
/// use bandog::parse_duration;
/// use std::time::Duration;
/// assert_eq!(parse_duration("1m30s"), Some(Duration::from_secs(90)));
/// assert_eq!(parse_duration("0.5"), Some(Duration::from_millis(500)));
/// assert_eq!(parse_duration("soon"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    }
}

fn recovery(value: &str) -> Option<Recovery> {
    match value {
        "notify" => Some(Recovery::Notify),
        "release" => Some(Recovery::Release),
        "reacquire" => Some(Recovery::Reacquire),
        _ => None,
    }
}

/// Reads `5/10m`: so many within so long.
fn recoveries(value: &str) -> Option<(u32, Duration)> {
    let (count, within) = value.split_once('/')?;
    Some((count.trim().parse().ok()?, parse_duration(within.trim())?))
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
    "progress_within",
    "lock_at_least",
    "fair",
    "retry_first",
    "retry_max",
    "recovery",
    "alert_hold",
    "alert_wait",
    "alert_renewal",
    "alert_recoveries",
    "watchdog_period",
    "claim_window",
    "response_timeout",
    "unavailable_after",
    "label",
];

/// Every option that [`LockConfig::set`] knows.
pub(crate) const OPTIONS: &[&str] = EVERY.split_at(16).0;

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
            "BANDOG_ALERT_RECOVERIES" => Some("5/3s".to_owned()),
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
            progress_within: Some(three),
            lock_at_least: Some(three),
            recovery: Recovery::Release,
            alerts: Alerts { hold: Some(three), wait: Some(three), renewal: Some(three), recoveries: Some((5, three)) },
            watchdog_period: three,
            retry: (Duration::from_millis(10), three),
        };
        assert_eq!(*config.options, expected);
        let error = config.set("fair", "perhaps").unwrap_err();
        assert_eq!(error.to_string(), r#"fair="perhaps" is not true or false"#);
    }
}
