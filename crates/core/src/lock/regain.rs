//! What is done about a lost hold, as its recovery wants it; and how one is taken again.
//!
//! | lost because | `Notify` | `Release` | `Reacquire` |
//! |---|---|---|---|
//! | expired, unreachable | told | told, released in the store | told, taken again if nobody had it since |
//! | gone from the store | told | told | told, taken again if nobody had it since |
//! | its holder ended, stands still, held for too long | told | told, released in the store | told |
//! | revoked, shut down | told | told | told |
//!
//! The proof is the store's: the claim is granted only as the successor of our own stamp. In the same request the old
//! hold is released, should the store still have it. A renewal limit that is used up is no reason to take it again. Whoever is
//! revoked while it tries gives up, and the store refuses to let anybody follow a hold that was revoked.

use crate::op::{Grant, Patience, Verdict};
use crate::renewal::Renewal as Keeping;
use crate::store::StoreError;
use crate::time::Moment;
use crate::token::Token;
use crate::zoo::{self, Bug};

use super::Machine;
use super::ask::{Event, Grip, Lane, LossReason, Recovery};
use super::claim::{Taker, Wish};
use super::hold::Hold;

/// The attempts at one lost hold.
#[derive(Debug)]
pub(super) struct Regain {
    since: Moment,
    attempt: u32,
    pub(super) retry_at: Option<Moment>,
}

impl Machine {
    /// A hold was lost, and its guards are told.
    pub(super) fn recover(&mut self, now: Moment, grip: Grip, reason: &LossReason) {
        let Some(hold) = self.holds.get(grip.0) else { return };
        let (token, limited) = (hold.token(), hold.keeping.terms().is_limited());
        let ended = matches!(reason, LossReason::Revoked(_) | LossReason::Shutdown);
        let used_up = *reason == LossReason::Expired && limited;
        let gone = *reason == LossReason::Gone;
        let lapsed = matches!(reason, LossReason::Expired | LossReason::Unreachable | LossReason::Gone);
        let against_will = match reason {
            LossReason::Revoked(_) => zoo::has(Bug::RegainAfterRevoke),
            LossReason::TaskEnded | LossReason::NoProgress | LossReason::MaxHold => zoo::has(Bug::RegainForTheEnded),
            _ => false,
        };
        match hold.recovery {
            Recovery::Reacquire if against_will => self.begin_regain(now, grip),
            Recovery::Release if !gone && *reason != LossReason::Shutdown => {
                let key = self.part(now, hold.id, hold.unanswered, hold.lease.length(), Lane::Renewals);
                self.partings[key].recovers = (!used_up && !ended).then_some((grip, token));
            }
            Recovery::Reacquire if lapsed && !used_up && !self.closed => self.begin_regain(now, grip),
            _ if ended || used_up => {}
            _ => self.note_recovered(grip, Recovery::Notify, true, token),
        }
    }

    fn note_recovered(&mut self, grip: Grip, strategy: Recovery, worked: bool, token: Token) {
        self.events.push_back(Event::Recovered { grip, strategy: Some(strategy), worked, token });
    }

    /// The release of a lost hold has come to its end.
    pub(super) fn note_freed(&mut self, recovers: Option<(Grip, Token)>, worked: bool) {
        if let Some((grip, token)) = recovers {
            self.note_recovered(grip, Recovery::Release, worked, token);
        }
    }

    fn begin_regain(&mut self, now: Moment, grip: Grip) {
        if let Some(care) = self.holds.get_mut(grip.0).and_then(|hold| hold.care.as_mut()) {
            care.regain = Some(Regain { since: now, attempt: 0, retry_at: None });
            self.regain(now, grip);
        }
    }

    fn regain(&mut self, now: Moment, grip: Grip) {
        let Some(hold) = self.holds.get(grip.0) else { return };
        let (id, unanswered, lease) = (hold.id, hold.unanswered, hold.lease);
        let after = (!zoo::has(Bug::RegainWithoutProof)).then_some(hold.stamp);
        let wish = Wish { mode: hold.mode, lease, fair: false, patience: Patience::Try, after };
        let seq = self.insert_claim(now, Taker::Regain(grip), wish);
        let key = self.part(now, id, unanswered, lease.length(), Lane::Renewals);
        self.partings[key].again = Some(seq);
    }

    /// It is time to try again.
    pub(super) fn retry_regain(&mut self, now: Moment, grip: Grip) {
        let care = self.holds.get_mut(grip.0).and_then(|hold| hold.care.as_mut());
        let due = |regain: &mut Regain| regain.retry_at.take_if(|at| *at <= now).is_some();
        if care.and_then(|care| care.regain.as_mut()).is_some_and(due) {
            self.regain(now, grip);
        }
    }

    pub(super) fn on_regain(&mut self, now: Moment, seq: u64, grip: Grip, verdict: Verdict) {
        let Verdict::Granted(grant) = verdict else {
            self.forget_claim(seq);
            return self.end_regain(grip);
        };
        let Some(claim) = self.claims.get(&seq) else { return };
        let in_time = self.settings.drift.deadline(claim.asked, grant.remaining) > now;
        let wanted = self.is_regaining(grip) && !self.closed;
        if !wanted || !in_time {
            self.abandon_granted(now, seq);
            return self.end_regain(grip);
        }
        self.regained(now, seq, grip, grant);
    }

    fn regained(&mut self, now: Moment, seq: u64, grip: Grip, grant: Grant) {
        let Some(claim) = self.forget_claim(seq) else { return };
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let given = hold.token();
        hold.id = claim.id;
        if !zoo::has(Bug::RegainKeepsToken) {
            (hold.stamp, hold.local) = (grant.stamp, 0);
        }
        let sent = if zoo::has(Bug::RegainFromReply) { now } else { claim.asked };
        hold.keeping = Keeping::new(*hold.keeping.terms(), sent, grant.remaining);
        (hold.loss, hold.unanswered) = (None, None);
        (hold.run, hold.seen) = (claim.run, claim.asked);
        (hold.doubted, hold.uncertain) = (false, false);
        if let Some(care) = &mut hold.care {
            care.origin.get_or_insert(given);
            care.regain = None;
        }
        let token = hold.token();
        self.note_recovered(grip, Recovery::Reacquire, true, token);
        self.attend(now, grip.0);
    }

    /// The store did not answer: another try, unless it has been silent for too long.
    pub(super) fn on_regain_error(&mut self, now: Moment, seq: u64, grip: Grip, error: &StoreError) {
        self.forget_claim(seq);
        let (settings, jitter) = (&self.settings, self.jitter.next());
        let care = self.holds.get_mut(grip.0).and_then(|hold: &mut Hold| hold.care.as_mut());
        let Some(regain) = care.and_then(|care| care.regain.as_mut()) else { return };
        let again = now + settings.backoff.delay(regain.attempt, jitter);
        if error.is_transient() && again < regain.since + settings.unavailable_after {
            regain.attempt += 1;
            regain.retry_at = Some(again);
            return;
        }
        self.end_regain(grip);
    }

    /// It stays lost.
    pub(super) fn end_regain(&mut self, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.loss.is_some()) else { return };
        let token = hold.token();
        if hold.care.as_mut().is_some_and(|care| care.regain.take().is_some()) {
            self.note_recovered(grip, Recovery::Reacquire, false, token);
        }
    }
}
