//! What a client asks of a store and what the store answers: the vocabulary of the [ledger](crate::ledger).
//!
//! The docs on these types are the specification in words; the ledger is the specification in code, every store is a
//! port of it, and `tests/model` has an independent third version.
//!
//! # What every operation does first
//! 0. *A clock that stepped back.* A lease end or live-until that is later than its own length from now is cut to that.
//! 1. *Expiry.* A holder whose lease end is not later than now is gone. A waiter whose inbox's live-until is not later
//!    than now is dead, and leaves when it stands at the head of the queue.
//! 2. *Hand-off.* While the head of the queue fits beside the holders it becomes one, in queue order, and its inbox is
//!    pushed [`News::Granted`]. The first head that does not fit stops it: a large request is not passed by a small one.
//! 3. Steps 1 and 2 together remove or grant at most [`Limits::work`](crate::ledger::Limits) entries; if something is
//!    left to do the reply says `more` and the store calls [`Op::Tend`] again. Then the operation itself is applied, and
//!    hand-off runs once more with what is left of the bound. An operation that would need the lock to be settled
//!    (a newcomer's grant) is not granted while there is `more`: it queues, or is told busy.
//!
//! # What fits
//! Exclusive fits when nobody holds. Shared fits beside shared holders, up to `Limits::sharers` of them. Permits fit while the sum
//! stays within the capacity. Nothing fits beside a pending [`Upgrade`] except that upgrade. A newcomer additionally needs an empty
//! queue and no pending upgrade.
//!
//! # One way only
//! An id is queued, then granted, then done. Done ids are remembered until the not-after of their claim when they ended
//! by expiry, death, upgrade, the withdrawal of an upgrade, an immediate revocation, or a `Release` that names one; a
//! claim that arrives for a remembered id is refused as [`Refusal::Done`].

mod claim;
mod part;
mod verdict;
mod view;

pub use claim::{Claim, Heartbeat, Patience, Renew, Upgrade};
pub use part::{Downgraded, Parted, Release, ReleaseReply, Renewal, Revoke, Revoked, Standing, Target};
pub use verdict::{Blocker, Grant, Line, Queued, Refusal, Verdict};
pub use view::{HolderView, RecordView, Revocation, WaiterView};

use crate::holder::InboxId;
use crate::time::{LeaseTime, RunId};
use crate::token::Stamp;

/// One request about one lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Take the lock, or a place in its queue.
    Acquire(Claim),
    /// Start the holder's lease anew.
    Renew(Renew),
    /// Say that a client's waiters are alive, and ask how they stand.
    Heartbeat(Heartbeat),
    /// Give up a hold or a place in the queue.
    Release(Release),
    /// Turn a shared hold into an exclusive one.
    Upgrade(Upgrade),
    /// Turn an exclusive hold into a shared one, or withdraw a pending upgrade.
    Downgrade(crate::holder::HolderId),
    /// Ask a holder to give up.
    Revoke(Revoke),
    /// Look, without changing anything a client could notice.
    Inspect,
    /// Do the bounded clean-up that a reply's `more` left over.
    Tend,
}

/// The answer to an [`Op`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The store's lease clock when it applied the operation.
    pub at: LeaseTime,
    /// The run of the store that applied it.
    pub run: RunId,
    /// Whether clean-up is left over: the store must call [`Op::Tend`].
    pub more: bool,
    /// The answer itself; its variant follows from the operation's.
    pub body: Body,
}

/// What a [`Reply`] says, one variant per operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// To [`Op::Acquire`] and [`Op::Upgrade`].
    Verdict(Verdict),
    /// To [`Op::Renew`].
    Renewal(Renewal),
    /// To [`Op::Heartbeat`]: one standing per id, in the order they were named.
    Standings(Vec<Standing>),
    /// To [`Op::Release`].
    Release(ReleaseReply),
    /// To [`Op::Downgrade`].
    Downgraded(Downgraded),
    /// To [`Op::Revoke`].
    Revoked(Revoked),
    /// To [`Op::Inspect`]: nothing when there is no record.
    Record(Option<RecordView>),
    /// To [`Op::Tend`].
    Tended,
}

impl Body {
    /// How many wait for the lock, where the answer says so; whoever asked is one of them.
    pub fn waiters(&self) -> Option<u32> {
        match self {
            Self::Verdict(verdict) => verdict.waiters(),
            Self::Renewal(Renewal::Renewed { line, .. }) => Some(line.waiters),
            Self::Release(reply) => reply.again.as_ref().and_then(Verdict::waiters),
            Self::Standings(standings) => standings.iter().filter_map(Standing::waiters).max(),
            _ => None,
        }
    }
}

impl Verdict {
    fn waiters(&self) -> Option<u32> {
        match self {
            Self::Granted(grant) => Some(grant.line.waiters),
            Self::Queued(queued) => Some(queued.ahead.saturating_add(1)),
            Self::Busy(_) | Self::Refused(_) => None,
        }
    }
}

impl Standing {
    fn waiters(&self) -> Option<u32> {
        match self {
            Self::Queued(queued) => Some(queued.ahead.saturating_add(1)),
            Self::Granted(grant) => Some(grant.line.waiters),
            Self::Revoked { .. } | Self::Gone => None,
        }
    }
}

/// A message for one client's inbox. It may be lost: heartbeats and renewals tell the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The inbox.
    pub inbox: InboxId,
    /// The message.
    pub news: News,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum News {
    /// A queued claim was granted. It must be confirmed by a renewal within its claim window.
    Granted {
        /// The claim's number; never its secret.
        number: u64,
        /// The stamp of the new hold.
        stamp: Stamp,
        /// Who waited behind it when it had left the queue: before the next grant, and before what the operation itself queues.
        line: Line,
    },
    /// Somebody waits for a lock this client holds: pass it on soon.
    Waiting {
        /// Whether a fair waiter is among them.
        fair: bool,
    },
    /// A hold was revoked. Its holder asks the store before it believes it.
    Revoked {
        /// The claim's number.
        number: u64,
        /// The reason given for the revocation.
        reason: String,
    },
}
