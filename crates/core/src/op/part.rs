//! Answers to renewals and heartbeats, and the ways a hold ends: release, downgrade, revoke.

use std::sync::Arc;
use std::time::Duration;

use crate::holder::{HolderId, PublicId, Who};
use crate::time::LeaseTime;
use crate::token::Stamp;

use super::{Claim, Grant, Line, Queued, Verdict};

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewal {
    /// The lease runs anew.
    Renewed {
        /// Stamp of the hold, so that a client can compare.
        stamp: Stamp,
        /// What is left: the full lease.
        remaining: Duration,
        /// Who waits.
        line: Line,
    },
    /// Revoked: not renewed, to be released before it ends. Also said of a hold that has ended, for as long as the record knows that
    /// it was revoked.
    Revoked {
        /// The reason given for the revocation.
        reason: String,
        /// What is left: nothing when it has ended, and then there is nothing to release.
        remaining: Duration,
    },
    /// No such hold: expired, released, replaced, or the record is gone.
    NotHolder,
}

/// How one claim stands, in the answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Still in line.
    Queued(Queued),
    /// Granted; the push may have been lost.
    Granted(Grant),
    /// It held and has ended, and the record knows that it was revoked.
    Revoked {
        /// The reason given for the revocation.
        reason: String,
    },
    /// None of these: it ended, or never arrived.
    Gone,
}

/// Gives up a hold, or a place in the queue, or a pending upgrade, whichever the id has; the next in line is granted in the same step.
///
/// With `not_after` (given when the acquire of this id was not answered) the id is remembered as done until then, even
/// if the record does not know it: a late copy of the acquire is refused. With `again`, that claim is applied in the
/// same step after the hand-off, so it stands behind everybody who waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The claim to end.
    pub id: HolderId,
    /// The not-after of its unanswered acquire.
    pub not_after: Option<LeaseTime>,
    /// A new claim of the same client, queued in the same step.
    pub again: Option<Box<Claim>>,
}

/// The answer to a [`Release`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseReply {
    /// What ended.
    pub parted: Parted,
    /// The verdict on the new claim, if one was named.
    pub again: Option<Verdict>,
}

/// What a release found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parted {
    /// A live hold, now released.
    Hold,
    /// A place in the queue or a pending upgrade, now given up.
    Place,
    /// Nothing: the hold has ended, and the record knows that it was revoked.
    Revoked {
        /// The reason given for the revocation.
        reason: String,
    },
    /// Nothing: already ended, expired, or never arrived.
    Nothing,
}

/// The answer to a downgrade.
///
/// An exclusive hold becomes shared, keeps its id, stamp and lease end, and lets readers at the head in. A shared hold stays as it is (a
/// replay). The id of a pending upgrade withdraws it: the reader it came from goes on as before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Downgraded {
    /// The id holds, shared.
    Shared(Grant),
    /// A pending upgrade was withdrawn; the shared hold it came from goes on.
    Withdrawn,
    /// The hold has ended, and the record knows that it was revoked.
    Revoked {
        /// The reason given for the revocation.
        reason: String,
    },
    /// No such hold.
    NotHolder,
}

/// Asks holders to give up.
///
/// Marks each hold that `target` names and tells its inbox; a marked hold is not renewed and passes on at its release or
/// lease end. With `now` it ends at once, giving up the promise that two never believe they hold. The last
/// [`AUDITED`](crate::ledger::AUDITED) revocations stay in the record for [`Limits::audit`](crate::ledger::Limits) after the last one: people
/// read them there, and whoever comes with the id of a hold that has ended is told that it was revoked, also when the news was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoke {
    /// Which hold.
    pub target: Target,
    /// Words for the holder and for the record.
    pub reason: String,
    /// Who asks, for the record.
    pub by: Arc<Who>,
    /// Whether to end it without waiting for the holder.
    pub now: bool,
}

/// Which hold a revocation names. Naming makes it safe to repeat: it never hits the next holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The hold with this stamp.
    Stamp(Stamp),
    /// The holder with this public id.
    Holder(PublicId),
}

/// The answer to a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// Marked; it ends at the holder's release, or after this long at the latest.
    Asked {
        /// What is left of the lease.
        remaining: Duration,
    },
    /// Ended at once.
    Ended,
    /// Nobody by that name holds.
    NoSuchHolder,
}
