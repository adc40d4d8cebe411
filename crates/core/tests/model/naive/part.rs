//! The ways a hold or a place ends: release, downgrade, revoke.

use bandog_core::holder::HolderId;
use bandog_core::mode::Mode;
use bandog_core::op::{Downgraded, News, Parted, Release, ReleaseReply, Revocation, Revoke, Revoked, Target};

use super::{Hold, Turn};

impl Turn<'_> {
    pub(super) fn release(&mut self, release: &Release) -> ReleaseReply {
        let parted = self.part(release.id);
        if let Some(not_after) = release.not_after {
            self.remember(release.id, not_after);
        }
        self.settle();
        let again = release.again.as_ref().map(|claim| self.acquire(claim));
        ReleaseReply { parted, again }
    }

    fn part(&mut self, id: HolderId) -> Parted {
        if self.take_hold(id).is_some() {
            return Parted::Hold;
        }
        if self.take_pending(id) {
            return Parted::Place;
        }
        let before = self.record.queue.len();
        self.record.queue.retain(|waiter| waiter.claim.id != id);
        if self.record.queue.len() < before {
            return Parted::Place;
        }
        self.words_for(id).map_or(Parted::Nothing, |reason| Parted::Revoked { reason })
    }

    pub(super) fn downgrade(&mut self, id: HolderId) -> Downgraded {
        let pending = self.record.upgrade.as_ref().map(|pending| pending.waiter.claim.clone());
        if self.take_pending(id) {
            self.remember(id, pending.expect("it was pending").not_after);
            self.settle();
            return Downgraded::Withdrawn;
        }
        let hold = self.record.holds.iter_mut().find(|hold| hold.claim.id == id);
        match hold {
            Some(hold) if hold.mode.kind() == Mode::Shared.kind() => hold.mode = Mode::Shared,
            Some(_) => return Downgraded::NotHolder,
            None => {
                return self.words_for(id).map_or(Downgraded::NotHolder, |reason| Downgraded::Revoked { reason });
            }
        }
        let grant = self.grant(self.hold(id).expect("it holds"));
        self.settle();
        Downgraded::Shared(grant)
    }

    pub(super) fn revoke(&mut self, revoke: &Revoke) -> Revoked {
        let named = |hold: &&mut Hold| match revoke.target {
            Target::Stamp(stamp) => hold.stamp == stamp,
            Target::Holder(public) => hold.claim.id.public() == public,
        };
        let Some(hold) = self.record.holds.iter_mut().find(named) else {
            return Revoked::NoSuchHolder;
        };
        hold.revoked = Some(revoke.reason.clone());
        let hold = hold.clone();
        self.note_revocation(&hold, revoke);
        self.push(hold.claim.inbox, News::Revoked { number: hold.claim.id.number, reason: revoke.reason.clone() });
        if !revoke.now {
            return Revoked::Asked { remaining: self.remaining(&hold) };
        }
        self.take_hold(hold.claim.id);
        self.remember(hold.claim.id, hold.claim.not_after);
        self.settle();
        Revoked::Ended
    }

    /// The last words on record for the revoked holder with this id.
    pub(super) fn words_for(&self, id: HolderId) -> Option<String> {
        let shown = self.record.audit.iter().rev().take(8).map(|(revocation, _)| revocation);
        shown.filter(|revocation| revocation.holder == id.public()).map(|revocation| revocation.reason.clone()).next()
    }

    fn note_revocation(&mut self, hold: &Hold, revoke: &Revoke) {
        let revocation = Revocation {
            holder: hold.claim.id.public(),
            who: hold.claim.who.clone(),
            stamp: hold.stamp,
            by: revoke.by.clone(),
            at: self.now.wall,
            reason: revoke.reason.clone(),
            now: revoke.now,
        };
        self.record.audit.push((revocation, self.now.lease + self.bounds.audit));
    }

    pub(super) fn take_hold(&mut self, id: HolderId) -> Option<Hold> {
        let place = self.record.holds.iter().position(|hold| hold.claim.id == id)?;
        Some(self.record.holds.remove(place))
    }

    fn take_pending(&mut self, id: HolderId) -> bool {
        let is_it = self.record.upgrade.as_ref().is_some_and(|pending| pending.waiter.claim.id == id);
        if is_it {
            self.record.upgrade = None;
        }
        is_it
    }
}
