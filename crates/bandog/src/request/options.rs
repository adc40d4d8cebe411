//! What a request can be told: how long to wait, to hold and to stay, and as whom. Each setter gives the request back.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::lock::Recovery;
use bandog_core::mode::Mode;
use bandog_core::renewal::Every;

use super::Request;
use crate::config::{ConfigError, LockConfig};
use crate::held::{Held, Permits};
use crate::owner::Owner;

impl<K: Held> Request<K> {
    /// Waits at most this long; without it, as long as it takes.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let held = locks.mutex("job").acquire().await?;
    /// let late = locks.mutex("job").wait(std::time::Duration::from_millis(5)).acquire().await;
    /// assert_eq!(late.unwrap_err().kind(), bandog::ErrorKind::Timeout);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn wait(self, wait: Duration) -> Self {
        self.change(|order| order.options_mut().wait = Some(wait))
    }

    /// The length of the lease. It is renewed while the guard lives, so it need not cover the work.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").lease(std::time::Duration::from_secs(10)).acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lease(self, lease: Duration) -> Self {
        self.change(|order| order.options_mut().lease = lease)
    }

    /// Stands in the store's queue in person: first come, first served, across processes.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").fair().acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn fair(self) -> Self {
        self.change(|order| order.options_mut().fair = true)
    }

    /// Renews every so often; less than the lease. The default is a third of it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").renew_every(std::time::Duration::from_secs(5)).acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn renew_every(self, every: Duration) -> Self {
        self.change(|order| order.options_mut().every = Every::Period(every))
    }

    /// Renews after this share of the lease, such as 9 of 10.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").renew_at(1, 2).acquire().await?; // at half-time
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn renew_at(self, num: u32, den: u32) -> Self {
        self.change(|order| order.options_mut().every = Every::Fraction { num, den })
    }

    /// Renews by itself at most so often; with 0 the lease is fixed and ends by itself. A call of
    /// [`Guard::renew`](crate::Guard::renew) renews all the same.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").max_renewals(0).acquire().await?; // 30 s and no longer
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn max_renewals(self, max: u32) -> Self {
        self.change(|order| order.options_mut().max_renewals = Some(max))
    }

    /// Loses the lock when it is held for longer than this.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").max_hold(std::time::Duration::from_secs(60)).acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn max_hold(self, max: Duration) -> Self {
        self.change(|order| order.options_mut().max_hold = Some(max))
    }

    /// Loses the lock when its holder gives no sign of [progress](crate::Guard::progress) for longer than this. The watchdog
    /// notices within its period.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").progress_within(std::time::Duration::from_secs(60)).acquire().await?;
    /// for row in 0..3 {
    ///     println!("row {row}");
    ///     guard.progress();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn progress_within(self, within: Duration) -> Self {
        self.change(|order| order.options_mut().progress_within = Some(within))
    }

    /// What to do when the lock is lost, besides telling its guard; see [`docs/watchdog.md`](https://github.com/bandog-lock/bandog/blob/main/docs/watchdog.md).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("job").recovery(bandog::Recovery::Reacquire).acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn recovery(self, recovery: Recovery) -> Self {
        self.change(|order| order.options_mut().recovery = recovery)
    }

    /// Keeps the lock held in the store for at least this long from when it was acquired, even if it is released or dropped
    /// before: a job that is over in a moment is not run again by a host whose clock is a little behind.
    ///
    /// Nobody waits for it: [`release`](crate::Guard::release) returns at once, and the hold is left to end by itself at
    /// that time. It stays after the process has ended too, for at most the longest lease (ten minutes) from there; a longer time is
    /// kept while this client lives. [`shutdown`](crate::Locks::shutdown) ends holds whose guards live, at once, and leaves
    /// those that only stay. [`revoke`](crate::Locks::revoke) ends one that stays at once, while its client lives. A lock that is lost or given away ([`detach`](crate::Guard::detach)) does not stay.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let nightly = locks.mutex("nightly").lock_at_least(std::time::Duration::from_secs(40));
    /// nightly.acquire().await?.release().await?;
    /// assert!(nightly.try_acquire().await?.is_none(), "somebody has just done it");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lock_at_least(self, least: Duration) -> Self {
        self.change(|order| order.options_mut().lock_at_least = Some(least))
    }

    /// Takes all options from a configuration, except its name.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let careful = bandog::LockConfig::builder().fair(true).build()?;
    /// let guard = locks.mutex("job").config(&careful).acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn config(self, config: &LockConfig) -> Self {
        self.change(|order| order.options = Arc::clone(&config.options))
    }

    /// Says whose request this is. The same owner asking twice is an error at once, not a deadlock.
    ///
    /// Without it the owner is the one whose [`scope`](Owner::scope) the future is polled in, if any.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let me = bandog::Owner::new();
    /// let guard = locks.mutex("job").owner(&me).acquire().await?;
    /// let again = locks.mutex("job").owner(&me).acquire().await;
    /// assert_eq!(again.unwrap_err().kind(), bandog::ErrorKind::WouldDeadlock);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn owner(self, owner: &Owner) -> Self {
        self.change(|order| order.owner = Some(owner.id()))
    }

    /// Lets its owner enter again while holding: same token, no request to the store.
    ///
    /// Needs an owner, by [`owner`](Self::owner) or [`Owner::scope`]; a task is not one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let me = bandog::Owner::new();
    /// let outer = locks.mutex("job").owner(&me).reentrant().acquire().await?;
    /// let inner = locks.mutex("job").owner(&me).reentrant().acquire().await?;
    /// assert_eq!(outer.token(), inner.token());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn reentrant(self) -> Self {
        self.change(|order| order.reentrant = true)
    }
}

impl Request<Permits> {
    /// Asks for so many permits instead of one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let three = locks.semaphore("gpu", 4).permits(3).acquire().await?;
    /// assert!(locks.semaphore("gpu", 4).permits(2).try_acquire().await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn permits(self, count: u32) -> Self {
        self.change(|order| {
            if let Ok(Mode::Permits { of, .. }) = order.mode {
                order.mode = Mode::permits(count, of.get()).map_err(ConfigError::from);
            }
        })
    }
}
