//! Why a lock was not acquired, or a reader not made a writer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bandog_core::lock::LossReason;
use bandog_core::op::Refusal;
use bandog_core::store::StoreError;

use crate::config::ConfigError;

use super::{By, ErrorKind, HeldBy, Place, refusal_kind, short, store_kind};

/// Why a lock was not acquired.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let locks = bandog::Locks::connect("memory:").await?;
/// let error = locks.mutex("").acquire().await.unwrap_err();
/// assert!(matches!(error, bandog::AcquireError::Invalid { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// A name or option that cannot be. Nothing was sent to the store.
    Invalid {
        /// The name as given, shortened if it is very long.
        lock: String,
        /// The store, as it calls itself.
        store: Arc<str>,
        /// What to change.
        reason: ConfigError,
    },
    /// Held by another, and the request did not want to wait.
    Busy {
        /// Which lock.
        place: Place,
        /// Who holds it.
        holder: Option<HeldBy>,
    },
    /// The wait is over.
    Timeout {
        /// Which lock.
        place: Place,
        /// How long.
        waited: Duration,
        /// Who held it when last seen.
        holder: Option<HeldBy>,
    },
    /// The same owner or thread holds the lock and would wait for itself.
    WouldDeadlock {
        /// Which lock.
        place: Place,
    },
    /// The reader that is to be upgraded was entered again: its outer guards would wait for themselves.
    Reentered {
        /// Which lock.
        place: Place,
    },
    /// Re-entered 255 times already.
    TooDeep {
        /// Which lock.
        place: Place,
    },
    /// The store says it cannot be.
    Refused {
        /// Which lock.
        place: Place,
        /// What to change.
        reason: Refusal,
    },
    /// The store cannot be reached, refuses us, or is not fit for locks.
    Store {
        /// Which lock.
        place: Place,
        /// The store's own words.
        source: StoreError,
    },
    /// The store cannot do this.
    Unsupported {
        /// Which lock.
        place: Place,
        /// What it lacks.
        feature: &'static str,
    },
    /// The client was shut down.
    Closed {
        /// Which lock.
        place: Place,
    },
    /// The wait was interrupted from another thread.
    Interrupted {
        /// Which lock.
        place: Place,
        /// How long.
        waited: Duration,
    },
    /// The read hold was lost while it waited to upgrade.
    Lost {
        /// Which lock.
        place: Place,
        /// How.
        reason: LossReason,
    },
}

/// An acquisition's error in the words of what was not done: acquired, or upgraded.
pub(crate) struct Not<'a>(pub(crate) &'static str, pub(crate) &'a AcquireError);

impl fmt::Display for Not<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use AcquireError as E;
        let Self(done, error) = self;
        match error {
            E::Invalid { lock, store, reason } => write!(f, "lock {lock:?} ({store}): not {done}: {reason}"),
            E::Busy { place, holder } => write!(f, "{place}: not {done}: busy{}", By(holder)),
            E::Timeout { place, waited, holder } => {
                write!(f, "{place}: not {done} after waiting {}{}", short(*waited), By(holder))
            }
            E::WouldDeadlock { place } => {
                let advice = "use reentrant(), or release it first";
                write!(f, "{place}: not {done}: its owner already holds it and would wait for itself; {advice}")
            }
            E::Reentered { place } => {
                write!(f, "{place}: not {done}: entered more than once; release the inner guards first")
            }
            E::TooDeep { place } => {
                let advice = "is a release forgotten?";
                write!(f, "{place}: not {done} again: entered 255 times already, which is the most; {advice}")
            }
            E::Refused { place, reason } => write!(f, "{place}: not {done}: {reason}"),
            E::Store { place, source } => {
                write!(f, "{place}: not {done}: the store failed: {}", place.words(source))
            }
            E::Unsupported { place, feature } => write!(f, "{place}: not {done}: this store has no {feature}"),
            E::Closed { place } => write!(f, "{place}: not {done}: the lock client was shut down"),
            E::Interrupted { place, waited } => {
                write!(f, "{place}: not {done}: interrupted after waiting {}", short(*waited))
            }
            E::Lost { place, reason } => write!(f, "{place}: not {done}: the read hold was lost: {reason}"),
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only a read guard that was to be upgraded can be in the way of itself.
        let done = if matches!(self, Self::Reentered { .. }) { "upgraded" } else { "acquired" };
        Not(done, self).fmt(f)
    }
}

impl AcquireError {
    /// What sort of error it is.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let error = locks.mutex("").acquire().await.unwrap_err();
    /// assert_eq!(error.kind(), bandog::ErrorKind::Invalid);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::WouldDeadlock { .. } | Self::Reentered { .. } => ErrorKind::WouldDeadlock,
            Self::TooDeep { .. } => ErrorKind::TooDeep,
            Self::Refused { reason, .. } => refusal_kind(reason),
            Self::Store { source, .. } => store_kind(source.kind),
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Closed { .. } => ErrorKind::Closed,
            Self::Interrupted { .. } => ErrorKind::Interrupted,
            Self::Lost { .. } => ErrorKind::Lost,
        }
    }
}
