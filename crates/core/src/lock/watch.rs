//! What the watchdog finds in a hold, what takes too long, and how a lost hold is recovered.
//!
//! | group | what happens |
//! |---|---|
//! | checks | each tick judges the hold and checks its record; what is wrong is found |
//! | alerts | what takes longer than its limit; each is raised once |
//! | recovery | what is done about a lost hold |
//!
//! # Checks
//! Once in a period the watchdog calls [`Machine::handle_tick`]. A check is a heartbeat that names the id of a hold: the store says what
//! it knows of the hold and changes nothing.
//!
//! | finding | what is done about it |
//! |---|---|
//! | a renewal is overdue or failing | it is tried again; the next confirmation says that this worked |
//! | the record does not name the hold | lost; [recovered](super::Recovery) as its ask says, unless it was revoked |
//! | the lease end is wrong | the earlier end is believed, and the hold is renewed at once |
//! | its holder ended, makes no progress, or holds for too long | lost; recovered as its ask says, but never taken again |
//!
//! # Recovery
//! | lost because | `Notify` | `Release` | `Reacquire` |
//! |---|---|---|---|
//! | expired, unreachable | told | told, released in the store | told, taken again if nobody had it since |
//! | gone from the store | told | told | told, taken again if nobody had it since |
//! | its holder ended, made no progress, held for too long; revoked | told | told, released in the store | told |
//! | revoked, and ended in the store | told | told | told |
//! | shut down | told, released in the store | the same | the same |
//!
//! "Told" means that the guard is told. The store proves that nobody had it since: it grants the claim only if our own stamp is still the
//! last one of the record and was not revoked. The same request releases the old hold, if the store still has it. The request is sent
//! again with the same id until it is answered, so a lost answer is found again. A revocation or the end of its task ends the attempt.
//! A hold whose renewals are used up is not taken again; renewals that were used stay used.

use std::sync::Arc;
use std::time::Duration;

use crate::op::{Grant, Patience, Refusal, Renewal, Standing, Verdict};
use crate::renewal::LeaseTracker;
use crate::time::{LeaseTime, Moment};
use crate::token::Token;
use crate::zoo::{self, Bug};

use super::claim::{ClaimSpec, Recipient};
use super::hold::Hold;
use super::{Ask, ConnectionKind, Event, Finding, HoldKey, HoldLimits, LossReason, Machine, Recovery, Todo, WaiterId};

/// By how much a lease end may differ in a check, besides the drift of clocks and the time that the check takes.
const JITTER: Duration = Duration::from_millis(100);

/// What is watched of a hold besides its lease. Most holds have none.
#[derive(Debug)]
pub(super) struct HoldWatch {
    pub(super) limits: Option<Arc<HoldLimits>>,
    /// When its holder last made progress.
    pub(super) progressed: Moment,
    /// Whether it was lost and is being taken again.
    pub(super) regaining: bool,
    pub(super) alerted: Alerted,
}

impl HoldWatch {
    pub(super) fn of(now: Moment, ask: &Ask) -> Option<Self> {
        if ask.limits.is_none() && ask.recovery != Recovery::Reacquire {
            return None;
        }
        let (limits, alerted) = (ask.limits.clone(), Alerted::default());
        Some(Self { limits, progressed: now, regaining: false, alerted })
    }
}

/// The alerts that were raised already.
#[derive(Debug, Default)]
pub(super) struct Alerted {
    hold: bool,
    renewal: bool,
}

/// What is watched of a hold, and its limits, if it has any.
fn watched(hold: &mut Hold) -> Option<(&mut HoldWatch, HoldLimits)> {
    let watch = hold.watch_mut()?;
    let limits = watch.limits.as_deref().copied()?;
    Some((watch, limits))
}

impl LossReason {
    /// Whether the lease merely ran out: nobody ended the hold on purpose.
    fn is_lapse(&self) -> bool {
        matches!(self, Self::Expired | Self::Unreachable | Self::Gone)
    }

    /// Whether somebody ordered the end of the hold.
    fn is_order(&self) -> bool {
        matches!(self, Self::Revoked(_) | Self::Shutdown)
    }
}

