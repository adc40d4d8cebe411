//! The specification: one lock's record and the pure function that every store ports.
//!
//! Stores call [`Record::apply`] under whatever makes it atomic for them: the memory store a mutex, SQLite a transaction;
//! the Redis scripts are the same rules again. The rules in words stand at [`crate::op`].
//!
//! # Invariants
//! - Live permits never exceed the capacity; an exclusive hold is alone.
//! - Stamps grow with every grant, also over expiry and over the deletion of the record at [`Record::expires`].
//! - An id goes queued, granted, done, and never back.
//! - After every apply a fitting live head holds, or the reply says `more`.
//! - One apply touches at most [`Limits::work`] entries beyond the one it names, and replies with bounded effects.

mod audit;
mod beat;
mod done;
mod enter;
mod holders;
mod keep;
mod part;
mod queue;
mod settle;
#[cfg(feature = "serde")]
mod snapshot;
mod view;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::holder::InboxId;
use crate::lease;
use crate::mode::Kind;
use crate::op::{Body, Effect, Line, News, Op, RecordView, Reply};
use crate::time::{LeaseTime, Now};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use audit::Audit;
use done::Done;
use holders::Holders;
use queue::{Pending, Queue};

pub use audit::AUDITED;
pub use beat::{Beat, Outline, Seats};

/// How many waiters of a lock a listing shows: the first ones are of interest, and reading thousands would block the store.
pub const LISTED: usize = 32;

/// What a store allows. The same for every lock in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Waiters per lock; one more is refused.
    pub waiters: u32,
    /// Shared holders per lock; one more waits.
    pub sharers: u32,
    /// Entries that one apply may expire or grant.
    pub work: u32,
    /// The longest lease. It bounds every wait for an unknown outcome.
    pub max_lease: Duration,
    /// How long a record outlives its last use, so that the last stamp is not forgotten while clocks disagree.
    pub retention: Duration,
    /// How long the last revocations of a lock stay on record after the last of them, whether or not the lock is used. Longer
    /// than any lease: a hold that was revoked is not followed, and the record must know it.
    pub audit: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiters: 10_000,
            sharers: 1024,
            work: 64,
            max_lease: lease::MAX,
            retention: Duration::from_secs(10),
            audit: Duration::from_secs(72 * 60 * 60),
        }
    }
}

/// The record of one lock. [`Record::default`] is that of a lock that was never used.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "snapshot::Record"))]
pub struct Record {
    kind: Option<Kind>,
    last: Stamp,
    holders: Holders,
    queue: Queue,
    upgrade: Option<Pending>,
    done: Done,
    audit: Audit,
    // At least the not-after of every entry: if entries end with the record, late copies of their claims must still be refused.
    not_after: LeaseTime,
    seen: LeaseTime,
    expires: Option<LeaseTime>,
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// For the caller.
    pub reply: Reply,
    /// For inboxes, to be pushed after the record is written.
    pub effects: Vec<Effect>,
}

impl Record {
    /// Applies one operation.
    pub fn apply(&mut self, limits: &Limits, now: Now, op: &Op) -> Applied {
        let mut step = Step::new(limits, now);
        self.forget_expired(now.lease);
        self.step_back(now.lease);
        self.done.forget(now.lease, limits.work);
        self.audit.forget(now.lease);
        if let Op::Heartbeat(beat) = op {
            // Before expiry: a heartbeat revives its own waiters as long as they are still there.
            self.queue.refresh(beat.inbox, now.lease, beat.alive);
        }
        self.expire_named(now, op);
        self.settle(&mut step);
        let body = self.perform(&mut step, op);
        self.settle(&mut step);
        self.notify(&mut step);
        self.close(&step);
        let reply = Reply { at: now.lease, run: now.run, more: step.more, body };
        Applied { reply, effects: step.effects }
    }

    /// Applies one operation and then the rest of the clean-up, as every store must: the reply never says `more`.
    pub fn apply_and_tend(&mut self, limits: &Limits, now: Now, op: &Op) -> Applied {
        let mut applied = self.apply(limits, now, op);
        while applied.reply.more {
            let next = self.apply(limits, now, &Op::Tend);
            applied.reply.more = next.reply.more;
            applied.effects.extend(next.effects);
        }
        applied
    }

    /// The lease time from which the store may delete this record; `None` when there is nothing to delete.
    pub fn expires(&self) -> Option<LeaseTime> {
        self.expires
    }

    /// The lease time of the last operation.
    pub fn seen(&self) -> LeaseTime {
        self.seen
    }

