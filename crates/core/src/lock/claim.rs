//! The life of a claim, from the first ask to the hold: sent, queued, confirmed, or given up.
//!
//! | group | what happens |
//! |---|---|
//! | making a claim | for the local line, for one waiter, for an upgrade |
//! | answers | granted, queued, busy, refused |
//! | grants | a grant arrives by reply, push or heartbeat; it is believed at once or confirmed first |
//! | heartbeats | when to ask after queued claims, and what their standings mean |
//! | ends | a claim fails, is abandoned, or is made anew |
//!
//! The transitions are in the table of the [parent module](super). Upgrades are in [`upgrade`](super::upgrade). What a failing
//! store means for waiters, and why waits end, is in [`failing`](super::failing).

use std::time::Duration;

use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Line, Patience, Queued, Refusal, Renewal, Standing, Verdict};
use crate::store::{StoreError, StoreErrorKind};
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::failing::Need;
use super::release::Remote;
use super::state::{KnownRun, Stage};
use super::{Ask, CohortState, ConnectionKind, Failure, HoldKey, How, LossReason, Machine, Todo, WaiterId};

/// The number of every claim, with [`Bug::HolderIdReused`].
pub(super) const REUSED: u64 = 7;

/// Waiters further back in the queue ask a little later after the lease end of the blocker: the first one is to get the lock.
const STAGGER: Duration = Duration::from_millis(5);

/// A claim that is not yet a hold. Its key is its number, from which its id is derived.
#[derive(Debug)]
pub(super) struct PendingClaim {
    pub(super) recipient: Recipient,
    pub(super) phase: Phase,
    pub(super) mode: Mode,
    pub(super) lease: Lease,
    pub(super) fair: bool,
    pub(super) patience: Patience,
    /// When the latest request that was answered "still queued" was sent; before the first answer, when the claim was sent.
    pub(super) asked: Moment,
    pub(super) not_after: LeaseTime,
    /// The run of the store that answered, once it did.
    pub(super) run: KnownRun,
    /// How often it was passed on locally. Not zero if it was a hold that was released before it was confirmed.
    pub(super) local: u16,
    /// How a grant would come now.
    pub(super) how: How,
    /// Why an upgrade is being withdrawn.
    pub(super) giving_up: Option<Box<Failure>>,
}

/// Who gets the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recipient {
    /// The first in the local line at that time.
    Cohort,
    Waiter(WaiterId),
    /// A reader that wants to write: the waiter and its read hold.
    Upgrade(WaiterId, HoldKey),
    /// A lost hold that is to be taken again, provided that this stamp is still the last one of the record.
    Regain(HoldKey, Stamp),
    /// Nobody: every waiter gave up while the claim was under way.
    Nobody,
}

impl Recipient {
    /// The stamp that must be the last one of the record.
    pub(super) fn after(self) -> Option<Stamp> {
        match self {
            Self::Regain(_, stamp) if !zoo::has(Bug::RegainWithoutProof) => Some(stamp),
            _ => None,
        }
    }
}

/// How far a claim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Sent,
    Queued {
        last: Stamp,
    },
    Confirming,
    /// An upgrade that is given up. Only the answer to its withdrawal says what became of it.
    Withdrawing,
}

/// What is claimed.
pub(super) struct ClaimSpec {
    pub(super) mode: Mode,
    pub(super) lease: Lease,
    pub(super) fair: bool,
    pub(super) patience: Patience,
}

/// A grant that has arrived: by reply, push or heartbeat.
pub(super) struct IncomingGrant {
    pub(super) stamp: Stamp,
    pub(super) sent: Moment,
    /// The run of the store that pushed it: a push may arrive before any answer.
    pub(super) pushed: Option<RunId>,
    pub(super) remaining: Duration,
    /// Who waited behind it when it was granted.
    pub(super) line: Line,
    /// Whether the store has just confirmed the full lease.
    pub(super) confirmed: bool,
}

impl Machine {
    // ---- Making a claim ----

