//! What a guard asks for while it holds: renew now, upgrade, downgrade.

use crate::mode::Mode;
use crate::op::{Downgraded, Op, Patience};
use crate::store::StoreError;
use crate::time::{LeaseTime, Moment};

use crate::zoo::{self, Bug};

use super::claim::{Phase, Taker};
use super::hold::Hold;
use super::landing::Landing;
use super::slips::Stage;
use super::{Action, Ask, Cohort, Errand, Grip, Lane, LossReason, Machine, Outcome, Recovery, Slip, Todo, Why};

impl Machine {
    /// A guard wants its lease renewed now.
    pub fn handle_renew(&mut self, now: Moment, grip: Grip) -> Slip {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        let slip = self.bustle.slips.insert(None, Stage::Errand);
        self.bustle.todo.push_back(Todo::Renew(grip, Some(slip)));
        slip
    }

    /// A reader wants to write. The outcome is `Done`, or the read hold goes on as it was.
    pub fn handle_upgrade(&mut self, now: Moment, grip: Grip, patience: Patience, until: Option<Moment>) -> Slip {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        let Some(hold) = self.holds.get(grip.0).filter(|hold| hold.word.depth() == 1) else {
            // The outer guards believe they read: they would wait for themselves.
            return self.answered(Why::WouldDeadlock);
        };
        let (owner, terms) = (hold.owner, *hold.keeping.terms());
        let reads_too = |other: &Hold| other.owner == owner && other.is_live() && other.mode == Mode::Shared;
        if owner.is_some() && self.holds.iter().any(|(key, other)| key != grip.0 && reads_too(other)) {
            return self.answered(Why::WouldDeadlock);
        }
        let (mode, until) = (Mode::Exclusive, until.unwrap_or(Moment::FAR));
        let (fair, reentrant, vigil, recovery) = (false, false, None, Recovery::Notify);
        let ask = Ask { mode, fair, patience, since: now, until, owner, reentrant, terms, vigil, recovery };
        let slip = self.bustle.slips.insert(Some(Box::new(ask)), Stage::Unclaimed);
        self.bustle.arm_wait(until, slip);
        self.claim_upgrade(now, slip, grip);
        slip
    }

    pub(super) fn claim_upgrade(&mut self, now: Moment, slip: Slip, grip: Grip) {
        if let Some(seq) = self.new_claim(now, slip, Taker::Upgrade(slip, grip)) {
            self.bustle.slips.set(slip, Stage::Claimed(seq));
            self.bustle.todo.push_back(Todo::Claim(seq));
        }
    }

    /// A writer wants to read.
    pub fn handle_downgrade(&mut self, now: Moment, grip: Grip) -> Slip {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        if self.word(grip).depth() > 1 {
            return self.answered(Why::WouldDeadlock);
        }
        if self.cohort == Cohort::Holding(grip.0) && !zoo::has(Bug::DowngradeStillPasses) {
            // A shared hold is not passed locally: from here on the line has its own claim.
            self.cohort = Cohort::Idle;
            self.advance(now);
        }
        let slip = self.bustle.slips.insert(None, Stage::Errand);
        self.bustle.todo.push_back(Todo::Downgrade(grip, slip));
        slip
    }

    fn lost(&mut self, now: Moment, grip: Grip) -> Option<Why> {
        match self.state(now, grip) {
            None => Some(Why::Lost(LossReason::Gone)),
            Some(super::HoldState::Lost(reason)) => {
                self.lose(now, grip, reason.clone());
                Some(Why::Lost(reason))
            }
            Some(_) => None,
        }
    }

    pub(super) fn downgrade_action(&self, grip: Grip, slip: Slip) -> Option<Action> {
        let &Hold { seq, id, .. } = self.holds.get(grip.0)?;
        let errand = Errand::Downgrade { grip, seq, slip };
        Some(Action { errand, op: Op::Downgrade(id), lane: Lane::Claims })
    }

