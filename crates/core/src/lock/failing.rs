//! A store that fails: for a moment, so that claims are made again after a pause; or for too long, so that waits end. And waits that run
//! out, which say whether a holder or the store was the reason.
//!
//! Requests take two connections, and each may fail while the other works. So the machine notes for each [need](Need) of a waiter since
//! when it fails. Invariant: a need that has failed for [`unavailable_after`](super::Settings::unavailable_after) ends the waits that
//! depend on it, whatever else the store answers meanwhile.

use std::time::Duration;

use crate::op::{Body, Patience, Queued, Refusal, Verdict};
use crate::store::{Outcome, StoreError, StoreErrorKind};
use crate::time::{LeaseTime, Moment};
use crate::zoo::{self, Bug};

use super::claim::{PendingClaim, Phase, Recipient};
use super::state::Stage;
use super::{CohortState, ConnectionKind, Failure, Machine, RequestContext, WaiterId};

/// What a waiter needs from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Answers to claims.
    Claims,
    /// Answers to heartbeats, on the connection of renewals.
    Heartbeats,
    /// Grants that last until they are confirmed.
    Grants,
}

impl Need {
    const ALL: [Self; 3] = [Self::Claims, Self::Heartbeats, Self::Grants];
}

/// A store in trouble, and when to try it again.
#[derive(Debug)]
pub(super) struct Failing {
    /// Since when each need fails, if it does. At least one does.
    since: [Option<Moment>; Need::ALL.len()],
    attempt: u32,
    /// When to claim again.
    pub(super) retry_at: Option<Moment>,
    /// The latest error.
    pub(super) error: StoreError,
}

impl Failing {
    fn new(error: StoreError) -> Self {
        Self { since: [None; Need::ALL.len()], attempt: 0, retry_at: None, error }
    }

    fn note(&mut self, need: Need, since: Moment) {
        self.since[need as usize].get_or_insert(since);
    }

    fn cure(&mut self, need: Need) {
        self.since[need as usize] = None;
    }

    fn fails(&self, need: Need) -> bool {
        self.since[need as usize].is_some()
    }

    fn is_over(&self) -> bool {
        self.since.iter().all(Option::is_none)
    }

    /// When to try again or to give up, whichever is first.
    pub(super) fn next(&self, patience: Duration) -> Moment {
        let give_up = self.since.iter().flatten().min().map_or(Moment::FAR, |since| *since + patience);
        // With this bug nobody notices how long it lasts.
        let give_up = if zoo::has(Bug::NoRetry) { Moment::FAR } else { give_up };
        give_up.min(self.retry_at.unwrap_or(Moment::FAR))
    }

    /// Takes out the needs that have failed for longer than `patience`.
    fn take_expired(&mut self, now: Moment, patience: Duration) -> Vec<Need> {
        let expired = |need: &Need| self.since[*need as usize].is_some_and(|since| since + patience <= now);
        let expired: Vec<Need> = Need::ALL.into_iter().filter(expired).collect();
        expired.iter().for_each(|need| self.cure(*need));
        expired
    }
}

impl Machine {
    // ---- The store fails ----

    pub(super) fn on_claim_error(&mut self, now: Moment, seq: u64, error: StoreError) {
        let need = if self.is_confirming(seq) { Need::Grants } else { Need::Claims };
        self.claim_failed(now, seq, need, error);
    }