    /// Claims for the local line, unless the line has a claim or a hold already.
    pub(super) fn advance(&mut self, now: Moment) {
        if self.cohort != CohortState::Idle || !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_cohort_claim(now) {
            self.active.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn new_cohort_claim(&mut self, now: Moment) -> Option<u64> {
        let seq = self.new_claim(now, self.active.waiters.head()?, Recipient::Cohort)?;
        self.active.remote = Remote::default();
        self.cohort = CohortState::Claiming(seq);
        Some(seq)
    }

    /// Claims for one waiter.
    pub(super) fn claim_for(&mut self, now: Moment, waiter: WaiterId) {
        self.active.waiters.set(waiter, Stage::Unclaimed);
        let patient = self.active.waiters.ask(waiter).is_some_and(|ask| ask.patience == Patience::Queue);
        if patient && !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_claim(now, waiter, Recipient::Waiter(waiter)) {
            self.active.waiters.set(waiter, Stage::Claimed(seq));
            self.active.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn new_claim(&mut self, now: Moment, waiter: WaiterId, recipient: Recipient) -> Option<u64> {
        let &Ask { mode, fair, patience, terms, .. } = self.active.waiters.ask(waiter)?;
        Some(self.insert_claim(now, recipient, ClaimSpec { mode, lease: terms.lease(), fair, patience }))
    }

    pub(super) fn insert_claim(&mut self, now: Moment, recipient: Recipient, spec: ClaimSpec) -> u64 {
        let seq = if zoo::has(Bug::HolderIdReused) { REUSED } else { self.client.next() };
        let ClaimSpec { mode, lease, fair, patience } = spec;
        let (phase, not_after) = (Phase::New, LeaseTime::ZERO);
        let claim = PendingClaim {
            recipient,
            phase,
            mode,
            lease,
            fair,
            patience,
            asked: now,
            not_after,
            run: KnownRun::default(),
            local: 0,
            how: How::AtOnce,
            giving_up: None,
        };
        self.active.claims.insert(seq, Box::new(claim));
        seq
    }

    // A claim that queues needs pushes; a store that fails gets a pause.
    fn may_claim(&mut self, now: Moment) -> bool {
        if !self.inbox_up && self.active.failing.is_none() {
            let error = StoreError::not_executed(StoreErrorKind::Unavailable, "the inbox is not connected");
            self.note_failure(now, Need::Claims, now, error);
        }
        self.active.failing.as_ref().and_then(|failing| failing.retry_at).is_none_or(|at| at <= now)
    }

    pub(super) fn window(&self, lease: Lease) -> Duration {
        self.settings.window_of(lease)
    }

    // ---- Answers ----

    pub(super) fn on_verdict(&mut self, now: Moment, seq: u64, run: RunId, verdict: Verdict) {
        let Some(claim) = self.active.claims.get_mut(&seq) else { return self.late_answer(seq) };
        claim.run.note(run);
        if claim.phase == Phase::Withdrawing {
            return;
        }
        if let Recipient::Regain(hold_key, _) = claim.recipient {
            return self.on_regain(now, seq, hold_key, verdict);
        }
        match verdict {
            Verdict::Granted(grant) => {
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                let incoming =
                    IncomingGrant { stamp, sent: claim.asked, pushed: None, remaining, line, confirmed: false };
                self.take_grant(now, seq, incoming);
            }
            Verdict::Queued(queued) => self.on_queued(now, seq, queued),
            Verdict::Busy(blocker) => self.fail_claim(now, seq, |_| Failure::Busy(blocker.clone())),
            // Our estimate of the store's clock was wrong, or the store restarted: claim again.
            Verdict::Refused(refusal @ (Refusal::Late { .. } | Refusal::Done)) => {
                let error = StoreError::not_executed(StoreErrorKind::Unavailable, refusal.to_string());
                self.on_claim_error(now, seq, error);
            }
            Verdict::Refused(refusal) => self.on_refused(now, seq, &refusal),
        }
    }

    fn on_refused(&mut self, now: Moment, seq: u64, refusal: &Refusal) {
        let lost = match refusal {
            Refusal::NotHolder => Some(LossReason::Gone),
            Refusal::Revoked { reason } => Some(LossReason::Revoked(reason.as_str().into())),
            _ => None,
        };
        if let (Some(reason), Some(Recipient::Upgrade(_, hold_key))) =
            (lost, self.active.claims.get(&seq).map(|claim| claim.recipient))
        {
            self.lose(now, hold_key, reason);
        }
        if let (Refusal::LeaseTooLong { .. }, CohortState::Claiming(claiming)) = (refusal, self.cohort)
            && claiming == seq
        {
            return self.refuse_head(now, seq, refusal);
        }
        self.fail_claim(now, seq, |_| Failure::Refused(refusal.clone()));
    }

    // The lease is that of the first waiter; the others may want a shorter one.
    fn refuse_head(&mut self, now: Moment, seq: u64, refusal: &Refusal) {
        self.forget_claim(seq);
        if let Some(head) = self.active.waiters.head() {
            self.fail(head, Failure::Refused(refusal.clone()));
        }
        self.advance(now);
    }

    // A push may overtake the answer. Then the claim is a hold already, and its claim is answered now.
    fn late_answer(&mut self, seq: u64) {
        if let Some((_, hold)) = self.holds.iter_mut().find(|(_, hold)| hold.seq == seq) {
            hold.note_answered();
        }
    }

    fn on_queued(&mut self, now: Moment, seq: u64, queued: Queued) {
        self.note_blocker(&queued);
        let Some(claim) = self.active.claims.get_mut(&seq) else { return };
        if !matches!(claim.phase, Phase::Sent | Phase::Queued { .. }) {
            return;
        }
        if claim.patience == Patience::Try {
            let error = StoreError::unknown("the store queued a request that did not want to wait");
            return self.on_claim_error(now, seq, error);
        }
        claim.phase = Phase::Queued { last: queued.last };
        claim.how = How::HandOff;
        let (asked, lease, fair, recipient) = (claim.asked, claim.lease, claim.fair, claim.recipient);
        if self.active.failing.is_some() && !self.is_our_own(&queued) {
            self.note_progress(now);
        }
        self.active.remote.fair |= fair;
        if self.recipient_gone(seq) {
            return self.abandon(now, seq);
        }
        if let Recipient::Waiter(waiter) = recipient
            && self.waits_for_itself(waiter)
        {
            return self.fail_claim(now, seq, |_| Failure::WouldDeadlock);
        }
        self.schedule_heartbeat(now, asked, lease, &queued);
    }

    fn note_blocker(&mut self, queued: &Queued) {
        self.active.blocker.clone_from(&queued.blocker.clone().map(Box::new));
    }

    // ---- Grants ----

    /// A grant has arrived: it becomes a hold, or is confirmed first, or is released.
    fn take_grant(&mut self, now: Moment, seq: u64, incoming: IncomingGrant) {
        let Some(claim) = self.active.claims.get(&seq) else { return };
        let Some(waiter) = self.recipient(claim).filter(|waiter| self.active.waiters.ask(*waiter).is_some()) else {
            return self.abandon_granted(now, seq);
        };
        // Another waiter may be first by now, with another lease than was confirmed.
        let proven =
            incoming.confirmed && self.active.waiters.ask(waiter).is_some_and(|ask| ask.lease() == claim.lease);
        if !proven && self.must_confirm(now, claim, waiter, &incoming) {
            if let Some(claim) = self.active.claims.get_mut(&seq)
                && (claim.phase != Phase::Confirming || incoming.confirmed)
            {
                claim.phase = Phase::Confirming;
                self.active.todo.push_back(Todo::Confirm(seq));
            }
            return;
        }
        if self.settings.drift.deadline(incoming.sent, incoming.remaining) <= now {
            // The answer took longer than the lease.
            let error = StoreError::unknown("the store answered too late for the lease");
            return self.claim_failed(now, seq, Need::Grants, error);
        }
        self.settle_claim(now, seq, waiter, &incoming);
    }

    fn must_confirm(&self, now: Moment, claim: &PendingClaim, waiter: WaiterId, incoming: &IncomingGrant) -> bool {
        let Some(ask) = self.active.waiters.ask(waiter) else { return false };
        let deadline = self.settings.drift.deadline(incoming.sent, incoming.remaining);
        let short = deadline < now + self.window(claim.lease) / 4;
        let fixed = ask.terms.is_fixed() && incoming.remaining < ask.lease().length();
        short || fixed || ask.lease() != claim.lease
    }

    pub(super) fn is_confirming(&self, seq: u64) -> bool {
        self.active.claims.get(&seq).is_some_and(|claim| claim.phase == Phase::Confirming)
    }

    pub(super) fn on_confirmed(&mut self, now: Moment, seq: u64, sent: Moment, renewal: Renewal) {
        let Some(claim) = self.active.claims.get(&seq).filter(|claim| claim.phase == Phase::Confirming) else { return };
        let (recipient, lease, passed) = (claim.recipient, claim.lease, claim.local > 0);
        match (renewal, recipient) {
            (Renewal::Renewed { line, .. }, _) if passed && !self.may_pass_on(now, sent, line) => {
                self.release_claim(now, seq, ConnectionKind::Renewals);
                self.claim_again(now, seq);
            }
            (Renewal::Renewed { stamp, remaining, line }, _) => {
                self.take_grant(
                    now,
                    seq,
                    IncomingGrant { stamp, sent, pushed: None, remaining, line, confirmed: true },
                );
            }
            (Renewal::Revoked { reason, remaining }, Recipient::Upgrade(waiter, hold_key)) => {
                let reason = LossReason::Revoked(reason.into());
                self.answer_revoked(now, seq, remaining);
                self.forget_claim(seq);
                // The read hold was exchanged, so it has ended too.
                self.lose_revoked(now, hold_key, reason.clone());
                self.fail(waiter, Failure::Lost(reason));
            }
            (Renewal::Revoked { remaining, .. }, _) => {
                self.answer_revoked(now, seq, remaining);
                self.claim_again(now, seq);
            }
            (Renewal::NotHolder, _) if zoo::has(Bug::ConfirmationIgnored) => {
                let (stamp, remaining) = (Stamp::ZERO.next(), lease.length());
                self.take_grant(
                    now,
                    seq,
                    IncomingGrant { stamp, sent, pushed: None, remaining, line: Line::default(), confirmed: true },
                );
            }
            (Renewal::NotHolder, _) => {
                // Where answers take longer than the grant lasts, this happens every time.
                let error = StoreError::unknown("the grant had ended before the store could confirm it");
                self.note_failing(now, Need::Grants, sent, error);
                self.claim_again(now, seq);
            }
        }
    }

    // The answer says who waits in other processes.
    fn may_pass_on(&mut self, now: Moment, sent: Moment, line: Line) -> bool {
        self.note_line(now, sent, line);
        self.may_pass(now)
    }

    // A revoked grant ends when we release it, unless it has ended already.
    fn answer_revoked(&mut self, now: Moment, seq: u64, remaining: Duration) {
        if !remaining.is_zero() {
            self.release_claim(now, seq, ConnectionKind::Renewals);
        }
    }

    /// A pushed grant. Its claim window began after the latest answer "still queued".
    pub(super) fn on_pushed_grant(&mut self, now: Moment, run: RunId, seq: u64, (stamp, line): (Stamp, Line)) {
        let Some(claim) = self.active.claims.get_mut(&seq) else { return self.unknown_grant(now, seq) };
        match claim.phase {
            Phase::Queued { last } if stamp <= last => return,
            Phase::Queued { .. } | Phase::Sent => {}
            Phase::New | Phase::Confirming | Phase::Withdrawing => return,
        }
        claim.how = How::HandOff;
        let unproven = run == RunId::UNKNOWN || claim.run.id().is_some_and(|known| known != run);
        let sent = if zoo::has(Bug::WindowFromReceipt) { now } else { claim.asked };
        let lease = claim.lease;
        // A push from another run of the store, or from an unknown one, proves nothing: without remaining time it is confirmed first.
        let remaining = if unproven { Duration::ZERO } else { self.window(lease) };
        self.take_grant(now, seq, IncomingGrant { stamp, sent, pushed: Some(run), remaining, line, confirmed: false });
    }

    fn unknown_grant(&mut self, now: Moment, seq: u64) {
        if !self.holds.iter().any(|(_, hold)| hold.seq == seq) {
            let id = self.client.holder(seq);
            // Every copy of the claim that is still under way was sent before now, so the not-after of this release covers them all.
            self.release_unknown(now, id);
        }
    }

    // ---- Heartbeats ----

    /// Schedules a heartbeat in half a claim window, or at the lease end of the blocker if that is sooner.
    fn schedule_heartbeat(&mut self, now: Moment, asked: Moment, lease: Lease, queued: &Queued) {
        let blocked_until = queued.blocker.as_ref().map_or(Moment::FAR, |blocker| {
            asked + blocker.remaining + STAGGER.saturating_mul(queued.ahead.saturating_add(1))
        });
        let at = (now + self.window(lease) / 2).min(blocked_until.max(now + STAGGER));
        self.active.heartbeat_at = Some(self.active.heartbeat_at.map_or(at, |known| known.min(at)));
    }

    /// A heartbeat is due. If a sweep over the queued claims is under way, only its first part is sent again and the sweep goes on: a
    /// sweep may take longer than the rest of the blocker's lease.
    pub(super) fn heartbeat_due(&mut self) {
        match self.active.heartbeat_cursor {
            Some(_) => self.active.todo.push_back(Todo::HeartbeatOfFirst),
            None => self.restart_heartbeats(),
        }
    }

    /// Starts a sweep of heartbeats over all queued claims.
    pub(super) fn restart_heartbeats(&mut self) {
        self.active.heartbeat_cursor = None;
        self.active.todo.push_back(Todo::Heartbeat);
    }

    pub(super) fn on_standings(
        &mut self,
        now: Moment,
        sent: Moment,
        run: RunId,
        seqs: &[u64],
        standings: Vec<Standing>,
    ) {
        for (seq, standing) in seqs.iter().zip(standings) {
            self.on_standing(now, sent, run, *seq, standing);
        }
        if self.active.heartbeat_cursor.is_some() {
            self.active.todo.push_back(Todo::Heartbeat);
        }
    }

    /// One standing from the answer to a heartbeat.
    fn on_standing(&mut self, now: Moment, sent: Moment, run: RunId, seq: u64, standing: Standing) {
        let Some(claim) = self.active.claims.get_mut(&seq) else { return };
        let Phase::Queued { .. } = claim.phase else { return };
        match standing {
            Standing::Queued(queued) => {
                claim.asked = sent;
                claim.run = Some(run).into();
                self.on_queued(now, seq, queued);
            }
            Standing::Granted(grant) => {
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                self.take_grant(
                    now,
                    seq,
                    IncomingGrant { stamp, sent, pushed: None, remaining, line, confirmed: false },
                );
            }
            Standing::Gone if zoo::has(Bug::ForgottenPlace) => drop(self.forget_claim(seq)),
            Standing::Revoked { .. } | Standing::Gone => self.claim_again(now, seq),
        }
    }

    // ---- Ends ----

    /// A claim came to nothing, and nothing has failed: its recipient claims again.
    fn claim_again(&mut self, now: Moment, seq: u64) {
        let Some(claim) = self.forget_claim(seq) else { return };
        match claim.recipient {
            Recipient::Cohort => self.advance(now),
            Recipient::Waiter(waiter) => self.claim_for(now, waiter),
            // If the read hold has ended too, the store says so.
            Recipient::Upgrade(waiter, hold_key) => self.claim_upgrade(now, waiter, hold_key),
            Recipient::Regain(..) | Recipient::Nobody => {}
        }
    }

    /// Ends a claim and fails everybody who depends on it.
    pub(super) fn fail_claim(&mut self, now: Moment, seq: u64, failure: impl Fn(WaiterId) -> Failure) {
        if matches!(self.active.claims.get(&seq).map(|claim| claim.phase), Some(Phase::Queued { .. })) {
            self.release_claim(now, seq, ConnectionKind::Renewals);
        }
        let Some(claim) = self.forget_claim(seq) else { return };
        let waiters = match claim.recipient {
            Recipient::Cohort => self.active.waiters.line(),
            Recipient::Waiter(waiter) | Recipient::Upgrade(waiter, _) => vec![waiter],
            Recipient::Regain(..) | Recipient::Nobody => Vec::new(),
        };
        for waiter in waiters {
            self.fail(waiter, failure(waiter));
        }
    }

    /// Nobody wants this claim any more.
    pub(super) fn abandon(&mut self, now: Moment, seq: u64) {
        let Some(claim) = self.active.claims.get_mut(&seq) else { return };
        match claim.phase {
            Phase::New => {
                self.forget_claim(seq);
            }
            Phase::Sent | Phase::Confirming => {
                let recipient = std::mem::replace(&mut claim.recipient, Recipient::Nobody);
                self.active.orphans += usize::from(recipient != Recipient::Nobody);
                if self.cohort == CohortState::Claiming(seq) {
                    self.cohort = CohortState::Idle;
                }
            }
            Phase::Queued { .. } | Phase::Withdrawing => self.abandon_granted(now, seq),
        }
    }

    pub(super) fn abandon_granted(&mut self, now: Moment, seq: u64) {
        self.release_claim(now, seq, ConnectionKind::Renewals);
        self.forget_claim(seq);
    }

    pub(super) fn line_shrank(&mut self, now: Moment) {
        if let CohortState::Claiming(seq) = self.cohort
            && self.active.waiters.line_is_empty()
        {
            self.abandon(now, seq);
        }
    }

    pub(super) fn forget_claim(&mut self, seq: u64) -> Option<Box<PendingClaim>> {
        if self.cohort == CohortState::Claiming(seq) {
            self.cohort = CohortState::Idle;
        }
        let claim = self.active.claims.remove(&seq);
        self.active.orphans -= usize::from(claim.as_ref().is_some_and(|claim| claim.recipient == Recipient::Nobody));
        claim
    }

    pub(super) fn recipient(&self, claim: &PendingClaim) -> Option<WaiterId> {
        match claim.recipient {
            Recipient::Cohort => self.active.waiters.head(),
            Recipient::Waiter(waiter) | Recipient::Upgrade(waiter, _) => Some(waiter),
            Recipient::Regain(..) | Recipient::Nobody => None,
        }
    }

    fn recipient_gone(&self, seq: u64) -> bool {
        self.active.claims.get(&seq).is_some_and(|claim| self.recipient(claim).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_claim_is_small_enough_to_free_on_another_thread() {
        assert!(size_of::<PendingClaim>() <= 104, "{} bytes", size_of::<PendingClaim>());
    }
}