    pub(super) fn on_downgraded(&mut self, now: Moment, grip: Grip, seq: u64, slip: Slip, answer: Downgraded) {
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.seq == seq) else {
            return self.fail(slip, Why::Lost(LossReason::Gone));
        };
        if let Some(reason) = hold.loss().cloned() {
            return self.fail(slip, Why::Lost(reason));
        }
        let reason = match answer {
            Downgraded::Shared(_) => {
                hold.mode = Mode::Shared;
                return self.finish(slip, Outcome::Done);
            }
            Downgraded::Revoked { reason } => {
                hold.rare_mut().ended = true;
                LossReason::Revoked(reason.into())
            }
            Downgraded::Withdrawn | Downgraded::NotHolder => LossReason::Gone,
        };
        self.lose(now, grip, reason.clone());
        self.fail(slip, Why::Lost(reason));
    }

    /// The claim of a pending upgrade of this hold.
    pub(super) fn upgrade_of(&self, grip: Grip) -> Option<u64> {
        let upgrades = |taker: Taker| matches!(taker, Taker::Upgrade(_, of) if of == grip);
        self.bustle.claims.iter().find(|(_, claim)| upgrades(claim.taker)).map(|(seq, _)| *seq)
    }

    /// A hold was lost: its pending upgrade has nothing to stand on.
    pub(super) fn end_upgrade(&mut self, now: Moment, grip: Grip, reason: &LossReason) {
        let Some(seq) = self.upgrade_of(grip) else { return };
        let slip = self.bustle.claims.get(&seq).and_then(|claim| self.taker(claim));
        self.abandon(now, seq);
        if let Some(slip) = slip {
            self.fail(slip, Why::Lost(reason.clone()));
        }
    }

    /// The read hold is gone while its upgrade is pending: it may have been exchanged. Asks, and says whether it did.
    pub(super) fn confirm_upgrade(&mut self, seq: u64) -> bool {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return false };
        match claim.phase {
            Phase::New => return false,
            Phase::Confirming | Phase::Withdrawing => {}
            Phase::Sent | Phase::Queued { .. } => {
                claim.phase = Phase::Confirming;
                self.bustle.todo.push_back(Todo::Confirm(seq));
            }
        }
        true
    }

    /// An upgrade is over, for this reason: back to reading, whichever side of the exchange we are on.
    pub(super) fn withdraw(&mut self, seq: u64, why: Why) {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        match (claim.phase, claim.taker) {
            (Phase::New, Taker::Upgrade(slip, _)) => {
                self.forget_claim(seq);
                self.fail(slip, why);
            }
            (Phase::New | Phase::Withdrawing, _) => {}
            (Phase::Sent | Phase::Queued { .. } | Phase::Confirming, _) => {
                claim.phase = Phase::Withdrawing;
                claim.giving_up = Some(Box::new(why));
                self.bustle.todo.push_back(Todo::Withdraw(seq));
            }
        }
    }

    pub(super) fn withdraw_action(&self, now: Moment, seq: u64) -> Option<Action> {
        self.bustle.claims.get(&seq)?;
        let id = self.client.holder(seq);
        Some(Action { errand: Errand::Withdraw { seq, sent: now }, op: Op::Downgrade(id), lane: Lane::Claims })
    }

    pub(super) fn on_withdrawn(&mut self, now: (Moment, LeaseTime), seq: u64, sent: Moment, answer: Downgraded) {
        let (now, at) = now;
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        let Taker::Upgrade(slip, grip) = claim.taker else { return };
        let may_arrive = claim.run.id().is_none() && at <= claim.not_after;
        let why = claim.giving_up.take();
        match answer {
            Downgraded::Withdrawn => {
                self.forget_claim(seq);
            }
            Downgraded::Shared(grant) => {
                // The exchange had happened: the hold goes on under its new id, shared again.
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                self.settle_claim(
                    now,
                    seq,
                    slip,
                    &Landing { stamp, sent, pushed: None, remaining, line, confirmed: true },
                );
                if let Some(hold) = self.holds.get_mut(grip.0) {
                    hold.mode = Mode::Shared;
                }
            }
            // The exchange had happened, and neither side of it is left.
            Downgraded::Revoked { reason } => {
                self.forget_claim(seq);
                self.lose_revoked(now, grip, LossReason::Revoked(reason.into()));
            }
            // The upgrade may yet arrive and take the read hold with it.
            Downgraded::NotHolder if may_arrive => self.end_both(now, seq, grip),
            Downgraded::NotHolder => {
                self.forget_claim(seq);
                self.bustle.todo.push_back(Todo::Renew(grip, None));
            }
        }
        self.fail(slip, why.map_or(Why::Timeout(None), |why| *why));
    }

    pub(super) fn on_withdraw_error(&mut self, now: Moment, seq: u64, error: StoreError) {
        let Some(Taker::Upgrade(slip, grip)) = self.bustle.claims.get(&seq).map(|claim| claim.taker) else { return };
        self.end_both(now, seq, grip);
        self.fail(slip, Why::Store(error));
    }

    /// Nobody knows on which side of the exchange we are.
    fn end_both(&mut self, now: Moment, seq: u64, grip: Grip) {
        self.part_claim(now, seq, Lane::Renewals);
        self.forget_claim(seq);
        self.lose(now, grip, LossReason::Unreachable);
    }
}
