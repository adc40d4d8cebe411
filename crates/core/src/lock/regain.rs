//! What is done about a lost hold, as its recovery wants it; and how one is taken again.
//!
//! | lost because | `Notify` | `Release` | `Reacquire` |
//! |---|---|---|---|
//! | expired, unreachable | told | told, released in the store | told, taken again if nobody had it since |
//! | gone from the store | told | told | told, taken again if nobody had it since |
//! | its holder ended, stands still, held for too long; revoked | told | told, released in the store | told |
//! | revoked, and ended in the store | told | told | told |
//! | shut down | told, released in the store | the same | the same |
//!
//! The proof is the store's: the claim is granted only as the successor of our own stamp, and not if that was revoked. In the
//! same request the old hold is released, should the store still have it; the request is sent again until it is answered,
//! with the same id, so that a lost answer is found and not overtaken. What happens to the hold meanwhile (a revocation, the
//! end of its task) ends the attempt. Renewals that are used up are no reason to take it again, and stay used up.

use crate::op::{Grant, Patience, Refusal, Verdict};
use crate::renewal::Renewal as Keeping;
use crate::time::{LeaseTime, Moment};
use crate::token::Token;
use crate::zoo::{self, Bug};

use super::claim::{Taker, Wish};
use super::hold::Hold;
use super::{Event, Grip, Lane, LossReason, Machine, Recovery};

impl LossReason {
    /// Whether the lease merely came to its end: nobody ended the hold on purpose.
    fn is_lapse(&self) -> bool {
        matches!(self, Self::Expired | Self::Unreachable | Self::Gone)
    }

    fn is_order(&self) -> bool {
        matches!(self, Self::Revoked(_) | Self::Shutdown)
    }
}

impl Hold {
    /// A lease that was to end and has ended.
    pub(super) fn ended_as_agreed(&self, reason: &LossReason) -> bool {
        *reason == LossReason::Expired && self.keeping.is_exhausted()
    }
}

impl Machine {
    /// A hold was lost, and its guards are told.
    pub(super) fn recover(&mut self, now: Moment, grip: Grip, reason: &LossReason) {
        let Some(hold) = self.holds.get(grip.0) else { return };
        let (token, quiet) = (hold.token(), reason.is_order() || hold.ended_as_agreed(reason));
        let against_will = match reason {
            LossReason::Revoked(_) => zoo::has(Bug::RegainAfterRevoke),
            LossReason::TaskEnded | LossReason::NoProgress | LossReason::MaxHold => zoo::has(Bug::RegainForTheEnded),
            _ => false,
        };
        match hold.recovery {
            Recovery::Reacquire if against_will => self.regain(now, grip),
            Recovery::Release if !hold.left_nothing() => {
                let key = self.part(now, hold.id, hold.unanswered(), hold.lease().length(), Lane::Renewals);
                self.bustle.partings[key].recovers = (!quiet).then_some((grip, token));
            }
            Recovery::Reacquire if reason.is_lapse() && !quiet && !self.closed => self.regain(now, grip),
            _ if quiet => {}
            _ => self.note_recovered(grip, Recovery::Notify, true, token),
        }
    }

    fn note_recovered(&mut self, grip: Grip, strategy: Recovery, worked: bool, token: Token) {
        self.bustle.events.push_back(Event::Recovered { grip, strategy: Some(strategy), worked, token });
    }

    /// The release of a lost hold has come to its end.
    pub(super) fn note_freed(&mut self, recovers: Option<(Grip, Token)>, worked: bool) {
        if let Some((grip, token)) = recovers {
            self.note_recovered(grip, Recovery::Release, worked, token);
        }
    }

    fn regain(&mut self, now: Moment, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let Some(care) = hold.care_mut() else { return };
        care.regaining = true;
        let (id, unanswered, lease) = (hold.id, hold.unanswered(), hold.lease());
        let taker = Taker::Regain(grip, hold.stamp);
        let wish = Wish { mode: hold.mode, lease, fair: false, patience: Patience::Try };
        let seq = self.insert_claim(now, taker, wish);
        let key = self.part(now, id, unanswered, lease.length(), Lane::Renewals);
        self.bustle.partings[key].again = Some(seq);
    }

