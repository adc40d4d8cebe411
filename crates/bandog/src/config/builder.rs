//! The options of a lock, set one after the other and checked at the end.

use std::time::Duration;

use bandog_core::lock::Recovery;
use bandog_core::renewal::Every;

use super::{ConfigError, LockConfig};

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
pub struct LockConfigBuilder(pub(super) LockConfig);

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
        self.0.options_mut().lease = lease;
        self
    }

    /// How often to renew; less than the lease.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().renew_every(std::time::Duration::from_secs(5)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew_every(mut self, every: Duration) -> Self {
        self.0.options_mut().every = Every::Period(every);
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
        self.0.options_mut().every = Every::Fraction { num, den };
        self
    }

    /// How often to renew by itself at most; 0 makes the lease fixed. [`Guard::renew`](crate::Guard::renew) renews all the same.
    ///
    /// ```
    /// let fixed = bandog::LockConfig::builder().max_renewals(0).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_renewals(mut self, max: u32) -> Self {
        self.0.options_mut().max_renewals = Some(max);
        self
    }

    /// Whether waiters stand in the store's queue in person: strict order across processes.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().fair(true).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fair(mut self, fair: bool) -> Self {
        self.0.options_mut().fair = fair;
        self
    }

    /// How long to wait for the lock; without it, as long as it takes.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().wait(std::time::Duration::from_secs(5)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(mut self, wait: Duration) -> Self {
        self.0.options_mut().wait = Some(wait);
        self
    }

    /// How long the lock may be held; after that it is lost.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().max_hold(std::time::Duration::from_secs(3600)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_hold(mut self, max: Duration) -> Self {
        self.0.options_mut().max_hold = Some(max);
        self
    }

    /// How long the holder may give no sign of [progress](crate::Guard::progress); after that the lock is lost. The watchdog
    /// notices within its period.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().progress_within(std::time::Duration::from_secs(60)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn progress_within(mut self, within: Duration) -> Self {
        self.0.options_mut().progress_within = Some(within);
        self
    }

    /// How long the lock stays held at least, even if it is released before.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().lock_at_least(std::time::Duration::from_secs(40)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lock_at_least(mut self, least: Duration) -> Self {
        self.0.options_mut().lock_at_least = Some(least);
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
        self.0.options_mut().recovery = recovery;
        self
    }

    /// Alerts when the lock is held for longer than this: once, while it is held.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().alert_hold(std::time::Duration::from_secs(60)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alert_hold(mut self, longer_than: Duration) -> Self {
        self.0.options_mut().alerts.hold = Some(longer_than);
        self
    }

    /// Alerts when the wait for the lock takes longer than this: once, while it is waited for.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().alert_wait(std::time::Duration::from_secs(10)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alert_wait(mut self, longer_than: Duration) -> Self {
        self.0.options_mut().alerts.wait = Some(longer_than);
        self
    }

    /// Alerts when a renewal is confirmed later than this after its moment: once for each.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().alert_renewal(std::time::Duration::from_secs(1)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alert_renewal(mut self, later_than: Duration) -> Self {
        self.0.options_mut().alerts.renewal = Some(later_than);
        self
    }

    /// Alerts when the watchdog had to recover something this many times within this long. Counts for the client, in its
    /// defaults.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().alert_recoveries(5, std::time::Duration::from_secs(600)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alert_recoveries(mut self, count: u32, within: Duration) -> Self {
        self.0.options_mut().alerts.recoveries = Some((count, within));
        self
    }

    /// How often the watchdog makes its round. A client has one watchdog: the shortest period that its defaults or any of
    /// its requests ask for counts for all of its locks.
    ///
    /// ```
    /// let config = bandog::LockConfig::builder().watchdog_period(std::time::Duration::from_secs(5)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watchdog_period(mut self, period: Duration) -> Self {
        self.0.options_mut().watchdog_period = period;
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
        self.0.options_mut().retry = (first, max);
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`ConfigError`] names the option and both sides of the inequality it breaks.
    ///
    /// ```
    /// let wrong = bandog::LockConfig::builder().lease(std::time::Duration::ZERO).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "a lease of 0s is too short; the shortest is 10ms");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<LockConfig, ConfigError> {
        self.0.checked()
    }
}
