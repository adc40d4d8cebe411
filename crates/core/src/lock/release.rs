//! How a hold leaves a guard: to the next local waiter, or back to the store.
//!
//! | group | what happens |
//! |---|---|
//! | waiters elsewhere | [`Remote`]: how long they leave the lock to the local line |
//! | local passes | the next local waiter gets the hold, under its own token |
//! | releases | a hold, a place in the queue or a claim goes back to the store; asked for again until that is certain or no longer matters |

use std::time::Duration;

use crate::holder::HolderId;
use crate::op::{Line, Parted, Patience, ReleaseReply};
use crate::store::{Outcome as Sure, StoreError};
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::{MAX_LOCAL, Token};
use crate::zoo::{self, Bug};

use super::claim::{Claiming, Phase, Taker};
use super::hold::Hold;
use super::state::HoldKey;
use super::{Cohort, Grip, How, Lane, LossReason, Machine, Outcome, Settings, Slip, Todo, Why};

/// A turn that is over so soon finds the store awake.
const SOON: Duration = Duration::from_millis(1);

/// So long before its end a turn is prepared.
const LEAD: Duration = Duration::from_micros(500);

/// What is known of waiters elsewhere while the local line holds the lock.
#[derive(Debug, Default)]
pub(super) struct Remote {
    /// Since when somebody is known to wait.
    since: Option<Moment>,
    /// When it was last heard.
    heard: Moment,
    /// The serial number of the latest who waited here then.
    latest: u64,
    passes: u32,
    /// Whether a fair waiter is among them.
    pub(super) fair: bool,
}

impl Remote {
    pub(super) const NONE: Self = Self { since: None, heard: Moment::ZERO, latest: 0, passes: 0, fair: false };

    /// Whether nothing is lost with it.
    pub(super) fn is_forgettable(&self) -> bool {
        self.since.is_none() && !self.fair
    }

    /// Whether somebody is known to wait.
    fn waits(&self) -> bool {
        self.since.is_some()
    }

    /// The claim has become a hold. What was heard of others since it was made may have overtaken its answer, and counts.
    pub(super) fn begin(&mut self, now: Moment, latest: u64, line: Line) {
        (self.since, self.latest) = (self.since.map(|_| now), latest);
        if line.waiters > 0 {
            let fair = self.fair || line.fair;
            self.learn((now, now), latest, Line { fair, ..line });
        }
    }

    /// What is heard now, from an answer to what was `asked` then, or from a notice.
    fn learn(&mut self, (now, asked): (Moment, Moment), latest: u64, line: Line) {
        if line.waiters == 0 {
            // Notices come by another way, and overtake answers: whoever was heard of since may have come behind this one.
            if self.heard < asked {
                *self = Self::default();
            }
        } else {
            self.heard = now;
            if self.since.is_none() {
                (self.since, self.latest) = (Some(now), latest);
            }
            self.fair = line.fair;
        }
    }

    /// Whether they leave the lock to the waiter of that number. Whoever has come here since waits as long as they have: in the
    /// second half of the time they go first.
    fn patient(&self, now: Moment, next: u64, settings: &Settings) -> bool {
        let within = |since: Moment| {
            let (time, passed) = (settings.max_passing, now.since(since));
            let is_due = next > self.latest && passed >= time / 2;
            self.passes < settings.max_passes && passed < time && !is_due
        };
        !self.fair && self.since.is_none_or(within)
    }

    /// When the turn is over, if a hold that begins now is its last, should it last as long as those before it. The average is too
    /// short where the first of them began before anybody was known to wait: then it is as long as the last one, `held`. `next` is
    /// whoever is passed the lock otherwise.
    fn ends(&self, now: Moment, held: Duration, next: u64, settings: &Settings) -> Option<Moment> {
        let passed = now.since(self.since?);
        let ends = now + held.max(passed / self.passes.max(1));
        (passed >= SOON && !self.patient(ends, next, settings)).then_some(ends)
    }
}

/// A release on its way.
#[derive(Debug)]
pub(super) struct Parting {
    pub(super) id: HolderId,
    pub(super) not_after: Option<LeaseTime>,
    /// Nobody here knows the claim: its not-after is the latest that it can have.
    pub(super) unknown: bool,
    /// The claim that is made in the same request.
    pub(super) again: Option<u64>,
    /// The claim that is made once this is answered: whoever is next elsewhere does not wait for it to be queued.
    pub(super) then: Option<u64>,
    /// The lost hold, and its token, for whose recovery this is.
    pub(super) recovers: Option<(Grip, Token)>,
    pub(super) lane: Lane,
    pub(super) slip: Option<Slip>,
    attempt: u32,
    /// Whether another try, or the release that answers a late push, may have been executed before it.
    resent: bool,
    pub(super) retry_at: Option<Moment>,
    /// When the store has forgotten the hold by itself.
    moot_at: Moment,
}

impl Machine {
    // ---- Local passes ----

