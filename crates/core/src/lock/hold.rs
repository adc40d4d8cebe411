//! The life of a hold: granted, entered, renewed, lost.
//!
//! | group | what happens |
//! |---|---|
//! | beginning | a claim becomes a hold, and a waiter is given it |
//! | re-entry | who is inside, and who would wait for itself |
//! | renewals | the lease is renewed, doubted, or given up when its time is over |
//! | loss | the guard is told, and the local line claims again |
//!
//! What the watchdog finds, and how a lost hold is taken again, is in [`watch`](super::watch). How a hold ends by a release, or goes to
//! the next local waiter, is in [`release`](super::release).

use std::sync::Arc;
use std::time::Duration;

use crate::holder::HolderId;
use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Blocker, Patience};
use crate::renewal::{Health, LeaseTracker, Loss};
use crate::time::{LeaseTime, Moment};
use crate::token::{Stamp, Token};
use crate::zoo::{self, Bug};

use super::claim::{IncomingGrant, PendingClaim, Recipient};
use super::state::{Active, KnownRun, Stage};
use super::watch::HoldWatch;
use super::{
    Ask, CohortState, ConnectionKind, Event, Failure, HoldKey, HoldLimits, HoldState, How, LossReason, Lost, Machine,
    OwnerId, Recovery, Settings, WaitOutcome, WaiterId, Word,
};

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
    pub(super) fn ended_as_agreed(&self, reason: &LossReason) -> bool {
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
    pub(super) fn pick_by(&self, settings: &Settings) -> Moment {
        if self.is_picked_up() { Moment::FAR } else { self.since + settings.window_of(self.lease()) }
    }

    /// The token that its guard was given first. The hold may have been exchanged or taken again since.
    pub(super) fn origin(&self) -> Token {
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
    pub(super) fn keep_origin(&mut self, origin: Token) {
        self.cold_mut().origin = Some(origin);
    }

    /// It has a new guard: the token of the earlier one no longer counts.
    fn forget_origin(&mut self) {
        if let Some(cold) = &mut self.cold {
            cold.origin = None;
        }
    }

    // ---- Cold fields ----

    pub(super) fn cold_mut(&mut self) -> &mut ColdFields {
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

    pub(super) fn limits(&self) -> Option<&HoldLimits> {
        self.watch()?.limits.as_deref()
    }

    pub(super) fn max_hold(&self) -> Option<Duration> {
        self.limits()?.max_hold
    }

    pub(super) fn stands_still(&self, now: Moment) -> bool {
        let within = self.limits().and_then(|limits| limits.progress);
        within.zip(self.watch()).is_some_and(|(within, watch)| now.since(watch.progressed) > within)
    }
}

/// What hardly any hold has, in a box of its own: very many holds do not carry the space for it.
#[derive(Debug, Default)]
pub(super) struct ColdFields {
    /// Why it is lost.
    pub(super) loss: Option<LossReason>,
    /// A push said that it was revoked, and the store has not denied it.
    pub(super) order: Option<LossReason>,
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
        let Self { loss, order, ended, watch, unanswered, origin } = self;
        loss.is_none() && order.is_none() && !ended && watch.is_none() && unanswered.is_none() && origin.is_none()
    }
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
    pub(super) fn unpicked(&self, hold: &Hold) -> Option<WaiterId> {
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

    // ---- Loss ----

    /// A hold is gone without being released: its guard is told, and the local line claims again.
    pub(super) fn lose(&mut self, now: Moment, hold_key: HoldKey, reason: LossReason) {
        let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.is_live()) else {
            return self.lose_for_good(hold_key, reason);
        };
        // A store that has forgotten the hold has forgotten that it was revoked, too.
        let order = hold.cold.as_mut().and_then(|cold| cold.order.take());
        let forgotten = matches!(reason, LossReason::Gone | LossReason::Expired | LossReason::Unreachable);
        let reason = order.filter(|_| forgotten).unwrap_or(reason);
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
}
