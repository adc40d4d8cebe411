//! What can go wrong, one type per operation. Every message names the lock, the store, and what was not done; `kind()`
//! never changes its meaning.

mod acquire;
mod kind;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{PublicId, Who};
use bandog_core::lock::LossReason;
use bandog_core::name::LockName;
use bandog_core::op::{Blocker, Refusal};
use bandog_core::store::{StoreError, StoreErrorKind};
use bandog_core::text::Harmless;

use crate::config::ConfigError;
use crate::ticket::TicketEnd;

pub use acquire::AcquireError;
pub(crate) use acquire::Not;
pub use kind::ErrorKind;

/// Which lock, in which store: the beginning of every message.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let held = locks.mutex("job").acquire().await?;
/// let error = locks.mutex("job").wait(std::time::Duration::from_millis(5)).acquire().await.unwrap_err();
/// if let bandog::AcquireError::Timeout { place, .. } = error {
///     assert_eq!(place.to_string(), "lock \"job\" (memory:)");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The lock name.
    pub lock: LockName,
    /// The store, as it calls itself.
    pub store: Arc<str>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock {:?} ({})", self.lock, Harmless(&self.store))
    }
}

impl Place {
    /// What the store says, without the lock and the store that the message has named already.
    pub(crate) fn words<'a>(&self, error: &'a StoreError) -> Harmless<'a> {
        own_words(&self.store, Some(&self.lock), error)
    }
}

fn own_words<'a>(store: &str, lock: Option<&LockName>, error: &'a StoreError) -> Harmless<'a> {
    let Some(words) = error.message.strip_prefix(store) else { return Harmless(&error.message) };
    let about = lock.map(|lock| format!(", lock {lock:?}")).unwrap_or_default();
    Harmless(words.strip_prefix(&about).unwrap_or(words).trim_start_matches([':', ' ']))
}

/// The holder that was in the way.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let held = locks.mutex("job").acquire().await?;
/// let error = locks.mutex("job").wait(std::time::Duration::from_millis(5)).acquire().await.unwrap_err();
/// if let bandog::AcquireError::Timeout { holder: Some(holder), .. } = error {
///     println!("wait for {holder}, or ask {} about {}", holder.who, holder.holder);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// Its public id.
    pub holder: PublicId,
    /// The process behind it.
    pub who: Arc<Who>,
    /// What was left of its lease when last seen.
    pub remaining: Duration,
}

impl From<Blocker> for HeldBy {
    fn from(blocker: Blocker) -> Self {
        Self { holder: blocker.holder, who: blocker.who, remaining: blocker.remaining }
    }
}

/// Who, and for how long at most.
impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, who, remaining } = self;
        write!(f, "{holder} on {who}, whose lease has {} left", short(*remaining))
    }
}

struct By<'a>(&'a Option<HeldBy>);

impl fmt::Display for By<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(holder) => write!(f, "; held by {holder}"),
            None => Ok(()),
        }
    }
}

/// A duration for people: whole milliseconds are enough.
pub(crate) fn short(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

/// Why a release could not be confirmed. The hold is over in any case.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let guard = locks.mutex("job").acquire().await?;
/// locks.revoke("job", "deploying").await?;
/// let error = guard.release().await.unwrap_err();
/// assert!(matches!(error, bandog::ReleaseError::Lost { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The hold had been lost before: the work under it may have overlapped with another's.
    #[error("{place}: lost before it was released: {reason}")]
    Lost {
        /// Which lock.
        place: Place,
        /// How.
        reason: LossReason,
    },
    /// The hold of a ticket had ended before.
    #[error("{place}: not released: {end}")]
    Over {
        /// Which lock.
        place: Place,
        /// How.
        end: TicketEnd,
    },
    /// The store did not confirm it. It is tried again in the background; at the latest the lease ends it.
    #[error(
        "{place}: the store did not confirm the release: {}; it goes on in the background, or the lease ends it",
        place.words(source)
    )]
    Store {
        /// Which lock.
        place: Place,
        /// The store's own words.
        source: StoreError,
    },
}

/// Why a lease was not renewed, or a guard not changed.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let guard = locks.mutex("job").acquire().await?;
/// locks.shutdown().await?;
/// let error = guard.renew().await.unwrap_err();
/// assert!(matches!(error, bandog::RenewError::Lost { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RenewError {
    /// The hold is lost.
    #[error("{place}: not {doing}: the hold is lost: {reason}")]
    Lost {
        /// Which lock.
        place: Place,
        /// Renewed, downgraded or detached.
        doing: &'static str,
        /// How.
        reason: LossReason,
    },
    /// The hold of a ticket had ended before.
    #[error("{place}: not {doing}: {end}")]
    Over {
        /// Which lock.
        place: Place,
        /// Renewed.
        doing: &'static str,
        /// How.
        end: TicketEnd,
    },
    /// The store did not confirm it. After a renewal the guard is valid until its deadline; a downgrade takes the guard, so
    /// the lock is then released.
    #[error("{place}: not {doing}: the store failed: {}", place.words(source))]
    Store {
        /// Which lock.
        place: Place,
        /// Renewed, downgraded or detached.
        doing: &'static str,
        /// The store's own words.
        source: StoreError,
    },
    /// The guard was entered again: release the inner guards first.
    #[error("{place}: not {doing}: entered more than once; release the inner guards first")]
    Reentered {
        /// Which lock.
        place: Place,
        /// Downgraded or detached.
        doing: &'static str,
    },
}