    /// Whether this claim takes a lost hold again.
    pub(super) fn is_regain(&self, seq: u64) -> bool {
        matches!(self.bustle.claims.get(&seq).map(|claim| claim.taker), Some(Taker::Regain(..)))
    }

    pub(super) fn on_regain(&mut self, now: Moment, seq: u64, grip: Grip, verdict: Verdict) {
        let grant = match verdict {
            Verdict::Granted(grant) => grant,
            Verdict::Refused(Refusal::Revoked { reason }) => {
                self.forget_claim(seq);
                return self.lose_for_good(grip, LossReason::Revoked(reason.into()));
            }
            _ => {
                self.forget_claim(seq);
                return self.end_regain(grip);
            }
        };
        let Some(claim) = self.bustle.claims.get(&seq) else { return };
        let in_time = self.settings.drift.deadline(claim.asked, grant.remaining) > now;
        if !self.is_regaining(grip) || !in_time {
            self.abandon_granted(now, seq);
            return self.end_regain(grip);
        }
        self.regained(now, seq, grip, grant);
    }

    fn regained(&mut self, now: Moment, seq: u64, grip: Grip, grant: Grant) {
        let Some(claim) = self.forget_claim(seq) else { return };
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let origin = hold.origin();
        (hold.seq, hold.id) = (seq, self.client.holder(seq));
        if !zoo::has(Bug::RegainKeepsToken) {
            (hold.stamp, hold.local) = (grant.stamp, 0);
        }
        let sent = if zoo::has(Bug::RegainFromReply) { now } else { claim.asked };
        hold.keeping = Keeping::after(&hold.keeping, sent, grant.remaining);
        hold.confirmed = true;
        (hold.run, hold.seen, hold.started) = (claim.run, claim.asked, LeaseTime::ZERO);
        (hold.doubted, hold.uncertain) = (false, false);
        if let Some(care) = hold.care_mut() {
            care.regaining = false;
        }
        hold.rare_mut().loss = None;
        hold.note_answered();
        hold.keep_origin(origin);
        let token = hold.token();
        self.note_recovered(grip, Recovery::Reacquire, true, token);
        self.attend(now, grip.0);
    }

    /// What is to be sent once more may no longer be wanted: then only what came of it before is given back.
    pub(super) fn drop_unwanted_regain(&mut self, now: Moment, key: usize) {
        let Some(seq) = self.bustle.partings.get(key).and_then(|parting| parting.again) else { return };
        let Some(Taker::Regain(grip, _)) = self.bustle.claims.get(&seq).map(|claim| claim.taker) else { return };
        if !self.is_regaining(grip) {
            self.bustle.partings[key].again = None;
            self.abandon_granted(now, seq);
        }
    }

    /// The store gave no answer until it no longer mattered, or one that trying again cannot help.
    pub(super) fn on_regain_error(&mut self, seq: u64, grip: Grip) {
        self.forget_claim(seq);
        self.end_regain(grip);
    }

    /// A hold that is being taken again is lost for another reason too: then it stays lost, for this one.
    pub(super) fn lose_for_good(&mut self, grip: Grip, reason: LossReason) {
        if !reason.is_lapse() && self.is_regaining(grip) {
            if let Some(hold) = self.holds.get_mut(grip.0) {
                hold.rare_mut().loss = Some(reason);
            }
            self.end_regain(grip);
        }
    }

    /// It stays lost. Whatever the store may yet grant is given back.
    pub(super) fn end_regain(&mut self, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let token = hold.token();
        if hold.care_mut().is_some_and(|care| std::mem::take(&mut care.regaining)) {
            self.note_recovered(grip, Recovery::Reacquire, false, token);
        }
    }
}
