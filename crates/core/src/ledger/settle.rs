//! Expiry and hand-off: expired holders leave, and the head of the queue becomes the holder.

use std::time::Duration;

use crate::holder::HolderId;
use crate::op::{Claim, Effect, Grant, News, Op};
use crate::time::Now;
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::holders::Holding;
use super::queue::Pending;
use super::{Record, Step};

impl Record {
    /// Expires and hands on until nothing is left to do or the bound is reached.
    pub(super) fn settle(&mut self, step: &mut Step<'_>) {
        while let Some(change) = self.next_change(step) {
            if !step.spend() {
                return;
            }
            self.enact(step, change);
        }
        step.more = false;
    }

    /// Ends the named holds whose lease is over, so that no operation finds one alive because the bound left it for later.
    pub(super) fn expire_named(&mut self, now: Now, op: &Op) {
        let ids: Vec<HolderId> = match op {
            Op::Acquire(claim) => vec![claim.id],
            Op::Renew(renew) => vec![renew.id],
            Op::Heartbeat(beat) => beat.ids.clone(),
            Op::Release(release) => release.again.iter().map(|claim| claim.id).chain([release.id]).collect(),
            Op::Upgrade(upgrade) => vec![upgrade.from, upgrade.claim.id],
            Op::Downgrade(id) => vec![*id],
            Op::Revoke(_) | Op::Inspect | Op::Tend => Vec::new(),
        };
        for id in ids {
            if self.holders.get(id).is_some_and(|hold| hold.is_over(now.lease)) {
                self.end_hold(now, id);
            }
        }
    }

    pub(super) fn next_change(&self, step: &Step<'_>) -> Option<Change> {
        let now = step.now.lease;
        if let Some(id) = self.holders.expired(now) {
            return Some(Change::Expire(id));
        }
        if let Some(pending) = &self.upgrade {
            return self.next_for_upgrade(pending, step);
        }
        let claim = &self.queue.head()?.claim;
        if self.queue.is_dead(claim.inbox, now) {
            return Some(Change::Bury(claim.id));
        }
        self.holders.fits(claim.mode, step.limits.sharers).then_some(Change::Grant(claim.id))
    }

    fn next_for_upgrade(&self, pending: &Pending, step: &Step<'_>) -> Option<Change> {
        let dead = self.queue.is_dead(pending.waiter.claim.inbox, step.now.lease);
        if dead || self.holders.get(pending.from).is_none_or(|reader| reader.revoked.is_some()) {
            return Some(Change::DropUpgrade);
        }
        self.holders.only(pending.from).then_some(Change::GrantUpgrade)
    }

    fn enact(&mut self, step: &mut Step<'_>, change: Change) {
        let now = step.now.lease;
        match change {
            Change::Expire(id) => self.end_hold(step.now, id),
            Change::Bury(id) => {
                if let Some(waiter) = self.queue.remove(id) {
                    self.done.mark(id, waiter.claim.not_after, now);
                }
            }
            Change::Grant(id) => {
                if let Some(waiter) = self.queue.remove(id) {
                    self.grant_unclaimed(step, &waiter.claim, Duration::ZERO);
                }
            }
            Change::DropUpgrade => {
                if let Some(pending) = self.take_upgrade() {
                    let claim = &pending.waiter.claim;
                    self.done.mark(claim.id, claim.not_after, now);
                }
            }
            Change::GrantUpgrade => {
                if let Some(pending) = self.take_upgrade() {
                    // The reader believes in its lease until it hears of the exchange.
                    let left = self.holders.get(pending.from).map_or(Duration::ZERO, |hold| hold.remaining(now));
                    self.end_hold(step.now, pending.from);
                    self.grant_unclaimed(step, &pending.waiter.claim, left);
                }
            }
        }
    }

    pub(super) fn take_upgrade(&mut self) -> Option<Pending> {
        let pending = self.upgrade.take()?;
        self.queue.delist(pending.waiter.claim.inbox);
        Some(pending)
    }

    /// Ends a hold that its holder did not release: a late copy of its claim must find it done.
    pub(super) fn end_hold(&mut self, now: Now, id: HolderId) {
        if let Some(hold) = self.holders.remove(id) {
            self.done.mark(id, hold.not_after, now.lease);
        }
    }

    fn grant_unclaimed(&mut self, step: &mut Step<'_>, claim: &Claim, at_least: Duration) {
        let mut first = claim.window.min(claim.lease.length()).max(at_least);
        if zoo::has(Bug::NoClaimWindow) {
            first = crate::lease::MAX;
        }
        let grant = self.grant(step.now, claim, first);
        let news = News::Granted { number: claim.id.number, stamp: grant.stamp, line: grant.line };
        step.effects.push(Effect { inbox: claim.inbox, news });
    }

    /// Notes a claim that enters.
    pub(super) fn admit(&mut self, claim: &Claim) {
        self.kind = Some(claim.mode.kind());
        self.not_after = self.not_after.max(claim.not_after);
    }

    /// Makes a claim a holder, for a first lease of `first`, with a stamp above all before.
    pub(super) fn grant(&mut self, now: Now, claim: &Claim, first: Duration) -> Grant {
        let floor = claim.ballot.unwrap_or(Stamp::ZERO);
        let clock = Stamp::from_micros(now.wall.micros());
        self.last = match () {
            () if zoo::has(Bug::EqualStamps) => self.last.max(clock),
            () if zoo::has(Bug::CounterStamps) => self.last.next(),
            () => self.last.next().max(clock).max(floor),
        };
        self.admit(claim);
        let hold = Holding::new(claim, self.last, first, now);
        let remaining = hold.remaining(now.lease);
        self.holders.insert(claim.id, hold);
        Grant { stamp: self.last, remaining, line: self.line() }
    }
}

/// One unit of work that is due.
pub(super) enum Change {
    Expire(HolderId),
    Bury(HolderId),
    Grant(HolderId),
    DropUpgrade,
    GrantUpgrade,
}