/// Why [`run`](crate::Request::run) did not finish.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let error = locks.mutex("").run(|_| async {}).await.unwrap_err();
/// assert!(matches!(error, bandog::RunError::Acquire(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The lock was not acquired; the closure was not called.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lease was lost; a future was dropped then, a closure was not.
    #[error("{place}: lost while running: {reason}; the work may have overlapped with another's")]
    Lost {
        /// Which lock.
        place: Place,
        /// How.
        reason: LossReason,
    },
}

/// Why listing, inspecting or revoking failed.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let error = locks.inspect("").await.unwrap_err();
/// assert!(matches!(error, bandog::AdminError::Invalid { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// A name, a glob or a reason that cannot be.
    #[error("lock {lock:?} ({}): nothing was asked of the store: {reason}", Harmless(store))]
    Invalid {
        /// As given, shortened if it is very long.
        lock: String,
        /// The store, as it calls itself.
        store: Arc<str>,
        /// What to change.
        reason: ConfigError,
    },
    /// The store failed.
    #[error("store {} failed while {doing}: {}", Harmless(store), own_words(store, None, source))]
    Store {
        /// The store, as it calls itself.
        store: Arc<str>,
        /// Listing, inspecting or revoking.
        doing: &'static str,
        /// The store's own words.
        source: StoreError,
    },
}

/// Why a shutdown left something behind.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// if let Err(error) = locks.shutdown().await {
///     eprintln!("{} holds are left to their lease ends", error.pending);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pending} releases were not confirmed by {store} within {} of the shutdown; their leases end them", short(*within))]
pub struct ShutdownError {
    /// How many.
    pub pending: usize,
    /// The store, as it calls itself.
    pub store: Arc<str>,
    /// How long we waited.
    pub within: Duration,
}

macro_rules! kinds {
    ($($error:ident: $($variant:ident => $kind:expr),+;)+) => {$(
        impl $error {
            /// What sort of error it is.
            ///
            /// ```
            #[doc = concat!("fn is_lost(error: &bandog::", stringify!($error), ") -> bool {")]
            ///     error.kind() == bandog::ErrorKind::Lost
            /// }
            /// ```
            pub fn kind(&self) -> ErrorKind {
                match self {
                    $(Self::$variant { .. } => $kind,)+
                    Self::Store { source, .. } => store_kind(source.kind),
                }
            }
        }
    )+};
}

kinds! {
    ReleaseError: Lost => ErrorKind::Lost, Over => ErrorKind::Lost;
    RenewError: Lost => ErrorKind::Lost, Over => ErrorKind::Lost, Reentered => ErrorKind::WouldDeadlock;
    AdminError: Invalid => ErrorKind::Invalid;
}

impl ShutdownError {
    /// What sort of error it is: always [`ErrorKind::Unconfirmed`].
    ///
    /// ```
    /// use bandog::{ErrorKind, ShutdownError};
    ///
    /// let error = ShutdownError { pending: 2, store: "memory:".into(), within: std::time::Duration::from_secs(5) };
    /// assert_eq!(error.kind(), ErrorKind::Unconfirmed);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Unconfirmed
    }
}

impl RunError {
    /// What sort of error it is: for a lock that was not acquired, that of the acquisition.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let error = locks.mutex("").run(|_| async {}).await.unwrap_err();
    /// assert_eq!(error.kind(), bandog::ErrorKind::Invalid);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Acquire(error) => error.kind(),
            Self::Lost { .. } => ErrorKind::Lost,
        }
    }
}

pub(crate) fn refusal_kind(refusal: &Refusal) -> ErrorKind {
    match refusal {
        Refusal::WrongKind { .. } => ErrorKind::WrongKind,
        Refusal::QueueFull { .. } => ErrorKind::QueueFull,
        Refusal::UpgradePending => ErrorKind::UpgradePending,
        Refusal::NotHolder | Refusal::Revoked { .. } | Refusal::Overtaken { .. } => ErrorKind::Lost,
        Refusal::LeaseTooLong { .. } => ErrorKind::Invalid,
        _ => ErrorKind::Refused,
    }
}

pub(crate) fn store_kind(kind: StoreErrorKind) -> ErrorKind {
    match kind {
        StoreErrorKind::Unavailable | StoreErrorKind::Unready => ErrorKind::Unavailable,
        StoreErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Refused,
    }
}
