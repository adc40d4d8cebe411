//! What a guard asks for while it holds: renew now, upgrade, downgrade.

use crate::mode::Mode;
use crate::op::{Downgraded, Op, Patience};
use crate::store::{Outcome as Sure, StoreError};
use crate::time::Moment;

use super::ask::{Action, Ask, Errand, Grip, Lane, LossReason, Outcome, Ticket, Why};
use super::claim::{Landing, Phase, Taker};
use super::tickets::Stage;
use super::{Cohort, Machine, Todo};

impl Machine {
    /// A guard wants its lease renewed now.
    pub fn handle_renew(&mut self, now: Moment, grip: Grip) -> Ticket {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        let ticket = self.tickets.insert(None, Stage::Errand);
        self.todo.push_back(Todo::Renew(grip, Some(ticket)));
        ticket
    }

    /// A reader wants to write. The outcome is `Done`, or the read hold goes on as it was.
    pub fn handle_upgrade(&mut self, now: Moment, grip: Grip, patience: Patience, until: Option<Moment>) -> Ticket {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        let Some(hold) = self.holds.get(grip.0).filter(|hold| hold.word.depth() == 1) else {
            // The outer guards believe they read: they would wait for themselves.
            return self.answered(Why::WouldDeadlock);
        };
        let (owner, terms) = (hold.owner, *hold.keeping.terms());
        let mode = Mode::Exclusive;
        let ask = Ask { mode, fair: false, patience, until, owner, reentrant: false, terms, max_hold: None };
        let ticket = self.tickets.insert(Some(ask), Stage::Unclaimed);
        if let Some(until) = until {
            self.waits.insert((until, ticket));
        }
        if let Some(seq) = self.new_claim(now, ticket, Taker::Upgrade(ticket, grip)) {
            self.tickets.set(ticket, Stage::Claimed(seq));
            self.todo.push_back(Todo::Claim(seq));
        }
        ticket
    }

    /// A writer wants to read.
    pub fn handle_downgrade(&mut self, now: Moment, grip: Grip) -> Ticket {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        if self.word(grip).depth() > 1 {
            return self.answered(Why::WouldDeadlock);
        }
        if self.cohort == Cohort::Holding(grip.0) {
            // A shared hold is not passed locally: from here on the line has its own claim.
            self.cohort = Cohort::Idle;
            self.advance(now);
        }
        let ticket = self.tickets.insert(None, Stage::Errand);
        self.todo.push_back(Todo::Downgrade(grip, ticket));
        ticket
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

    pub(super) fn downgrade_action(&self, grip: Grip, ticket: Ticket) -> Option<Action> {
        let id = self.holds.get(grip.0)?.id;
        let errand = Errand::Downgrade { grip, seq: id.seq, ticket };
        Some(Action { errand, op: Op::Downgrade(id), lane: Lane::Claims })
    }

    pub(super) fn on_downgraded(&mut self, now: Moment, grip: Grip, seq: u64, ticket: Ticket, answer: Downgraded) {
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.id.seq == seq) else { return };
        if let Downgraded::Shared(_) = answer {
            hold.mode = Mode::Shared;
            return self.finish(ticket, Outcome::Done);
        }
        self.lose(now, grip, LossReason::Gone);
        self.fail(ticket, Why::Lost(LossReason::Gone));
    }

    /// The claim of a pending upgrade of this hold.
    pub(super) fn upgrade_of(&self, grip: Grip) -> Option<u64> {
        let upgrades = |taker: Taker| matches!(taker, Taker::Upgrade(_, of) if of == grip);
        self.claims.iter().find(|(_, claim)| upgrades(claim.taker)).map(|(seq, _)| *seq)
    }

    /// A hold was lost: its pending upgrade has nothing to stand on.
    pub(super) fn end_upgrade(&mut self, now: Moment, grip: Grip, reason: &LossReason) {
        let Some(seq) = self.upgrade_of(grip) else { return };
        let ticket = self.claims.get(&seq).and_then(|claim| self.taker(claim));
        self.abandon(now, seq);
        if let Some(ticket) = ticket {
            self.fail(ticket, Why::Lost(reason.clone()));
        }
    }

    /// The read hold is gone while its upgrade is pending: it may have been exchanged. Asks, and says whether it did.
    pub(super) fn confirm_upgrade(&mut self, seq: u64) -> bool {
        let Some(claim) = self.claims.get_mut(&seq) else { return false };
        if !matches!(claim.phase, Phase::New | Phase::Confirming) {
            claim.phase = Phase::Confirming;
            self.todo.push_back(Todo::Confirm(seq));
        }
        self.claims.get(&seq).is_some_and(|claim| claim.phase == Phase::Confirming)
    }

    /// The wait for an upgrade is over: back to reading, whichever side of the exchange we are on.
    pub(super) fn withdraw(&mut self, seq: u64) {
        match self.claims.get(&seq).map(|claim| claim.phase) {
            Some(Phase::New) => {
                if let Some(claim) = self.forget_claim(seq)
                    && let Taker::Upgrade(ticket, _) = claim.taker
                {
                    self.fail(ticket, Why::Timeout(self.blocker().cloned()));
                }
            }
            Some(_) => self.todo.push_back(Todo::Withdraw(seq)),
            None => {}
        }
    }

    pub(super) fn withdraw_action(&self, now: Moment, seq: u64) -> Option<Action> {
        let id = self.claims.get(&seq)?.id;
        Some(Action { errand: Errand::Withdraw { seq, sent: now }, op: Op::Downgrade(id), lane: Lane::Claims })
    }

    pub(super) fn on_withdrawn(&mut self, now: Moment, seq: u64, sent: Moment, answer: Downgraded) {
        let Some(Taker::Upgrade(ticket, grip)) = self.claims.get(&seq).map(|claim| claim.taker) else { return };
        match answer {
            Downgraded::Withdrawn => {
                self.forget_claim(seq);
            }
            Downgraded::Shared(grant) => {
                // The exchange had happened: the hold goes on under its new id, shared again.
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, Some(grant.line));
                self.settle_claim(now, seq, ticket, &Landing { stamp, sent, remaining, line, confirmed: true });
                if let Some(hold) = self.holds.get_mut(grip.0) {
                    hold.mode = Mode::Shared;
                }
            }
            // The upgrade never arrived, or not yet: its id is marked done.
            Downgraded::NotHolder => {
                self.part_claim(now, seq, Lane::Renewals);
                self.forget_claim(seq);
            }
        }
        self.fail(ticket, Why::Timeout(self.blocker().cloned()));
    }

    pub(super) fn on_withdraw_error(&mut self, now: Moment, seq: u64, error: StoreError) {
        let Some(Taker::Upgrade(ticket, grip)) = self.claims.get(&seq).map(|claim| claim.taker) else { return };
        // Nobody knows on which side of the exchange we are: end both.
        if error.outcome == Sure::Unknown {
            self.lose(now, grip, LossReason::Unreachable);
        }
        self.part_claim(now, seq, Lane::Renewals);
        self.forget_claim(seq);
        self.fail(ticket, Why::Store(error));
    }
}
