//! How a hold leaves a guard: to the next local waiter, or back to the store, and then the local line stands in the queue again.

use std::time::Duration;

use crate::holder::HolderId;
use crate::op::{Line, Patience};
use crate::time::{LeaseTime, Moment};
use crate::token::MAX_LOCAL;
use crate::zoo::{self, Bug};

use super::claim::{Claiming, Phase, Taker};
use super::holds::HoldKey;
use super::slips::Stage;
use super::{Cohort, Grip, How, Lane, LossReason, Machine, OwnerId, Settings, Slip, Todo, Why};

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

/// How a release went, as far as can be told at once.
#[derive(Debug)]
pub enum Released {
    /// It is over.
    Now(Result<(), Why>),
    /// The store was asked; the slip has the answer.
    Later(Slip),
}

impl Machine {
    /// A guard is released. With `listen` the caller gets a slip for the store's answer.
    pub fn handle_release(&mut self, now: Moment, grip: Grip, listen: bool) -> Released {
        if self.leave(grip) {
            return self.left(now, grip);
        }
        let lane = if listen { Lane::Claims } else { Lane::Renewals };
        self.handle_last_release(now, grip, lane, listen)
    }

    /// The same for a guard that is known to be the only one: nobody has entered again. It goes by `lane`: applied at once, it
    /// comes before whatever is claimed next on the same one.
    pub fn handle_last_release(&mut self, now: Moment, grip: Grip, lane: Lane, listen: bool) -> Released {
        let Some(hold) = self.holds.get(grip.0) else { return Released::Now(Err(Why::Lost(LossReason::Gone))) };
        let (over, watched) = (hold.is_live() && hold.deadline() <= now, hold.care().is_some());
        if watched {
            self.alert_hold(now, grip);
        }
        if over {
            self.lose(now, grip, LossReason::Expired);
        }
        if let Some(reason) = self.holds.get(grip.0).and_then(|hold| hold.loss().cloned()) {
            self.let_go(now, grip, lane);
            return Released::Now(Err(Why::Lost(reason)));
        }
        let Some(key) = self.pass_or_part(now, grip, lane) else { return Released::Now(Ok(())) };
        if !listen {
            return Released::Now(Ok(()));
        }
        let slip = self.bustle.slips.insert(None, Stage::Errand);
        self.bustle.partings[key].slip = Some(slip);
        Released::Later(slip)
    }

    /// What is to be said to whoever has [left](Self::leave) a lock that others are still in: whether it is held.
    #[inline]
    pub fn left(&self, now: Moment, grip: Grip) -> Released {
        // Whether, and then why: a reason is large, and would be copied where there is none (decision 0042).
        if self.holds.get(grip.0).is_some_and(|hold| hold.is_lost(now)) {
            self.left_lost(now, grip)
        } else {
            Released::Now(Ok(()))
        }
    }

    #[cold]
    fn left_lost(&self, now: Moment, grip: Grip) -> Released {
        Released::Now(self.loss(now, grip).map_or(Ok(()), |reason| Err(Why::Lost(reason))))
    }

    /// A guard is dropped while nobody can send its release: it stops being renewed, and the lease runs out.
    pub fn handle_abandon(&mut self, now: Moment, grip: Grip) {
        if !self.leave(grip) && self.holds.remove(grip.0).is_some() && self.cohort == Cohort::Holding(grip.0) {
            self.cohort = Cohort::Idle;
            self.advance(now);
        }
    }

    /// A hold leaves this process without ending: whoever has its id keeps and releases it from now on.
    ///
    /// `None`, and nothing changed, when it is lost, entered more than once, or its claim is not answered yet: a late answer
    /// would find it unknown and release it.
    pub fn handle_detach(&mut self, now: Moment, grip: Grip) -> Option<HolderId> {
        let hold = self.holds.get(grip.0).filter(|hold| hold.word.depth() == 1 && !hold.is_lost(now))?;
        let id = hold.unanswered().is_none().then_some(hold.id)?;
        self.handle_abandon(now, grip);
        Some(id)
    }

    /// The thread that owned these holds has ended: nobody can use or release them any more.
    pub fn handle_owner_ended(&mut self, now: Moment, owner: OwnerId) -> usize {
        let own = self.holds.iter().filter(|(_, hold)| hold.owner == Some(owner)).map(|(key, _)| Grip(key));
        let grips: Vec<Grip> = own.collect();
        for grip in &grips {
            self.lose(now, *grip, LossReason::OwnerEnded);
            self.let_go(now, *grip, Lane::Renewals);
        }
        grips.len()
    }

    /// A hold is no longer bound to its owner: its guard may travel.
    pub fn handle_unbind(&mut self, grip: Grip) {
        // Entered more than once, the outer guards stay where they are.
        if let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.word.depth() == 1) {
            hold.owner = None;
        }
    }

    /// The client shuts down: waiters are told, holds end and are released.
    pub fn handle_close(&mut self, now: Moment) {
        self.closed = true;
        for slip in self.bustle.slips.waiting() {
            if let Some(Stage::Claimed(seq)) = self.bustle.slips.stage(slip) {
                self.abandon(now, *seq);
            }
            self.fail(slip, Why::Closed);
        }
        self.line_shrank(now);
        let live: Vec<Grip> = self.holds.iter().filter(|(_, hold)| hold.is_live()).map(|(key, _)| Grip(key)).collect();
        let regaining = self.holds.iter().map(|(key, _)| Grip(key)).filter(|grip| self.is_regaining(*grip));
        regaining.collect::<Vec<_>>().into_iter().for_each(|grip| self.end_regain(grip));
        for grip in live {
            if let Some(hold) = self.holds.get(grip.0) {
                self.part(now, hold.id, hold.unanswered(), hold.lease().length(), Lane::Renewals);
            }
            self.lose(now, grip, LossReason::Shutdown);
        }
    }

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

    fn pass_or_part(&mut self, now: Moment, grip: Grip, lane: Lane) -> Option<usize> {
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

    /// Somebody waits elsewhere, or nobody did after it was `asked`.
    pub(super) fn learn(&mut self, now: Moment, asked: Moment, line: Line) {
        if line.waiters > 0 || !self.bustle.is_quiet() {
            let latest = self.bustle.slips.serial();
            self.bustle.remote.learn((now, asked), latest, line);
        }
    }

    /// Whether waiters elsewhere leave the local line its turn.
    pub(super) fn may_pass(&self, now: Moment) -> bool {
        let next = self.bustle.slips.head().map_or(0, |next| next.serial);
        self.inbox_up && self.bustle.remote.patient(now, next, &self.settings)
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
}
