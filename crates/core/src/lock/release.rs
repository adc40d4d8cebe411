//! How a hold leaves a guard: to the next local waiter, or back to the store.
//!
//! | group | what happens |
//! |---|---|
//! | waiters in other processes | [`Remote`]: how long they let the local line keep the lock |
//! | local passes | the next local waiter gets the hold, under its own token |
//! | releases | a hold, a place in the queue or a claim is released in the store; tried again until that is certain or no longer matters |
//!
//! A *local batch* is the time in which the local line passes the lock on although somebody waits in another process.

use std::time::Duration;

use crate::holder::HolderId;
use crate::op::{Line, Parted, Patience, ReleaseReply};
use crate::store::{Outcome, StoreError};
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::{MAX_LOCAL, Token};
use crate::zoo::{self, Bug};

use super::claim::{PendingClaim, Phase, Recipient};
use super::hold::Hold;
use super::{
    CohortState, ConnectionKind, Failure, HoldKey, How, LossReason, Machine, Settings, Todo, WaitOutcome, WaiterId,
};

/// A local batch shorter than this needs no early renewal: the store has just answered.
const SHORT_BATCH: Duration = Duration::from_millis(1);

/// How long before the end of a local batch its renewal is sent.
const RENEW_AHEAD: Duration = Duration::from_micros(500);

/// What is known of waiters in other processes while the local line holds the lock.
#[derive(Debug, Default)]
pub(super) struct Remote {
    /// Since when somebody is known to wait.
    since: Option<Moment>,
    /// When that was last heard.
    heard: Moment,
    /// The serial number of the latest waiter here at that time.
    latest: u64,
    /// How often the lock was passed on since.
    passes: u32,
    /// Whether a fair waiter is among them.
    pub(super) fair: bool,
}

impl Remote {
    pub(super) const NONE: Self = Self { since: None, heard: Moment::ZERO, latest: 0, passes: 0, fair: false };

    /// Whether it says nothing.
    pub(super) fn is_forgettable(&self) -> bool {
        self.since.is_none() && !self.fair
    }

    /// Whether somebody is known to wait.
    fn waits(&self) -> bool {
        self.since.is_some()
    }

    /// The claim has become a hold. Notices of waiters since the claim may have overtaken its answer, so they count.
    pub(super) fn begin(&mut self, now: Moment, latest: u64, line: Line) {
        (self.since, self.latest) = (self.since.map(|_| now), latest);
        if line.waiters > 0 {
            let fair = self.fair || line.fair;
            self.note_line((now, now), latest, Line { fair, ..line });
        }
    }

