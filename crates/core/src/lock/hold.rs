//! The life of a hold: granted, entered, renewed, checked, lost, and perhaps taken again.
//!
//! | group | what happens |
//! |---|---|
//! | beginning | a claim becomes a hold, and a waiter is given it |
//! | re-entry | who is inside, and who would wait for itself |
//! | renewals | the lease is renewed, doubted, or given up when its time is over |
//! | checks | what the watchdog finds |
//! | alerts | what takes longer than its limit; each is raised once |
//! | loss | the guard is told, and the local line claims anew |
//! | recovery | what is done about a lost hold |
//!
//! How a hold ends by a release, or goes to the next local waiter, is in [`release`](super::release).
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

use crate::holder::HolderId;
use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Blocker, Downgraded, Grant, Patience, Refusal, Renewal, Standing, Verdict};
use crate::renewal::{Due, Health, LeaseTracker, Loss};
use crate::store::StoreError;
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::{Stamp, Token};
use crate::zoo::{self, Bug};

use super::claim::{ClaimSpec, IncomingGrant, PendingClaim, Recipient};
use super::state::{Active, KnownRun, Stage};
use super::{
    Ask, CohortState, ConnectionKind, Event, Failure, Finding, HoldKey, HoldLimits, HoldState, How, LossReason, Lost,
    Machine, OwnerId, Recovery, Settings, Todo, WaitOutcome, WaiterId, Word,
};

/// By how much a lease end may differ in a check, besides the drift of clocks and the time that the check takes.
const JITTER: Duration = Duration::from_millis(100);

/// Stands for the waiter of a hold that was picked up.
const PICKED_UP: u32 = u32::MAX;

/// One hold in the store and its use in this process.
#[derive(Debug)]
pub(super) struct Hold {
    /// Part of its key, given by [`Holds`](super::state::Holds).
    pub(super) generation: u32,
    /// The number of its claim.
    pub(super) seq: u64,
    /// Its id in the store. Derived once; every renewal needs it.
    pub(super) id: HolderId,
    pub(super) stamp: Stamp,
    pub(super) local: u16,
    pub(super) mode: Mode,
    pub(super) word: Word,
    pub(super) owner: Option<OwnerId>,
    pub(super) tracker: LeaseTracker,
    /// The index of the waiter that it was granted to, until it is picked up; then [`PICKED_UP`].
    granted: u32,
    pub(super) since: Moment,
    pub(super) recovery: Recovery,
    /// When the latest request whose answer named this hold was sent.
    pub(super) seen: Moment,
    /// When the latest renewal started its lease, by the clock of the store.
    pub(super) started: LeaseTime,
    /// Whether the watchdog found something that the next renewal repairs.
    pub(super) repairing: bool,
    /// Whether the store has confirmed the full lease yet.
    pub(super) confirmed: bool,
    /// Whether a renewal that may confirm it is under way.
    pub(super) confirming: bool,
    pub(super) run: KnownRun,
    /// Whether the store has begun a new run since it last named this hold, and may have forgotten it.
    pub(super) doubted: bool,
    /// Whether the event that it is uncertain was raised.
    pub(super) uncertain: bool,
    pub(super) cold: Option<Box<ColdFields>>,
}

impl Hold {
    pub(super) fn token(&self) -> Token {
        self.stamp.token(self.local)
    }

    pub(super) fn lease(&self) -> Lease {
        self.tracker.terms().lease()
    }

    pub(super) fn state(&self, now: Moment) -> HoldState {
        if let Some(loss) = self.loss() {
            return HoldState::Lost(loss.clone());
        }
        if zoo::has(Bug::NeverLost) {
            return HoldState::Held { until: Moment::FAR };
        }
        match self.tracker.state(now) {
            Health::Held { until } if self.doubted => HoldState::Uncertain { until },
            Health::Held { until } => HoldState::Held { until },
            Health::Uncertain { until } => HoldState::Uncertain { until },
            Health::Lost { reason } => HoldState::Lost(reason.into()),
        }
    }