    /// A claim came to nothing because the store failed.
    pub(super) fn claim_failed(&mut self, now: Moment, seq: u64, need: Need, error: StoreError) {
        let Some(claim) = self.active.claims.get(&seq).filter(|claim| claim.phase != Phase::Withdrawing) else {
            return;
        };
        let (recipient, patience, sent) = (claim.recipient, claim.patience, claim.asked);
        // A claim that is being confirmed was granted, so others must not wait for its window to end. A claim that takes a hold again may
        // have been executed by an earlier try.
        let regains = matches!(recipient, Recipient::Regain(..));
        let may_be_executed = error.outcome == Outcome::Unknown && claim.phase != Phase::New;
        if may_be_executed || claim.phase == Phase::Confirming || regains {
            if let Recipient::Upgrade(..) = recipient {
                // A release would leave a reader that believes in a hold that was exchanged.
                return self.withdraw(seq, Failure::Store(error));
            }
            self.release_claim(now, seq, ConnectionKind::Renewals);
        }
        if let Recipient::Regain(hold_key, _) = recipient {
            return self.on_regain_error(seq, hold_key);
        }
        let try_again =
            error.is_transient() && patience == Patience::Queue && !matches!(recipient, Recipient::Upgrade(..));
        if !try_again {
            return self.fail_claim(now, seq, |_| Failure::Store(error.clone()));
        }
        self.forget_claim(seq);
        if let Recipient::Waiter(waiter) = recipient {
            self.active.waiters.set(waiter, Stage::Unclaimed);
        }
        if recipient != Recipient::Nobody {
            self.note_failure(now, need, sent, error);
        }
    }

    /// A claim that was certainly not executed never will be, so its not-after no longer matters.
    pub(super) fn note_unsent(&mut self, seq: u64, error: &StoreError) {
        if let Some(claim) = self.active.claims.get_mut(&seq).filter(|_| error.outcome == Outcome::NotExecuted) {
            claim.not_after = LeaseTime::ZERO;
        }
    }

    /// The store failed a request sent at `sent`: the next claim comes after a pause.
    pub(super) fn note_failure(&mut self, now: Moment, need: Need, sent: Moment, error: StoreError) {
        let attempt = self.active.failing.as_ref().map_or(0, |failing| failing.attempt + 1);
        let pause = now + self.settings.backoff.delay(attempt, self.jitter.next());
        self.recall_held_back();
        let failing = self.note_failing(now, need, sent, error);
        failing.attempt = attempt;
        failing.retry_at = (!zoo::has(Bug::NoRetry)).then_some(pause);
    }

    /// The store failed a request sent at `sent`. No claim has to pause for it.
    pub(super) fn note_failing(&mut self, now: Moment, need: Need, sent: Moment, error: StoreError) -> &mut Failing {
        // At most as long ago as a request may take. If it was sent earlier, this process did not run meanwhile.
        let since = sent.max(now - self.settings.response);
        let failing = self.active.failing.get_or_insert_with(|| Box::new(Failing::new(error.clone())));
        failing.note(need, since);
        failing.error = error;
        failing
    }

    /// A heartbeat failed. The next one is scheduled already.
    pub(super) fn on_heartbeat_error(&mut self, now: Moment, sent: Moment, error: StoreError) {
        if !zoo::has(Bug::HeartbeatsMayFail) {
            self.note_failing(now, Need::Heartbeats, sent, error);
        }
    }

    // ---- The store answers again ----

    /// The store answered without an error: notes what that proves, and lets claims go without their pause.
    pub(super) fn note_served(&mut self, now: Moment, context: &RequestContext, body: &Body) {
        // Read first: writing would make an active state where there is none.
        if self.active.failing.is_none() {
            return;
        }
        let Some(failing) = &mut self.active.failing else { return };
        let is_late = matches!(body, Body::Verdict(Verdict::Refused(Refusal::Late { .. } | Refusal::Done)));
        match context {
            RequestContext::Confirm { .. }
            | RequestContext::Renew { .. }
            | RequestContext::Heartbeat { .. }
            | RequestContext::Check { .. } => {
                failing.cure(Need::Heartbeats);
            }
            // It arrived too late: perhaps the next one does too.
            RequestContext::Claim { .. } if is_late => return,
            RequestContext::Claim { .. } | RequestContext::Downgrade { .. } | RequestContext::Withdraw { .. } => {
                failing.cure(Need::Claims);
            }
            // Grants come to nothing, and the answers to their releases prove nothing.
            RequestContext::Release { .. } if failing.fails(Need::Grants) => return,
            // A release may take either connection, so it proves nothing about one of them.
            RequestContext::Release { .. } => {}
        }
        if zoo::has(Bug::AnyAnswerForgives) {
            **failing = Failing::new(failing.error.clone());
        }
        self.clear_if_cured();
        self.retry(now);
    }