    /// Ends a hold here, however it stands, and passes the lock on.
    pub(super) fn let_go(&mut self, now: Moment, grip: Grip, lane: Lane) {
        match self.holds.get(grip.0) {
            None => {}
            Some(hold) if hold.left_nothing() => {
                self.holds.remove(grip.0);
            }
            Some(hold) if !hold.is_live() => {
                if let Some(hold) = self.holds.remove(grip.0) {
                    self.part_hold(now, &hold, lane);
                }
            }
            Some(_) => {
                self.pass_or_part(now, grip, lane);
            }
        }
    }

    pub(super) fn pass_or_part(&mut self, now: Moment, grip: Grip, lane: Lane) -> Option<usize> {
        if self.cohort != Cohort::Holding(grip.0) {
            let hold = self.holds.remove(grip.0)?;
            return Some(self.part_hold(now, &hold, lane));
        }
        if let Some(next) = self.next_to_pass(grip).filter(|_| self.may_pass(now)) {
            let hold = self.holds.get(grip.0)?;
            let length = if hold.confirmed { hold.lease().length() } else { self.window(hold.lease()) };
            if hold.deadline().since(now) >= length / 2 {
                self.pass(now, grip, next);
                return None;
            }
            if !hold.confirmed && hold.unanswered().is_none() {
                self.pass_when_confirmed(grip);
                return None;
            }
        }
        let hold = self.holds.remove(grip.0)?;
        self.cohort = Cohort::Idle;
        let key = self.part_hold(now, &hold, lane);
        if self.bustle.failing.is_some() || !self.inbox_up {
            self.advance(now);
        } else if self.bustle.remote.waits() {
            self.bustle.partings[key].then = self.new_cohort_claim(now);
        } else {
            self.bustle.partings[key].again = self.new_cohort_claim(now);
        }
        Some(key)
    }

    /// The next local waiter, if the hold can go on under its terms.
    fn next_to_pass(&self, grip: Grip) -> Option<Slip> {
        let hold = self.holds.get(grip.0)?;
        let next = self.bustle.slips.head()?;
        let ask = self.bustle.slips.ask(next)?;
        // The hold goes on under the terms it was made with, and what it has used of them.
        let same_terms = ask.terms == *hold.keeping.terms() && !ask.terms.is_limited();
        (same_terms && !hold.doubted && hold.local < MAX_LOCAL).then_some(next)
    }

    /// Whether waiters elsewhere leave the local line its turn.
    pub(super) fn may_pass(&self, now: Moment) -> bool {
        let next = self.bustle.slips.head().map_or(0, |next| next.serial);
        self.inbox_up && self.bustle.remote.patient(now, next, &self.settings)
    }

    /// Somebody waits elsewhere, or nobody did after it was `asked`.
    pub(super) fn learn(&mut self, now: Moment, asked: Moment, line: Line) {
        if line.waiters > 0 || !self.bustle.is_quiet() {
            let latest = self.bustle.slips.serial();
            self.bustle.remote.learn((now, asked), latest, line);
        }
    }

    fn pass(&mut self, now: Moment, grip: Grip, next: Slip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        self.bustle.remote.passes += 1;
        // Its own token: a paused predecessor must be fenced off from its own neighbours too.
        hold.local += u16::from(!zoo::has(Bug::SharedCohortToken));
        let (held, is_unconfirmed) = (now.since(hold.since), !hold.confirmed && !hold.confirming);
        self.give(now, grip.0, next, How::Local);
        if let Some(ends) = self.turn_ends(now, held).filter(|_| is_unconfirmed) {
            // It is due within the claim window anyway. Now it has the store, and whoever is next, awake when the release comes.
            self.bustle.todo.push_back(Todo::Prepare(grip, (ends - LEAD).max(now)));
        }
    }

    /// The guard left before the lease was confirmed: the hold is a claim again until the answer is there.
    fn pass_when_confirmed(&mut self, grip: Grip) {
        let Some(hold) = self.holds.remove(grip.0) else { return };
        self.bustle.remote.passes += 1;
        let seq = hold.seq;
        let claim = Claiming {
            taker: Taker::Cohort,
            phase: Phase::Confirming,
            mode: hold.mode,
            lease: hold.lease(),
            fair: false,
            patience: Patience::Queue,
            asked: hold.seen,
            not_after: LeaseTime::ZERO,
            run: hold.run,
            // The next guard's own token.
            local: hold.local + u16::from(!zoo::has(Bug::SharedCohortToken)),
            how: How::Local,
            giving_up: None,
        };
        self.bustle.claims.insert(seq, Box::new(claim));
        if !hold.confirming {
            self.bustle.todo.push_back(Todo::Confirm(seq));
        }
        self.cohort = Cohort::Claiming(seq);
    }

    fn turn_ends(&self, now: Moment, held: Duration) -> Option<Moment> {
        let slips = &self.bustle.slips;
        // With nobody in line, it would be somebody who has yet to come.
        let next = slips.head().map_or_else(|| slips.serial() + 1, |next| next.serial);
        self.bustle.remote.ends(now, held, next, &self.settings)
    }