    pub(super) fn is_lost(&self, now: Moment) -> bool {
        !self.is_live() || self.deadline() <= now
    }

    /// Whether its loss was not declared.
    pub(super) fn is_live(&self) -> bool {
        self.loss().is_none()
    }

    /// Why it was lost, if its loss was declared.
    pub(super) fn loss(&self) -> Option<&LossReason> {
        self.cold.as_ref()?.loss.as_ref()
    }

    /// Whether the store has nothing to release: it does not know the hold, or has released it already.
    pub(super) fn nothing_to_release(&self) -> bool {
        let ended =
            |cold: &ColdFields| cold.ended || matches!(cold.loss, Some(LossReason::Gone | LossReason::Shutdown));
        self.cold.as_deref().is_some_and(ended)
    }

    /// Whether its lease ended as planned: its renewals were used up.
    fn ended_as_agreed(&self, reason: &LossReason) -> bool {
        *reason == LossReason::Expired && self.tracker.is_exhausted()
    }

    pub(super) fn deadline(&self) -> Moment {
        self.tracker.deadline()
    }

    /// When something must be done about this hold.
    pub(super) fn next(&self, settings: &Settings) -> Moment {
        if !self.is_live() {
            return Moment::FAR;
        }
        let overdue = self.max_hold().map_or(Moment::FAR, |max| self.since + max);
        self.tracker.next().at().min(overdue).min(self.pick_by(settings))
    }

    /// The not-after of its claim, if that is not answered yet.
    pub(super) fn unanswered(&self) -> Option<LeaseTime> {
        self.cold.as_ref()?.unanswered
    }

    /// The claim that it came from is answered.
    pub(super) fn note_answered(&mut self) {
        if let Some(cold) = &mut self.cold {
            cold.unanswered = None;
            self.cold.take_if(|cold| cold.is_empty());
        }
    }

    // ---- Its guard ----

    /// Hands the hold to a waiter.
    fn assign(&mut self, now: Moment, waiter: WaiterId, ask: &Ask) {
        self.word = Word::locked();
        self.owner = ask.owner;
        self.since = now;
        self.forget_origin();
        self.set_watch(HoldWatch::of(now, ask));
        self.recovery = ask.recovery;
        self.granted = waiter.index;
    }

    pub(super) fn pick_up(&mut self) {
        self.granted = PICKED_UP;
    }

    pub(super) fn is_picked_up(&self) -> bool {
        self.granted == PICKED_UP
    }

    /// When it must be picked up at the latest; [`FAR`](Moment::FAR) once it was.
    fn pick_by(&self, settings: &Settings) -> Moment {
        if self.is_picked_up() { Moment::FAR } else { self.since + settings.window_of(self.lease()) }
    }

    /// The token that its guard was given first. The hold may have been exchanged or taken again since.
    fn origin(&self) -> Token {
        self.cold.as_ref().and_then(|cold| cold.origin).unwrap_or_else(|| self.token())
    }

    /// Whether its guard was given this token.
    #[inline]
    pub(super) fn is_of(&self, token: Token) -> bool {
        let latest = self.token();
        match &self.cold {
            None => token == latest,
            Some(_) => self.origin() <= token && token <= latest,
        }
    }

    /// Its guard keeps the token that it was given first, whatever token the hold has from now on.
    fn keep_origin(&mut self, origin: Token) {
        self.cold_mut().origin = Some(origin);
    }

    /// It has a new guard: the token of the earlier one no longer counts.
    fn forget_origin(&mut self) {
        if let Some(cold) = &mut self.cold {
            cold.origin = None;
        }
    }

    // ---- Cold fields ----

    fn cold_mut(&mut self) -> &mut ColdFields {
        self.cold.get_or_insert_default()
    }

    pub(super) fn watch(&self) -> Option<&HoldWatch> {
        self.cold.as_ref()?.watch.as_ref()
    }