    /// A hold has begun, or the store named another holder: grants do not come to nothing.
    pub(super) fn note_progress(&mut self, now: Moment) {
        if let Some(failing) = &mut self.active.failing {
            failing.cure(Need::Grants);
            self.clear_if_cured();
            // Other waiters still wait for the pause, and nothing else would end it.
            self.retry(now);
        }
    }

    /// Whether the blocker is a claim of this client: not confirmed yet, or its release has not arrived.
    pub(super) fn is_our_own(&self, queued: &Queued) -> bool {
        let Some(blocker) = &queued.blocker else { return false };
        let released = self.active.releases.iter().map(|(_, pending)| pending.id);
        let claimed = self.active.claims.keys().map(|seq| self.client.holder(*seq));
        released.chain(claimed).any(|id| id.public() == blocker.holder)
    }

    /// A new waiter that is alone does not suffer from earlier failures.
    pub(super) fn forget_old_failures(&mut self) {
        // Read first: writing would make an active state where there is none.
        if self.active.failing.is_some() && self.active.waiters.is_empty() {
            self.active.failing = None;
        }
    }

    fn clear_if_cured(&mut self) {
        self.active.failing.take_if(|failing| failing.is_over());
    }

    /// Claims for every waiter that has no claim.
    pub(super) fn retry(&mut self, now: Moment) {
        if let Some(failing) = &mut self.active.failing {
            failing.retry_at = None;
        }
        for waiter in self.active.waiters.unclaimed() {
            self.claim_for(now, waiter);
        }
        self.advance(now);
        if let Some(failing) = self.active.failing.as_mut().filter(|_| zoo::has(Bug::SpinningRetry)) {
            failing.retry_at = Some(now);
        }
    }

    // ---- The store fails for too long ----

    /// Gives up what has failed for too long, and tries again what is due.
    pub(super) fn tend_failing(&mut self, now: Moment) {
        let patience = self.settings.unavailable_after;
        let Some(failing) = self.active.failing.as_mut().filter(|failing| failing.next(patience) <= now) else {
            return;
        };
        let expired = failing.take_expired(now, patience);
        if !expired.is_empty() {
            let error = failing.error.clone();
            self.clear_if_cured();
            self.give_up(now, &expired, &error);
        }
        if self.active.failing.as_ref().is_some_and(|failing| failing.retry_at.is_some_and(|at| at <= now)) {
            self.retry(now);
        }
    }

    fn give_up(&mut self, now: Moment, expired: &[Need], error: &StoreError) {
        let failure = || Failure::Store(error.clone());
        for waiter in self.active.waiters.waiting() {
            let Some(needs) = self.needs(waiter).filter(|needs| needs.iter().any(|need| expired.contains(need))) else {
                continue;
            };
            debug_assert!(!needs.is_empty(), "a waiter depends on something");
            if let Some(Stage::Claimed(seq)) = self.active.waiters.stage(waiter) {
                let seq = *seq;
                if self.is_upgrade(seq) {
                    self.withdraw(seq, failure());
                    continue;
                }
                self.abandon(now, seq);
            }
            self.fail(waiter, failure());
        }
        self.line_shrank(now);
    }

