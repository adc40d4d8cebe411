//! How entries leave on request: release, downgrade, revoke.

use std::sync::Arc;

use crate::holder::HolderId;
use crate::mode::Mode;
use crate::op::{Downgraded, Effect, News, Parted, Release, ReleaseReply, Revocation, Revoke, Revoked, Target};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::queue::Pending;
use super::{Record, Step};

impl Record {
    pub(super) fn release(&mut self, step: &mut Step<'_>, release: &Release) -> ReleaseReply {
        let parted = self.part(release.id);
        if let Some(not_after) = release.not_after {
            self.done.mark(release.id, not_after, step.now.lease);
        }
        let again = release.again.as_ref().map(|claim| {
            // The hand-off comes first: a new claim queues behind those who waited.
            self.settle(step);
            self.acquire(step, claim)
        });
        ReleaseReply { parted, again }
    }

    fn part(&mut self, id: HolderId) -> Parted {
        if zoo::has(Bug::ReleaseAnybody) && self.holders.get(id).is_none() {
            self.holders.remove_any();
        }
        if zoo::has(Bug::ReleaseAllReaders) && self.holders.get(id).is_some_and(|hold| hold.mode == Mode::Shared) {
            while self.holders.remove_any() {}
            return Parted::Hold;
        }
        if self.holders.remove(id).is_some() {
            Parted::Hold
        } else if self.queue.remove(id).is_some() || self.withdraw(id).is_some() {
            Parted::Place
        } else {
            self.why_ended(id).map_or(Parted::Nothing, |reason| Parted::Revoked { reason })
        }
    }

    fn withdraw(&mut self, id: HolderId) -> Option<Pending> {
        self.upgrade.as_ref().filter(|pending| pending.waiter.claim.id == id)?;
        self.take_upgrade()
    }

    pub(super) fn downgrade(&mut self, step: &Step<'_>, id: HolderId) -> Downgraded {
        if let Some(pending) = self.withdraw(id) {
            self.done.mark(id, pending.waiter.claim.not_after, step.now.lease);
            return Downgraded::Withdrawn;
        }
        let Some(hold) = self.holders.get_mut(id) else {
            return self.why_ended(id).map_or(Downgraded::NotHolder, |reason| Downgraded::Revoked { reason });
        };
        if hold.mode.kind() != Mode::Shared.kind() {
            return Downgraded::NotHolder;
        }
        hold.mode = Mode::Shared;
        self.grant_of(step, id).map_or(Downgraded::NotHolder, Downgraded::Shared)
    }

    pub(super) fn revoke(&mut self, step: &mut Step<'_>, revoke: &Revoke) -> Revoked {
        let named = |id: HolderId, stamp: Stamp| match revoke.target {
            Target::Stamp(target) => stamp == target,
            Target::Holder(target) => id.public() == target,
        };
        let hold = self.holders.iter().find(|(id, hold)| named(*id, hold.stamp) && !hold.is_over(step.now.lease));
        match hold.map(|(id, _)| id) {
            Some(id) => self.revoke_hold(step, id, revoke),
            None => Revoked::NoSuchHolder,
        }
    }

    fn revoke_hold(&mut self, step: &mut Step<'_>, id: HolderId, revoke: &Revoke) -> Revoked {
        let Some(hold) = self.holders.get_mut(id) else { return Revoked::NoSuchHolder };
        let Revoke { reason, by, now: at_once, .. } = revoke;
        hold.revoked = Some(reason.clone());
        let revocation = Revocation {
            holder: id.public(),
            who: Arc::clone(&hold.who),
            stamp: hold.stamp,
            by: Arc::clone(by),
            at: step.now.wall,
            reason: reason.clone(),
            now: *at_once,
        };
        self.audit.note(revocation, step.now.lease, step.limits.audit);
        let news = News::Revoked { number: id.number, reason: reason.clone() };
        step.effects.push(Effect { inbox: hold.inbox, news });
        if *at_once || zoo::has(Bug::RevokeEndsAtOnce) {
            self.end_hold(step.now, id);
            return Revoked::Ended;
        }
        Revoked::Asked { remaining: hold.remaining(step.now.lease) }
    }
}
