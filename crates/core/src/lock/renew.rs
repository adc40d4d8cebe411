//! How a hold is kept: renewed, put in doubt when the store does not answer, and given up when its time is over.

use crate::op::Renewal;
use crate::renewal::Due;
use crate::store::StoreError;
use crate::time::{LeaseTime, Moment, RunId};
use crate::zoo::{self, Bug};

use super::{CohortState, Event, Failure, HoldKey, HoldState, LossReason, Machine, Todo, WaitOutcome, WaiterId};

use super::hold::{Hold, counted_from};

impl Machine {
    /// Does what is due for a hold: renews it, declares it lost, or takes it from a waiter that does not pick it up.
    pub(super) fn tend_hold(&mut self, now: Moment, hold_key: HoldKey) {
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.is_live()) else { return };
        if hold.max_hold().is_some_and(|max| hold.since + max <= now) {
            return self.lose(now, hold_key, LossReason::MaxHold);
        }
        match hold.tracker.due(now) {
            Due::Nothing => {}
            Due::Renew => {
                if zoo::has(Bug::DeadlineAtSend) {
                    hold.tracker.confirmed(now, now, hold.lease().length(), true);
                }
                self.active.todo.push_back(Todo::Renew(hold_key, None));
            }
            Due::Lost(loss) => return self.lose(now, hold_key, loss.into()),
        }
        self.note_doubt(now, hold_key);
        let late = self.holds.get(hold_key).filter(|hold| hold.pick_by(&self.settings) <= now);
        if let Some(waiter) = late.and_then(|hold| self.unpicked(hold)) {
            self.requeue_unpicked(now, hold_key, waiter);
        }
    }

    /// The answer to a renewal; `at` is its time by the clock of the store.
    pub(super) fn on_renewal(
        &mut self,
        (now, at): (Moment, LeaseTime),
        (hold_key, seq, sent): (HoldKey, u64, Moment),
        waiter: Option<WaiterId>,
        renewal: Renewal,
    ) {
        let same = |hold: &Hold| hold.seq == seq || zoo::has(Bug::RenewalOfAnother);
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| same(hold) && hold.is_live()) else {
            let known = self.holds.get(hold_key).filter(|hold| hold.seq == seq);
            let reason = known.and_then(|hold| hold.loss().cloned()).unwrap_or(LossReason::Gone);
            // Its guard may have left meanwhile, and the next waiter waits for this answer.
            self.on_confirmed(now, seq, sent, renewal);
            return self.tell_renewer(waiter, Failure::Lost(reason).into());
        };
        match renewal {
            Renewal::Renewed { remaining, line, .. } => {
                let counts = std::mem::replace(&mut hold.confirmed, true);
                let late = hold.tracker.late(now);
                self.alert_renewal(now, hold_key);
                self.end_renewal_alert(hold_key);
                let Some(hold) = self.holds.get_mut(hold_key) else { return };
                (hold.doubted, hold.uncertain, hold.confirming) = (false, false, false);
                if let Some(cold) = &mut hold.cold {
                    cold.order = None;
                }
                (hold.seen, hold.started) = (hold.seen.max(sent), at);
                // Asked about a hold whose renewals are used up, the store says that it still stands: its guard believes in it no longer
                // than before.
                let is_question = counts && waiter.is_none() && hold.tracker.is_exhausted();
                if !is_question {
                    hold.tracker.confirmed(now, counted_from(now, sent), remaining, counts);
                }
                if self.cohort == CohortState::Holding(hold_key) {
                    self.note_line(now, sent, line);
                }
                if counts && !is_question {
                    self.active.events.push_back(Event::Renewed { hold_key, late });
                }
                self.note_repaired(hold_key, true);
                self.tell_renewer(waiter, WaitOutcome::Done);
            }
            Renewal::Revoked { reason, remaining } => {
                let reason = LossReason::Revoked(reason.into());
                hold.cold_mut().ended = remaining.is_zero();
                self.active.events.push_back(Event::RenewalFailed(hold_key));
                self.lose(now, hold_key, reason.clone());
                self.tell_renewer(waiter, Failure::Lost(reason).into());
            }
            Renewal::NotHolder => {
                if self.upgrade_of(hold_key).is_some_and(|seq| self.confirm_upgrade(seq)) {
                    return self.tell_renewer(waiter, WaitOutcome::Done);
                }
                self.active.events.push_back(Event::RenewalFailed(hold_key));
                self.lose(now, hold_key, LossReason::Gone);
                self.tell_renewer(waiter, Failure::Lost(LossReason::Gone).into());
            }
        }
    }

    pub(super) fn on_renewal_error(
        &mut self,
        now: Moment,
        hold: (HoldKey, u64, Moment),
        waiter: Option<WaiterId>,
        error: StoreError,
    ) {
        let (hold_key, seq, sent) = hold;
        if self.is_confirming(seq) {
            self.on_claim_error(now, seq, error.clone());
        }
        if let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.seq == seq) {
            hold.confirming = false;
            hold.tracker.failed(now, sent);
            self.active.events.push_back(Event::RenewalFailed(hold_key));
        }
        self.note_doubt(now, hold_key);
        self.tell_renewer(waiter, Failure::Store(error).into());
    }

    fn tell_renewer(&mut self, waiter: Option<WaiterId>, outcome: WaitOutcome) {
        if let Some(waiter) = waiter {
            self.finish(waiter, outcome);
        }
    }

    /// Raises the event that a hold has become uncertain, once. A hold that nobody has picked up yet raises none.
    fn note_doubt(&mut self, now: Moment, hold_key: HoldKey) {
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| !hold.uncertain && hold.is_picked_up()) else {
            return;
        };
        if let HoldState::Uncertain { until } = hold.state(now) {
            hold.uncertain = true;
            self.active.events.push_back(Event::Uncertain { hold_key, until });
        }
    }

    /// Notes the run of a store that answered. Holds that another run granted must be confirmed.
    pub(super) fn note_run(&mut self, run: RunId) {
        for (key, hold) in self.holds.iter_mut() {
            let known = std::mem::replace(&mut hold.run, Some(run).into()).id();
            if known.is_some_and(|known| known != run) {
                // The new run may have begun from a state before the latest answer.
                (hold.doubted, hold.started) = (true, LeaseTime::ZERO);
                let seen = hold.is_live() && hold.is_picked_up();
                if seen && !std::mem::replace(&mut hold.uncertain, true) {
                    self.active.events.push_back(Event::Uncertain { hold_key: key, until: hold.deadline() });
                }
                self.active.todo.push_back(Todo::Renew(key, None));
            }
        }
    }
}