    pub(super) fn watch_mut(&mut self) -> Option<&mut HoldWatch> {
        self.cold.as_mut()?.watch.as_mut()
    }

    fn take_watch(&mut self) -> Option<HoldWatch> {
        self.cold.as_mut()?.watch.take()
    }

    fn set_watch(&mut self, watch: Option<HoldWatch>) {
        if watch.is_some() || self.cold.is_some() {
            self.cold_mut().watch = watch;
            self.cold.take_if(|cold| cold.is_empty());
        }
    }

    fn limits(&self) -> Option<&HoldLimits> {
        self.watch()?.limits.as_deref()
    }

    fn max_hold(&self) -> Option<Duration> {
        self.limits()?.max_hold
    }

    fn stands_still(&self, now: Moment) -> bool {
        let within = self.limits().and_then(|limits| limits.progress);
        within.zip(self.watch()).is_some_and(|(within, watch)| now.since(watch.progressed) > within)
    }
}

/// What hardly any hold has, in a box of its own: very many holds do not carry the space for it.
#[derive(Debug, Default)]
pub(super) struct ColdFields {
    /// Why it is lost.
    pub(super) loss: Option<LossReason>,
    /// Whether the store said that it was revoked and has ended: there is nothing to release.
    pub(super) ended: bool,
    pub(super) watch: Option<HoldWatch>,
    /// The not-after of its claim, if a push overtook the answer to it.
    unanswered: Option<LeaseTime>,
    /// The token that its guard was given first, if the hold was exchanged or taken again since.
    origin: Option<Token>,
}

impl ColdFields {
    /// For a hold whose claim is not answered yet.
    pub(super) fn unanswered(not_after: LeaseTime) -> Box<Self> {
        Box::new(Self { unanswered: Some(not_after), ..Self::default() })
    }

    fn is_empty(&self) -> bool {
        let Self { loss, ended, watch, unanswered, origin } = self;
        loss.is_none() && !ended && watch.is_none() && unanswered.is_none() && origin.is_none()
    }
}

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

/// From when a deadline counts: from the send of the request.
pub(super) fn counted_from(now: Moment, sent: Moment) -> Moment {
    if zoo::has(Bug::DeadlineFromReply) { now } else { sent }
}

