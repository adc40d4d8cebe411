//! What the watchdog asks of a machine, every period: how the holds stand, whose record is to be looked at, and what came of
//! that. The watchdog's thread calls [`Machine::handle_round`]; the answers to its looks come back like any other.
//!
//! A look is a heartbeat that names the id of a hold: the store says what it knows of it and changes nothing.
//!
//! | finding | what is done about it |
//! |---|---|
//! | a renewal overdue or failing | caught up with; the next confirmation says that it worked |
//! | a record without us | lost; [recovered](super::Recovery) as the hold wants it, unless it was revoked |
//! | a lease end that does not fit | the nearer end is believed, and the hold renewed at once |
//! | a holder that ended, stands still, or holds for too long | lost; recovered as the hold wants it, but never taken again |

use std::sync::Arc;
use std::time::Duration;

use crate::op::{Grant, Heartbeat, Op, Renewal, Standing};
use crate::time::{LeaseTime, Moment};
use crate::zoo::{self, Bug};

use super::alerts::Alerted;
use super::hold::Hold;
use super::holds::HoldKey;
use super::{Action, Ask, Errand, Event, Finding, Grip, Lane, LossReason, Machine, Recovery, Todo, Vigil};

/// What a look at a record may be off by besides the drift of clocks and the time it takes.
const JITTER: Duration = Duration::from_millis(100);

/// What a hold needs to be watched for besides its lease; most need none of it.
#[derive(Debug)]
pub(super) struct Care {
    pub(super) vigil: Option<Arc<Vigil>>,
    progressed: Moment,
    /// Whether it was lost, and is being taken again.
    pub(super) regaining: bool,
    pub(super) alerted: Alerted,
}

impl Care {
    pub(super) fn of(now: Moment, ask: &Ask) -> Option<Self> {
        if ask.vigil.is_none() && ask.recovery != Recovery::Reacquire {
            return None;
        }
        let (vigil, alerted) = (ask.vigil.clone(), Alerted::default());
        Some(Self { vigil, progressed: now, regaining: false, alerted })
    }
}

/// One machine in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Live holds.
    pub holds: usize,
    /// Those among them that are in doubt.
    pub uncertain: usize,
    /// Whoever waits here.
    pub waiters: usize,
}

impl Hold {
    fn vigil(&self) -> Option<&Vigil> {
        self.care()?.vigil.as_deref()
    }

    pub(super) fn max_hold(&self) -> Option<Duration> {
        self.vigil()?.max_hold
    }

    fn stands_still(&self, now: Moment) -> bool {
        let within = self.vigil().and_then(|vigil| vigil.progress);
        within.zip(self.care()).is_some_and(|(within, care)| now.since(care.progressed) > within)
    }
}

impl Machine {
    /// A round of the watchdog: judges every hold, and asks for the records that no answer has named for `period`.
    pub fn handle_round(&mut self, now: Moment, period: Duration) -> Tally {
        let mut tally = Tally { waiters: self.bustle.slips.waiting().len(), ..Tally::default() };
        let live: Vec<HoldKey> = self.holds.iter().filter(|(_, hold)| hold.is_live()).map(|(key, _)| key).collect();
        for key in live {
            self.check(now, key, period);
            let Some(hold) = self.holds.get(key).filter(|hold| hold.is_live()) else { continue };
            tally.holds += 1;
            tally.uncertain += usize::from(hold.doubted || hold.keeping.overdue(now).is_some());
        }
        self.bustle.slips.waiting().into_iter().for_each(|slip| self.alert_wait(now, slip));
        tally
    }

    fn check(&mut self, now: Moment, key: HoldKey, period: Duration) {
        let Some(hold) = self.holds.get_mut(key).filter(|hold| hold.is_picked_up()) else { return };
        let (grip, token) = (Grip(key), hold.token());
        if hold.stands_still(now) {
            return self.lose(now, grip, LossReason::NoProgress);
        }
        if let Some(overdue) = hold.keeping.overdue(now) {
            hold.repairing = true;
            self.bustle.events.push_back(Event::Found { grip, token, finding: Finding::Renewal { overdue } });
        } else if now.since(hold.seen) >= period {
            self.bustle.todo.push_back(Todo::Look(grip));
        }
        self.alert_hold(now, grip);
        self.alert_renewal(now, grip);
        self.attend(now, key);
    }

