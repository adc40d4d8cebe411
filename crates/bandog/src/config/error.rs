//! What is wrong with an option, and what to change.

use std::time::Duration;

use bandog_core::backoff::BackoffError;
use bandog_core::lease::LeaseError;
use bandog_core::mode::ModeError;
use bandog_core::name::NameError;
use bandog_core::pattern::PatternError;
use bandog_core::renewal::RenewalError;
use bandog_core::store::StoreErrorKind;
use bandog_core::text::{Harmless, Length};

use crate::error::{ErrorKind, store_kind};

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
    /// The reason of a revocation.
    #[error("the reason has {bytes} bytes; at most {max} are told and kept")]
    Reason {
        /// As given.
        bytes: usize,
        /// The most there may be.
        max: usize,
    },
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
    #[error("max_hold ({}) must be more than zero", Length(*max_hold))]
    MaxHold {
        /// As given.
        max_hold: Duration,
    },
    /// A setting of the client.
    #[error("{option} ({}) {rule}", Length(*value))]
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
        /// As given, unless it may hold a secret.
        option: String,
        /// What there is.
        known: &'static [&'static str],
    },
    /// A value that cannot be read.
    #[error("{option}={value:?} is not {expected}")]
    BadValue {
        /// The option.
        option: String,
        /// As given, unless it may hold a secret.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A store URL that cannot be read.
    #[error("{url:?} names no store; there are {}", known.join(", "))]
    BadUrl {
        /// Its scheme, if it is nearly one: the rest may hold a password.
        url: String,
        /// What there is.
        known: &'static [&'static str],
    },
    /// A store URL whose address cannot be read.
    #[error("{url:?} cannot be read: {reason}")]
    BadAddress {
        /// Its scheme, if it is nearly one: the rest may hold a password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A store that could not be opened.
    #[error("store {} could not be opened: {}", Harmless(store), Harmless(message))]
    Store {
        /// Which.
        store: String,
        /// What sort of trouble.
        kind: StoreErrorKind,
        /// The store's own words.
        message: String,
    },
    /// No place for the default file.
    #[error(
        "neither XDG_STATE_HOME nor HOME is set to an absolute path, so there is no place for the locks; name a file: sqlite:PATH"
    )]
    NoHome,
    /// The renewal thread could not be started.
    #[error("the renewal thread could not be started: {0}")]
    Thread(String),
    /// The system gave no random numbers, and ids that can be guessed protect nothing.
    #[error("the system gave no random numbers to make a client id from: {0}")]
    Randomness(String),
}

impl ConfigError {
    /// What sort of error it is: [`ErrorKind::System`] for a thread or random numbers that were not to be had, the
    /// store's own for one that could not be opened, otherwise [`ErrorKind::Invalid`].
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
            Self::Store { kind, .. } => store_kind(*kind),
            _ => ErrorKind::Invalid,
        }
    }
}
