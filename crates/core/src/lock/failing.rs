//! Claims that come to nothing: nobody wants them any more, or the store failed, for a moment or for too long.
//!
//! Requests go by two connections, and each may fail while the other works. So it is written down of each [need](Need) of a waiter since
//! when it fails. Invariant: a need that has failed for [`unavailable_after`](super::Settings::unavailable_after) ends the waits that
//! rest on it, whatever else the store answers meanwhile.

use std::time::Duration;

use crate::op::{Body, Queued, Refusal, Verdict};
use crate::store::StoreError;
use crate::time::Moment;
use crate::zoo::{self, Bug};

use super::claim::Phase;
use super::state::Stage;
use super::{Cohort, Errand, Machine, Slip, Why};

/// What a waiter needs of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Answers to claims.
    Claims,
    /// Answers to heartbeats, by the connection of renewals.
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
    /// Since when each need fails, if it does. One of them does.
    since: [Option<Moment>; Need::ALL.len()],
    attempt: u32,
    /// When to claim again.
    pub(super) retry_at: Option<Moment>,
    /// What was said last.
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

    /// When something is to be done about it.
    pub(super) fn next(&self, patience: Duration) -> Moment {
        let give_up = self.since.iter().flatten().min().map_or(Moment::FAR, |since| *since + patience);
        // A bug of the zoo: it is not noticed how long this goes on.
        let give_up = if zoo::has(Bug::NoRetry) { Moment::FAR } else { give_up };
        give_up.min(self.retry_at.unwrap_or(Moment::FAR))
    }

    /// Takes out the needs that have failed for that long.
    fn take_expired(&mut self, now: Moment, patience: Duration) -> Vec<Need> {
        let expired = |need: &Need| self.since[*need as usize].is_some_and(|since| since + patience <= now);
        let expired: Vec<Need> = Need::ALL.into_iter().filter(expired).collect();
        expired.iter().for_each(|need| self.cure(*need));
        expired
    }
}

impl Machine {
    // ---- The store fails ----

    /// The store failed a request of `sent`: the next claim comes after a pause.
    pub(super) fn note_failure(&mut self, now: Moment, need: Need, sent: Moment, error: StoreError) {
        let attempt = self.bustle.failing.as_ref().map_or(0, |failing| failing.attempt + 1);
        let pause = now + self.settings.backoff.delay(attempt, self.jitter.next());
        self.call_back();
        let failing = self.note_failing(now, need, sent, error);
        failing.attempt = attempt;
        failing.retry_at = (!zoo::has(Bug::NoRetry)).then_some(pause);
    }

    /// The store failed a request of `sent`, and nothing waits for a pause.
    pub(super) fn note_failing(&mut self, now: Moment, need: Need, sent: Moment, error: StoreError) -> &mut Failing {
        // Not longer ago than a request may take: before that it was this process that did not run.
        let since = sent.max(now - self.settings.response);
        let failing = self.bustle.failing.get_or_insert_with(|| Box::new(Failing::new(error.clone())));
        failing.note(need, since);
        failing.error = error;
        failing
    }

    /// Nobody knows how those stand who were asked after. The next heartbeat is due anyhow.
    pub(super) fn on_heartbeat_error(&mut self, now: Moment, sent: Moment, error: StoreError) {
        if !zoo::has(Bug::HeartbeatsMayFail) {
            self.note_failing(now, Need::Heartbeats, sent, error);
        }
    }

    // ---- The store answers again ----

    /// The store answered, and not by a failure: what that proves, and that claims need not wait for their pause.
    pub(super) fn note_served(&mut self, now: Moment, errand: &Errand, body: &Body) {
        // Looked at first: to write would make a bustle where there is none.
        if self.bustle.failing.is_none() {
            return;
        }
        let Some(failing) = &mut self.bustle.failing else { return };
        let is_late = matches!(body, Body::Verdict(Verdict::Refused(Refusal::Late { .. } | Refusal::Done)));
        match errand {
            Errand::Confirm { .. } | Errand::Renew { .. } | Errand::Heartbeat { .. } | Errand::Look { .. } => {
                failing.cure(Need::Heartbeats);
            }
            // Too late for the store: so is the next one, perhaps.
            Errand::Claim { .. } if is_late => return,
            Errand::Claim { .. } | Errand::Downgrade { .. } | Errand::Withdraw { .. } => failing.cure(Need::Claims),
            // Where grants come to nothing, their releases are answered: that proves nothing.
            Errand::Part { .. } if failing.fails(Need::Grants) => return,
            // By either connection.
            Errand::Part { .. } => {}
        }
        if zoo::has(Bug::AnyAnswerForgives) {
            **failing = Failing::new(failing.error.clone());
        }
        self.forgive();
        self.retry(now);
    }

