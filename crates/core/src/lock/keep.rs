//! How a hold is kept: renewed, doubted, and given up when its time is over.

use crate::lease::{self, Lease};
use crate::op::{Op, Renew, Renewal};
use crate::renewal::Due;
use crate::store::StoreError;
use crate::time::{LeaseTime, Moment};
use crate::zoo::{self, Bug};

use super::hold::{Hold, counted_from};
use super::holds::HoldKey;
use super::{Action, Cohort, Errand, Event, Grip, HoldState, Lane, LossReason, Machine, Outcome, Slip, Todo, Why};

impl Machine {
    pub(super) fn renew_action(&mut self, now: Moment, grip: Grip, slip: Option<Slip>, due: Moment) -> Option<Action> {
        let hold = self.holds.get_mut(grip.0).filter(|hold| hold.is_live())?;
        // What is kept back is not under way.
        hold.confirming |= due <= now;
        let errand = Errand::Renew { grip, seq: hold.seq, sent: now, slip, due };
        // Asked about a hold that is not to be renewed any more, the store lengthens nothing.
        let lease = match slip {
            None if hold.keeping.is_exhausted() => {
                Lease::new(hold.deadline().since(now).max(lease::MIN)).unwrap_or_else(|_| hold.lease())
            }
            _ => hold.lease(),
        };
        let op = Op::Renew(Renew { id: hold.id, lease, started: hold.started });
        Some(Action { errand, op, lane: Lane::Renewals })
    }

    /// A renewal that was kept until it was [due](Errand::Renew::due) is about to be sent. False if it is not to be sent any more: the
    /// hold was released, or another has confirmed it or is about to.
    pub fn handle_due(&mut self, errand: &Errand) -> bool {
        let Errand::Renew { grip, seq, .. } = errand else { return true };
        let wanted = |hold: &&mut Hold| hold.seq == *seq && hold.is_live() && !hold.confirmed && !hold.confirming;
        self.holds.get_mut(grip.0).filter(wanted).map(|hold| hold.confirming = true).is_some()
    }

    /// `at` is the store's own time of the answer.
    pub(super) fn on_renewal(
        &mut self,
        (now, at): (Moment, LeaseTime),
        (grip, seq, sent): (Grip, u64, Moment),
        slip: Option<Slip>,
        renewal: Renewal,
    ) {
        let same = |hold: &Hold| hold.seq == seq || zoo::has(Bug::RenewalOfAnother);
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| same(hold) && hold.is_live()) else {
            let known = self.holds.get(grip.0).filter(|hold| hold.seq == seq);
            let reason = known.and_then(|hold| hold.loss().cloned()).unwrap_or(LossReason::Gone);
            // Its guard may have left meanwhile, and the next one waits for this answer.
            self.on_confirmed(now, seq, sent, renewal);
            return self.tell_renewer(slip, Why::Lost(reason).into());
        };
        match renewal {
            Renewal::Renewed { remaining, line, .. } => {
                let counts = std::mem::replace(&mut hold.confirmed, true);
                let late = hold.keeping.late(now);
                self.alert_renewal(now, grip);
                self.end_renewal_alert(grip);
                let Some(hold) = self.holds.get_mut(grip.0) else { return };
                (hold.doubted, hold.uncertain, hold.confirming) = (false, false, false);
                (hold.seen, hold.started) = (hold.seen.max(sent), at);
                hold.keeping.confirmed(now, counted_from(now, sent), remaining, counts);
                if self.cohort == Cohort::Holding(grip.0) {
                    self.learn(now, sent, line);
                }
                if counts {
                    self.bustle.events.push_back(Event::Renewed { grip, late });
                }
                self.note_repaired(grip, true);
                self.tell_renewer(slip, Outcome::Done);
            }
            Renewal::Revoked { reason, remaining } => {
                let reason = LossReason::Revoked(reason.into());
                hold.rare_mut().ended = remaining.is_zero();
                self.bustle.events.push_back(Event::RenewalFailed(grip));
                self.lose(now, grip, reason.clone());
                self.tell_renewer(slip, Why::Lost(reason).into());
            }
            Renewal::NotHolder => {
                if self.upgrade_of(grip).is_some_and(|seq| self.confirm_upgrade(seq)) {
                    return self.tell_renewer(slip, Outcome::Done);
                }
                self.bustle.events.push_back(Event::RenewalFailed(grip));
                self.lose(now, grip, LossReason::Gone);
                self.tell_renewer(slip, Why::Lost(LossReason::Gone).into());
            }
        }
    }

    pub(super) fn on_renewal_error(
        &mut self,
        now: Moment,
        hold: (Grip, u64, Moment),
        slip: Option<Slip>,
        error: StoreError,
    ) {
        let (grip, seq, sent) = hold;
        if self.is_confirming(seq) {
            self.on_claim_error(now, seq, error.clone());
        }
        if let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.seq == seq) {
            hold.confirming = false;
            hold.keeping.failed(now, sent);
            self.bustle.events.push_back(Event::RenewalFailed(grip));
        }
        self.note_doubt(now, grip.0);
        self.tell_renewer(slip, Why::Store(error).into());
    }

    fn tell_renewer(&mut self, slip: Option<Slip>, outcome: Outcome) {
        if let Some(slip) = slip {
            self.finish(slip, outcome);
        }
    }

    /// Looks after a hold: renews it, rotates it, or declares it lost.
    pub(super) fn attend(&mut self, now: Moment, key: HoldKey) {
        let Some(hold) = self.holds.get_mut(key).filter(|hold| hold.is_live()) else { return };
        if hold.max_hold().is_some_and(|max| hold.since + max <= now) {
            return self.lose(now, Grip(key), LossReason::MaxHold);
        }
        match hold.keeping.due(now) {
            Due::Nothing => {}
            Due::Renew => {
                if zoo::has(Bug::DeadlineAtSend) {
                    hold.keeping.confirmed(now, now, hold.lease().length(), true);
                }
                self.bustle.todo.push_back(Todo::Renew(Grip(key), None));
            }
            Due::Lost(loss) => return self.lose(now, Grip(key), loss.into()),
        }
        self.note_doubt(now, key);
        let late = self.holds.get(key).filter(|hold| hold.pick_by(&self.settings) <= now);
        if let Some(slip) = late.and_then(|hold| self.unpicked(hold)) {
            self.rotate(now, key, slip);
        }
    }

    /// Tells once that a hold has become doubtful. One that nobody has seen yet is nobody's worry.
    fn note_doubt(&mut self, now: Moment, key: HoldKey) {
        let Some(hold) = self.holds.get_mut(key).filter(|hold| !hold.uncertain && hold.is_picked_up()) else {
            return;
        };
        if let HoldState::Uncertain { until } = hold.state(now) {
            hold.uncertain = true;
            self.bustle.events.push_back(Event::Uncertain { grip: Grip(key), until });
        }
    }
}
