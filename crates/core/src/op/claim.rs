//! Requests that enter the record or keep an entry alive: claim, renewal, heartbeat, upgrade.

use std::sync::Arc;
use std::time::Duration;

use crate::holder::{HolderId, InboxId, Who};
use crate::lease::Lease;
use crate::mode::Mode;
use crate::time::LeaseTime;
use crate::token::Stamp;

/// A request for the lock.
///
/// *Granted at once* when the mode fits, the queue is empty and no upgrade is pending: the holder's lease end is now plus the
/// lease, and the stamp is `max(last + 1, wall clock, ballot)`. *Otherwise* it takes the last place in the queue
/// ([`Patience::Queue`]) or is told [`Verdict::Busy`](super::Verdict::Busy) ([`Patience::Try`]).
///
/// A resend is answered by what the id is now: a holder gets the same grant again with what remains of its lease, a
/// waiter its place (and its inbox's live-until is refreshed as if by a heartbeat), a done id [`Refusal::Done`](super::Refusal::Done).
///
/// The checks, in this order: known id (replay) · done id · late (`not_after` < now) · lease over the store's maximum · wrong
/// kind (only while somebody holds or waits) · overtaken (`after` is not the last stamp) ·
/// revoked (`after` is on record as revoked) · grant · busy · queue full.
///
/// When the queue was empty before, every holder's inbox (each once) is told [`News::Waiting`](super::News::Waiting); also when this claim is
/// the first fair one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Claim {
    /// Fresh for every claim.
    pub id: HolderId,
    /// The inbox to which the grant is pushed.
    pub inbox: InboxId,
    /// For people to read.
    pub who: Arc<Who>,
    /// What to hold.
    pub mode: Mode,
    /// How long a grant lasts without renewal.
    pub lease: Lease,
    /// How long a grant from the queue lasts until it is confirmed; live-until is twice that. Never above the lease.
    pub window: Duration,
    /// Whether this waiter wants strict order among processes: it stops local passing elsewhere.
    pub fair: bool,
    /// Whether to queue.
    pub patience: Patience,
    /// The claim refuses itself when the store's clock is past this.
    pub not_after: LeaseTime,
    /// A floor for the stamp, proposed by a quorum.
    pub ballot: Option<Stamp>,
    /// Served only as the successor of this stamp: refused as [`Refusal::Overtaken`](super::Refusal::Overtaken) unless it is the last one of the
    /// record. For a client that takes a lost hold again: nobody was granted the lock in between. A record that is gone proves
    /// nothing: its last stamp counts as zero. Nor does anybody follow a hold that was revoked: that is refused as
    /// [`Refusal::Revoked`](super::Refusal::Revoked), as long as it is on record.
    ///
    /// Judged when the claim arrives, within a [`Release`](super::Release) after its hand-off; not at a resend, and not again for one that queues.
    // So stores need not keep it.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub after: Option<Stamp>,
}

/// What a claim does when the lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Patience {
    /// Takes a place in the queue.
    Queue,
    /// Fails with the name of the holder.
    Try,
}

/// Starts a hold's lease anew: its end becomes now plus `lease`, and `lease` becomes the hold's length.
///
/// Never creates a hold, and never brings one back whose end has passed. A revoked hold is told so and not renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renew {
    /// The hold.
    pub id: HolderId,
    /// Its length from now.
    pub lease: Lease,
    /// When the store last started this hold's lease, as its answer said; [`LeaseTime::ZERO`] if that is not known. With it a store need not
    /// look whether the lease has ended; nothing else follows from it.
    pub started: LeaseTime,
}

impl Renew {
    /// A renewal that does not say when the lease was started.
    pub fn new(id: HolderId, lease: Lease) -> Self {
        Self { id, lease, started: LeaseTime::ZERO }
    }
}

/// Keeps a client's waiters on one lock alive and asks how they stand.
///
/// Sets live-until of (lock, inbox) to now plus `alive`, if the inbox has an entry there; revives a waiter that was dead
/// but not yet removed. Expiry of *other* inboxes' waiters runs first, as for every operation, but not of this inbox's.
/// While somebody waits, every holder's inbox is told [`News::Waiting`](super::News::Waiting) again: the first notice may have been lost.
/// Never queues and never lengthens a lease.
///
/// The id of a hold is answered [`Standing::Granted`](super::Standing::Granted) with the hold's stamp and what remains of its lease, and with
/// [`Standing::Gone`](super::Standing::Gone) once it ended, was replaced, or its record was deleted: a client checks its own holds this way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The client.
    pub inbox: InboxId,
    /// Its claims on this lock.
    pub ids: Vec<HolderId>,
    /// How long the inbox counts as alive.
    pub alive: Duration,
}

/// Turns the shared hold `from` into an exclusive hold with the id of `claim`.
///
/// *At once* when `from` is the only holder: `from` is done, the new hold gets a fresh stamp and the full lease. *Otherwise* the
/// upgrade is pending (or, with [`Patience::Try`], told busy): `from` goes on holding and renewing, nothing else is granted, and when
/// the other holders have gone the hold is exchanged, with what is left of its lease, at least the claim window, and a push to its
/// inbox: a reader that does not hear of the exchange goes on believing in its lease.
/// It is the one request that passes the queue. If `from` ends or is revoked, or its client's live-until passes, the pending upgrade is gone.
///
/// Refused: [`Refusal::NotHolder`](super::Refusal::NotHolder) when `from` holds nothing or not shared, [`Refusal::Revoked`](super::Refusal::Revoked) when it is revoked, [`Refusal::UpgradePending`](super::Refusal::UpgradePending) when another
/// upgrade is pending. Replays are answered as for a claim; told busy, or that another is pending, it is done: the reader goes on, and a late
/// copy must not take its hold away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// The shared hold.
    pub from: HolderId,
    /// The exclusive hold to become; its mode is exclusive.
    pub claim: Claim,
}
