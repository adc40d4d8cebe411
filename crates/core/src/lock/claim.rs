//! The life of a claim, from the first wish to the hold: sent, queued, confirmed, or given up.

use std::time::Duration;

use crate::holder::HolderId;
use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Claim, Line, Op, Patience, Queued, Refusal, Renew, Renewal, Standing, Upgrade, Verdict};
use crate::store::{Outcome as Sure, StoreError, StoreErrorKind};
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::ask::{Action, Errand, Grip, Lane, LossReason, Ticket, Why};
use super::tickets::Stage;
use super::{Cohort, Machine, Todo};

/// A claim that this process has made and that is not yet a hold.
#[derive(Debug)]
pub(super) struct Claiming {
    pub(super) id: HolderId,
    pub(super) taker: Taker,
    pub(super) phase: Phase,
    pub(super) mode: Mode,
    pub(super) lease: Lease,
    pub(super) fair: bool,
    pub(super) patience: Patience,
    /// Time before the send of the last transmission that was answered "still queued", at first of the first.
    pub(super) asked: Moment,
    pub(super) not_after: LeaseTime,
    /// The store's life that answered, once one did.
    pub(super) run: Option<RunId>,
    /// Why an upgrade is being withdrawn.
    pub(super) giving_up: Option<Box<Why>>,
}

/// Who gets the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taker {
    /// Whoever is first in the local line by then.
    Cohort,
    Ticket(Ticket),
    /// A reader that wants to write: its ticket and its hold.
    Upgrade(Ticket, Grip),
    /// Everybody gave up while it was on its way.
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Sent,
    Queued {
        last: Stamp,
    },
    Confirming,
    /// An upgrade that is no longer wanted: only the answer to its withdrawal tells what became of it.
    Withdrawing,
}

/// A store in trouble, and when to try it again.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) since: Moment,
    pub(super) attempt: u32,
    /// When to try again or, while that is under way, to give up.
    pub(super) retry_at: Option<Moment>,
    pub(super) error: StoreError,
}

/// A grant that has arrived, by whichever way.
pub(super) struct Landing {
    pub(super) stamp: Stamp,
    pub(super) sent: Moment,
    pub(super) remaining: Duration,
    pub(super) line: Option<Line>,
    /// Whether the store has just confirmed the full lease.
    pub(super) confirmed: bool,
}

impl Machine {
    pub(super) fn window(&self, lease: Lease) -> Duration {
        self.settings.window.min(lease.length() / 2)
    }

