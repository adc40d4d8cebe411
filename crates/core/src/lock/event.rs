//! What the machine tells the driver: outcomes that are ready, losses, findings, recoveries, alerts.

use std::time::Duration;

use crate::holder::HolderId;
use crate::time::Moment;
use crate::token::Token;

use super::{Grip, LossReason, Recovery, Slip};

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
