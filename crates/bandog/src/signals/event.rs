//! What happens to the locks of a client, in words for programs and for people. Made by [`Signals`](super::Signals), heard
//! through [`Locks::events`](crate::Locks::events).

use std::fmt;
use std::time::Duration;

use bandog_core::lock::{How, LossReason};
use bandog_core::name::LockName;
use bandog_core::token::Token;

use crate::error::{HeldBy, short};

use super::{Check, Strategy};

/// Something that happened to a lock of this client.
///
/// Its text is one line for people:
///
/// ```
/// use bandog::{Event, LockName, LossReason, Token};
///
/// let event = Event::Lost { lock: LockName::new("job")?, token: Token::from_u64(7), reason: LossReason::Gone };
/// assert_eq!(event.to_string(), "lost job (token 7): the store no longer knows this hold");
/// # Ok::<(), bandog::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Somebody here has to wait: in the store's queue, or in the local line behind a hold of this process.
    Waiting {
        /// Which lock.
        lock: LockName,
        /// Who is in the way, as far as it is known.
        holder: Option<HeldBy>,
    },
    /// A lock was acquired.
    Acquired {
        /// Which lock.
        lock: LockName,
        /// The fencing token of the hold.
        token: Token,
        /// By which way it came.
        how: How,
        /// From the ask to the guard.
        waited: Duration,
    },
    /// A renewal was confirmed later than it should have been.
    RenewedLate {
        /// Which lock.
        lock: LockName,
        /// The fencing token of the hold.
        token: Token,
        /// From the moment it was due to its answer.
        late: Duration,
    },
    /// A hold became doubtful: a renewal failed or had no answer. It is still held.
    Uncertain {
        /// Which lock.
        lock: LockName,
        /// The fencing token of the hold.
        token: Token,
        /// Left before it is lost.
        remaining: Duration,
    },
    /// A hold was lost.
    Lost {
        /// Which lock.
        lock: LockName,
        /// The fencing token it had.
        token: Token,
        /// Why.
        reason: LossReason,
    },
    /// The watchdog has tried to put something right.
    Recovered {
        /// Which lock; `None` when it was the client itself.
        lock: Option<LockName>,
        /// What was tried.
        strategy: Strategy,
        /// Whether it worked.
        worked: bool,
        /// The token of the hold that came of it, if one did.
        token: Option<Token>,
    },
    /// A hold was released by its guard.
    Released {
        /// Which lock.
        lock: LockName,
        /// The fencing token it had.
        token: Token,
        /// From the grant to the release.
        held: Duration,
    },
    /// Something took longer, or happened more often, than somebody allowed.
    Alert(Alert),
    /// A check of the watchdog found something.
    Found {
        /// Which lock; `None` when it concerns the client as a whole.
        lock: Option<LockName>,
        /// Which check.
        check: Check,
        /// What it found, for people.
        what: String,
    },
    /// The listener was too slow: so many events are missing here.
    Missed {
        /// How many.
        count: u64,
    },
}

/// What somebody wanted to be warned of; the limits are options of [`LockConfig`](crate::LockConfig).
///
/// ```
/// use bandog::{Alert, LockName};
/// use std::time::Duration;
///
/// let (waited, limit) = (Duration::from_secs(3), Duration::from_secs(1));
/// let alert = Alert::Wait { lock: LockName::new("job")?, waited, limit };
/// assert_eq!(alert.to_string(), "waited 3s for job, longer than its alert allows (1s)");
/// # Ok::<(), bandog::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alert {
    /// Held for too long.
    Hold {
        /// Which lock.
        lock: LockName,
        /// The fencing token of the hold.
        token: Token,
        /// For how long so far.
        held: Duration,
        /// What was allowed.
        limit: Duration,
    },
    /// Waited for too long.
    Wait {
        /// Which lock.
        lock: LockName,
        /// For how long.
        waited: Duration,
        /// What was allowed.
        limit: Duration,
    },
    /// A renewal was answered too late.
    Renewal {
        /// Which lock.
        lock: LockName,
        /// The fencing token of the hold.
        token: Token,
        /// How long after its moment.
        late: Duration,
        /// What was allowed.
        limit: Duration,
    },
    /// Too much had to be put right.
    Recoveries {
        /// How often.
        count: u64,
        /// Within what time.
        within: Duration,
    },
}

