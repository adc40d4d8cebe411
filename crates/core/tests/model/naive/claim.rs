//! Requests that enter the record: claim and upgrade.

use bandog_core::mode::{Kind, Mode};
use bandog_core::op::{Claim, Patience, Refusal, Upgrade, Verdict};
use bandog_core::token::Stamp;

use super::{Pending, Turn, Waiter};

impl Turn<'_> {
    pub(super) fn acquire(&mut self, claim: &Claim) -> Verdict {
        if let Some(verdict) = self.replay(claim).or_else(|| self.refuse(claim)) {
            return verdict;
        }
        if self.line().waiters == 0 && self.fits(claim.mode) {
            return self.grant_now(claim, claim.mode);
        }
        match claim.patience {
            Patience::Try => Verdict::Busy(self.blocker()),
            Patience::Queue => self.enqueue(claim),
        }
    }

    fn enqueue(&mut self, claim: &Claim) -> Verdict {
        let limit = self.bounds.waiters;
        if self.record.queue.len() >= limit as usize {
            return Verdict::Refused(Refusal::QueueFull { limit });
        }
        // The first to wait, and the first fair one, are announced to the holders.
        let line = self.line();
        self.tell |= line.waiters == 0 || (claim.fair && !line.fair);
        let place = self.record.arrived;
        self.record.queue.push(Waiter { claim: claim.clone(), since: self.now.wall, place });
        self.record.arrived += 1;
        self.keep_alive(claim.inbox, claim.window * 2);
        Verdict::Queued(self.queued(claim.id))
    }

    pub(super) fn upgrade(&mut self, upgrade: &Upgrade) -> Verdict {
        let claim = &upgrade.claim;
        if let Some(verdict) = self.replay(claim).or_else(|| self.refuse(claim)) {
            return verdict;
        }
        let Some(reader) = self.hold(upgrade.from) else {
            let words = self.words_for(upgrade.from);
            return Verdict::Refused(words.map_or(Refusal::NotHolder, |reason| Refusal::Revoked { reason }));
        };
        if reader.mode != Mode::Shared {
            return Verdict::Refused(Refusal::NotHolder);
        }
        if let Some(reason) = reader.revoked.clone() {
            return Verdict::Refused(Refusal::Revoked { reason });
        }
        if self.record.upgrade.is_some() {
            self.remember(claim.id, claim.not_after);
            return Verdict::Refused(Refusal::UpgradePending);
        }
        if self.record.holds.len() == 1 {
            self.end_from(upgrade.from);
            return self.grant_now(claim, Mode::Exclusive);
        }
        match claim.patience {
            Patience::Try => {
                self.remember(claim.id, claim.not_after);
                Verdict::Busy(self.blocker())
            }
            Patience::Queue => self.pend(upgrade),
        }
    }

    fn pend(&mut self, upgrade: &Upgrade) -> Verdict {
        let claim = &upgrade.claim;
        self.tell |= self.line().waiters == 0;
        let waiter = Waiter { claim: claim.clone(), since: self.now.wall, place: 0 };
        self.record.upgrade = Some(Pending { from: upgrade.from, waiter });
        self.keep_alive(claim.inbox, claim.window * 2);
        Verdict::Queued(self.queued(claim.id))
    }

    /// A resend is answered by what the id is now.
    fn replay(&mut self, claim: &Claim) -> Option<Verdict> {
        if let Some(hold) = self.hold(claim.id) {
            return Some(Verdict::Granted(self.grant(hold)));
        }
        if self.waiters().any(|waiter| waiter.claim.id == claim.id) {
            self.keep_alive(claim.inbox, claim.window * 2);
            return Some(Verdict::Queued(self.queued(claim.id)));
        }
        None
    }

    fn refuse(&self, claim: &Claim) -> Option<Verdict> {
        let (now, max) = (self.now.lease, self.bounds.max_lease);
        if self.record.done.iter().any(|(id, _)| *id == claim.id) {
            return Some(Verdict::Refused(Refusal::Done));
        }
        if claim.not_after < now {
            return Some(Verdict::Refused(Refusal::Late { now }));
        }
        if claim.lease.length() > max {
            return Some(Verdict::Refused(Refusal::LeaseTooLong { max }));
        }
        let asked = claim.mode.kind();
        if let Some(actual) = self.kind().filter(|actual| *actual != asked) {
            return Some(Verdict::Refused(Refusal::WrongKind { asked, actual }));
        }
        let last = if self.record.expired { Stamp::ZERO } else { self.record.last };
        let follows = claim.after.is_none_or(|after| after == last);
        if !follows {
            return Some(Verdict::Refused(Refusal::Overtaken { last }));
        }
        let last = self.record.audit.iter().rev().take(8);
        let mut of_it = last.filter(|(revocation, _)| claim.after == Some(revocation.stamp));
        of_it.next().map(|(revocation, _)| Verdict::Refused(Refusal::Revoked { reason: revocation.reason.clone() }))
    }

    fn grant_now(&mut self, claim: &Claim, mode: Mode) -> Verdict {
        self.hold_for(claim.clone(), mode, claim.lease.length());
        Verdict::Granted(self.grant(self.hold(claim.id).expect("just granted")))
    }

    /// The kind is fixed while anybody holds or waits.
    pub(super) fn kind(&self) -> Option<Kind> {
        let held = self.record.holds.first().map(|hold| hold.mode);
        let wanted = self.record.queue.first().map(|waiter| waiter.claim.mode);
        held.or(wanted).map(Mode::kind)
    }
}
