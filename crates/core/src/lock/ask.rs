//! What the driver puts into the machine, and what comes of it: asks, slips, outcomes.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::lease::{Drift, Lease};
use crate::mode::Mode;
use crate::op::{Blocker, Patience, Refusal};
use crate::renewal::Terms;
use crate::store::StoreError;
use crate::time::Moment;
use crate::token::Token;

use super::LossReason;

/// What all machines of one client share.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Margin between the client's clock and the store's.
    pub drift: Drift,
    /// How long a grant from the queue lasts before it is confirmed; half the lease if that is shorter.
    pub window: Duration,
    /// How many local hand-offs may pass a known remote waiter.
    pub max_passes: u32,
    /// For how long local hand-offs may pass a known remote waiter; for half of it, those who came after it was known.
    pub max_passing: Duration,
    /// Pause between tries at a store that fails.
    pub backoff: Backoff,
    /// When a store that cannot be reached becomes an error.
    pub unavailable_after: Duration,
    /// How long a request may stay unanswered; also how long a claim stays valid on its way.
    pub response: Duration,
}

impl Settings {
    /// How long a grant from the queue lasts with that lease.
    pub(super) fn window_of(&self, lease: Lease) -> Duration {
        self.window.min(lease.length() / 2)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            drift: Drift::default(),
            window: Duration::from_secs(2),
            max_passes: 64,
            max_passing: Duration::from_millis(10),
            backoff: Backoff::default(),
            unavailable_after: Duration::from_secs(10),
            response: Duration::from_secs(2),
        }
    }
}

/// Who asks, here in this process; the store never sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(NonZeroU64);

impl OwnerId {
    /// The owner of that number, for every number but the last there is.
    ///
    /// ```
    /// use bandog_core::lock::OwnerId;
    /// assert_ne!(OwnerId::new(0), OwnerId::new(1));
    /// assert_eq!(size_of::<Option<OwnerId>>(), 8, "nobody takes no room");
    /// ```
    pub fn new(number: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(number))
    }
}

/// A wish for the lock.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What to hold.
    pub mode: Mode,
    /// Whether to stand in the store's queue in person instead of with the cohort.
    pub fair: bool,
    /// Whether to wait at all.
    pub patience: Patience,
    /// Since when it is waited for.
    pub since: Moment,
    /// When to stop waiting; [`Moment::FAR`] for never.
    pub until: Moment,
    /// Whose wish it is, if re-entry or self-deadlock is to be noticed.
    pub owner: Option<OwnerId>,
    /// Whether the owner may enter again.
    pub reentrant: bool,
    /// How long the lease is and how it is kept.
    pub terms: Terms,
    /// What the watchdog watches besides the lease, if anything: shared, since every waiter carries this.
    pub vigil: Option<Arc<Vigil>>,
    /// What to do when the hold is lost.
    pub recovery: Recovery,
}

/// What is too long for one lock. Most have no limit at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vigil {
    /// Held longer than this, it is lost.
    pub max_hold: Option<Duration>,
    /// Without a [sign of progress](super::Machine::handle_progress) for longer than this, it is lost.
    pub progress: Option<Duration>,
    /// Held longer than this is worth an alert.
    pub alert_hold: Option<Duration>,
    /// Waited for longer than this is worth an alert.
    pub alert_wait: Option<Duration>,
    /// A renewal that comes so much later than its moment is worth an alert.
    pub alert_renewal: Option<Duration>,
}

/// What to do when a hold is lost, besides telling its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Recovery {
    /// Nothing: the store hears of it when the guard is released, or by the lease end.
    #[default]
    Notify,
    /// Release it in the store at once, so that others need not wait for the guard or the lease end.
    Release,
    /// Take it again, under a new and higher token, if the store proves that nobody had it in between.
    Reacquire,
}

impl Vigil {
    /// Ready to be asked with; `None` if there is nothing to watch.
    pub fn shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }
}

impl Ask {
    /// The length of the lease.
    pub fn lease(&self) -> Lease {
        self.terms.lease()
    }
}

/// A claim check for something that is under way; [`Machine::pick`](super::Machine::pick) exchanges it for the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slip {
    pub(super) index: u32,
    // Indices are used again: an answer for a slip that was given up must not reach whoever has its index now.
    pub(super) serial: u64,
}

impl Slip {
    /// A small number, unique among the slips that are out.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// A guard's grip on a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grip(pub(super) u64);

/// How something ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The lock is held.
    Granted {
        /// For releasing and looking.
        grip: Grip,
        /// The fencing token of this hold.
        token: Token,
        /// By which way it came.
        how: How,
    },
    /// A release, renewal or downgrade is through.
    Done,
    /// It did not work. In a box: every waiter has room for an outcome, and few for such a long one.
    Failed(Box<Why>),
}

impl From<Why> for Outcome {
    fn from(why: Why) -> Self {
        Self::Failed(Box::new(why))
    }
}

/// By which way a lock came to whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum How {
    /// The store granted the claim in its first answer.
    AtOnce,
    /// Passed on inside this process, without the store.
    Local,
    /// From the store's queue: by a push or a heartbeat's answer.
    HandOff,
    /// Its owner held it already.
    Reentry,
}

impl How {
    /// All [words](Self::as_str), in the order of the variants.
    pub const WORDS: &'static [&'static str] = &["at_once", "local", "hand_off", "reentry"];

    /// Its stable word.
    ///
    /// ```
    /// assert_eq!(bandog_core::lock::How::HandOff.as_str(), "hand_off");
    /// ```
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self.place()]
    }

    /// Its place among the [words](Self::WORDS).
    pub fn place(self) -> usize {
        match self {
            Self::AtOnce => 0,
            Self::Local => 1,
            Self::HandOff => 2,
            Self::Reentry => 3,
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtOnce => "at once",
            Self::Local => "locally",
            Self::HandOff => "by hand-off",
            Self::Reentry => "by re-entry",
        })
    }
}

/// Why something did not work.
#[derive(Debug, Clone)]
pub enum Why {
    /// The wait is over.
    Timeout(Option<Blocker>),
    /// Held by another, and the ask did not want to wait.
    Busy(Option<Blocker>),
    /// The same owner holds the lock and would wait for itself.
    WouldDeadlock,
    /// Re-entered 255 times already.
    TooDeep,
    /// The store says it cannot be.
    Refused(Refusal),
    /// The store cannot be reached, or fails in a way that does not pass.
    Store(StoreError),
    /// The hold is gone.
    Lost(LossReason),
    /// The client is shut down.
    Closed,
}

/// How a hold stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldState {
    /// Held at least until then.
    Held {
        /// Client time.
        until: Moment,
    },
    /// Held until then, but a renewal is overdue.
    Uncertain {
        /// Client time.
        until: Moment,
    },
    /// Not held.
    Lost(LossReason),
}