impl Machine {
    // ---- Checks ----

    pub(super) fn check_hold(&mut self, now: Moment, hold_key: HoldKey, period: Duration) {
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.is_picked_up()) else { return };
        let token = hold.token();
        if hold.stands_still(now) {
            return self.lose(now, hold_key, LossReason::NoProgress);
        }
        if let Some(overdue) = hold.tracker.overdue(now) {
            hold.repairing = true;
            self.active.events.push_back(Event::Found { hold_key, token, finding: Finding::Renewal { overdue } });
        } else if now.since(hold.seen) >= period {
            self.active.todo.push_back(Todo::Check(hold_key));
        }
        self.alert_hold(now, hold_key);
        self.alert_renewal(now, hold_key);
        self.tend_hold(now, hold_key);
    }

    pub(super) fn on_check(
        &mut self,
        (now, at): (Moment, LeaseTime),
        (hold_key, seq, sent): (HoldKey, u64, Moment),
        standing: Option<&Standing>,
    ) {
        let live = |hold: &Hold| hold.is_live() || zoo::has(Bug::CheckRevives);
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.seq == seq && live(hold)) else { return };
        match standing {
            Some(Standing::Granted(grant)) if grant.stamp == hold.stamp => {
                if zoo::has(Bug::CheckRevives) {
                    hold.cold_mut().loss = None;
                }
                self.on_record_seen(now, hold_key, sent, grant);
            }
            Some(Standing::Revoked { reason }) => {
                let (reason, remaining) = (reason.clone(), Duration::ZERO);
                self.on_renewal((now, at), (hold_key, seq, sent), None, Renewal::Revoked { reason, remaining });
            }
            Some(Standing::Granted(_) | Standing::Gone) => {
                self.on_renewal((now, at), (hold_key, seq, sent), None, Renewal::NotHolder);
            }
            Some(Standing::Queued(_)) | None => {}
        }
    }

    /// The record names the hold. Its lease end must be where the latest answer put it.
    fn on_record_seen(&mut self, now: Moment, hold_key: HoldKey, sent: Moment, grant: &Grant) {
        let (drift, response) = (self.settings.drift, self.settings.response);
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        if hold.seen >= sent {
            // A renewal overtook this check: it shows an earlier state.
            return;
        }
        hold.seen = sent;
        hold.doubted = false;
        if zoo::has(Bug::CheckMovesDeadline) {
            hold.tracker.confirmed(now, now, grant.remaining, false);
        }
        let (end, believed) = (drift.deadline(sent, grant.remaining), hold.deadline());
        let margin = hold.lease().length().saturating_sub(drift.safe(hold.lease().length())) + JITTER;
        let nearer = believed.since(end) > margin + now.since(sent);
        let further = end.since(believed) > margin + response && hold.tracker.is_settled();
        if !nearer && !further {
            return;
        }
        let (remaining, expected) = (grant.remaining, believed.since(sent));
        hold.tracker.correct_end(sent, grant.remaining);
        hold.repairing = true;
        let (token, finding) = (hold.token(), Finding::LeaseEnd { remaining, expected });
        self.active.events.push_back(Event::Found { hold_key, token, finding });
        self.tend_hold(now, hold_key);
    }

    /// Raises the finding that a loss amounts to. The end of a lease as planned is none; nor are orders.
    pub(super) fn note_found(&mut self, hold_key: HoldKey, reason: &LossReason) {
        let Some(hold) = self.holds.get(hold_key) else { return };
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
        self.note_repaired(hold_key, false);
        self.active.events.push_back(Event::Found { hold_key, token, finding });
    }

    /// Ends a repair, if one is under way.
    pub(super) fn note_repaired(&mut self, hold_key: HoldKey, worked: bool) {
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        if std::mem::take(&mut hold.repairing) {
            let token = hold.token();
            self.active.events.push_back(Event::Recovered { hold_key, strategy: None, worked, token });
        }
    }

    // ---- Alerts ----

    pub(super) fn alert_hold(&mut self, now: Moment, hold_key: HoldKey) {
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        let (token, held) = (hold.token(), now.since(hold.since));
        let Some((watch, limits)) = watched(hold) else { return };
        if let Some(limit) = limits.alert_hold.filter(|limit| held > *limit && !watch.alerted.hold) {
            watch.alerted.hold = true;
            self.active.events.push_back(Event::HeldLong { token, held, limit });
        }
    }

    /// Raises an alert if the renewal that is due is too late.
    pub(super) fn alert_renewal(&mut self, now: Moment, hold_key: HoldKey) {
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        let (token, late) = (hold.token(), hold.tracker.lateness(now));
        let Some((watch, limits)) = watched(hold) else { return };
        if let Some(limit) = limits.alert_renewal.filter(|limit| late > *limit && !watch.alerted.renewal) {
            watch.alerted.renewal = true;
            self.active.events.push_back(Event::RenewedLong { token, late, limit });
        }
    }

    /// The renewal came: the next one may raise an alert again.
    pub(super) fn end_renewal_alert(&mut self, hold_key: HoldKey) {
        if let Some(watch) = self.holds.get_mut(hold_key).and_then(|hold| hold.watch_mut()) {
            watch.alerted.renewal = false;
        }
    }

    pub(super) fn alert_wait(&mut self, now: Moment, waiter: WaiterId) {
        let Some(ask) = self.active.waiters.ask(waiter) else { return };
        let Some(limits) = &ask.limits else { return };
        let waited = now.since(ask.since);
        if let Some(limit) = limits.alert_wait.filter(|limit| waited > *limit)
            && self.active.waiters.alert(waiter)
        {
            self.active.events.push_back(Event::WaitedLong { waited, limit });
        }
    }

    // ---- Recovery ----

    /// Recovers a lost hold as its ask says. Its guard was told.
    pub(super) fn recover(&mut self, now: Moment, hold_key: HoldKey, reason: &LossReason) {
        let Some(hold) = self.holds.get(hold_key) else { return };
        let (token, quiet) = (hold.token(), reason.is_order() || hold.ended_as_agreed(reason));
        let against_will = match reason {
            LossReason::Revoked(_) => zoo::has(Bug::RegainAfterRevoke),
            LossReason::TaskEnded | LossReason::NoProgress | LossReason::MaxHold => zoo::has(Bug::RegainForTheEnded),
            _ => false,
        };
        match hold.recovery {
            Recovery::Reacquire if against_will => self.regain(now, hold_key),
            Recovery::Release if !hold.nothing_to_release() => {
                let key = self.release_in_store(
                    now,
                    hold.id,
                    hold.unanswered(),
                    hold.lease().length(),
                    ConnectionKind::Renewals,
                );
                self.active.releases[key].recovers = (!quiet).then_some((hold_key, token));
            }
            Recovery::Reacquire if reason.is_lapse() && !quiet && !self.closed => self.regain(now, hold_key),
            _ if quiet => {}
            _ => self.note_recovered(hold_key, Recovery::Notify, true, token),
        }
    }

    fn note_recovered(&mut self, hold_key: HoldKey, strategy: Recovery, worked: bool, token: Token) {
        self.active.events.push_back(Event::Recovered { hold_key, strategy: Some(strategy), worked, token });
    }

    /// The release of a lost hold has ended.
    pub(super) fn note_recovery_released(&mut self, recovers: Option<(HoldKey, Token)>, worked: bool) {
        if let Some((hold_key, token)) = recovers {
            self.note_recovered(hold_key, Recovery::Release, worked, token);
        }
    }

    /// Takes a lost hold again.
    fn regain(&mut self, now: Moment, hold_key: HoldKey) {
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        let Some(watch) = hold.watch_mut() else { return };
        watch.regaining = true;
        let (id, unanswered, lease) = (hold.id, hold.unanswered(), hold.lease());
        let recipient = Recipient::Regain(hold_key, hold.stamp);
        let spec = ClaimSpec { mode: hold.mode, lease, fair: false, patience: Patience::Try };
        let seq = self.insert_claim(now, recipient, spec);
        let key = self.release_in_store(now, id, unanswered, lease.length(), ConnectionKind::Renewals);
        self.active.releases[key].again = Some(seq);
    }

    /// Whether this claim takes a lost hold again.
    pub(super) fn is_regain(&self, seq: u64) -> bool {
        matches!(self.active.claims.get(&seq).map(|claim| claim.recipient), Some(Recipient::Regain(..)))
    }

    pub(super) fn on_regain(&mut self, now: Moment, seq: u64, hold_key: HoldKey, verdict: Verdict) {
        let grant = match verdict {
            Verdict::Granted(grant) => grant,
            Verdict::Refused(Refusal::Revoked { reason }) => {
                self.forget_claim(seq);
                return self.lose_for_good(hold_key, LossReason::Revoked(reason.into()));
            }
            _ => {
                self.forget_claim(seq);
                return self.end_regain(hold_key);
            }
        };
        let Some(claim) = self.active.claims.get(&seq) else { return };
        let in_time = self.settings.drift.deadline(claim.asked, grant.remaining) > now;
        if !self.is_regaining(hold_key) || !in_time {
            self.abandon_granted(now, seq);
            return self.end_regain(hold_key);
        }
        self.regained(now, seq, hold_key, grant);
    }

    fn regained(&mut self, now: Moment, seq: u64, hold_key: HoldKey, grant: Grant) {
        let Some(claim) = self.forget_claim(seq) else { return };
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        let origin = hold.origin();
        (hold.seq, hold.id) = (seq, self.client.holder(seq));
        if !zoo::has(Bug::RegainKeepsToken) {
            (hold.stamp, hold.local) = (grant.stamp, 0);
        }
        let sent = if zoo::has(Bug::RegainFromReply) { now } else { claim.asked };
        hold.tracker = LeaseTracker::after(&hold.tracker, sent, grant.remaining);
        hold.confirmed = true;
        (hold.run, hold.seen, hold.started) = (claim.run, claim.asked, LeaseTime::ZERO);
        (hold.doubted, hold.uncertain) = (false, false);
        if let Some(watch) = hold.watch_mut() {
            watch.regaining = false;
        }
        hold.cold_mut().loss = None;
        hold.note_answered();
        hold.keep_origin(origin);
        let token = hold.token();
        self.note_recovered(hold_key, Recovery::Reacquire, true, token);
        self.tend_hold(now, hold_key);
    }

    /// A release that takes a lost hold again is about to be sent. If that is no longer wanted, it only releases.
    pub(super) fn drop_unwanted_regain(&mut self, now: Moment, key: usize) {
        let Some(seq) = self.active.releases.get(key).and_then(|pending| pending.again) else { return };
        let Some(Recipient::Regain(hold_key, _)) = self.active.claims.get(&seq).map(|claim| claim.recipient) else {
            return;
        };
        if !self.is_regaining(hold_key) {
            self.active.releases[key].again = None;
            self.abandon_granted(now, seq);
        }
    }

    /// The attempt to take a hold again failed for good.
    pub(super) fn on_regain_error(&mut self, seq: u64, hold_key: HoldKey) {
        self.forget_claim(seq);
        self.end_regain(hold_key);
    }

    /// A hold that is being taken again is lost for a second reason: then it stays lost, for that reason.
    pub(super) fn lose_for_good(&mut self, hold_key: HoldKey, reason: LossReason) {
        if !reason.is_lapse() && self.is_regaining(hold_key) {
            if let Some(hold) = self.holds.get_mut(hold_key) {
                hold.cold_mut().loss = Some(reason);
            }
            self.end_regain(hold_key);
        }
    }

    /// The hold stays lost. A grant that still arrives is released.
    pub(super) fn end_regain(&mut self, hold_key: HoldKey) {
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        let token = hold.token();
        if hold.watch_mut().is_some_and(|watch| std::mem::take(&mut watch.regaining)) {
            self.note_recovered(hold_key, Recovery::Reacquire, false, token);
        }
    }
}