    /// A hold has begun, or the store said that others stand in the way: what comes to nothing is not the grants.
    pub(super) fn note_progress(&mut self, now: Moment) {
        if let Some(failing) = &mut self.bustle.failing {
            failing.cure(Need::Grants);
            self.forgive();
            // Whoever else waits for the pause would find nobody to end it.
            self.retry(now);
        }
    }

    /// Whether the one in the way is a claim of ours: one that is not confirmed, or is given back and its release has not arrived.
    pub(super) fn is_our_own(&self, queued: &Queued) -> bool {
        let Some(blocker) = &queued.blocker else { return false };
        let parted = self.bustle.partings.iter().map(|(_, parting)| parting.id);
        let claimed = self.bustle.claims.keys().map(|seq| self.client.holder(*seq));
        parted.chain(claimed).any(|id| id.public() == blocker.holder)
    }

    /// Whoever comes now, and is alone, does not pay for what failed others before.
    pub(super) fn begin_patience(&mut self) {
        // Looked at first: to write would make a bustle where there is none.
        if self.bustle.failing.is_some() && self.bustle.slips.is_empty() {
            self.bustle.failing = None;
        }
    }

    fn forgive(&mut self) {
        self.bustle.failing.take_if(|failing| failing.is_over());
    }

    /// Tries again for everybody who has no claim.
    pub(super) fn retry(&mut self, now: Moment) {
        if let Some(failing) = &mut self.bustle.failing {
            failing.retry_at = None;
        }
        for slip in self.bustle.slips.unclaimed() {
            self.claim_for(now, slip);
        }
        self.advance(now);
        if let Some(failing) = self.bustle.failing.as_mut().filter(|_| zoo::has(Bug::SpinningRetry)) {
            failing.retry_at = Some(now);
        }
    }

    // ---- The store fails for too long ----

    /// Gives up on what has failed for too long, and tries again what is due.
    pub(super) fn tend_failing(&mut self, now: Moment) {
        let patience = self.settings.unavailable_after;
        let Some(failing) = self.bustle.failing.as_mut().filter(|failing| failing.next(patience) <= now) else {
            return;
        };
        let expired = failing.take_expired(now, patience);
        if !expired.is_empty() {
            let error = failing.error.clone();
            self.forgive();
            self.give_up(now, &expired, &error);
        }
        if self.bustle.failing.as_ref().is_some_and(|failing| failing.retry_at.is_some_and(|at| at <= now)) {
            self.retry(now);
        }
    }

    fn give_up(&mut self, now: Moment, expired: &[Need], error: &StoreError) {
        let why = || Why::Store(error.clone());
        for slip in self.bustle.slips.waiting() {
            let Some(needs) = self.needs(slip).filter(|needs| needs.iter().any(|need| expired.contains(need))) else {
                continue;
            };
            debug_assert!(!needs.is_empty(), "or it waits for nothing");
            if let Some(Stage::Claimed(seq)) = self.bustle.slips.stage(slip) {
                let seq = *seq;
                if self.is_upgrade(seq) {
                    self.withdraw(seq, why());
                    continue;
                }
                self.abandon(now, seq);
            }
            self.fail(slip, why());
        }
        self.line_shrank(now);
    }

    /// What the next thing that happens to a waiter rests on; `None` if that is not the store.
    fn needs(&self, slip: Slip) -> Option<&'static [Need]> {
        const TO_CLAIM: Option<&[Need]> = Some(&[Need::Claims, Need::Grants]);
        let seq = match (self.bustle.slips.stage(slip)?, self.cohort) {
            (Stage::Unclaimed, _) | (Stage::InLine, Cohort::Idle) => return TO_CLAIM,
            (Stage::Claimed(seq), _) => *seq,
            (Stage::InLine, Cohort::Claiming(seq)) => seq,
            _ => return None,
        };
        match self.bustle.claims.get(&seq)?.phase {
            // The answer to its claim, or to its withdrawal, ends an upgrade in any case.
            Phase::New | Phase::Sent if self.is_upgrade(seq) => None,
            Phase::New | Phase::Sent => TO_CLAIM,
            Phase::Queued { .. } | Phase::Confirming => Some(&[Need::Heartbeats, Need::Grants]),
            Phase::Withdrawing => None,
        }
    }

    /// What the store said last, if what a waiter needs of it fails.
    pub(super) fn trouble_of(&self, slip: Slip) -> Option<StoreError> {
        let failing = self.bustle.failing.as_ref()?;
        let concerned = self.needs(slip)?.iter().any(|need| failing.fails(*need));
        concerned.then(|| failing.error.clone())
    }
}
