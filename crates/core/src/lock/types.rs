//! What goes into the machine and what comes out of it: asks, outcomes, requests, events.
//!
//! | group | types |
//! |---|---|
//! | settings | [`Settings`] |
//! | what is asked | [`Ask`], [`OwnerId`], [`HoldLimits`], [`Recovery`] |
//! | names for what is under way | [`WaiterId`], [`HoldKey`] |
//! | what comes of it | [`WaitOutcome`], [`How`], [`Failure`], [`Released`], [`HoldState`], [`LossReason`], [`Tally`] |
//! | requests to the store | [`Action`], [`RequestContext`], [`ConnectionKind`] |
//! | events | [`Event`], [`Finding`], [`Lost`] |

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::holder::HolderId;
use crate::lease::{Drift, Lease};
use crate::mode::Mode;
use crate::op::{Blocker, Body, Op, Patience, Refusal};
use crate::renewal::Terms;
use crate::store::StoreError;
use crate::text::Harmless;
use crate::time::Moment;
use crate::token::Token;

// ---- Settings ----

/// What all machines of one client have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Margin between the client's clock and the store's.
    pub drift: Drift,
    /// How long a grant from the queue lasts before it is confirmed; half the lease if that is shorter.
    pub window: Duration,
    /// How many local passes may overtake a waiter of another process that is known.
    pub max_passes: u32,
    /// For how long local passes may overtake a waiter of another process. Waiters that came after it was known may only for half as long.
    pub max_passing: Duration,
    /// Pauses between tries at a store that fails.
    pub backoff: Backoff,
    /// How long a store may fail before its waiters get an error.
    pub unavailable_after: Duration,
    /// How long a request may stay unanswered. Also how long a claim is valid after it was sent.
    pub response: Duration,
}

impl Settings {
    /// The claim window for that lease: how long a grant from the queue lasts until it is confirmed.
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

// ---- What is asked ----

/// Who asks, inside this process. The store never sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(NonZeroU64);

impl OwnerId {
    /// The owner with that number. Every number but the largest names a different one.
    ///
    /// ```
    /// use bandog_core::lock::OwnerId;
    /// assert_ne!(OwnerId::new(0), OwnerId::new(1));
    /// assert_eq!(size_of::<Option<OwnerId>>(), 8, "no owner takes no extra room");
    /// ```
    pub fn new(number: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(number))
    }
}

/// A request for the lock by one waiter.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What to hold.
    pub mode: Mode,
    /// Whether to queue in the store with a claim of its own instead of with the local line.
    pub fair: bool,
    /// Whether to wait at all.
    pub patience: Patience,
    /// When the wait began.
    pub since: Moment,
    /// When the wait ends; [`Moment::FAR`] for never.
    pub until: Moment,
    /// Who asks, if re-entry or a deadlock with itself is to be noticed.
    pub owner: Option<OwnerId>,
    /// Whether the owner may enter again.
    pub reentrant: bool,
    /// How long the lease is and how it is renewed.
    pub terms: Terms,
    /// What the watchdog watches besides the lease, if anything. Shared, since every waiter carries one.
    pub limits: Option<Arc<HoldLimits>>,
    /// What to do when the hold is lost.
    pub recovery: Recovery,
}

impl Ask {
    /// The length of the lease.
    pub fn lease(&self) -> Lease {
        self.terms.lease()
    }
}

/// How long a hold, a wait or a renewal may take. Most locks have no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HoldLimits {
    /// A hold that lasts longer is lost.
    pub max_hold: Option<Duration>,
    /// A hold without a [sign of progress](super::Machine::handle_progress) for longer is lost.
    pub progress: Option<Duration>,
    /// A hold that lasts longer raises an alert.
    pub alert_hold: Option<Duration>,
    /// A wait that takes longer raises an alert.
    pub alert_wait: Option<Duration>,
    /// A renewal that is later than planned by more raises an alert.
    pub alert_renewal: Option<Duration>,
}

impl HoldLimits {
    /// Shared, for an [`Ask`]; `None` if there is no limit.
    pub fn shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }
}