    /// The holder says that it gets on.
    pub fn handle_progress(&mut self, now: Moment, grip: Grip) {
        if let Some(care) = self.holds.get_mut(grip.0).and_then(|hold| hold.care_mut()) {
            care.progressed = now;
        }
    }

    /// The task that a hold was bound to has ended.
    pub fn handle_task_ended(&mut self, now: Moment, grip: Grip) {
        self.lose(now, grip, LossReason::TaskEnded);
    }

    pub(super) fn look_action(&self, now: Moment, grip: Grip) -> Option<Action> {
        let hold = self.holds.get(grip.0).filter(|hold| hold.is_live())?;
        // As long as any heartbeat of ours keeps an inbox alive: none is cut short.
        let beat = Heartbeat { inbox: self.client.inbox(), ids: vec![hold.id], alive: self.settings.window * 2 };
        let errand = Errand::Look { grip, seq: hold.seq, sent: now };
        Some(Action { errand, op: Op::Heartbeat(beat), lane: Lane::Renewals })
    }

    pub(super) fn on_look(
        &mut self,
        (now, at): (Moment, LeaseTime),
        (grip, seq, sent): (Grip, u64, Moment),
        standing: Option<&Standing>,
    ) {
        let live = |hold: &Hold| hold.is_live() || zoo::has(Bug::LookRevives);
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.seq == seq && live(hold)) else { return };
        match standing {
            Some(Standing::Granted(grant)) if grant.stamp == hold.stamp => {
                if zoo::has(Bug::LookRevives) {
                    hold.rare_mut().loss = None;
                }
                self.on_sight(now, grip, sent, grant);
            }
            Some(Standing::Revoked { reason }) => {
                let (reason, remaining) = (reason.clone(), Duration::ZERO);
                self.on_renewal((now, at), (grip, seq, sent), None, Renewal::Revoked { reason, remaining });
            }
            Some(Standing::Granted(_) | Standing::Gone) => {
                self.on_renewal((now, at), (grip, seq, sent), None, Renewal::NotHolder);
            }
            Some(Standing::Queued(_)) | None => {}
        }
    }

    /// The record names us. Its lease end must be where the last answer put it.
    fn on_sight(&mut self, now: Moment, grip: Grip, sent: Moment, grant: &Grant) {
        let (drift, response) = (self.settings.drift, self.settings.response);
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        if hold.seen >= sent {
            // Overtaken by a renewal: this is how it stood before.
            return;
        }
        hold.seen = sent;
        hold.doubted = false;
        if zoo::has(Bug::LookMovesDeadline) {
            hold.keeping.confirmed(now, now, grant.remaining, false);
        }
        let (end, believed) = (drift.deadline(sent, grant.remaining), hold.deadline());
        let margin = hold.lease().length().saturating_sub(drift.safe(hold.lease().length())) + JITTER;
        let nearer = believed.since(end) > margin + now.since(sent);
        let further = end.since(believed) > margin + response && hold.keeping.is_settled();
        if !nearer && !further {
            return;
        }
        let (remaining, expected) = (grant.remaining, believed.since(sent));
        hold.keeping.look(sent, grant.remaining);
        hold.repairing = true;
        let (token, finding) = (hold.token(), Finding::LeaseEnd { remaining, expected });
        self.bustle.events.push_back(Event::Found { grip, token, finding });
        self.attend(now, grip.0);
    }

    /// Says what a loss amounts to. Orders are no findings, and a lease that was to end has ended.
    pub(super) fn note_found(&mut self, grip: Grip, reason: &LossReason) {
        let Some(hold) = self.holds.get(grip.0) else { return };
        let token = hold.token();
        let finding = match reason {
            reason if hold.ended_as_agreed(reason) => return,
            LossReason::Expired | LossReason::Unreachable => Finding::Renewal { overdue: Duration::ZERO },
            LossReason::Gone => Finding::Record,
            LossReason::MaxHold | LossReason::OwnerEnded | LossReason::TaskEnded | LossReason::NoProgress => {
                Finding::Holder { reason: reason.as_str() }
            }
            LossReason::Revoked(_) | LossReason::Shutdown => return,
        };
        self.note_repaired(grip, false);
        self.bustle.events.push_back(Event::Found { grip, token, finding });
    }

    /// A repair has come to its end, if one was under way.
    pub(super) fn note_repaired(&mut self, grip: Grip, worked: bool) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        if std::mem::take(&mut hold.repairing) {
            let token = hold.token();
            self.bustle.events.push_back(Event::Recovered { grip, strategy: None, worked, token });
        }
    }
}