    /// A grant that nobody picked up: its waiter goes to the end of the line and the lock goes on.
    pub(super) fn rotate(&mut self, now: Moment, key: HoldKey, slip: Slip) {
        let Some(until) = self.bustle.slips.ask(slip).map(|ask| ask.until) else { return };
        self.bustle.arm_wait(until, slip);
        if zoo::has(Bug::RotatedButKept) {
            return self.let_go(now, Grip(key), Lane::Renewals);
        }
        if self.cohort == Cohort::Holding(key) {
            self.bustle.slips.join(slip);
            self.let_go(now, Grip(key), Lane::Renewals);
        } else {
            self.let_go(now, Grip(key), Lane::Renewals);
            self.claim_for(now, slip);
        }
    }

    // ---- Releases ----

    /// Releases an id in the store, again and again until it is certain or no longer matters.
    pub(super) fn part(
        &mut self,
        now: Moment,
        id: HolderId,
        not_after: Option<LeaseTime>,
        moot_after: Duration,
        lane: Lane,
    ) -> usize {
        let moot_at = now + moot_after + self.settings.response;
        let parting = Parting {
            id,
            not_after,
            unknown: false,
            again: None,
            then: None,
            recovers: None,
            lane,
            slip: None,
            attempt: 0,
            resent: false,
            retry_at: None,
            moot_at,
        };
        let key = self.bustle.partings.insert(parting);
        self.bustle.todo.push_back(Todo::Part(key));
        key
    }

    pub(super) fn part_hold(&mut self, now: Moment, hold: &Hold, lane: Lane) -> usize {
        self.part(now, hold.id, hold.unanswered(), hold.lease().length(), lane)
    }

    /// Releases a claim that may have been granted, or may yet be.
    pub(super) fn part_claim(&mut self, now: Moment, seq: u64, lane: Lane) {
        let Some(claim) = self.bustle.claims.get(&seq) else { return };
        let (id, lease) = (self.client.holder(seq), claim.lease.length());
        let unanswered = claim.run.id().is_none().then_some(claim.not_after);
        self.part(now, id, unanswered, lease, lane);
    }

    /// Releases an id that nobody here knows any more.
    pub(super) fn part_unknown(&mut self, now: Moment, id: HolderId) {
        // It may overtake a release that is under way, on its other lane: that one then finds nothing, and nothing is lost.
        self.bustle
            .partings
            .iter_mut()
            .filter(|(_, parting)| parting.id == id)
            .for_each(|(_, parting)| parting.resent = true);
        let key = self.part(now, id, None, self.settings.window, Lane::Renewals);
        self.bustle.partings[key].unknown = true;
    }

    pub(super) fn on_parted(&mut self, now: Moment, key: usize, run: RunId, reply: ReleaseReply) {
        let Some(parting) = self.bustle.partings.try_remove(key) else { return };
        self.note_freed(parting.recovers, true);
        if let Some(slip) = parting.slip {
            // Found nothing at the first try: the hold had ended without us. At a resend it is our own first try at work.
            let lost = match reply.parted {
                Parted::Nothing => Some(LossReason::Gone),
                Parted::Revoked { reason } => Some(LossReason::Revoked(reason.into())),
                Parted::Hold | Parted::Place => None,
            };
            let lost = lost.filter(|_| !parting.resent);
            self.finish(slip, lost.map_or(Outcome::Done, |reason| Why::Lost(reason).into()));
        }
        if let (Some(seq), Some(verdict)) = (parting.again, reply.again) {
            self.on_verdict(now, seq, run, verdict);
        }
        if let Some(seq) = parting.then.filter(|seq| self.bustle.claims.contains_key(seq)) {
            // With the same release once more: who has waited already is queued even by a store that takes nothing new.
            let key = self.part(now, parting.id, None, self.settings.window, Lane::Claims);
            self.bustle.partings[key].again = Some(seq);
        }
    }

    pub(super) fn on_part_error(&mut self, now: Moment, key: usize, error: StoreError) {
        let regains =
            self.bustle.partings.get(key).and_then(|parting| parting.again).is_some_and(|seq| self.is_regain(seq));
        let Some(parting) = self.bustle.partings.get_mut(key) else { return };
        let delay = self.settings.backoff.delay(parting.attempt, self.jitter.next());
        parting.attempt += 1;
        parting.resent |= error.outcome == Sure::Unknown;
        // The caller's connection may have ended with its runtime. Where the other fails again, the caller's may work.
        parting.lane = if parting.attempt.is_multiple_of(2) { Lane::Claims } else { Lane::Renewals };
        let give_up = !error.is_transient() || now + delay >= parting.moot_at;
        parting.retry_at = Some(now + delay);
        // A hold that is taken again is asked for with the same id: what was granted already is found.
        let again = if regains && !give_up { None } else { parting.again.take() };
        let then = parting.then.take();
        let listener = parting.slip.take();
        if give_up {
            let parting = self.bustle.partings.remove(key);
            self.note_freed(parting.recovers, false);
        }
        if let Some(slip) = listener {
            self.fail(slip, Why::Store(error.clone()));
        }
        if let Some(seq) = again.or(then) {
            self.on_claim_error(now, seq, error);
        }
    }
}
