//! Why holds are lost, in words for programs and for people.

use std::sync::Arc;

use crate::text::Harmless;

/// Why a hold ended without being released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The lease ran out before it could be renewed: the process was paused, or renewals are used up.
    #[error("the lease ran out before it was renewed")]
    Expired,
    /// Renewals went unanswered until the lease had to be given up.
    #[error("the store did not confirm a renewal in time")]
    Unreachable,
    /// The store does not know the hold any more: deleted, evicted, or taken after expiry.
    #[error("the store no longer knows this hold")]
    Gone,
    /// Somebody asked for it back.
    #[error("revoked: {}", Harmless(.0))]
    Revoked(Arc<str>),
    /// Held longer than `max_hold`.
    #[error("held for longer than its maximum hold")]
    MaxHold,
    /// The thread that held it ended without releasing.
    #[error("the thread that held it ended")]
    OwnerEnded,
    /// The task that it was bound to finished, panicked or was aborted without releasing.
    #[error("the task that it was bound to ended")]
    TaskEnded,
    /// No sign of progress for longer than was allowed.
    #[error("its holder gave no sign of progress for too long")]
    NoProgress,
    /// The client was shut down.
    #[error("the lock client was shut down")]
    Shutdown,
}

impl LossReason {
    /// Every [word](Self::as_str) there is.
    pub const WORDS: &'static [&'static str] = &[
        "expired",
        "unreachable",
        "gone",
        "revoked",
        "max_hold",
        "owner_ended",
        "shutdown",
        "task_ended",
        "no_progress",
    ];

    /// Its stable word, for metrics and logs.
    ///
    /// ```
    /// assert_eq!(bandog_core::lock::LossReason::MaxHold.as_str(), "max_hold");
    /// ```
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Unreachable => "unreachable",
            Self::Gone => "gone",
            Self::Revoked(_) => "revoked",
            Self::MaxHold => "max_hold",
            Self::OwnerEnded => "owner_ended",
            Self::Shutdown => "shutdown",
            Self::TaskEnded => "task_ended",
            Self::NoProgress => "no_progress",
        }
    }
}