    /// The last stamp minted for this lock; a store that forgets records keeps the highest of them all.
    pub fn last(&self) -> Stamp {
        self.last
    }

    /// The record as listings show it, without any change and with the first [`LISTED`] waiters; `None` when nobody holds or waits.
    pub fn peek(&self, now: Now) -> Option<RecordView> {
        self.view(now, LISTED).filter(|view| !view.holders.is_empty() || !view.waiters.is_empty())
    }

    /// Ends every hold as if its lease had run out now. For tests that want a lease to be over.
    pub fn expire_holders(&mut self, now: Now) {
        let ids: Vec<_> = self.holders.iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.end_hold(now, id));
    }

    /// Whether somebody holds or waits.
    pub fn in_use(&self) -> bool {
        !self.holders.is_empty() || self.somebody_waits()
    }

    fn perform(&mut self, step: &mut Step<'_>, op: &Op) -> Body {
        match op {
            Op::Acquire(claim) => Body::Verdict(self.acquire(step, claim)),
            Op::Upgrade(upgrade) => Body::Verdict(self.upgrade(step, upgrade)),
            Op::Renew(renew) => Body::Renewal(self.renew(step, renew)),
            Op::Heartbeat(beat) => Body::Standings(self.heartbeat(step, beat)),
            Op::Release(release) => Body::Release(self.release(step, release)),
            Op::Downgrade(id) => Body::Downgraded(self.downgrade(step, *id)),
            Op::Revoke(revoke) => Body::Revoked(self.revoke(step, revoke)),
            Op::Inspect => Body::Record(self.view(step.now, usize::MAX)),
            Op::Tend => Body::Tended,
        }
    }

    fn somebody_waits(&self) -> bool {
        self.upgrade.is_some() || !self.queue.is_empty()
    }

    fn line(&self) -> Line {
        Line { waiters: self.queue.len() + u32::from(self.upgrade.is_some()), fair: self.queue.has_fair() }
    }

    fn notify(&self, step: &mut Step<'_>) {
        if !step.notice || !self.somebody_waits() {
            return;
        }
        let inboxes: BTreeSet<InboxId> = self.holders.iter().map(|(_, hold)| hold.inbox).collect();
        let fair = self.queue.has_fair();
        step.effects.extend(inboxes.into_iter().map(|inbox| Effect { inbox, news: News::Waiting { fair } }));
    }

    // Every time in the record that a later operation could still depend on, plus the retention; and the audit for its own time.
    fn close(&mut self, step: &Step<'_>) {
        if !self.in_use() {
            self.kind = None;
            self.not_after = LeaseTime::ZERO;
        }
        let blank = self.last == Stamp::ZERO && self.done.is_empty() && !self.in_use();
        let ahead = self.last.micros().saturating_sub(step.now.wall.micros()).div_ceil(1000);
        let used = [self.holders.last_end(), Some(self.queue.alive_until()), self.done.last(), Some(self.not_after)];
        let latest = used.into_iter().flatten().max().unwrap_or_default();
        let latest = latest.max(step.now.lease + Duration::from_millis(ahead));
        self.expires = (!blank).then(|| (latest + step.limits.retention).max(self.audit.until()));
    }

    // A record that may be deleted answers as if it were, whether or not the store has deleted it; only the stamp continues.
    fn forget_expired(&mut self, now: LeaseTime) {
        if self.expires.is_some_and(|expires| expires <= now) {
            *self = Self { last: self.last, ..Self::default() };
        }
    }

    // A lease clock that stepped back must not lengthen anything: an end later than its own length from now is cut.
    fn step_back(&mut self, now: LeaseTime) {
        if now < self.seen {
            self.holders.clamp(now);
            self.queue.clamp(now);
            self.audit.clamp(now);
        }
        self.seen = now;
    }
}

/// One apply in progress: its clock, what is left of its bound, and what it will push.
struct Step<'a> {
    limits: &'a Limits,
    now: Now,
    budget: u32,
    more: bool,
    notice: bool,
    effects: Vec<Effect>,
}

impl<'a> Step<'a> {
    fn new(limits: &'a Limits, now: Now) -> Self {
        Self { limits, now, budget: limits.work, more: false, notice: false, effects: Vec::new() }
    }

    /// Takes one unit of work, or notes that work is left over.
    fn spend(&mut self) -> bool {
        match self.budget.checked_sub(1) {
            Some(left) => self.budget = left,
            None => self.more = !zoo::has(Bug::UnboundedWork),
        }
        !self.more
    }
}