    /// What a waiter needs next; `None` if it depends on nothing in the store.
    fn needs(&self, waiter: WaiterId) -> Option<&'static [Need]> {
        const TO_CLAIM: Option<&[Need]> = Some(&[Need::Claims, Need::Grants]);
        let seq = match (self.active.waiters.stage(waiter)?, self.cohort) {
            (Stage::Unclaimed, _) | (Stage::InLine, CohortState::Idle) => return TO_CLAIM,
            (Stage::Claimed(seq), _) => *seq,
            (Stage::InLine, CohortState::Claiming(seq)) => seq,
            _ => return None,
        };
        match self.active.claims.get(&seq)?.phase {
            // An upgrade ends with the answer to its claim or to its withdrawal in any case.
            Phase::New | Phase::Sent if self.is_upgrade(seq) => None,
            Phase::New | Phase::Sent => TO_CLAIM,
            Phase::Queued { .. } | Phase::Confirming => Some(&[Need::Heartbeats, Need::Grants]),
            Phase::Withdrawing => None,
        }
    }

    /// The latest error, if what a waiter needs fails.
    fn trouble_of(&self, waiter: WaiterId) -> Option<StoreError> {
        let failing = self.active.failing.as_ref()?;
        let concerned = self.needs(waiter)?.iter().any(|need| failing.fails(*need));
        concerned.then(|| failing.error.clone())
    }

    // ---- Waits that run out ----

    pub(super) fn wait_over(&mut self, now: Moment, waiter: WaiterId) {
        self.alert_wait(now, waiter);
        let failure = self.wait_failure(now, waiter);
        match self.active.waiters.stage(waiter) {
            Some(Stage::Claimed(seq)) => {
                let seq = *seq;
                if self.is_upgrade(seq) {
                    return self.withdraw(seq, failure);
                }
                self.fail(waiter, failure);
                self.abandon(now, seq);
            }
            Some(Stage::InLine) => {
                self.fail(waiter, failure);
                self.line_shrank(now);
            }
            Some(Stage::Unclaimed) => self.fail(waiter, failure),
            _ => {}
        }
    }

    /// Why a wait was in vain: somebody held the lock, or the store did not answer.
    fn wait_failure(&self, now: Moment, waiter: WaiterId) -> Failure {
        if let Some(error) = self.trouble_of(waiter) {
            return Failure::Store(error);
        }
        if let Some(silent) = self.silence(now, waiter) {
            return Failure::Store(StoreError::unknown(format!("the store has not answered for {silent:.1?}")));
        }
        let blocker = self.in_the_way(now);
        if blocker.is_none() && self.is_held_back(waiter) {
            let words = "too many ask for this lock at once, and it was not its turn to ask within the wait";
            return Failure::Store(StoreError::not_executed(StoreErrorKind::Unavailable, words));
        }
        if blocker.is_none() && self.is_unanswered(waiter) {
            return Failure::Store(StoreError::unknown("the store did not answer within the wait"));
        }
        Failure::Timeout(blocker)
    }

    /// How long ago the store last confirmed that this waiter is queued, if that is longer than a heartbeat may take. Then nobody
    /// knows whether the lock is still held.
    fn silence(&self, now: Moment, waiter: WaiterId) -> Option<Duration> {
        let claim = self.active.claims.get(&self.claim_of(waiter)?)?;
        let silent = now.since(claim.asked);
        let said = matches!(claim.phase, Phase::Queued { .. }) && !zoo::has(Bug::HeartbeatsMayFail);
        (said && silent >= self.window(claim.lease).max(self.settings.response)).then_some(silent)
    }

    /// The claim that a waiter depends on: its own, or that of the local line.
    pub(super) fn claim_of(&self, waiter: WaiterId) -> Option<u64> {
        match (self.active.waiters.stage(waiter)?, self.cohort) {
            (Stage::Claimed(seq), _) => Some(*seq),
            (Stage::InLine, CohortState::Claiming(seq)) => Some(seq),
            _ => None,
        }
    }

    fn is_held_back(&self, waiter: WaiterId) -> bool {
        let Some(Stage::Claimed(seq)) = self.active.waiters.stage(waiter) else { return false };
        let is_new = self.active.claims.get(seq).is_some_and(|claim| claim.phase == Phase::New);
        is_new && !self.active.held_back.is_empty()
    }

    fn is_unanswered(&self, waiter: WaiterId) -> bool {
        let Some(seq) = self.claim_of(waiter) else { return false };
        let asks = |phase: Phase| matches!(phase, Phase::New | Phase::Sent);
        let unanswered = |claim: &PendingClaim| asks(claim.phase) && !matches!(claim.recipient, Recipient::Upgrade(..));
        self.active.claims.get(&seq).is_some_and(|claim| unanswered(claim))
    }
}
