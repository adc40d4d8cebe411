//! The life of a claim, from the first wish to the hold: sent, queued, confirmed, or given up.

use std::time::Duration;

use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Claim, Op, Patience, Queued, Refusal, Renew, Upgrade, Verdict};
use crate::store::{StoreError, StoreErrorKind};
use crate::time::{KnownRun, LeaseTime, Moment, RunId};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::giving_up::Need;
use super::landing::Landing;
use super::pass::Remote;
use super::slips::Stage;
use super::{Action, Ask, Cohort, Errand, Grip, How, Lane, LossReason, Machine, Slip, Todo, Why};

/// The number of every claim, with [`Bug::HolderIdReused`].
pub(super) const REUSED: u64 = 7;

/// A claim that this process has made and that is not yet a hold. Its number, from which its id follows, is its key.
#[derive(Debug)]
pub(super) struct Claiming {
    pub(super) taker: Taker,
    pub(super) phase: Phase,
    pub(super) mode: Mode,
    pub(super) lease: Lease,
    pub(super) fair: bool,
    pub(super) patience: Patience,
    /// Time before the send of the last transmission that was answered "still queued", at first of the first.
    pub(super) asked: Moment,
    pub(super) not_after: LeaseTime,
    /// The store's life that answered, once one did.
    pub(super) run: KnownRun,
    /// How often it was passed on here: more than never, if it was a hold whose guard left before it was confirmed.
    pub(super) local: u16,
    /// By which way a grant would come now.
    pub(super) how: How,
    /// Why an upgrade is being withdrawn.
    pub(super) giving_up: Option<Box<Why>>,
}

/// Who gets the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taker {
    /// Whoever is first in the local line by then.
    Cohort,
    Slip(Slip),
    /// A reader that wants to write: its slip and its hold.
    Upgrade(Slip, Grip),
    /// A hold that was lost and is to be taken again, as long as this stamp is the record's last one.
    Regain(Grip, Stamp),
    /// Everybody gave up while it was on its way.
    Nobody,
}

/// What is claimed.
pub(super) struct Wish {
    pub(super) mode: Mode,
    pub(super) lease: Lease,
    pub(super) fair: bool,
    pub(super) patience: Patience,
}

