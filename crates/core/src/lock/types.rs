//! What goes into the machine and what comes out of it: asks, outcomes, requests, events.
//!
//! | group | types |
//! |---|---|
//! | settings | [`Settings`] |
//! | what is asked | [`Ask`], [`OwnerId`], [`Vigil`], [`Recovery`] |
//! | names for what is under way | [`Slip`], [`Grip`] |
//! | what comes of it | [`Outcome`], [`How`], [`Why`], [`Released`], [`HoldState`], [`LossReason`], [`Tally`] |
//! | requests to the store | [`Action`], [`Errand`], [`Lane`] |
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

// ---- What is asked ----

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

impl Ask {
    /// The length of the lease.
    pub fn lease(&self) -> Lease {
        self.terms.lease()
    }
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

impl Vigil {
    /// Ready to be asked with; `None` if there is nothing to watch.
    pub fn shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }
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

// ---- Names for what is under way ----

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

// ---- What comes of it ----

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

/// How a release went, as far as can be told at once.
#[derive(Debug)]
pub enum Released {
    /// It is over.
    Now(Result<(), Why>),
    /// The store was asked; the slip has the answer.
    Later(Slip),
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

/// One machine in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Live holds.
    pub holds: usize,
    /// Those among them that are in doubt.
    pub uncertain: usize,
    /// Whoever waits here.
    pub waiters: usize,
}

// ---- Requests to the store ----

/// What the driver must send to the store.
#[derive(Debug, Clone)]
pub struct Action {
    /// To be handed back with the answer.
    pub errand: Errand,
    /// The request.
    pub op: Op,
    /// Which connection.
    pub lane: Lane,
}

/// Which of a client's connections a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The one in the caller's runtime.
    Claims,
    /// The same, written before the caller goes on: it is not known to let others run soon.
    AtOnce,
    /// The renewal thread's own: ordered, and alive when the caller's runtime is gone.
    Renewals,
}

/// What a request was for.
#[derive(Debug, Clone)]
pub enum Errand {
    /// A claim or an upgrade.
    Claim {
        /// Its sequence number.
        seq: u64,
        /// Whether it is one of those of which only so many are under way at once.
        counts: bool,
    },
    /// The confirmation of a claim before it is believed.
    Confirm {
        /// The claim.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
    /// A renewal.
    Renew {
        /// Which hold.
        grip: Grip,
        /// The hold's id when it was sent.
        seq: u64,
        /// Time before the send.
        sent: Moment,
        /// Whoever waits for it.
        slip: Option<Slip>,
        /// It is worth most then, and may be kept until then; whoever keeps it asks [`Machine::handle_due`](super::Machine::handle_due).
        due: Moment,
    },
    /// A heartbeat for these claims.
    Heartbeat {
        /// Sequence numbers, in the order of the request.
        seqs: Vec<u64>,
        /// Time before the send.
        sent: Moment,
    },
    /// A look at the record of a hold, which changes nothing.
    Look {
        /// Which hold.
        grip: Grip,
        /// The hold's id when it was sent.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
    /// A release.
    Part {
        /// Key of the parting.
        key: usize,
    },
    /// A downgrade of a hold.
    Downgrade {
        /// Which hold.
        grip: Grip,
        /// The hold's id when it was sent.
        seq: u64,
        /// Whoever waits for it.
        slip: Slip,
    },
    /// The withdrawal of an upgrade whose wait is over.
    Withdraw {
        /// The upgrade's claim.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
}

impl Errand {
    /// Whether this is the kind of answer that its request asks for.
    pub(super) fn is_answered_by(&self, body: &Body) -> bool {
        match self {
            Self::Claim { .. } => matches!(body, Body::Verdict(_)),
            Self::Confirm { .. } | Self::Renew { .. } => matches!(body, Body::Renewal(_)),
            Self::Heartbeat { .. } | Self::Look { .. } => matches!(body, Body::Standings(_)),
            Self::Part { .. } => matches!(body, Body::Release(_)),
            Self::Downgrade { .. } | Self::Withdraw { .. } => matches!(body, Body::Downgraded(_)),
        }
    }
}

// ---- Events ----

/// What the driver must tell somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The slip's outcome is ready.
    Ready(Slip),
    /// A hold was lost.
    Lost(Box<Lost>),
    /// A renewal was confirmed, and was not the first confirmation of a grant.
    Renewed {
        /// Of which hold.
        grip: Grip,
        /// How long after it was due, if that was too long.
        late: Option<Duration>,
    },
    /// An attempt to renew failed, had no answer, or found no hold.
    RenewalFailed(Grip),
    /// A hold became doubtful.
    Uncertain {
        /// Which one.
        grip: Grip,
        /// Its deadline.
        until: Moment,
    },
    /// Something is wrong with a hold.
    Found {
        /// Which hold.
        grip: Grip,
        /// Its token.
        token: Token,
        /// What.
        finding: Finding,
    },
    /// What came of a recovery. The token is that of the hold, new if it was taken again.
    Recovered {
        /// Which hold.
        grip: Grip,
        /// What was done: [`Recovery`], or `None` for a repair that needs nobody's consent.
        strategy: Option<Recovery>,
        /// Whether it worked.
        worked: bool,
        /// Its token now.
        token: Token,
    },
    /// A hold is held for longer than its alert allows.
    HeldLong {
        /// The token of the hold.
        token: Token,
        /// For how long.
        held: Duration,
        /// What is allowed.
        limit: Duration,
    },
    /// A renewal is later than its alert allows.
    RenewedLong {
        /// The token of the hold.
        token: Token,
        /// By how much so far.
        late: Duration,
        /// What is allowed.
        limit: Duration,
    },
    /// Somebody waits for longer than its alert allows.
    WaitedLong {
        /// For how long.
        waited: Duration,
        /// What is allowed.
        limit: Duration,
    },
}

/// What the watchdog can find wrong with a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// Its renewal is overdue by so much, or its last attempts failed.
    Renewal {
        /// How long after its moment.
        overdue: Duration,
    },
    /// The record does not name us, or not with our token.
    Record,
    /// The record's lease end is not where it must be: a clock was set, or somebody changed the record.
    LeaseEnd {
        /// What the store says is left.
        remaining: Duration,
        /// What should have been left.
        expected: Duration,
    },
    /// Its holder ended, stands still, or holds on for too long.
    Holder {
        /// Which of them: the word of its [`LossReason`].
        reason: &'static str,
    },
}

/// A hold that was lost. It may be gone by the time this is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Its grip.
    pub grip: Grip,
    /// Its fencing token.
    pub token: Token,
    /// Its id in the store.
    pub id: HolderId,
    /// When it was granted.
    pub since: Moment,
    /// Why.
    pub reason: LossReason,
}
