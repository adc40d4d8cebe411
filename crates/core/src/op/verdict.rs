//! The store's answer to a claim.

use std::sync::Arc;
use std::time::Duration;

use crate::holder::{PublicId, Who};
use crate::mode::Kind;
use crate::text::Length;
use crate::time::LeaseTime;
use crate::token::Stamp;

/// How a claim stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The lock is ours.
    Granted(Grant),
    /// In line for it.
    Queued(Queued),
    /// Held or promised to a waiter, and the claim did not want to wait. Names the holder, or the next in line.
    Busy(Option<Blocker>),
    /// Not possible.
    Refused(Refusal),
}

/// Proof of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The store's half of the fencing token.
    pub stamp: Stamp,
    /// What is left of the lease.
    pub remaining: Duration,
    /// Who waits behind it.
    pub line: Line,
}

/// The queue in one glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Line {
    /// How many wait; a pending upgrade counts as one.
    pub waiters: u32,
    /// Whether a fair waiter is among them.
    pub fair: bool,
}

/// A place in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// The record's last stamp: a pushed grant that is not higher is stale.
    pub last: Stamp,
    /// How many stand in front at most; a pending upgrade of another counts as one. It is the distance from the head's place in the
    /// order of arrival, or the number of other waiters if that is less: exact for the first and the last, and too high by those who
    /// left from in between.
    pub ahead: u32,
    /// The holder that ends last, if anybody holds.
    pub blocker: Option<Blocker>,
}

/// Who stands in the way, for error messages and for knowing when to ask again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The holder's public id.
    pub holder: PublicId,
    /// The process behind it.
    pub who: Arc<Who>,
    /// What is left of its lease.
    pub remaining: Duration,
}

/// Why a claim cannot be served at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The claim arrived after its not-after; the store's clock is given.
    #[error("the request arrived too late (the store's clock says {now:?})")]
    Late {
        /// The store's clock.
        now: LeaseTime,
    },
    /// The claim's id has already ended.
    #[error("the request was already finished")]
    Done,
    /// The name is in use by another kind of lock.
    #[error("it is in use as a {actual}, not as a {asked}; use one kind and capacity per name")]
    WrongKind {
        /// What the claim asked for.
        asked: Kind,
        /// What the record is.
        actual: Kind,
    },
    /// The record's last stamp is not the one that the claim was to follow.
    #[error("{}", overtaken(*last))]
    Overtaken {
        /// The last stamp, or zero when there is no record.
        last: Stamp,
    },
    /// The queue is at its bound.
    #[error("its queue is full ({limit} waiters)")]
    QueueFull {
        /// The bound.
        limit: u32,
    },
    /// The lease is longer than this store allows.
    #[error("the lease is longer than this store allows ({})", Length(*max))]
    LeaseTooLong {
        /// The store's maximum.
        max: Duration,
    },
    /// The hold to upgrade is not there.
    #[error("the read hold to upgrade has ended")]
    NotHolder,
    /// The hold to upgrade, or to follow, was revoked; it may have ended.
    #[error("the hold that it was to upgrade or to follow was revoked: {reason}")]
    Revoked {
        /// The words of whoever revoked it.
        reason: String,
    },
    /// Another reader is waiting to upgrade; both would wait for each other.
    #[error(
        "another reader is already waiting to upgrade, and both would wait for each other; release and take the write lock"
    )]
    UpgradePending,
}

fn overtaken(last: Stamp) -> &'static str {
    if last == Stamp::ZERO {
        "it was to follow a hold of which the store has no record any more: others may have held the lock since"
    } else {
        "it was to follow a hold that is not the last one on record: others have held the lock since"
    }
}