/// What to do when a hold is lost, besides telling its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Recovery {
    /// Nothing: the store releases it when the guard is released or the lease ends.
    #[default]
    Notify,
    /// Release it in the store at once, so that others need not wait for the guard or the lease end.
    Release,
    /// Take it again under a new, higher token, if the store proves that nobody held it in between.
    Reacquire,
}

// ---- Names for what is under way ----

/// Names somebody who waits for an outcome: of an acquire, a release, a renewal or a change of mode.
/// [`Machine::take_outcome`](super::Machine::take_outcome) exchanges it for the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaiterId {
    pub(super) index: u32,
    // Indices are reused: an answer for a cancelled waiter must not reach the waiter that has its index now.
    pub(super) serial: u64,
}

impl WaiterId {
    /// A small number, unique among the present waiters.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// Names a hold, for its guard. Once the hold is gone it names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldKey(pub(super) u64);

// ---- What comes of it ----

/// What a waiter gets.
#[derive(Debug, Clone)]
pub enum WaitOutcome {
    /// The lock is held.
    Granted {
        /// The hold.
        hold_key: HoldKey,
        /// Its fencing token.
        token: Token,
        /// How the lock came.
        how: How,
    },
    /// A release, renewal, upgrade or downgrade succeeded.
    Done,
    /// It failed. Boxed: every waiter has room for an outcome, and failures are large and rare.
    Failed(Box<Failure>),
}

impl From<Failure> for WaitOutcome {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

/// How a lock came to its waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum How {
    /// The store granted the claim in its first answer.
    AtOnce,
    /// Passed on inside this process, without the store.
    Local,
    /// From the queue in the store: by a push or by the answer to a heartbeat.
    HandOff,
    /// Its owner already held it.
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

/// Why something failed.
#[derive(Debug, Clone)]
pub enum Failure {
    /// The wait is over.
    Timeout(Option<Blocker>),
    /// Somebody else holds it, and the ask did not want to wait.
    Busy(Option<Blocker>),
    /// Its owner holds the lock and would wait for itself.
    WouldDeadlock,
    /// Re-entered 255 times already.
    TooDeep,
    /// The store refuses it.
    Refused(Refusal),
    /// The store cannot be reached, or fails in a way that trying again cannot help.
    Store(StoreError),
    /// The hold is gone.
    Lost(LossReason),
    /// The client is shut down.
    Closed,
}

/// How a release went, as far as is known at once.
#[derive(Debug)]
pub enum Released {
    /// It is over.
    Now(Result<(), Failure>),
    /// The store was asked; this waiter gets the answer.
    Later(WaiterId),
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
    /// It was revoked, for this reason.
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
    /// Its holder gave no sign of progress for too long.
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

/// The holds and waiters of one machine, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Live holds.
    pub holds: usize,
    /// Live holds that are uncertain.
    pub uncertain: usize,
    /// Waiters for the lock.
    pub waiters: usize,
}

// ---- Requests to the store ----

/// What the driver must send to the store.
#[derive(Debug, Clone)]
pub struct Action {
    /// What it is for; handed back with the answer.
    pub context: RequestContext,
    /// The request.
    pub op: Op,
    /// The connection to use.
    pub connection: ConnectionKind,
}

/// Which of a client's connections a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionKind {
    /// The one in the runtime of the caller.
    Claims,
    /// The renewal thread's own: ordered, and alive when the caller's runtime has ended.
    Renewals,
}

/// What a request is for. It comes back with the answer.
#[derive(Debug, Clone)]
pub enum RequestContext {
    /// A claim or an upgrade.
    Claim {
        /// Its sequence number.
        seq: u64,
        /// Whether it counts towards the in-flight limit.
        counts: bool,
    },
    /// The confirmation of a granted claim before it becomes a hold.
    Confirm {
        /// The claim.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
    /// A renewal.
    Renew {
        /// Which hold.
        hold_key: HoldKey,
        /// The hold's id when it was sent.
        seq: u64,
        /// Time before the send.
        sent: Moment,
        /// Whoever waits for it.
        waiter: Option<WaiterId>,
        /// When it should be sent. Until then it may be kept; before it is sent, [`Machine::handle_due`](super::Machine::handle_due) says
        /// whether it is still wanted.
        due: Moment,
    },
    /// A heartbeat for queued claims.
    Heartbeat {
        /// Sequence numbers, in the order of the request.
        seqs: Vec<u64>,
        /// Time before the send.
        sent: Moment,
    },
    /// A check of the record of a hold. It changes nothing.
    Check {
        /// Which hold.
        hold_key: HoldKey,
        /// The hold's id when it was sent.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
    /// A release.
    Release {
        /// Which pending release.
        key: usize,
    },
    /// A downgrade of a hold.
    Downgrade {
        /// Which hold.
        hold_key: HoldKey,
        /// The hold's id when it was sent.
        seq: u64,
        /// Whoever waits for it.
        waiter: WaiterId,
    },
    /// The withdrawal of an upgrade that is given up.
    Withdraw {
        /// The upgrade's claim.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
}

impl RequestContext {
    /// Whether this kind of answer fits the request.
    pub(super) fn is_answered_by(&self, body: &Body) -> bool {
        match self {
            Self::Claim { .. } => matches!(body, Body::Verdict(_)),
            Self::Confirm { .. } | Self::Renew { .. } => matches!(body, Body::Renewal(_)),
            Self::Heartbeat { .. } | Self::Check { .. } => matches!(body, Body::Standings(_)),
            Self::Release { .. } => matches!(body, Body::Release(_)),
            Self::Downgrade { .. } | Self::Withdraw { .. } => matches!(body, Body::Downgraded(_)),
        }
    }
}

// ---- Events ----

/// What the driver must tell somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The waiter's outcome is ready.
    Ready(WaiterId),
    /// A hold was lost.
    Lost(Box<Lost>),
    /// A renewal was confirmed, and was not the first confirmation of a grant.
    Renewed {
        /// Of which hold.
        hold_key: HoldKey,
        /// How late it was, if that was too late.
        late: Option<Duration>,
    },
    /// A renewal failed, was not answered, or found no hold.
    RenewalFailed(HoldKey),
    /// A hold became uncertain.
    Uncertain {
        /// Which one.
        hold_key: HoldKey,
        /// Its deadline.
        until: Moment,
    },
    /// The watchdog found something wrong with a hold.
    Found {
        /// Which hold.
        hold_key: HoldKey,
        /// Its token.
        token: Token,
        /// What.
        finding: Finding,
    },
    /// The result of a recovery.
    Recovered {
        /// Which hold.
        hold_key: HoldKey,
        /// What was done: [`Recovery`], or `None` for a repair that needs nobody's consent.
        strategy: Option<Recovery>,
        /// Whether it worked.
        worked: bool,
        /// The token of the hold now: a new one if it was taken again.
        token: Token,
    },
    /// A hold lasts longer than its alert allows.
    HeldLong {
        /// The token of the hold.
        token: Token,
        /// For how long.
        held: Duration,
        /// The limit.
        limit: Duration,
    },
    /// A renewal is later than its alert allows.
    RenewedLong {
        /// The token of the hold.
        token: Token,
        /// How late it is so far.
        late: Duration,
        /// The limit.
        limit: Duration,
    },
    /// A wait takes longer than its alert allows.
    WaitedLong {
        /// For how long.
        waited: Duration,
        /// The limit.
        limit: Duration,
    },
}

/// What the watchdog can find wrong with a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// Its renewal is overdue, or the last attempts failed.
    Renewal {
        /// How late it is.
        overdue: Duration,
    },
    /// The record does not name this hold, or names it with another token.
    Record,
    /// The lease end in the record is wrong: a clock was set, or somebody changed the record.
    LeaseEnd {
        /// What the store says is left.
        remaining: Duration,
        /// What should have been left.
        expected: Duration,
    },
    /// Its holder ended, stands still, or holds on for too long.
    Holder {
        /// Which of these: the word of its [`LossReason`].
        reason: &'static str,
    },
}

/// A hold that was lost. It may be gone by the time this is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Its key.
    pub hold_key: HoldKey,
    /// Its fencing token.
    pub token: Token,
    /// Its id in the store.
    pub id: HolderId,
    /// When it was granted.
    pub since: Moment,
    /// Why.
    pub reason: LossReason,
}