impl Alert {
    /// The alert's stable word, as in the label of `bandog_alerts_total`.
    ///
    /// ```
    /// let alert = bandog::Alert::Recoveries { count: 4, within: std::time::Duration::from_secs(60) };
    /// assert_eq!(alert.as_str(), "recoveries");
    /// ```
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Wait { .. } => "wait",
            Self::Renewal { .. } => "renewal",
            Self::Recoveries { .. } => "recoveries",
        }
    }
}

impl Event {
    /// The lock it is about, if it is about one.
    ///
    /// ```
    /// assert_eq!(bandog::Event::Missed { count: 3 }.lock(), None);
    /// ```
    pub fn lock(&self) -> Option<&LockName> {
        match self {
            Self::Waiting { lock, .. }
            | Self::Acquired { lock, .. }
            | Self::RenewedLate { lock, .. }
            | Self::Uncertain { lock, .. }
            | Self::Lost { lock, .. }
            | Self::Released { lock, .. }
            | Self::Alert(Alert::Hold { lock, .. } | Alert::Wait { lock, .. } | Alert::Renewal { lock, .. }) => {
                Some(lock)
            }
            Self::Recovered { lock, .. } | Self::Found { lock, .. } => lock.as_ref(),
            Self::Alert(Alert::Recoveries { .. }) | Self::Missed { .. } => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { lock, holder: None } => write!(f, "waiting for {lock}"),
            Self::Waiting { lock, holder: Some(HeldBy { holder, who, .. }) } => {
                write!(f, "waiting for {lock}, held by {holder} on {who}")
            }
            Self::Acquired { lock, token, how, waited } => {
                write!(f, "acquired {lock} (token {token}) {how} after {}", short(*waited))
            }
            Self::RenewedLate { lock, token, late } => {
                write!(f, "renewed {lock} (token {token}) late: {} after it was due", short(*late))
            }
            Self::Uncertain { lock, token, remaining } => {
                write!(f, "uncertain of {lock} (token {token}): {} left", short(*remaining))
            }
            Self::Lost { lock, token, reason } => write!(f, "lost {lock} (token {token}): {reason}"),
            Self::Recovered { lock, strategy, worked, token } => {
                let result = if *worked { "worked" } else { "failed" };
                write!(f, "recovery of {}: {strategy} {result}", Subject(lock))?;
                token.map_or(Ok(()), |token| write!(f, " (token {token})"))
            }
            Self::Released { lock, token, held } => {
                write!(f, "released {lock} (token {token}) after {}", short(*held))
            }
            Self::Alert(alert) => write!(f, "alert: {alert}"),
            Self::Found { lock, check, what } => {
                write!(f, "the check of the {check} of {} found: {what}", Subject(lock))
            }
            Self::Missed { count } => write!(f, "missed {count} events"),
        }
    }
}

struct Subject<'a>(&'a Option<LockName>);

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(lock) => lock.fmt(f),
            None => f.write_str("the client"),
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold { lock, token, held, limit } => {
                let (held, limit) = (short(*held), short(*limit));
                write!(f, "held {lock} (token {token}) for {held}, longer than its alert allows ({limit})")
            }
            Self::Wait { lock, waited, limit } => {
                write!(f, "waited {} for {lock}, longer than its alert allows ({})", short(*waited), short(*limit))
            }
            Self::Renewal { lock, token, late, limit } => {
                let (late, limit) = (short(*late), short(*limit));
                write!(f, "a renewal of {lock} (token {token}) is later than its alert allows: {late} ({limit})")
            }
            Self::Recoveries { count, within } => {
                write!(f, "{count} recoveries within {}, more than the alert allows", short(*within))
            }
        }
    }
}