    /// Claims for the local line, unless it has a claim or a hold already.
    pub(super) fn advance(&mut self, now: Moment) {
        if self.cohort != Cohort::Idle || !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_cohort_claim(now) {
            self.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn new_cohort_claim(&mut self, now: Moment) -> Option<u64> {
        let seq = self.new_claim(now, self.tickets.head()?, Taker::Cohort)?;
        self.cohort = Cohort::Claiming(seq);
        Some(seq)
    }

    /// Claims for one ticket.
    pub(super) fn claim_for(&mut self, now: Moment, ticket: Ticket) {
        self.tickets.set(ticket, Stage::Unclaimed);
        let patient = self.tickets.ask(ticket).is_some_and(|ask| ask.patience == Patience::Queue);
        if patient && !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_claim(now, ticket, Taker::Ticket(ticket)) {
            self.tickets.set(ticket, Stage::Claimed(seq));
            self.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn new_claim(&mut self, now: Moment, ticket: Ticket, taker: Taker) -> Option<u64> {
        let ask = self.tickets.ask(ticket)?;
        let id = if zoo::has(Bug::HolderIdReused) { self.client.holder(7) } else { self.client.fresh() };
        let claim = Claiming {
            id,
            taker,
            phase: Phase::New,
            mode: ask.mode,
            lease: ask.lease(),
            fair: ask.fair,
            patience: ask.patience,
            asked: now,
            not_after: LeaseTime::ZERO,
            run: None,
            giving_up: None,
        };
        self.claims.insert(id.seq, claim);
        Some(id.seq)
    }

    // A claim that queues needs the inbox; a failing store gets its pause.
    fn may_claim(&mut self, now: Moment) -> bool {
        if !self.inbox_up && self.failing.is_none() {
            let error = StoreError::not_executed(StoreErrorKind::Unavailable, "the inbox is not connected");
            self.note_failure(now, now, error);
        }
        self.failing.as_ref().and_then(|failing| failing.retry_at).is_none_or(|at| at <= now)
    }

    /// Marks a claim as sent and makes its request.
    pub(super) fn send_claim(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Claim> {
        let not_after = store + self.settings.response;
        let window = self.claims.get(&seq).map(|claim| self.window(claim.lease))?;
        let claim = self.claims.get_mut(&seq)?;
        (claim.phase, claim.asked, claim.not_after) = (Phase::Sent, now, not_after);
        Some(Claim {
            id: claim.id,
            inbox: self.client.inbox(),
            who: self.client.who().clone(),
            mode: claim.mode,
            lease: claim.lease,
            window,
            fair: claim.fair,
            patience: claim.patience,
            not_after,
            ballot: None,
        })
    }

    pub(super) fn claim_action(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Action> {
        let from = match self.claims.get(&seq)?.taker {
            Taker::Upgrade(_, grip) => Some(self.holds.get(grip.0)?.id),
            _ => None,
        };
        let claim = self.send_claim(now, store, seq)?;
        let op = match from {
            Some(from) => Op::Upgrade(Upgrade { from, claim }),
            None => Op::Acquire(claim),
        };
        Some(Action { errand: Errand::Claim { seq }, op, lane: Lane::Claims })
    }

    pub(super) fn confirm_action(&mut self, now: Moment, seq: u64) -> Option<Action> {
        let claim = self.claims.get(&seq).filter(|claim| claim.phase == Phase::Confirming)?;
        let lease = self.taker(claim).and_then(|taker| self.tickets.ask(taker)).map_or(claim.lease, |ask| ask.lease());
        let claim = self.claims.get_mut(&seq)?;
        claim.lease = lease;
        let op = Op::Renew(Renew { id: claim.id, lease });
        Some(Action { errand: Errand::Confirm { seq, sent: now }, op, lane: Lane::Renewals })
    }

    pub(super) fn on_verdict(&mut self, now: Moment, seq: u64, run: RunId, verdict: Verdict) {
        let Some(claim) = self.claims.get_mut(&seq) else { return self.late_answer(seq) };
        claim.run.get_or_insert(run);
        if claim.phase == Phase::Withdrawing {
            return;
        }
        match verdict {
            Verdict::Granted(grant) => {
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, Some(grant.line));
                let landing = Landing { stamp, sent: claim.asked, remaining, line, confirmed: false };
                self.land(now, seq, landing);
            }
            Verdict::Queued(queued) => self.on_queued(now, seq, queued),
            Verdict::Busy(blocker) => self.drop_claim(now, seq, |_| Why::Busy(blocker.clone())),
            // The clock we aimed by was off, or the store restarted: a fresh claim will do.
            Verdict::Refused(refusal @ (Refusal::Late { .. } | Refusal::Done)) => {
                let error = StoreError::not_executed(StoreErrorKind::Unavailable, refusal.to_string());
                self.on_claim_error(now, seq, error);
            }
            Verdict::Refused(refusal) => self.on_refused(now, seq, &refusal),
        }
    }

    fn on_refused(&mut self, now: Moment, seq: u64, refusal: &Refusal) {
        if let (Refusal::NotHolder, Some(Taker::Upgrade(_, grip))) = (refusal, self.claims.get(&seq).map(|c| c.taker)) {
            self.lose(now, grip, LossReason::Gone);
        }
        self.drop_claim(now, seq, |_| Why::Refused(refusal.clone()));
    }

    // A push may overtake the answer; then the claim is a hold by now and its acquire is no longer unanswered.
    fn late_answer(&mut self, seq: u64) {
        if let Some((_, hold)) = self.holds.iter_mut().find(|(_, hold)| hold.id.seq == seq) {
            hold.unanswered = None;
        }
    }

    fn on_queued(&mut self, now: Moment, seq: u64, queued: Queued) {
        self.note_blocker(&queued);
        let Some(claim) = self.claims.get_mut(&seq) else { return };
        if !matches!(claim.phase, Phase::Sent | Phase::Queued { .. }) {
            return;
        }
        claim.phase = Phase::Queued { last: queued.last };
        let (asked, lease, fair, taker) = (claim.asked, claim.lease, claim.fair, claim.taker);
        self.remote.fair |= fair;
        if self.taker_gone(seq) {
            return self.abandon(now, seq);
        }
        if let Taker::Ticket(ticket) = taker
            && self.waits_for_itself(ticket)
        {
            return self.drop_claim(now, seq, |_| Why::WouldDeadlock);
        }
        self.schedule_heartbeat(now, asked, lease, &queued);
    }

    /// A grant has arrived: make it a hold, or confirm it first, or give it back.
    pub(super) fn land(&mut self, now: Moment, seq: u64, landing: Landing) {
        let Some(claim) = self.claims.get(&seq) else { return };
        let Some(ticket) = self.taker(claim).filter(|ticket| self.tickets.ask(*ticket).is_some()) else {
            return self.abandon_granted(now, seq);
        };
        // Whoever is first may have changed since the confirmation was asked for.
        let proven = landing.confirmed && self.tickets.ask(ticket).is_some_and(|ask| ask.lease() == claim.lease);
        if !proven && self.must_confirm(now, claim, ticket, &landing) {
            if let Some(claim) = self.claims.get_mut(&seq)
                && (claim.phase != Phase::Confirming || landing.confirmed)
            {
                claim.phase = Phase::Confirming;
                self.todo.push_back(Todo::Confirm(seq));
            }
            return;
        }
        if self.settings.drift.deadline(landing.sent, landing.remaining) <= now {
            // The answer took longer than the lease: it is not ours to use.
            let error = StoreError::unknown("the store answered too late for the lease");
            return self.on_claim_error(now, seq, error);
        }
        self.settle_claim(now, seq, ticket, &landing);
    }

    fn must_confirm(&self, now: Moment, claim: &Claiming, ticket: Ticket, landing: &Landing) -> bool {
        let Some(ask) = self.tickets.ask(ticket) else { return false };
        let deadline = self.settings.drift.deadline(landing.sent, landing.remaining);
        let short = deadline < now + self.window(claim.lease) / 4;
        let fixed = ask.terms.is_fixed() && landing.remaining < ask.lease().length();
        short || fixed || ask.lease() != claim.lease
    }

    pub(super) fn on_confirmed(&mut self, now: Moment, seq: u64, sent: Moment, renewal: Renewal) {
        let Some(claim) = self.claims.get(&seq).filter(|claim| claim.phase == Phase::Confirming) else { return };
        match (renewal, claim.taker) {
            (Renewal::Renewed { stamp, remaining, line }, _) => {
                self.land(now, seq, Landing { stamp, sent, remaining, line: Some(line), confirmed: true });
            }
            (Renewal::Revoked { reason, .. }, Taker::Upgrade(ticket, grip)) => {
                let reason = LossReason::Revoked(reason.into());
                self.abandon_granted(now, seq);
                self.lose(now, grip, reason.clone());
                self.fail(ticket, Why::Lost(reason));
            }
            (Renewal::Revoked { .. }, _) => {
                self.part_claim(now, seq, Lane::Renewals);
                self.reclaim(now, seq);
            }
            (Renewal::NotHolder, _) if zoo::has(Bug::ConfirmationIgnored) => {
                let (stamp, remaining) = (Stamp::ZERO.next(), claim.lease.length());
                self.land(now, seq, Landing { stamp, sent, remaining, line: None, confirmed: true });
            }
            (Renewal::NotHolder, _) => self.reclaim(now, seq),
        }
    }

    /// A claim came to nothing without anybody's fault: claim anew.
    pub(super) fn reclaim(&mut self, now: Moment, seq: u64) {
        let Some(claim) = self.forget_claim(seq) else { return };
        match claim.taker {
            Taker::Cohort => self.advance(now),
            Taker::Ticket(ticket) => self.claim_for(now, ticket),
            // If the read hold has ended too, the store will say so.
            Taker::Upgrade(ticket, grip) => self.claim_upgrade(now, ticket, grip),
            Taker::Nobody => {}
        }
    }

    pub(super) fn forget_claim(&mut self, seq: u64) -> Option<Claiming> {
        if self.cohort == Cohort::Claiming(seq) {
            self.cohort = Cohort::Idle;
        }
        let claim = self.claims.remove(&seq);
        self.orphans -= usize::from(claim.as_ref().is_some_and(|claim| claim.taker == Taker::Nobody));
        claim
    }

    /// A claim that was certainly not executed never will be.
    pub(super) fn note_unsent(&mut self, seq: u64, error: &StoreError) {
        if let Some(claim) = self.claims.get_mut(&seq).filter(|_| error.outcome == Sure::NotExecuted) {
            claim.not_after = LeaseTime::ZERO;
        }
    }

    pub(super) fn on_claim_error(&mut self, now: Moment, seq: u64, error: StoreError) {
        let Some(claim) = self.claims.get(&seq).filter(|claim| claim.phase != Phase::Withdrawing) else { return };
        let (taker, patience, sent) = (claim.taker, claim.patience, claim.asked);
        // What is being confirmed was granted: it must not wait for its window to end.
        if error.outcome == Sure::Unknown || claim.phase == Phase::Confirming {
            if let Taker::Upgrade(..) = taker {
                // Releasing it would leave a reader who believes in a hold that was exchanged.
                return self.withdraw(seq, Why::Store(error));
            }
            self.part_claim(now, seq, Lane::Renewals);
        }
        let passing = error.is_transient() && patience == Patience::Queue && !matches!(taker, Taker::Upgrade(..));
        if !passing {
            return self.drop_claim(now, seq, |_| Why::Store(error.clone()));
        }
        self.forget_claim(seq);
        if let Taker::Ticket(ticket) = taker {
            self.tickets.set(ticket, Stage::Unclaimed);
        }
        if taker != Taker::Nobody {
            self.note_failure(now, sent, error);
        }
    }

    /// Ends a claim and tells everybody who counted on it.
    pub(super) fn drop_claim(&mut self, now: Moment, seq: u64, why: impl Fn(Ticket) -> Why) {
        if matches!(self.claims.get(&seq).map(|claim| claim.phase), Some(Phase::Queued { .. })) {
            self.part_claim(now, seq, Lane::Renewals);
        }
        let Some(claim) = self.forget_claim(seq) else { return };
        let told = match claim.taker {
            Taker::Cohort => self.tickets.line(),
            Taker::Ticket(ticket) | Taker::Upgrade(ticket, _) => vec![ticket],
            Taker::Nobody => Vec::new(),
        };
        for ticket in told {
            self.fail(ticket, why(ticket));
        }
    }

    /// Nobody wants this claim any more.
    pub(super) fn abandon(&mut self, now: Moment, seq: u64) {
        let Some(claim) = self.claims.get_mut(&seq) else { return };
        match claim.phase {
            Phase::New => {
                self.forget_claim(seq);
            }
            Phase::Sent | Phase::Confirming => {
                let taker = std::mem::replace(&mut claim.taker, Taker::Nobody);
                self.orphans += usize::from(taker != Taker::Nobody);
                if self.cohort == Cohort::Claiming(seq) {
                    self.cohort = Cohort::Idle;
                }
            }
            Phase::Queued { .. } | Phase::Withdrawing => self.abandon_granted(now, seq),
        }
    }

    fn abandon_granted(&mut self, now: Moment, seq: u64) {
        self.part_claim(now, seq, Lane::Renewals);
        self.forget_claim(seq);
    }

    pub(super) fn line_shrank(&mut self, now: Moment) {
        if let Cohort::Claiming(seq) = self.cohort
            && self.tickets.line_is_empty()
        {
            self.abandon(now, seq);
        }
    }

    fn taker_gone(&self, seq: u64) -> bool {
        self.claims.get(&seq).is_some_and(|claim| self.taker(claim).is_none())
    }

    /// One standing from a heartbeat.
    pub(super) fn on_standing(&mut self, now: Moment, sent: Moment, run: RunId, seq: u64, standing: Standing) {
        let Some(claim) = self.claims.get_mut(&seq) else { return };
        let Phase::Queued { .. } = claim.phase else { return };
        match standing {
            Standing::Queued(queued) => {
                claim.asked = sent;
                claim.run = Some(run);
                self.on_queued(now, seq, queued);
            }
            Standing::Granted(grant) => {
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, Some(grant.line));
                self.land(now, seq, Landing { stamp, sent, remaining, line, confirmed: false });
            }
            Standing::Gone if zoo::has(Bug::ForgottenPlace) => drop(self.forget_claim(seq)),
            Standing::Gone => self.reclaim(now, seq),
        }
    }

    /// A pushed grant. Its claim window began after the last time we were told "still queued".
    pub(super) fn on_pushed_grant(&mut self, now: Moment, run: RunId, seq: u64, stamp: Stamp) {
        let Some(claim) = self.claims.get_mut(&seq) else { return self.unknown_grant(now, seq) };
        match claim.phase {
            Phase::Queued { last } if stamp <= last => return,
            Phase::Queued { .. } | Phase::Sent => {}
            Phase::New | Phase::Confirming | Phase::Withdrawing => return,
        }
        let other_run = claim.run.is_some_and(|known| known != run);
        let sent = if zoo::has(Bug::WindowFromReceipt) { now } else { claim.asked };
        let lease = claim.lease;
        // A push of another life of the store proves nothing: an empty remainder makes us ask.
        let remaining = if other_run { Duration::ZERO } else { self.window(lease) };
        self.land(now, seq, Landing { stamp, sent, remaining, line: None, confirmed: false });
    }

    fn unknown_grant(&mut self, now: Moment, seq: u64) {
        if !self.holds.iter().any(|(_, hold)| hold.id.seq == seq) {
            let id = self.client.holder(seq);
            self.part(now, id, None, self.settings.window, Lane::Renewals);
        }
    }

    /// The store failed a request of `sent`: the next one comes after a pause.
    pub(super) fn note_failure(&mut self, now: Moment, sent: Moment, error: StoreError) {
        let (since, attempt) = self.failing.as_ref().map_or((sent, 0), |failing| (failing.since, failing.attempt + 1));
        let pause = now + self.settings.backoff.delay(attempt, self.jitter.next());
        let retry_at = (!zoo::has(Bug::NoRetry)).then(|| pause.min(since + self.settings.unavailable_after));
        self.failing = Some(Box::new(Failing { since, attempt, retry_at, error }));
    }

    fn note_blocker(&mut self, queued: &Queued) {
        self.blocker.clone_from(&queued.blocker.clone().map(Box::new));
    }
}
