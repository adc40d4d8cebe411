//! A third telling of the specification: the words on [`bandog_core::op`] turned into vectors and linear scans.
//!
//! It knows the operations and the values they carry, and nothing of the ledger. It has no bound on the work per
//! operation, so it never says `more`. Where it and the ledger disagree, one of them, or the words, is wrong.

mod claim;
mod keep;
mod part;
mod settle;
mod view;

use std::time::Duration;

use bandog_core::holder::{HolderId, InboxId};
use bandog_core::mode::Mode;
use bandog_core::op::{Body, Claim, Effect, News, Op, Reply, Revocation};
use bandog_core::time::{LeaseTime, Now, WallTime};
use bandog_core::token::Stamp;

/// What the model needs to know of a store's limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) waiters: u32,
    pub(crate) sharers: u32,
    pub(crate) max_lease: Duration,
    pub(crate) audit: Duration,
}

/// One lock's record, told naively.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Naive {
    holds: Vec<Hold>,
    upgrade: Option<Pending>,
    queue: Vec<Waiter>,
    /// How many ever took a place in the queue.
    arrived: u32,
    live: Vec<Live>,
    done: Vec<(HolderId, LeaseTime)>,
    last: Stamp,
    /// Whether it has expired: then its last stamp proves nothing.
    expired: bool,
    /// Every revocation, with the time until which all are kept if it is the last.
    audit: Vec<(Revocation, LeaseTime)>,
}

/// Somebody who holds.
#[derive(Debug, Clone, PartialEq)]
struct Hold {
    claim: Claim,
    /// How it holds now: a downgrade changes it.
    mode: Mode,
    stamp: Stamp,
    since: WallTime,
    end: LeaseTime,
    length: Duration,
    revoked: Option<String>,
}

/// Somebody who waits.
#[derive(Debug, Clone, PartialEq)]
struct Waiter {
    claim: Claim,
    since: WallTime,
    /// How many took a place before.
    place: u32,
}

/// Until when an inbox's waiters count as alive.
#[derive(Debug, Clone, PartialEq)]
struct Live {
    inbox: InboxId,
    until: LeaseTime,
    length: Duration,
}

/// A reader that waits to be alone.
#[derive(Debug, Clone, PartialEq)]
struct Pending {
    from: HolderId,
    waiter: Waiter,
}

/// The application of one operation.
struct Turn<'a> {
    record: &'a mut Naive,
    bounds: Bounds,
    now: Now,
    effects: Vec<Effect>,
    /// Whether holders are to be told that somebody waits.
    tell: bool,
}

impl Naive {
    /// Applies one operation: what every operation does first, the operation, hand-off once more, notices.
    pub(crate) fn apply(&mut self, bounds: Bounds, now: Now, op: &Op) -> (Reply, Vec<Effect>) {
        let mut turn = Turn { record: self, bounds, now, effects: Vec::new(), tell: false };
        let body = turn.run(op);
        turn.tell_holders();
        let effects = turn.effects;
        self.expired = false;
        (Reply { at: now.lease, run: now.run, more: false, body }, effects)
    }

    /// The record has expired. Until the store deletes it, it answers as none would, but for its stamp.
    pub(crate) fn forget(&mut self) {
        *self = Self { last: self.last, expired: true, ..Self::default() };
    }
}

impl Turn<'_> {
    fn run(&mut self, op: &Op) -> Body {
        self.cut();
        if let Op::Heartbeat(beat) = op {
            self.revive(beat);
        }
        self.settle();
        match op {
            Op::Acquire(claim) => Body::Verdict(self.acquire(claim)),
            Op::Upgrade(upgrade) => Body::Verdict(self.upgrade(upgrade)),
            Op::Renew(renew) => Body::Renewal(self.renew(renew)),
            Op::Heartbeat(beat) => Body::Standings(self.standings(beat)),
            Op::Release(release) => Body::Release(self.release(release)),
            Op::Downgrade(id) => Body::Downgraded(self.downgrade(*id)),
            Op::Revoke(revoke) => Body::Revoked(self.revoke(revoke)),
            Op::Inspect => Body::Record(self.inspect()),
            Op::Tend => Body::Tended,
        }
    }

    fn push(&mut self, inbox: InboxId, news: News) {
        self.effects.push(Effect { inbox, news });
    }

    /// Tells every holder's inbox, each once, that somebody waits, if that is still so.
    fn tell_holders(&mut self) {
        let line = self.line();
        if !self.tell || line.waiters == 0 {
            return;
        }
        let mut inboxes: Vec<InboxId> = self.record.holds.iter().map(|hold| hold.claim.inbox).collect();
        inboxes.sort();
        inboxes.dedup();
        for inbox in inboxes {
            self.push(inbox, News::Waiting { fair: line.fair });
        }
    }
}