impl From<Loss> for LossReason {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Expired => Self::Expired,
            Loss::Unreachable => Self::Unreachable,
        }
    }
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
    // ---- Beginning ----

    /// Turns a claim into a hold and gives it to its waiter.
    pub(super) fn settle_claim(&mut self, now: Moment, seq: u64, waiter: WaiterId, incoming: &IncomingGrant) {
        let Some(ask) = self.active.waiters.ask(waiter).cloned() else { return };
        let Some(claim) = self.active.claims.remove(&seq) else { return };
        let fresh = self.fresh_hold(now, (seq, &claim), &ask, incoming);
        // The blocker has left.
        self.active.blocker = None;
        if let Recipient::Upgrade(_, hold_key) = claim.recipient {
            self.exchange(hold_key, fresh);
            self.finish(waiter, WaitOutcome::Done);
            self.note_progress(now);
            return self.tend_hold(now, hold_key);
        }
        let key = self.holds.insert(fresh);
        if self.cohort == CohortState::Claiming(seq) {
            self.cohort = CohortState::Holding(key);
            if claim.local == 0 {
                let latest = self.active.waiters.serial();
                self.active.remote.begin(now, latest, incoming.line);
            }
        }
        self.grant_to(now, key, waiter, claim.how);
        self.note_progress(now);
        self.tend_hold(now, key);
    }

    fn fresh_hold(&self, now: Moment, (seq, claim): (u64, &PendingClaim), ask: &Ask, incoming: &IncomingGrant) -> Hold {
        Hold {
            generation: 0,
            seq,
            id: self.client.holder(seq),
            stamp: incoming.stamp,
            local: claim.local,
            mode: claim.mode,
            word: Word::locked(),
            owner: ask.owner,
            tracker: LeaseTracker::new(ask.terms, counted_from(now, incoming.sent), incoming.remaining),
            granted: PICKED_UP,
            since: now,
            seen: incoming.sent,
            started: LeaseTime::ZERO,
            repairing: false,
            recovery: ask.recovery,
            confirmed: incoming.remaining >= ask.lease().length(),
            confirming: false,
            run: claim.run.id().or(incoming.pushed).into(),
            doubted: false,
            uncertain: false,
            cold: claim.run.id().is_none().then(|| ColdFields::unanswered(claim.not_after)),
        }
    }

    /// An upgrade succeeded: the guard keeps its key, and another hold takes the place behind it.
    fn exchange(&mut self, hold_key: HoldKey, fresh: Hold) {
        if let Some(hold) = self.holds.get_mut(hold_key) {
            let (generation, word, owner, since) = (hold.generation, hold.word, hold.owner, hold.since);
            let (watch, recovery, origin) = (hold.take_watch(), hold.recovery, hold.origin());
            *hold = Hold { generation, word, owner, since, recovery, ..fresh };
            hold.set_watch(watch);
            hold.keep_origin(origin);
        }
    }

    /// Grants a hold to a waiter, which has one claim window to pick it up.
    pub(super) fn grant_to(&mut self, now: Moment, hold_key: HoldKey, waiter: WaiterId, how: How) {
        let Active { waiters, waits, events, .. } = &mut *self.active;
        let Some((ask, hold)) = waiters.ask(waiter).zip(self.holds.get_mut(hold_key)) else { return };
        let watched = ask.limits.is_some();
        hold.assign(now, waiter, ask);
        let token = hold.token();
        waits.remove(&(ask.until, waiter));
        waiters.set(waiter, Stage::Ready(WaitOutcome::Granted { hold_key, token, how }));
        events.push_back(Event::Ready(waiter));
        if watched {
            self.alert_wait(now, waiter);
        }
    }

    /// The waiter that a hold was granted to, if it is not picked up yet.
    fn unpicked(&self, hold: &Hold) -> Option<WaiterId> {
        if hold.is_picked_up() { None } else { self.active.waiters.at(hold.granted) }
    }

    // ---- Re-entry ----

    /// Declares holds lost whose time is over, before an ask is judged: they can neither be entered again nor block it.
    pub(super) fn notice_ends(&mut self, now: Moment, owner: Option<OwnerId>) {
        let concerned = |key: HoldKey, hold: &Hold| {
            self.cohort == CohortState::Holding(key) || (owner.is_some() && hold.owner == owner)
        };
        let ended = |hold: &Hold| hold.is_live() && hold.deadline() <= now;
        let found = self.holds.iter().filter(|(key, hold)| ended(hold) && concerned(*key, hold));
        for key in found.map(|(key, _)| key).collect::<Vec<_>>() {
            self.tend_hold(now, key);
        }
    }

    /// Whether a queued waiter waits for its own owner: behind a writer that waits for another hold of that owner.
    pub(super) fn waits_for_itself(&self, waiter: WaiterId) -> bool {
        let ask = self.active.waiters.ask(waiter);
        let Some((owner, mode)) = ask.and_then(|ask| Some((ask.owner?, ask.mode))) else { return false };
        let own = || self.holds.iter().map(|(_, hold)| hold).filter(|hold| hold.owner == Some(owner) && hold.is_live());
        match mode {
            Mode::Exclusive => false,
            Mode::Shared => own().next().is_some(),
            // The permits that the owner holds do not come back while it waits.
            Mode::Permits { count, of } => own().map(|hold| hold.mode.count()).sum::<u32>() + count.get() > of.get(),
        }
    }

    pub(super) fn own_blocker(&self, now: Moment) -> Option<Blocker> {
        let (_, hold) = self.holds.iter().find(|(_, hold)| hold.is_live())?;
        let remaining = hold.deadline().since(now);
        Some(Blocker { holder: hold.id.public(), who: Arc::clone(self.client.who()), remaining })
    }

    // ---- Renewals ----

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
                (hold.seen, hold.started) = (hold.seen.max(sent), at);
                hold.tracker.confirmed(now, counted_from(now, sent), remaining, counts);
                if self.cohort == CohortState::Holding(hold_key) {
                    self.note_line(now, sent, line);
                }
                if counts {
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
    fn note_found(&mut self, hold_key: HoldKey, reason: &LossReason) {
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
    fn note_repaired(&mut self, hold_key: HoldKey, worked: bool) {
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
    fn alert_renewal(&mut self, now: Moment, hold_key: HoldKey) {
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        let (token, late) = (hold.token(), hold.tracker.lateness(now));
        let Some((watch, limits)) = watched(hold) else { return };
        if let Some(limit) = limits.alert_renewal.filter(|limit| late > *limit && !watch.alerted.renewal) {
            watch.alerted.renewal = true;
            self.active.events.push_back(Event::RenewedLong { token, late, limit });
        }
    }

    /// The renewal came: the next one may raise an alert again.
    fn end_renewal_alert(&mut self, hold_key: HoldKey) {
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

    // ---- Loss ----

    /// A hold is gone without being released: its guard is told, and the local line claims again.
    pub(super) fn lose(&mut self, now: Moment, hold_key: HoldKey, reason: LossReason) {
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.is_live()) else {
            return self.lose_for_good(hold_key, reason);
        };
        hold.cold_mut().loss = Some(reason.clone());
        let picked_up = hold.is_picked_up();
        if picked_up {
            self.note_found(hold_key, &reason);
        }
        self.end_upgrade(now, hold_key, &reason);
        let Some(hold) = self.holds.get(hold_key) else { return };
        if !picked_up {
            // Nobody has picked it up, and perhaps nobody wants it any more.
            if let Some(waiter) = self.unpicked(hold) {
                self.return_to_wait(now, waiter, hold_key);
            }
        } else {
            let lost = Lost { hold_key, token: hold.token(), id: hold.id, since: hold.since, reason: reason.clone() };
            self.active.events.push_back(Event::Lost(Box::new(lost)));
            self.recover(now, hold_key, &reason);
        }
        if self.cohort == CohortState::Holding(hold_key) && !zoo::has(Bug::LineBelievesInLostHold) {
            self.cohort = CohortState::Idle;
            self.advance(now);
        }
    }

    /// The store says that a hold was revoked and has ended. There is nothing to release.
    pub(super) fn lose_revoked(&mut self, now: Moment, hold_key: HoldKey, reason: LossReason) {
        if let Some(hold) = self.holds.get_mut(hold_key) {
            hold.cold_mut().ended = true;
        }
        self.lose(now, hold_key, reason);
    }

    /// A grant that nobody picked up came to nothing: its waiter waits again, and the hold is dropped.
    pub(super) fn return_to_wait(&mut self, now: Moment, waiter: WaiterId, hold_key: HoldKey) {
        let Some(ask) = self.active.waiters.ask(waiter).cloned() else { return };
        if !self.leave(hold_key)
            && let Some(hold) = self.holds.remove(hold_key)
            && !hold.nothing_to_release()
        {
            self.release_hold(now, &hold, ConnectionKind::Renewals);
        }
        if self.cohort == CohortState::Holding(hold_key) {
            self.cohort = CohortState::Idle;
        }
        if self.closed {
            return self.fail(waiter, Failure::Closed);
        }
        self.active.arm_wait(ask.until, waiter);
        if ask.mode == Mode::Exclusive && !ask.fair && ask.patience == Patience::Queue {
            self.active.waiters.join(waiter);
            self.advance(now);
        } else {
            self.claim_for(now, waiter);
        }
    }

    // ---- Recovery ----

    /// Recovers a lost hold as its ask says. Its guard was told.
    fn recover(&mut self, now: Moment, hold_key: HoldKey, reason: &LossReason) {
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
    fn lose_for_good(&mut self, hold_key: HoldKey, reason: LossReason) {
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
