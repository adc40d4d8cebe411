//! How claims and upgrades enter the record.

use crate::holder::HolderId;
use crate::mode::Mode;
use crate::op::{Blocker, Claim, Grant, Patience, Queued, Refusal, Upgrade, Verdict};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::queue::{Pending, Waiter};
use super::{Record, Step};

impl Record {
    pub(super) fn acquire(&mut self, step: &mut Step<'_>, claim: &Claim) -> Verdict {
        if let Some(verdict) = self.replay(step, claim).or_else(|| self.refuse(step, claim)) {
            return verdict;
        }
        let passes = !self.somebody_waits() || zoo::has(Bug::NewcomerPasses);
        if !step.more && passes && self.holders.fits(claim.mode, step.limits.sharers) {
            return Verdict::Granted(self.grant(step.now, claim, claim.lease.length()));
        }
        if claim.patience == Patience::Try {
            return Verdict::Busy(self.in_the_way(step));
        }
        if self.queue.len() >= step.limits.waiters {
            return Verdict::Refused(Refusal::QueueFull { limit: step.limits.waiters });
        }
        self.enqueue(step, claim)
    }

    pub(super) fn upgrade(&mut self, step: &mut Step<'_>, upgrade: &Upgrade) -> Verdict {
        let claim = &upgrade.claim;
        if let Some(verdict) = self.replay(step, claim).or_else(|| self.refuse(step, claim)) {
            return verdict;
        }
        let Some(reader) = self.holders.get(upgrade.from) else {
            let why = self.why_ended(upgrade.from);
            return Verdict::Refused(why.map_or(Refusal::NotHolder, |reason| Refusal::Revoked { reason }));
        };
        if reader.mode != Mode::Shared {
            return Verdict::Refused(Refusal::NotHolder);
        }
        if let Some(reason) = &reader.revoked {
            // It would escape by becoming another hold.
            return Verdict::Refused(Refusal::Revoked { reason: reason.clone() });
        }
        let pending = self.upgrade.is_some();
        if !pending && self.holders.only(upgrade.from) {
            self.end_hold(step.now, upgrade.from);
            return Verdict::Granted(self.grant(step.now, claim, claim.lease.length()));
        }
        if pending || claim.patience == Patience::Try {
            // The reader goes on: a late copy must not find it alone, and take its hold from under it.
            self.done.mark(claim.id, claim.not_after, step.now.lease);
            return match pending {
                true => Verdict::Refused(Refusal::UpgradePending),
                false => Verdict::Busy(self.in_the_way(step)),
            };
        }
        step.notice |= !self.somebody_waits();
        self.admit(claim);
        self.queue.enlist(claim, step.now.lease);
        let waiter = Waiter::new(claim, step.now.wall);
        self.upgrade = Some(Pending { from: upgrade.from, waiter });
        Verdict::Queued(self.queued(step, 0))
    }

    /// The answer to a claim whose id the record knows: what it is now.
    fn replay(&mut self, step: &Step<'_>, claim: &Claim) -> Option<Verdict> {
        if let Some(grant) = self.grant_of(step, claim.id) {
            return Some(Verdict::Granted(grant));
        }
        let ahead = self.place_of(claim.id)?;
        self.queue.refresh(claim.inbox, step.now.lease, claim.window * 2);
        Some(Verdict::Queued(self.queued(step, ahead)))
    }

    fn refuse(&self, step: &Step<'_>, claim: &Claim) -> Option<Verdict> {
        let now = step.now.lease;
        let asked = claim.mode.kind();
        let refusal = if self.done.contains(claim.id, now) {
            Refusal::Done
        } else if claim.not_after < now && !zoo::has(Bug::NoNotAfter) {
            Refusal::Late { now }
        } else if claim.lease.length() > step.limits.max_lease {
            Refusal::LeaseTooLong { max: step.limits.max_lease }
        } else if let Some(actual) = self.kind.filter(|actual| self.in_use() && *actual != asked) {
            Refusal::WrongKind { asked, actual }
        } else if claim.after.is_some_and(|after| after != self.proven()) && !zoo::has(Bug::AnySuccessor) {
            Refusal::Overtaken { last: self.proven() }
        } else if let Some(reason) = claim.after.and_then(|after| self.revoked(after)) {
            Refusal::Revoked { reason }
        } else {
            return None;
        };
        Some(Verdict::Refused(refusal))
    }

    /// The last stamp, as far as the record vouches for it: not when the store may have deleted it, whether or not it was in time.
    fn proven(&self) -> Stamp {
        self.expires.map_or(Stamp::ZERO, |_| self.last)
    }

    /// Why the hold of a stamp was revoked, if it was and the record knows it: nobody escapes by coming back.
    fn revoked(&self, stamp: Stamp) -> Option<String> {
        self.audit.reason(stamp).filter(|_| !zoo::has(Bug::RevokedComesBack)).map(str::to_owned)
    }

    fn enqueue(&mut self, step: &mut Step<'_>, claim: &Claim) -> Verdict {
        let ahead = self.line().waiters;
        step.notice |= !self.somebody_waits() || (claim.fair && !self.queue.has_fair());
        self.admit(claim);
        self.queue.push(Waiter::new(claim, step.now.wall), step.now.lease);
        Verdict::Queued(self.queued(step, ahead))
    }

    pub(super) fn queued(&self, step: &Step<'_>, ahead: u32) -> Queued {
        Queued { last: self.last, ahead, blocker: self.holders.blocker(step.now.lease) }
    }

    pub(super) fn grant_of(&self, step: &Step<'_>, id: HolderId) -> Option<Grant> {
        let hold = self.holders.get(id)?;
        Some(Grant { stamp: hold.stamp, remaining: hold.remaining(step.now.lease), line: self.line() })
    }

    /// How many stand before an id that waits, as a waiter or as a pending upgrade; see [`Queued::ahead`].
    pub(super) fn place_of(&self, id: HolderId) -> Option<u32> {
        if self.upgrade.as_ref().is_some_and(|pending| pending.waiter.claim.id == id) {
            return Some(0);
        }
        self.queue.ahead(id).map(|ahead| ahead + u32::from(self.upgrade.is_some()))
    }

    // With work left over nobody may hold yet; then whoever is next is named.
    fn in_the_way(&self, step: &Step<'_>) -> Option<Blocker> {
        let holder = self.holders.blocker(step.now.lease);
        let waiting = || self.upgrade.as_ref().map(|pending| &pending.waiter).or_else(|| self.queue.head());
        holder.or_else(|| waiting().map(Waiter::blocker))
    }
}
