//! Taking a lock away from whoever holds it.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::PublicId;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Revoke, Revoked, Target};

use crate::config::ConfigError;
use crate::error::AdminError;
use crate::locks::Locks;

/// Longest reason, in bytes: every holder is told it, and the record keeps it.
const MAX_REASON: usize = 1_024;

/// A revocation to be: nothing is sent before it is awaited. Made by [`Locks::revoke`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let guard = locks.mutex("job").acquire().await?;
/// let holder = locks.inspect("job").await?.unwrap().record.holders[0].id;
/// let left = locks.revoke("job", "stuck since noon").only(holder).await?;
/// println!("it ends in {left:?} at the latest");
/// assert!(!guard.is_held());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is revoked until it is awaited"]
pub struct RevokeRequest {
    locks: Locks,
    name: String,
    reason: String,
    only: Option<PublicId>,
    now: bool,
}

impl RevokeRequest {
    pub(super) fn new(locks: Locks, name: &str, reason: String) -> Self {
        Self { locks, name: name.to_owned(), reason, only: None, now: false }
    }

    /// One holder alone, by its public id; whoever came after it is not hit. The answer is `None` when it is not there any more.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let one = locks.semaphore("gpu", 2).acquire().await?;
    /// let two = locks.semaphore("gpu", 2).acquire().await?;
    /// locks.revoke("gpu", "maintenance").only(two.hold().holder().unwrap()).await?;
    /// assert!(one.is_held() && !two.is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn only(mut self, holder: PublicId) -> Self {
        self.only = Some(holder);
        self
    }

    /// Ends the hold at once: the next in line holds before this one has heard of it.
    ///
    /// That gives up promise 2 of [`docs/guarantees.md`](https://github.com/bandog-lock/bandog/blob/main/docs/guarantees.md), that no two believe to hold at one instant: for a holder that is
    /// known to be dead, or whose writes are fenced by tokens. The answer is a time of zero.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let stuck = locks.mutex("job").acquire().await?;
    /// let left = locks.revoke("job", "its host is gone").now().await?;
    /// assert_eq!(left, Some(std::time::Duration::ZERO));
    /// assert!(locks.mutex("job").try_acquire().await?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn now(mut self) -> Self {
        self.now = true;
        self
    }

    async fn send(self) -> Result<Option<Duration>, AdminError> {
        let name = self.locks.checked(&self.name)?;
        let bytes = self.reason.len();
        if bytes > MAX_REASON {
            return Err(self.locks.invalid(&self.name, ConfigError::Reason { bytes, max: MAX_REASON }));
        }
        let mut longest = None;
        for target in self.targets(&name).await? {
            longest = longest.max(self.revoke(&name, target).await?);
        }
        Ok(longest)
    }

    async fn targets(&self, name: &LockName) -> Result<Vec<Target>, AdminError> {
        if let Some(holder) = self.only {
            return Ok(vec![Target::Holder(holder)]);
        }
        let record = self.locks.record("revoking", name).await?;
        // Named by its stamp: whoever comes after it is not hit.
        let holders = record.into_iter().flat_map(|record| record.holders);
        Ok(holders.map(|holder| Target::Stamp(holder.stamp)).collect())
    }

    async fn revoke(&self, name: &LockName, target: Target) -> Result<Option<Duration>, AdminError> {
        let by = Arc::clone(self.locks.handle.client.who());
        let op = Op::Revoke(Revoke { target, reason: self.reason.clone(), by, now: self.now });
        Ok(match self.locks.ask("revoking", name, op).await?.body {
            Body::Revoked(Revoked::Asked { remaining }) => Some(remaining),
            Body::Revoked(Revoked::Ended) => Some(Duration::ZERO),
            _ => None,
        })
    }
}

impl IntoFuture for RevokeRequest {
    type Output = Result<Option<Duration>, AdminError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'static>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