impl Taker {
    /// The stamp that must be the record's last one.
    fn after(self) -> Option<Stamp> {
        match self {
            Self::Regain(_, stamp) if !zoo::has(Bug::RegainWithoutProof) => Some(stamp),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Sent,
    Queued {
        last: Stamp,
    },
    Confirming,
    /// An upgrade that is no longer wanted: only the answer to its withdrawal tells what became of it.
    Withdrawing,
}

impl Machine {
    pub(super) fn window(&self, lease: Lease) -> Duration {
        self.settings.window_of(lease)
    }

    /// Claims for the local line, unless it has a claim or a hold already.
    pub(super) fn advance(&mut self, now: Moment) {
        if self.cohort != Cohort::Idle || !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_cohort_claim(now) {
            self.bustle.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn new_cohort_claim(&mut self, now: Moment) -> Option<u64> {
        let seq = self.new_claim(now, self.bustle.slips.head()?, Taker::Cohort)?;
        self.bustle.remote = Remote::default();
        self.cohort = Cohort::Claiming(seq);
        Some(seq)
    }

    /// Claims for one slip.
    pub(super) fn claim_for(&mut self, now: Moment, slip: Slip) {
        self.bustle.slips.set(slip, Stage::Unclaimed);
        let patient = self.bustle.slips.ask(slip).is_some_and(|ask| ask.patience == Patience::Queue);
        if patient && !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_claim(now, slip, Taker::Slip(slip)) {
            self.bustle.slips.set(slip, Stage::Claimed(seq));
            self.bustle.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn new_claim(&mut self, now: Moment, slip: Slip, taker: Taker) -> Option<u64> {
        let &Ask { mode, fair, patience, terms, .. } = self.bustle.slips.ask(slip)?;
        Some(self.insert_claim(now, taker, Wish { mode, lease: terms.lease(), fair, patience }))
    }

    pub(super) fn insert_claim(&mut self, now: Moment, taker: Taker, wish: Wish) -> u64 {
        let seq = if zoo::has(Bug::HolderIdReused) { REUSED } else { self.client.next() };
        let Wish { mode, lease, fair, patience } = wish;
        let (phase, not_after) = (Phase::New, LeaseTime::ZERO);
        let claim = Claiming {
            taker,
            phase,
            mode,
            lease,
            fair,
            patience,
            asked: now,
            not_after,
            run: KnownRun::default(),
            local: 0,
            how: How::AtOnce,
            giving_up: None,
        };
        self.bustle.claims.insert(seq, Box::new(claim));
        seq
    }

    // A claim that queues needs the inbox; a failing store gets its pause.
    fn may_claim(&mut self, now: Moment) -> bool {
        if !self.inbox_up && self.bustle.failing.is_none() {
            let error = StoreError::not_executed(StoreErrorKind::Unavailable, "the inbox is not connected");
            self.note_failure(now, Need::Claims, now, error);
        }
        self.bustle.failing.as_ref().and_then(|failing| failing.retry_at).is_none_or(|at| at <= now)
    }

    /// Marks a claim as sent and makes its request.
    pub(super) fn send_claim(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Claim> {
        let not_after = store + self.settings.response;
        let window = self.bustle.claims.get(&seq).map(|claim| self.window(claim.lease))?;
        let claim = self.bustle.claims.get_mut(&seq)?;
        (claim.phase, claim.asked, claim.not_after) = (Phase::Sent, now, not_after);
        Some(Claim {
            id: self.client.holder(seq),
            inbox: self.client.inbox(),
            who: self.client.who().clone(),
            mode: claim.mode,
            lease: claim.lease,
            window,
            fair: claim.fair,
            patience: claim.patience,
            not_after,
            ballot: None,
            after: claim.taker.after(),
        })
    }

    pub(super) fn claim_action(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Action> {
        let from = match self.bustle.claims.get(&seq)?.taker {
            Taker::Upgrade(_, grip) => Some(self.holds.get(grip.0)?.id),
            _ => None,
        };
        let claim = self.send_claim(now, store, seq)?;
        let op = match from {
            Some(from) => Op::Upgrade(Upgrade { from, claim }),
            None => Op::Acquire(claim),
        };
        let counts = self.can_wait(seq);
        self.bustle.under_way += usize::from(counts);
        Some(Action { errand: Errand::Claim { seq, counts }, op, lane: Lane::Claims })
    }

    pub(super) fn confirm_action(&mut self, now: Moment, seq: u64) -> Option<Action> {
        let claim = self.bustle.claims.get(&seq).filter(|claim| claim.phase == Phase::Confirming)?;
        let lease =
            self.taker(claim).and_then(|taker| self.bustle.slips.ask(taker)).map_or(claim.lease, |ask| ask.lease());
        let claim = self.bustle.claims.get_mut(&seq)?;
        claim.lease = lease;
        let op = Op::Renew(Renew::new(self.client.holder(seq), lease));
        Some(Action { errand: Errand::Confirm { seq, sent: now }, op, lane: Lane::Renewals })
    }

    pub(super) fn on_verdict(&mut self, now: Moment, seq: u64, run: RunId, verdict: Verdict) {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return self.late_answer(seq) };
        claim.run.note(run);
        if claim.phase == Phase::Withdrawing {
            return;
        }
        if let Taker::Regain(grip, _) = claim.taker {
            return self.on_regain(now, seq, grip, verdict);
        }
        match verdict {
            Verdict::Granted(grant) => {
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                let landing = Landing { stamp, sent: claim.asked, pushed: None, remaining, line, confirmed: false };
                self.land(now, seq, landing);
            }
            Verdict::Queued(queued) => self.on_queued(now, seq, queued),
            Verdict::Busy(blocker) => self.drop_claim(now, seq, |_| Why::Busy(blocker.clone())),
            // The clock we aimed by was off, or the store restarted: a fresh claim will do.
            Verdict::Refused(refusal @ (Refusal::Late { .. } | Refusal::Done)) => {
                let error = StoreError::not_executed(StoreErrorKind::Unavailable, refusal.to_string());
                self.on_claim_error(now, seq, error);
            }
            Verdict::Refused(refusal) => self.on_refused(now, seq, &refusal),
        }
    }

    fn on_refused(&mut self, now: Moment, seq: u64, refusal: &Refusal) {
        let lost = match refusal {
            Refusal::NotHolder => Some(LossReason::Gone),
            Refusal::Revoked { reason } => Some(LossReason::Revoked(reason.as_str().into())),
            _ => None,
        };
        if let (Some(reason), Some(Taker::Upgrade(_, grip))) =
            (lost, self.bustle.claims.get(&seq).map(|claim| claim.taker))
        {
            self.lose(now, grip, reason);
        }
        if let (Refusal::LeaseTooLong { .. }, Cohort::Claiming(claiming)) = (refusal, self.cohort)
            && claiming == seq
        {
            return self.refuse_head(now, seq, refusal);
        }
        self.drop_claim(now, seq, |_| Why::Refused(refusal.clone()));
    }

    // The lease is that of whoever came first; the others may have asked for less.
    fn refuse_head(&mut self, now: Moment, seq: u64, refusal: &Refusal) {
        self.forget_claim(seq);
        if let Some(head) = self.bustle.slips.head() {
            self.fail(head, Why::Refused(refusal.clone()));
        }
        self.advance(now);
    }

    // A push may overtake the answer; then the claim is a hold by now and its acquire is no longer unanswered.
    fn late_answer(&mut self, seq: u64) {
        if let Some((_, hold)) = self.holds.iter_mut().find(|(_, hold)| hold.seq == seq) {
            hold.note_answered();
        }
    }

    pub(super) fn on_queued(&mut self, now: Moment, seq: u64, queued: Queued) {
        self.note_blocker(&queued);
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        if !matches!(claim.phase, Phase::Sent | Phase::Queued { .. }) {
            return;
        }
        if claim.patience == Patience::Try {
            let error = StoreError::unknown("the store queued a request that did not want to wait");
            return self.on_claim_error(now, seq, error);
        }
        claim.phase = Phase::Queued { last: queued.last };
        claim.how = How::HandOff;
        let (asked, lease, fair, taker) = (claim.asked, claim.lease, claim.fair, claim.taker);
        if self.bustle.failing.is_some() && !self.is_our_own(&queued) {
            self.note_progress(now);
        }
        self.bustle.remote.fair |= fair;
        if self.taker_gone(seq) {
            return self.abandon(now, seq);
        }
        if let Taker::Slip(slip) = taker
            && self.waits_for_itself(slip)
        {
            return self.drop_claim(now, seq, |_| Why::WouldDeadlock);
        }
        self.schedule_heartbeat(now, asked, lease, &queued);
    }

    /// A claim came to nothing without anybody's fault: claim anew.
    pub(super) fn reclaim(&mut self, now: Moment, seq: u64) {
        let Some(claim) = self.forget_claim(seq) else { return };
        match claim.taker {
            Taker::Cohort => self.advance(now),
            Taker::Slip(slip) => self.claim_for(now, slip),
            // If the read hold has ended too, the store will say so.
            Taker::Upgrade(slip, grip) => self.claim_upgrade(now, slip, grip),
            Taker::Regain(..) | Taker::Nobody => {}
        }
    }

    pub(super) fn forget_claim(&mut self, seq: u64) -> Option<Box<Claiming>> {
        if self.cohort == Cohort::Claiming(seq) {
            self.cohort = Cohort::Idle;
        }
        let claim = self.bustle.claims.remove(&seq);
        self.bustle.orphans -= usize::from(claim.as_ref().is_some_and(|claim| claim.taker == Taker::Nobody));
        claim
    }

    fn taker_gone(&self, seq: u64) -> bool {
        self.bustle.claims.get(&seq).is_some_and(|claim| self.taker(claim).is_none())
    }

    fn note_blocker(&mut self, queued: &Queued) {
        self.bustle.blocker.clone_from(&queued.blocker.clone().map(Box::new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_thread_gives_back_is_small() {
        assert!(size_of::<Claiming>() <= 104, "{} bytes", size_of::<Claiming>());
    }
}
