//! What an operator may see of a record: public ids only, nothing that releases.

use std::sync::Arc;
use std::time::Duration;

use crate::holder::{PublicId, Who};
use crate::mode::{Kind, Mode};
use crate::time::WallTime;
use crate::token::Stamp;

/// One lock as its record shows it now. Expired holders and dead waiters at the head are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordView {
    /// Kind of lock, while somebody holds or waits.
    pub kind: Option<Kind>,
    /// The last stamp minted.
    pub last: Stamp,
    /// Holders, oldest first.
    pub holders: Vec<HolderView>,
    /// Waiters in queue order: all of them, or in a listing the first [`LISTED`](crate::ledger::LISTED).
    pub waiters: Vec<WaiterView>,
    /// How many wait, shown or not.
    pub queue: usize,
    /// The last revocations, oldest first: also of holds that ended long ago.
    pub revocations: Vec<Revocation>,
}

/// One holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderView {
    /// Public id.
    pub id: PublicId,
    /// The process behind it.
    pub who: Arc<Who>,
    /// How it holds.
    pub mode: Mode,
    /// Stamp of the hold.
    pub stamp: Stamp,
    /// When it was granted.
    pub since: WallTime,
    /// What is left of its lease.
    pub remaining: Duration,
    /// Why it was asked to give up, if it was.
    pub revoked: Option<String>,
}

/// One waiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiterView {
    /// Public id.
    pub id: PublicId,
    /// The process behind it.
    pub who: Arc<Who>,
    /// What it waits for.
    pub mode: Mode,
    /// Whether it wants strict order.
    pub fair: bool,
    /// When it queued.
    pub since: WallTime,
}

/// A revocation on record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Revocation {
    /// Whose hold.
    pub holder: PublicId,
    /// The process behind it.
    pub who: Arc<Who>,
    /// Which hold.
    pub stamp: Stamp,
    /// Who asked for it.
    pub by: Arc<Who>,
    /// When.
    pub at: WallTime,
    /// Why.
    pub reason: String,
    /// Whether it was ended at once.
    pub now: bool,
}
