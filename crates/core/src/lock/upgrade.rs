//! Upgrades and downgrades: the claim of an upgrade is made, confirmed, withdrawn, or ended with its read hold.
//!
//! The transitions are in the table of the [parent module](super).

use crate::mode::Mode;
use crate::op::Downgraded;
use crate::store::StoreError;
use crate::time::{LeaseTime, Moment};

use super::claim::{IncomingGrant, Phase, Recipient};
use super::state::Stage;
use super::{ConnectionKind, Failure, HoldKey, LossReason, Machine, Todo, WaitOutcome, WaiterId};

impl Machine {
    pub(super) fn claim_upgrade(&mut self, now: Moment, waiter: WaiterId, hold_key: HoldKey) {
        if let Some(seq) = self.new_claim(now, waiter, Recipient::Upgrade(waiter, hold_key)) {
            self.active.waiters.set(waiter, Stage::Claimed(seq));
            self.active.todo.push_back(Todo::Claim(seq));
        }
    }

    /// The claim that upgrades this hold, if one is pending.
    pub(super) fn upgrade_of(&self, hold_key: HoldKey) -> Option<u64> {
        let upgrades = |recipient: Recipient| matches!(recipient, Recipient::Upgrade(_, of) if of == hold_key);
        self.active.claims.iter().find(|(_, claim)| upgrades(claim.recipient)).map(|(seq, _)| *seq)
    }

    pub(super) fn is_upgrade(&self, seq: u64) -> bool {
        matches!(self.active.claims.get(&seq).map(|claim| claim.recipient), Some(Recipient::Upgrade(..)))
    }

    /// The read hold is gone while its upgrade is pending, so it may have been exchanged: asks the store. False if there is nothing to ask.
    pub(super) fn confirm_upgrade(&mut self, seq: u64) -> bool {
        let Some(claim) = self.active.claims.get_mut(&seq) else { return false };
        match claim.phase {
            Phase::New => return false,
            Phase::Confirming | Phase::Withdrawing => {}
            Phase::Sent | Phase::Queued { .. } => {
                claim.phase = Phase::Confirming;
                self.active.todo.push_back(Todo::Confirm(seq));
            }
        }
        true
    }

    /// Gives up an upgrade: back to reading, whether or not the exchange has happened.
    pub(super) fn withdraw(&mut self, seq: u64, failure: Failure) {
        let Some(claim) = self.active.claims.get_mut(&seq) else { return };
        match (claim.phase, claim.recipient) {
            (Phase::New, Recipient::Upgrade(waiter, _)) => {
                self.forget_claim(seq);
                self.fail(waiter, failure);
            }
            (Phase::New | Phase::Withdrawing, _) => {}
            (Phase::Sent | Phase::Queued { .. } | Phase::Confirming, _) => {
                claim.phase = Phase::Withdrawing;
                claim.giving_up = Some(Box::new(failure));
                self.active.todo.push_back(Todo::Withdraw(seq));
            }
        }
    }

    pub(super) fn on_withdrawn(&mut self, now: (Moment, LeaseTime), seq: u64, sent: Moment, answer: Downgraded) {
        let (now, at) = now;
        let Some(claim) = self.active.claims.get_mut(&seq) else { return };
        let Recipient::Upgrade(waiter, hold_key) = claim.recipient else { return };
        let may_arrive = claim.run.id().is_none() && at <= claim.not_after;
        let failure = claim.giving_up.take();
        match answer {
            Downgraded::Withdrawn => {
                self.forget_claim(seq);
            }
            Downgraded::Shared(grant) => {
                // The exchange had happened: the hold continues under its new id, shared again.
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                self.settle_claim(
                    now,
                    seq,
                    waiter,
                    &IncomingGrant { stamp, sent, pushed: None, remaining, line, confirmed: true },
                );
                if let Some(hold) = self.holds.get_mut(hold_key) {
                    hold.mode = Mode::Shared;
                }
            }
            // The exchange had happened, and neither hold is left.
            Downgraded::Revoked { reason } => {
                self.forget_claim(seq);
                self.lose_revoked(now, hold_key, LossReason::Revoked(reason.into()));
            }
            // The upgrade may still arrive and exchange the read hold.
            Downgraded::NotHolder if may_arrive => self.end_both(now, seq, hold_key),
            Downgraded::NotHolder => {
                self.forget_claim(seq);
                self.active.todo.push_back(Todo::Renew(hold_key, None));
            }
        }
        self.fail(waiter, failure.map_or(Failure::Timeout(None), |failure| *failure));
    }

    pub(super) fn on_withdraw_error(&mut self, now: Moment, seq: u64, error: StoreError) {
        let Some(Recipient::Upgrade(waiter, hold_key)) = self.active.claims.get(&seq).map(|claim| claim.recipient)
        else {
            return;
        };
        self.end_both(now, seq, hold_key);
        self.fail(waiter, Failure::Store(error));
    }

    /// Nobody knows whether the exchange has happened.
    fn end_both(&mut self, now: Moment, seq: u64, hold_key: HoldKey) {
        self.release_claim(now, seq, ConnectionKind::Renewals);
        self.forget_claim(seq);
        self.lose(now, hold_key, LossReason::Unreachable);
    }

    /// A read hold was lost: its pending upgrade fails.
    pub(super) fn end_upgrade(&mut self, now: Moment, hold_key: HoldKey, reason: &LossReason) {
        let Some(seq) = self.upgrade_of(hold_key) else { return };
        let waiter = self.active.claims.get(&seq).and_then(|claim| self.recipient(claim));
        self.abandon(now, seq);
        if let Some(waiter) = waiter {
            self.fail(waiter, Failure::Lost(reason.clone()));
        }
    }

    pub(super) fn on_downgraded(
        &mut self,
        now: Moment,
        hold_key: HoldKey,
        seq: u64,
        waiter: WaiterId,
        answer: Downgraded,
    ) {
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.seq == seq) else {
            return self.fail(waiter, Failure::Lost(LossReason::Gone));
        };
        if let Some(reason) = hold.loss().cloned() {
            return self.fail(waiter, Failure::Lost(reason));
        }
        let reason = match answer {
            Downgraded::Shared(_) => {
                hold.mode = Mode::Shared;
                return self.finish(waiter, WaitOutcome::Done);
            }
            Downgraded::Revoked { reason } => {
                hold.cold_mut().ended = true;
                LossReason::Revoked(reason.into())
            }
            Downgraded::Withdrawn | Downgraded::NotHolder => LossReason::Gone,
        };
        self.lose(now, hold_key, reason.clone());
        self.fail(waiter, Failure::Lost(reason));
    }
}
