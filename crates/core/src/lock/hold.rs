//! A hold: what the store granted, who uses it here, how deep, and until when.

use std::sync::Arc;

use crate::holder::HolderId;
use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Blocker, Patience};
use crate::renewal::{Loss, Renewal as Keeping, State as Health};
use crate::time::{KnownRun, LeaseTime, Moment, RunId};
use crate::token::{Stamp, Token};
use crate::zoo::{self, Bug};

use super::bustle::Bustle;
use super::claim::{Claiming, Taker};
use super::holds::HoldKey;
use super::landing::Landing;
use super::rare::Rare;
use super::round::Care;
use super::slips::Stage;
use super::word::Word;
use super::{
    Ask, Cohort, Event, Grip, HoldState, How, Lane, LossReason, Lost, Machine, Outcome, OwnerId, Recovery, Settings,
    Slip, Todo, Why,
};

/// One hold in the store and its use in this process.
#[derive(Debug)]
pub(super) struct Hold {
    /// Its number among the holds of this lock, given by [`Holds`](super::holds::Holds).
    pub(super) born: u32,
    /// Which of the client's claims it was.
    pub(super) seq: u64,
    /// What the store knows it by: derived once, and needed for every renewal.
    pub(super) id: HolderId,
    pub(super) stamp: Stamp,
    pub(super) local: u16,
    pub(super) mode: Mode,
    pub(super) word: Word,
    pub(super) owner: Option<OwnerId>,
    pub(super) keeping: Keeping,
    /// The place of the slip that it was granted to, until that is picked up; then [`PICKED_UP`].
    granted: u32,
    pub(super) since: Moment,
    pub(super) recovery: Recovery,
    /// Time before the send of the last request whose answer named this hold.
    pub(super) seen: Moment,
    /// When the store last started its lease by a renewal, as it said itself.
    pub(super) started: LeaseTime,
    /// Whether the watchdog has found something that a renewal repairs.
    pub(super) repairing: bool,
    /// Whether the store has confirmed the full lease yet.
    pub(super) confirmed: bool,
    /// Whether a renewal that may confirm it is under way.
    pub(super) confirming: bool,
    pub(super) run: KnownRun,
    /// Whether the store has begun a new run since it last spoke of this hold: it may have forgotten it.
    pub(super) doubted: bool,
    /// Whether it was told that the hold is doubtful.
    pub(super) uncertain: bool,
    pub(super) rare: Option<Box<Rare>>,
}

const PICKED_UP: u32 = u32::MAX;

impl Hold {
    pub(super) fn token(&self) -> Token {
        self.stamp.token(self.local)
    }

    pub(super) fn lease(&self) -> Lease {
        self.keeping.terms().lease()
    }

    pub(super) fn state(&self, now: Moment) -> HoldState {
        if let Some(loss) = self.loss() {
            return HoldState::Lost(loss.clone());
        }
        if zoo::has(Bug::NeverLost) {
            return HoldState::Held { until: Moment::FAR };
        }
        match self.keeping.state(now) {
            Health::Held { until } if self.doubted => HoldState::Uncertain { until },
            Health::Held { until } => HoldState::Held { until },
            Health::Uncertain { until } => HoldState::Uncertain { until },
            Health::Lost { reason } => HoldState::Lost(reason.into()),
        }
    }

    pub(super) fn is_lost(&self, now: Moment) -> bool {
        !self.is_live() || self.deadline() <= now
    }

    pub(super) fn deadline(&self) -> Moment {
        self.keeping.deadline()
    }

    pub(super) fn pick_up(&mut self) {
        self.granted = PICKED_UP;
    }

    pub(super) fn is_picked_up(&self) -> bool {
        self.granted == PICKED_UP
    }

    /// By when it should be picked up; [`FAR`](Moment::FAR) once it was.
    pub(super) fn pick_by(&self, settings: &Settings) -> Moment {
        if self.is_picked_up() { Moment::FAR } else { self.since + settings.window_of(self.lease()) }
    }

    /// When something must be done about this hold.
    pub(super) fn next(&self, settings: &Settings) -> Moment {
        if !self.is_live() {
            return Moment::FAR;
        }
        let overdue = self.max_hold().map_or(Moment::FAR, |max| self.since + max);
        self.keeping.next().at().min(overdue).min(self.pick_by(settings))
    }

