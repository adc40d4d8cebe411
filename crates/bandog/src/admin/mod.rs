//! Looking at locks and taking them away: list, scan, inspect, revoke. Past the machines, straight to the store.

mod revoke;
mod scan;

use std::ops::Deref;
use std::sync::Arc;

use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, RecordView, Reply};
use bandog_core::store::{Answer, Unread};

pub use revoke::RevokeRequest;
pub use scan::Scan;

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
///     println!("{:?} has {} holders and {} waiters", lock.name, lock.record.holders.len(), lock.record.queue);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// The lock name.
    pub name: LockName,
    /// Holders, waiters, last stamp. From a listing, with the first waiters and the number of them all; from an inspection, with
    /// every one.
    pub record: RecordView,
}

/// A whole listing: a list of locks, and what could not be read.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let found = locks.list("*").await?;
/// if found.is_empty() && found.unread.is_empty() {
///     println!("no locks");
/// }
/// for odd in &found.unread {
///     println!("{} is {}", odd.name, odd.why);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The locks.
    pub locks: Vec<LockInfo>,
    /// What is there under names that match, and cannot be read: it may be locks that somebody holds.
    pub unread: Vec<Unread>,
}

impl Deref for Listed {
    type Target = [LockInfo];

    fn deref(&self) -> &[LockInfo] {
        &self.locks
    }
}

impl IntoIterator for Listed {
    type Item = LockInfo;
    type IntoIter = std::vec::IntoIter<LockInfo>;

    fn into_iter(self) -> Self::IntoIter {
        self.locks.into_iter()
    }
}

impl<'a> IntoIterator for &'a Listed {
    type Item = &'a LockInfo;
    type IntoIter = std::slice::Iter<'a, LockInfo>;

    fn into_iter(self) -> Self::IntoIter {
        self.locks.iter()
    }
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
    pub async fn list(&self, pattern: impl AsRef<str>) -> Result<Listed, AdminError> {
        let (mut pages, mut found) = (self.scan(pattern), Listed::default());
        while let Some(page) = pages.next().await? {
            found.locks.extend(page);
            found.unread.extend_from_slice(pages.unread());
        }
        Ok(found)
    }

    /// The same, a page at a time: for stores with more locks than fit in the hand; see [`Scan`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard = locks.mutex("order:1001").acquire().await?;
    /// let mut pages = locks.scan("order:*").limit(100);
    /// while let Some(page) = pages.next().await? {
    ///     page.iter().for_each(|lock| println!("{}", lock.name));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn scan(&self, pattern: impl AsRef<str>) -> Scan {
        Scan::new(self.clone(), pattern.as_ref())
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
        let record = self.record("inspecting", &name).await?;
        Ok(record.map(|record| LockInfo { name, record }))
    }

    /// Asks every present holder of a lock to give it up. Returns how long that can take: the longest lease left.
    ///
    /// The holder's guard is lost with the reason; the lock passes on when it is released, or at its lease end.
    /// `None` when nobody holds it. One holder alone, or without waiting for it: see [`RevokeRequest`].
    ///
    /// # Errors
    /// [`AdminError`] when the name or the reason cannot be (it has at most 1,024 bytes) or the store fails.
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
    pub fn revoke(&self, name: impl AsRef<str>, reason: impl Into<String>) -> RevokeRequest {
        RevokeRequest::new(self.clone(), name.as_ref(), reason.into())
    }

    async fn record(&self, doing: &'static str, name: &LockName) -> Result<Option<RecordView>, AdminError> {
        match self.ask(doing, name, Op::Inspect).await?.body {
            Body::Record(record) => Ok(record),
            _ => Ok(None),
        }
    }

    async fn ask(&self, doing: &'static str, name: &LockName, op: Op) -> Result<Reply, AdminError> {
        let store = &self.handle.store;
        let failed = |source| AdminError::Store { store: store.to_string().into(), doing, source };
        self.handle.ask(store, name.clone(), op).await.map_err(failed)
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