    /// Notes what an answer to a request sent at `asked`, or a notice, says of waiters in other processes.
    fn note_line(&mut self, (now, asked): (Moment, Moment), latest: u64, line: Line) {
        if line.waiters == 0 {
            // Notices take another connection and overtake answers: a waiter heard of since may have come after this answer was given.
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

    /// Whether the lock may be passed to the local waiter with the serial number `next`. In the second half of the time only waiters that
    /// queued here before the batch began may go first.
    fn patient(&self, now: Moment, next: u64, settings: &Settings) -> bool {
        let within = |since: Moment| {
            let (time, passed) = (settings.max_passing, now.since(since));
            let is_due = next > self.latest && passed >= time / 2;
            self.passes < settings.max_passes && passed < time && !is_due
        };
        !self.fair && self.since.is_none_or(within)
    }

    /// When the batch ends, if the hold that begins now is its last one. It is assumed to last as long as the average hold of the batch,
    /// or as long as the latest one, `held`, if that was longer: the first hold may have begun before the batch did. `next` is the waiter
    /// that would get the lock otherwise.
    fn ends(&self, now: Moment, held: Duration, next: u64, settings: &Settings) -> Option<Moment> {
        let passed = now.since(self.since?);
        let ends = now + held.max(passed / self.passes.max(1));
        (passed >= SHORT_BATCH && !self.patient(ends, next, settings)).then_some(ends)
    }
}

/// A release that is not certain yet.
#[derive(Debug)]
pub(super) struct PendingRelease {
    pub(super) id: HolderId,
    pub(super) not_after: Option<LeaseTime>,
    /// Whether nobody here knows the claim. Then the latest possible not-after is sent.
    pub(super) unknown: bool,
    /// The claim that is made in the same request.
    pub(super) again: Option<u64>,
    /// The claim that is made once this is answered, so that the next waiter elsewhere does not wait for it to be queued.
    pub(super) then: Option<u64>,
    /// The lost hold that this recovers, and its token.
    pub(super) recovers: Option<(HoldKey, Token)>,
    pub(super) connection: ConnectionKind,
    pub(super) waiter: Option<WaiterId>,
    attempt: u32,
    /// Whether an earlier try, or another release of the same id, may have been executed before.
    resent: bool,
    pub(super) retry_at: Option<Moment>,
    /// When the lease has ended in the store anyway.
    moot_at: Moment,
}

impl Machine {
    // ---- Local passes ----

    /// Ends a hold here, in whatever state it is, and passes the lock on.
    pub(super) fn end_hold(&mut self, now: Moment, hold_key: HoldKey, connection: ConnectionKind) {
        match self.holds.get(hold_key) {
            None => {}
            Some(hold) if hold.nothing_to_release() => {
                self.holds.remove(hold_key);
            }
            Some(hold) if !hold.is_live() => {
                if let Some(hold) = self.holds.remove(hold_key) {
                    self.release_hold(now, &hold, connection);
                }
            }
            Some(_) => {
                self.pass_or_release(now, hold_key, connection);
            }
        }
    }

    /// Passes the lock to the next local waiter, or releases it in the store. The key of the release, if there is one.
    pub(super) fn pass_or_release(
        &mut self,
        now: Moment,
        hold_key: HoldKey,
        connection: ConnectionKind,
    ) -> Option<usize> {
        if self.cohort != CohortState::Holding(hold_key) {
            let hold = self.holds.remove(hold_key)?;
            return Some(self.release_hold(now, &hold, connection));
        }
        if let Some(next) = self.next_to_pass(hold_key).filter(|_| self.may_pass(now)) {
            let hold = self.holds.get(hold_key)?;
            let length = if hold.confirmed { hold.lease().length() } else { self.window(hold.lease()) };
            if hold.deadline().since(now) >= length / 2 {
                self.pass(now, hold_key, next);
                return None;
            }
            if !hold.confirmed && hold.unanswered().is_none() {
                self.pass_when_confirmed(hold_key);
                return None;
            }
        }
        let hold = self.holds.remove(hold_key)?;
        self.cohort = CohortState::Idle;
        let key = self.release_hold(now, &hold, connection);
        if self.active.failing.is_some() || !self.inbox_up {
            self.advance(now);
        } else if self.active.remote.waits() {
            self.active.releases[key].then = self.new_cohort_claim(now);
        } else {
            self.active.releases[key].again = self.new_cohort_claim(now);
        }
        Some(key)
    }

    /// The next local waiter, if the hold can be passed to it.
    fn next_to_pass(&self, hold_key: HoldKey) -> Option<WaiterId> {
        let hold = self.holds.get(hold_key)?;
        let next = self.active.waiters.head()?;
        let ask = self.active.waiters.ask(next)?;
        // The hold keeps the terms that it was made with, and the renewals that it has used.
        let same_terms = ask.terms == *hold.tracker.terms() && !ask.terms.is_limited();
        (same_terms && !hold.doubted && hold.local < MAX_LOCAL).then_some(next)
    }

    /// Whether the lock may be passed on locally now.
    pub(super) fn may_pass(&self, now: Moment) -> bool {
        let next = self.active.waiters.head().map_or(0, |next| next.serial);
        self.inbox_up && self.active.remote.patient(now, next, &self.settings)
    }

    /// Notes who waits in other processes, as of a request that was sent at `asked`.
    pub(super) fn note_line(&mut self, now: Moment, asked: Moment, line: Line) {
        if line.waiters > 0 || !self.active.is_quiet() {
            let latest = self.active.waiters.serial();
            self.active.remote.note_line((now, asked), latest, line);
        }
    }

    fn pass(&mut self, now: Moment, hold_key: HoldKey, next: WaiterId) {
        let Some(hold) = self.holds.get_mut(hold_key) else { return };
        self.active.remote.passes += 1;
        // A token of its own: a paused predecessor in this process must be fenced off too.
        hold.local += u16::from(!zoo::has(Bug::SharedCohortToken));
        let (held, is_unconfirmed) = (now.since(hold.since), !hold.confirmed && !hold.confirming);
        self.grant_to(now, hold_key, next, How::Local);
        if let Some(ends) = self.batch_ends(now, held).filter(|_| is_unconfirmed) {
            // A renewal is due within the claim window anyway. Sent now, it wakes the store and the next holder before the release comes.
            self.active.todo.push_back(Todo::RenewAt(hold_key, (ends - RENEW_AHEAD).max(now)));
        }
    }

    /// The guard left before the lease was confirmed: the hold becomes a claim again until it is.
    fn pass_when_confirmed(&mut self, hold_key: HoldKey) {
        let Some(hold) = self.holds.remove(hold_key) else { return };
        self.active.remote.passes += 1;
        let seq = hold.seq;
        let claim = PendingClaim {
            recipient: Recipient::Cohort,
            phase: Phase::Confirming,
            mode: hold.mode,
            lease: hold.lease(),
            fair: false,
            patience: Patience::Queue,
            asked: hold.seen,
            not_after: LeaseTime::ZERO,
            run: hold.run,
            // The next guard gets a token of its own.
            local: hold.local + u16::from(!zoo::has(Bug::SharedCohortToken)),
            how: How::Local,
            giving_up: None,
        };
        self.active.claims.insert(seq, Box::new(claim));
        if !hold.confirming {
            self.active.todo.push_back(Todo::Confirm(seq));
        }
        self.cohort = CohortState::Claiming(seq);
    }

    fn batch_ends(&self, now: Moment, held: Duration) -> Option<Moment> {
        let waiters = &self.active.waiters;
        // If the line is empty, the next one is a waiter that has yet to come.
        let next = waiters.head().map_or_else(|| waiters.serial() + 1, |next| next.serial);
        self.active.remote.ends(now, held, next, &self.settings)
    }

    /// Nobody picked up a grant: its waiter goes to the end of the line, and the lock goes to the next one.
    pub(super) fn requeue_unpicked(&mut self, now: Moment, hold_key: HoldKey, waiter: WaiterId) {
        let Some(until) = self.active.waiters.ask(waiter).map(|ask| ask.until) else { return };
        self.active.arm_wait(until, waiter);
        if zoo::has(Bug::RotatedButKept) {
            return self.end_hold(now, hold_key, ConnectionKind::Renewals);
        }
        if self.cohort == CohortState::Holding(hold_key) {
            self.active.waiters.join(waiter);
            self.end_hold(now, hold_key, ConnectionKind::Renewals);
        } else {
            self.end_hold(now, hold_key, ConnectionKind::Renewals);
            self.claim_for(now, waiter);
        }
    }

    // ---- Releases ----

    /// Releases an id in the store: tries again until that is certain, or for `moot_after`, when it no longer matters.
    pub(super) fn release_in_store(
        &mut self,
        now: Moment,
        id: HolderId,
        not_after: Option<LeaseTime>,
        moot_after: Duration,
        connection: ConnectionKind,
    ) -> usize {
        let moot_at = now + moot_after + self.settings.response;
        let pending = PendingRelease {
            id,
            not_after,
            unknown: false,
            again: None,
            then: None,
            recovers: None,
            connection,
            waiter: None,
            attempt: 0,
            resent: false,
            retry_at: None,
            moot_at,
        };
        let key = self.active.releases.insert(pending);
        self.active.todo.push_back(Todo::Release(key));
        key
    }

    pub(super) fn release_hold(&mut self, now: Moment, hold: &Hold, connection: ConnectionKind) -> usize {
        self.release_in_store(now, hold.id, hold.unanswered(), hold.lease().length(), connection)
    }

    /// Releases a claim that was granted, or may still be.
    pub(super) fn release_claim(&mut self, now: Moment, seq: u64, connection: ConnectionKind) {
        let Some(claim) = self.active.claims.get(&seq) else { return };
        let (id, lease) = (self.client.holder(seq), claim.lease.length());
        let unanswered = claim.run.id().is_none().then_some(claim.not_after);
        self.release_in_store(now, id, unanswered, lease, connection);
    }

    /// Releases an id that nothing here refers to any more.
    pub(super) fn release_unknown(&mut self, now: Moment, id: HolderId) {
        // It may overtake a release of the same id on the other connection. That one then finds nothing, which is no loss.
        self.active
            .releases
            .iter_mut()
            .filter(|(_, pending)| pending.id == id)
            .for_each(|(_, pending)| pending.resent = true);
        let key = self.release_in_store(now, id, None, self.settings.window, ConnectionKind::Renewals);
        self.active.releases[key].unknown = true;
    }

    pub(super) fn on_released(&mut self, now: Moment, key: usize, run: RunId, reply: ReleaseReply) {
        let Some(pending) = self.active.releases.try_remove(key) else { return };
        self.note_recovery_released(pending.recovers, true);
        if let Some(waiter) = pending.waiter {
            // If the first try found nothing, the hold had ended before. After that, an earlier try may have released it.
            let lost = match reply.parted {
                Parted::Nothing => Some(LossReason::Gone),
                Parted::Revoked { reason } => Some(LossReason::Revoked(reason.into())),
                Parted::Hold | Parted::Place => None,
            };
            let lost = lost.filter(|_| !pending.resent);
            self.finish(waiter, lost.map_or(WaitOutcome::Done, |reason| Failure::Lost(reason).into()));
        }
        if let (Some(seq), Some(verdict)) = (pending.again, reply.again) {
            self.on_verdict(now, seq, run, verdict);
        }
        if let Some(seq) = pending.then.filter(|seq| self.active.claims.contains_key(seq)) {
            // Sent with the same release once more: a store that takes no new claims queues such a claim all the same.
            let key = self.release_in_store(now, pending.id, None, self.settings.window, ConnectionKind::Claims);
            self.active.releases[key].again = Some(seq);
        }
    }

    pub(super) fn on_release_error(&mut self, now: Moment, key: usize, error: StoreError) {
        let regains =
            self.active.releases.get(key).and_then(|pending| pending.again).is_some_and(|seq| self.is_regain(seq));
        let Some(pending) = self.active.releases.get_mut(key) else { return };
        let delay = self.settings.backoff.delay(pending.attempt, self.jitter.next());
        pending.attempt += 1;
        pending.resent |= error.outcome == Outcome::Unknown;
        // The caller's connection may have ended with its runtime, so the tries alternate between both connections.
        pending.connection =
            if pending.attempt.is_multiple_of(2) { ConnectionKind::Claims } else { ConnectionKind::Renewals };
        let give_up = !error.is_transient() || now + delay >= pending.moot_at;
        pending.retry_at = Some(now + delay);
        // A hold is taken again under the same id in every try, so an earlier grant is found.
        let again = if regains && !give_up { None } else { pending.again.take() };
        let then = pending.then.take();
        let listener = pending.waiter.take();
        if give_up {
            let pending = self.active.releases.remove(key);
            self.note_recovery_released(pending.recovers, false);
        }
        if let Some(waiter) = listener {
            self.fail(waiter, Failure::Store(error.clone()));
        }
        if let Some(seq) = again.or(then) {
            self.on_claim_error(now, seq, error);
        }
    }
}
