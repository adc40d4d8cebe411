//! Looking at locks and taking them away: list, inspect, revoke. Past the machines, straight to the store.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, RecordView, Revoke, Revoked, Target};
use bandog_core::pattern::Pattern;
use bandog_core::store::{Answer, Listing};

use crate::config::ConfigError;
use crate::error::AdminError;
use crate::locks::Locks;
use crate::request::excerpt;

/// One lock as the store shows it: public ids only, nothing that releases.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let guard = locks.mutex("job").acquire().await?;
/// for lock in locks.list("*").await? {
///     println!("{:?} has {} holders and {} waiters", lock.name, lock.record.holders.len(), lock.record.waiters.len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// The lock name.
    pub name: LockName,
    /// Holders, waiters, last stamp.
    pub record: RecordView,
}

impl Locks {
    /// Every lock that somebody holds or waits for and whose name matches the glob (`*`, `?`, `[a-z]`, `\` escapes).
    ///
    /// # Errors
    /// [`AdminError`] when the glob cannot be or the store fails.
    ///
    /// # Cancel safety
    /// Only looks.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("order:1001").acquire().await?;
    /// assert_eq!(locks.list("order:*").await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn list(&self, pattern: impl AsRef<str>) -> Result<Vec<LockInfo>, AdminError> {
        let pattern = pattern.as_ref();
        Pattern::new(pattern).map_err(|error| self.invalid(pattern, error.into()))?;
        let mut found = Vec::new();
        let mut query = Listing { pattern: Some(pattern.to_owned()), after: None, limit: 0 };
        loop {
            let page = self.answer("listing", self.handle.store.list(query.clone())).await?;
            found.extend(page.rows.into_iter().map(|(name, record)| LockInfo { name, record }));
            query.after = page.next;
            if query.after.is_none() {
                return Ok(found);
            }
        }
    }

    /// One lock; `None` when the store has no record of it.
    ///
    /// # Errors
    /// [`AdminError`] when the name cannot be or the store fails.
    ///
    /// # Cancel safety
    /// Only looks.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// assert!(locks.inspect("job").await?.is_none());
    /// let guard = locks.mutex("job").acquire().await?;
    /// let info = locks.inspect("job").await?.unwrap();
    /// println!("held by {}", info.record.holders[0].who);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Option<LockInfo>, AdminError> {
        let name = self.checked(name.as_ref())?;
        let reply = self.answer("inspecting", self.handle.store.apply(name.clone(), Op::Inspect)).await?;
        match reply.body {
            Body::Record(record) => Ok(record.map(|record| LockInfo { name, record })),
            _ => Ok(None),
        }
    }

    /// Asks every present holder of a lock to give it up. Returns how long that can take: the longest lease left.
    ///
    /// The holder's guard is lost with the reason; the lock passes on when it is released, or at its lease end.
    /// `None` when nobody holds it.
    ///
    /// # Errors
    /// [`AdminError`] when the name cannot be or the store fails.
    ///
    /// # Cancel safety
    /// Dropped half-way, some holders may have been asked and others not.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("order:1001").acquire().await?;
    /// locks.revoke("order:1001", "deploying").await?;
    /// assert_eq!(guard.lost().await.to_string(), "revoked: deploying");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn revoke(
        &self,
        name: impl AsRef<str>,
        reason: impl Into<String>,
    ) -> Result<Option<Duration>, AdminError> {
        let (name, reason) = (self.checked(name.as_ref())?, reason.into());
        let Some(info) = self.inspect(&name).await? else { return Ok(None) };
        let mut longest = None;
        for holder in info.record.holders {
            // Named by its stamp: whoever comes after it is not hit.
            let revoke = Revoke { target: Target::Stamp(holder.stamp), reason: reason.clone(), now: false };
            let reply = self.answer("revoking", self.handle.store.apply(name.clone(), Op::Revoke(revoke))).await?;
            if let Body::Revoked(Revoked::Asked { remaining }) = reply.body {
                longest = longest.max(Some(remaining));
            }
        }
        Ok(longest)
    }

    async fn answer<T: Send + 'static>(&self, doing: &'static str, answer: Answer<T>) -> Result<T, AdminError> {
        let store: Arc<str> = self.handle.store.to_string().into();
        self.handle.answer(answer).await.map_err(|source| AdminError::Store { store, doing, source })
    }

    fn checked(&self, name: &str) -> Result<LockName, AdminError> {
        LockName::new(name).map_err(|error| self.invalid(name, error.into()))
    }

    fn invalid(&self, given: &str, reason: ConfigError) -> AdminError {
        AdminError::Invalid { lock: excerpt(given), store: self.handle.store.to_string().into(), reason }
    }
}