    /// Hands the hold to a waiter.
    fn assign(&mut self, now: Moment, slip: Slip, ask: &Ask) {
        self.word = Word::locked();
        self.owner = ask.owner;
        self.since = now;
        self.forget_origin();
        self.set_care(Care::of(now, ask));
        self.recovery = ask.recovery;
        self.granted = slip.index;
    }
}

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
    /// Turns a claim into a hold and gives it to its waiter.
    pub(super) fn settle_claim(&mut self, now: Moment, seq: u64, slip: Slip, landing: &Landing) {
        let Some(ask) = self.bustle.slips.ask(slip).cloned() else { return };
        let Some(claim) = self.bustle.claims.remove(&seq) else { return };
        let fresh = self.fresh_hold(now, (seq, &claim), &ask, landing);
        // Whoever was in the way has left it.
        self.bustle.blocker = None;
        if let Taker::Upgrade(_, grip) = claim.taker {
            self.exchange(grip, fresh);
            self.finish(slip, Outcome::Done);
            self.note_progress(now);
            return self.attend(now, grip.0);
        }
        let key = self.holds.insert(fresh);
        if self.cohort == Cohort::Claiming(seq) {
            self.cohort = Cohort::Holding(key);
            if claim.local == 0 {
                let latest = self.bustle.slips.serial();
                self.bustle.remote.begin(now, latest, landing.line);
            }
        }
        self.give(now, key, slip, claim.how);
        self.note_progress(now);
        self.attend(now, key);
    }

    fn fresh_hold(&self, now: Moment, (seq, claim): (u64, &Claiming), ask: &Ask, landing: &Landing) -> Hold {
        Hold {
            born: 0,
            seq,
            id: self.client.holder(seq),
            stamp: landing.stamp,
            local: claim.local,
            mode: claim.mode,
            word: Word::locked(),
            owner: ask.owner,
            keeping: Keeping::new(ask.terms, counted_from(now, landing.sent), landing.remaining),
            granted: PICKED_UP,
            since: now,
            seen: landing.sent,
            started: LeaseTime::ZERO,
            repairing: false,
            recovery: ask.recovery,
            confirmed: landing.remaining >= ask.lease().length(),
            confirming: false,
            run: claim.run.id().or(landing.pushed).into(),
            doubted: false,
            uncertain: false,
            rare: claim.run.id().is_none().then(|| Rare::unanswered(claim.not_after)),
        }
    }

    /// An upgrade went through: the guard keeps its grip, the hold behind it is another.
    pub(super) fn exchange(&mut self, grip: Grip, fresh: Hold) {
        if let Some(hold) = self.holds.get_mut(grip.0) {
            let (born, word, owner, since) = (hold.born, hold.word, hold.owner, hold.since);
            let (care, recovery, origin) = (hold.take_care(), hold.recovery, hold.origin());
            *hold = Hold { born, word, owner, since, recovery, ..fresh };
            hold.set_care(care);
            hold.keep_origin(origin);
        }
    }

    /// Gives a hold to a waiter, who has a claim window to pick it up.
    pub(super) fn give(&mut self, now: Moment, key: HoldKey, slip: Slip, how: How) {
        let Bustle { slips, waits, events, .. } = &mut *self.bustle;
        let Some((ask, hold)) = slips.ask(slip).zip(self.holds.get_mut(key)) else { return };
        let watched = ask.vigil.is_some();
        hold.assign(now, slip, ask);
        let token = hold.token();
        waits.remove(&(ask.until, slip));
        slips.set(slip, Stage::Ready(Outcome::Granted { grip: Grip(key), token, how }));
        events.push_back(Event::Ready(slip));
        if watched {
            self.alert_wait(now, slip);
        }
    }

    /// The slip that a hold was granted to, if that is not picked up yet.
    pub(super) fn unpicked(&self, hold: &Hold) -> Option<Slip> {
        if hold.is_picked_up() { None } else { self.bustle.slips.at(hold.granted) }
    }

    /// Enters again if the owner holds the lock already, or says at once that it would wait for itself.
    pub fn reenter(&mut self, now: Moment, owner: OwnerId, mode: Mode, reentrant: bool) -> Option<Outcome> {
        if self.closed {
            return None;
        }
        // A grant that was not picked up may yet go to another: nobody is inside.
        let whose = |hold: &Hold| hold.owner == Some(owner) || (reentrant && zoo::has(Bug::ReentryByAnybody));
        let inside = |hold: &Hold| whose(hold) && !hold.is_lost(now) && hold.is_picked_up();
        let own = |hold: &Hold| inside(hold) && hold.mode.kind() == mode.kind();
        let (key, hold) = self.holds.iter_mut().find(|(_, hold)| own(hold))?;
        if matches!(mode, Mode::Permits { .. }) {
            return None;
        }
        let enough = hold.mode == Mode::Exclusive || mode == Mode::Shared;
        if !enough || (!reentrant && hold.mode == Mode::Exclusive) {
            return Some(Why::WouldDeadlock.into());
        }
        if !reentrant {
            // Two shared holds of one owner are fine as long as the second does not have to wait.
            return None;
        }
        let Some(deeper) = hold.word.enter() else { return Some(Why::TooDeep.into()) };
        hold.word = deeper;
        // In use from here on, even if its first slip is still out.
        hold.pick_up();
        Some(Outcome::Granted { grip: Grip(key), token: hold.token(), how: How::Reentry })
    }

    /// Looks at the clock before an ask is judged: an ended hold is neither entered again nor in the way.
    pub(super) fn notice_ends(&mut self, now: Moment, owner: Option<OwnerId>) {
        let concerned =
            |key: HoldKey, hold: &Hold| self.cohort == Cohort::Holding(key) || (owner.is_some() && hold.owner == owner);
        let ended = |hold: &Hold| hold.is_live() && hold.deadline() <= now;
        let found = self.holds.iter().filter(|(key, hold)| ended(hold) && concerned(*key, hold));
        for key in found.map(|(key, _)| key).collect::<Vec<_>>() {
            self.attend(now, key);
        }
    }

    /// Leaves one level of re-entry. False at the last one: that must be released.
    pub fn leave(&mut self, grip: Grip) -> bool {
        let deeper = self.holds.get_mut(grip.0).filter(|hold| hold.word.depth() > 1);
        deeper.map(|hold| hold.word = hold.word.leave()).is_some()
    }

    /// Whether a queued ask waits behind a writer that waits for the asker's own other hold.
    pub(super) fn waits_for_itself(&self, slip: Slip) -> bool {
        let ask = self.bustle.slips.ask(slip);
        let Some((owner, mode)) = ask.and_then(|ask| Some((ask.owner?, ask.mode))) else { return false };
        let own = || self.holds.iter().map(|(_, hold)| hold).filter(|hold| hold.owner == Some(owner) && hold.is_live());
        match mode {
            Mode::Exclusive => false,
            Mode::Shared => own().next().is_some(),
            // What it holds will not come back while it waits.
            Mode::Permits { count, of } => own().map(|hold| hold.mode.count()).sum::<u32>() + count.get() > of.get(),
        }
    }

    pub(super) fn own_blocker(&self, now: Moment) -> Option<Blocker> {
        let (_, hold) = self.holds.iter().find(|(_, hold)| hold.is_live())?;
        let remaining = hold.deadline().since(now);
        Some(Blocker { holder: hold.id.public(), who: Arc::clone(self.client.who()), remaining })
    }

    /// A hold is gone without being released: tell its guards, and let the line claim anew.
    pub(super) fn lose(&mut self, now: Moment, grip: Grip, reason: LossReason) {
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.is_live()) else {
            return self.lose_for_good(grip, reason);
        };
        hold.rare_mut().loss = Some(reason.clone());
        let picked_up = hold.is_picked_up();
        if picked_up {
            self.note_found(grip, &reason);
        }
        self.end_upgrade(now, grip, &reason);
        let Some(hold) = self.holds.get(grip.0) else { return };
        if !picked_up {
            // Nobody has it, and perhaps nobody wants it any more.
            if let Some(slip) = self.unpicked(hold) {
                self.return_to_wait(now, slip, grip);
            }
        } else {
            let lost = Lost { grip, token: hold.token(), id: hold.id, since: hold.since, reason: reason.clone() };
            self.bustle.events.push_back(Event::Lost(Box::new(lost)));
            self.recover(now, grip, &reason);
        }
        if self.cohort == Cohort::Holding(grip.0) && !zoo::has(Bug::LineBelievesInLostHold) {
            self.cohort = Cohort::Idle;
            self.advance(now);
        }
    }

    /// The store says that a hold was revoked and has ended. Nobody has to answer that.
    pub(super) fn lose_revoked(&mut self, now: Moment, grip: Grip, reason: LossReason) {
        if let Some(hold) = self.holds.get_mut(grip.0) {
            hold.rare_mut().ended = true;
        }
        self.lose(now, grip, reason);
    }

    /// A grant that was never picked up came to nothing: its waiter waits again, and the hold is dropped.
    pub(super) fn return_to_wait(&mut self, now: Moment, slip: Slip, grip: Grip) {
        let Some(ask) = self.bustle.slips.ask(slip).cloned() else { return };
        if !self.leave(grip)
            && let Some(hold) = self.holds.remove(grip.0)
            && !hold.left_nothing()
        {
            self.part_hold(now, &hold, Lane::Renewals);
        }
        if self.cohort == Cohort::Holding(grip.0) {
            self.cohort = Cohort::Idle;
        }
        if self.closed {
            return self.fail(slip, Why::Closed);
        }
        self.bustle.arm_wait(ask.until, slip);
        if ask.mode == Mode::Exclusive && !ask.fair && ask.patience == Patience::Queue {
            self.bustle.slips.join(slip);
            self.advance(now);
        } else {
            self.claim_for(now, slip);
        }
    }

    /// The store answered; if it is another life than the one that granted a hold, the hold must be confirmed.
    pub(super) fn note_alive(&mut self, run: RunId) {
        for (key, hold) in self.holds.iter_mut() {
            let known = std::mem::replace(&mut hold.run, Some(run).into()).id();
            if known.is_some_and(|known| known != run) {
                // The new run may have begun with what was before the last answer.
                (hold.doubted, hold.started) = (true, LeaseTime::ZERO);
                let seen = hold.is_live() && hold.is_picked_up();
                if seen && !std::mem::replace(&mut hold.uncertain, true) {
                    self.bustle.events.push_back(Event::Uncertain { grip: Grip(key), until: hold.deadline() });
                }
                self.bustle.todo.push_back(Todo::Renew(Grip(key), None));
            }
        }
    }
}
