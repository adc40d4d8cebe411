//! The life of a claim, from the first ask to the hold: sent, queued, confirmed, or given up.
//!
//! | group | what happens |
//! |---|---|
//! | making a claim | for the local line, for one waiter, for an upgrade |
//! | answers | granted, queued, busy, refused |
//! | grants | a grant arrives by reply, push or heartbeat; it is believed at once or confirmed first |
//! | heartbeats | when to ask after queued claims, and what their standings mean |
//! | upgrades | an upgrade is confirmed or withdrawn |
//! | waits | a wait runs out, and why |
//! | ends | a claim fails, is abandoned, or is made anew |
//!
//! The transitions are in the table of the [parent module](super). What a failing store means for waiters is in [`failing`](super::failing).

use std::time::Duration;

use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Downgraded, Line, Patience, Queued, Refusal, Renewal, Standing, Verdict};
use crate::store::{Outcome as Sure, StoreError, StoreErrorKind};
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::failing::Need;
use super::release::Remote;
use super::state::{KnownRun, Stage};
use super::{Ask, Cohort, Grip, How, Lane, LossReason, Machine, Slip, Todo, Why};

/// The number of every claim, with [`Bug::HolderIdReused`].
pub(super) const REUSED: u64 = 7;

/// Waiters further back ask a little later after the blocker's lease end: the first is the one to profit.
const STAGGER: Duration = Duration::from_millis(5);

/// A claim that this process has made and that is not yet a hold. Its number, from which its id follows, is its key.
#[derive(Debug)]
pub(super) struct Claiming {
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
    pub(super) run: KnownRun,
    /// How often it was passed on here: more than never, if it was a hold whose guard left before it was confirmed.
    pub(super) local: u16,
    /// By which way a grant would come now.
    pub(super) how: How,
    /// Why an upgrade is being withdrawn.
    pub(super) giving_up: Option<Box<Why>>,
}

/// Who gets the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taker {
    /// Whoever is first in the local line by then.
    Cohort,
    Slip(Slip),
    /// A reader that wants to write: its slip and its hold.
    Upgrade(Slip, Grip),
    /// A hold that was lost and is to be taken again, as long as this stamp is the record's last one.
    Regain(Grip, Stamp),
    /// Everybody gave up while it was on its way.
    Nobody,
}

impl Taker {
    /// The stamp that must be the record's last one.
    pub(super) fn after(self) -> Option<Stamp> {
        match self {
            Self::Regain(_, stamp) if !zoo::has(Bug::RegainWithoutProof) => Some(stamp),
            _ => None,
        }
    }
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

/// What is claimed.
pub(super) struct Wish {
    pub(super) mode: Mode,
    pub(super) lease: Lease,
    pub(super) fair: bool,
    pub(super) patience: Patience,
}

/// A grant that has arrived, by whichever way.
pub(super) struct Landing {
    pub(super) stamp: Stamp,
    pub(super) sent: Moment,
    /// The life of the store that a push came from: it may be here before any answer.
    pub(super) pushed: Option<RunId>,
    pub(super) remaining: Duration,
    /// Who waited behind it then.
    pub(super) line: Line,
    /// Whether the store has just confirmed the full lease.
    pub(super) confirmed: bool,
}

impl Machine {
    // ---- Making a claim ----

    /// Claims for the local line, unless it has a claim or a hold already.
    pub(super) fn advance(&mut self, now: Moment) {
        if self.cohort != Cohort::Idle || !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_cohort_claim(now) {
            self.bustle.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn new_cohort_claim(&mut self, now: Moment) -> Option<u64> {
        let seq = self.new_claim(now, self.bustle.slips.head()?, Taker::Cohort)?;
        self.bustle.remote = Remote::default();
        self.cohort = Cohort::Claiming(seq);
        Some(seq)
    }

    /// Claims for one slip.
    pub(super) fn claim_for(&mut self, now: Moment, slip: Slip) {
        self.bustle.slips.set(slip, Stage::Unclaimed);
        let patient = self.bustle.slips.ask(slip).is_some_and(|ask| ask.patience == Patience::Queue);
        if patient && !self.may_claim(now) {
            return;
        }
        if let Some(seq) = self.new_claim(now, slip, Taker::Slip(slip)) {
            self.bustle.slips.set(slip, Stage::Claimed(seq));
            self.bustle.todo.push_back(Todo::Claim(seq));
        }
    }

    pub(super) fn claim_upgrade(&mut self, now: Moment, slip: Slip, grip: Grip) {
        if let Some(seq) = self.new_claim(now, slip, Taker::Upgrade(slip, grip)) {
            self.bustle.slips.set(slip, Stage::Claimed(seq));
            self.bustle.todo.push_back(Todo::Claim(seq));
        }
    }

    fn new_claim(&mut self, now: Moment, slip: Slip, taker: Taker) -> Option<u64> {
        let &Ask { mode, fair, patience, terms, .. } = self.bustle.slips.ask(slip)?;
        Some(self.insert_claim(now, taker, Wish { mode, lease: terms.lease(), fair, patience }))
    }

    pub(super) fn insert_claim(&mut self, now: Moment, taker: Taker, wish: Wish) -> u64 {
        let seq = if zoo::has(Bug::HolderIdReused) { REUSED } else { self.client.next() };
        let Wish { mode, lease, fair, patience } = wish;
        let (phase, not_after) = (Phase::New, LeaseTime::ZERO);
        let claim = Claiming {
            taker,
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
        self.bustle.claims.insert(seq, Box::new(claim));
        seq
    }

    // A claim that queues needs the inbox; a failing store gets its pause.
    fn may_claim(&mut self, now: Moment) -> bool {
        if !self.inbox_up && self.bustle.failing.is_none() {
            let error = StoreError::not_executed(StoreErrorKind::Unavailable, "the inbox is not connected");
            self.note_failure(now, Need::Claims, now, error);
        }
        self.bustle.failing.as_ref().and_then(|failing| failing.retry_at).is_none_or(|at| at <= now)
    }

    pub(super) fn window(&self, lease: Lease) -> Duration {
        self.settings.window_of(lease)
    }

    // ---- Answers ----

    pub(super) fn on_verdict(&mut self, now: Moment, seq: u64, run: RunId, verdict: Verdict) {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return self.late_answer(seq) };
        claim.run.note(run);
        if claim.phase == Phase::Withdrawing {
            return;
        }
        if let Taker::Regain(grip, _) = claim.taker {
            return self.on_regain(now, seq, grip, verdict);
        }
        match verdict {
            Verdict::Granted(grant) => {
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                let landing = Landing { stamp, sent: claim.asked, pushed: None, remaining, line, confirmed: false };
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
        let lost = match refusal {
            Refusal::NotHolder => Some(LossReason::Gone),
            Refusal::Revoked { reason } => Some(LossReason::Revoked(reason.as_str().into())),
            _ => None,
        };
        if let (Some(reason), Some(Taker::Upgrade(_, grip))) =
            (lost, self.bustle.claims.get(&seq).map(|claim| claim.taker))
        {
            self.lose(now, grip, reason);
        }
        if let (Refusal::LeaseTooLong { .. }, Cohort::Claiming(claiming)) = (refusal, self.cohort)
            && claiming == seq
        {
            return self.refuse_head(now, seq, refusal);
        }
        self.drop_claim(now, seq, |_| Why::Refused(refusal.clone()));
    }

    // The lease is that of whoever came first; the others may have asked for less.
    fn refuse_head(&mut self, now: Moment, seq: u64, refusal: &Refusal) {
        self.forget_claim(seq);
        if let Some(head) = self.bustle.slips.head() {
            self.fail(head, Why::Refused(refusal.clone()));
        }
        self.advance(now);
    }

    // A push may overtake the answer; then the claim is a hold by now and its acquire is no longer unanswered.
    fn late_answer(&mut self, seq: u64) {
        if let Some((_, hold)) = self.holds.iter_mut().find(|(_, hold)| hold.seq == seq) {
            hold.note_answered();
        }
    }

    fn on_queued(&mut self, now: Moment, seq: u64, queued: Queued) {
        self.note_blocker(&queued);
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        if !matches!(claim.phase, Phase::Sent | Phase::Queued { .. }) {
            return;
        }
        if claim.patience == Patience::Try {
            let error = StoreError::unknown("the store queued a request that did not want to wait");
            return self.on_claim_error(now, seq, error);
        }
        claim.phase = Phase::Queued { last: queued.last };
        claim.how = How::HandOff;
        let (asked, lease, fair, taker) = (claim.asked, claim.lease, claim.fair, claim.taker);
        if self.bustle.failing.is_some() && !self.is_our_own(&queued) {
            self.note_progress(now);
        }
        self.bustle.remote.fair |= fair;
        if self.taker_gone(seq) {
            return self.abandon(now, seq);
        }
        if let Taker::Slip(slip) = taker
            && self.waits_for_itself(slip)
        {
            return self.drop_claim(now, seq, |_| Why::WouldDeadlock);
        }
        self.schedule_heartbeat(now, asked, lease, &queued);
    }

    fn note_blocker(&mut self, queued: &Queued) {
        self.bustle.blocker.clone_from(&queued.blocker.clone().map(Box::new));
    }

    // ---- Grants ----

    /// A grant has arrived: make it a hold, or confirm it first, or give it back.
    fn land(&mut self, now: Moment, seq: u64, landing: Landing) {
        let Some(claim) = self.bustle.claims.get(&seq) else { return };
        let Some(slip) = self.taker(claim).filter(|slip| self.bustle.slips.ask(*slip).is_some()) else {
            return self.abandon_granted(now, seq);
        };
        // Whoever is first may have changed since the confirmation was asked for.
        let proven = landing.confirmed && self.bustle.slips.ask(slip).is_some_and(|ask| ask.lease() == claim.lease);
        if !proven && self.must_confirm(now, claim, slip, &landing) {
            if let Some(claim) = self.bustle.claims.get_mut(&seq)
                && (claim.phase != Phase::Confirming || landing.confirmed)
            {
                claim.phase = Phase::Confirming;
                self.bustle.todo.push_back(Todo::Confirm(seq));
            }
            return;
        }
        if self.settings.drift.deadline(landing.sent, landing.remaining) <= now {
            // The answer took longer than the lease: it is not ours to use.
            let error = StoreError::unknown("the store answered too late for the lease");
            return self.claim_failed(now, seq, Need::Grants, error);
        }
        self.settle_claim(now, seq, slip, &landing);
    }

    fn must_confirm(&self, now: Moment, claim: &Claiming, slip: Slip, landing: &Landing) -> bool {
        let Some(ask) = self.bustle.slips.ask(slip) else { return false };
        let deadline = self.settings.drift.deadline(landing.sent, landing.remaining);
        let short = deadline < now + self.window(claim.lease) / 4;
        let fixed = ask.terms.is_fixed() && landing.remaining < ask.lease().length();
        short || fixed || ask.lease() != claim.lease
    }

    pub(super) fn is_confirming(&self, seq: u64) -> bool {
        self.bustle.claims.get(&seq).is_some_and(|claim| claim.phase == Phase::Confirming)
    }

    pub(super) fn on_confirmed(&mut self, now: Moment, seq: u64, sent: Moment, renewal: Renewal) {
        let Some(claim) = self.bustle.claims.get(&seq).filter(|claim| claim.phase == Phase::Confirming) else { return };
        let (taker, lease, passed) = (claim.taker, claim.lease, claim.local > 0);
        match (renewal, taker) {
            (Renewal::Renewed { line, .. }, _) if passed && !self.may_pass_on(now, sent, line) => {
                self.part_claim(now, seq, Lane::Renewals);
                self.reclaim(now, seq);
            }
            (Renewal::Renewed { stamp, remaining, line }, _) => {
                self.land(now, seq, Landing { stamp, sent, pushed: None, remaining, line, confirmed: true });
            }
            (Renewal::Revoked { reason, remaining }, Taker::Upgrade(slip, grip)) => {
                let reason = LossReason::Revoked(reason.into());
                self.answer_revoked(now, seq, remaining);
                self.forget_claim(seq);
                // The read hold has ended too: it was exchanged.
                self.lose_revoked(now, grip, reason.clone());
                self.fail(slip, Why::Lost(reason));
            }
            (Renewal::Revoked { remaining, .. }, _) => {
                self.answer_revoked(now, seq, remaining);
                self.reclaim(now, seq);
            }
            (Renewal::NotHolder, _) if zoo::has(Bug::ConfirmationIgnored) => {
                let (stamp, remaining) = (Stamp::ZERO.next(), lease.length());
                self.land(
                    now,
                    seq,
                    Landing { stamp, sent, pushed: None, remaining, line: Line::default(), confirmed: true },
                );
            }
            (Renewal::NotHolder, _) => {
                // It may be so every time: where answers take longer than the grant lasts.
                let error = StoreError::unknown("the grant had ended before the store could confirm it");
                self.note_failing(now, Need::Grants, sent, error);
                self.reclaim(now, seq);
            }
        }
    }

    // The answer says who waits elsewhere.
    fn may_pass_on(&mut self, now: Moment, sent: Moment, line: Line) -> bool {
        self.learn(now, sent, line);
        self.may_pass(now)
    }

    // A grant that is revoked ends with our answer, unless it has ended.
    fn answer_revoked(&mut self, now: Moment, seq: u64, remaining: Duration) {
        if !remaining.is_zero() {
            self.part_claim(now, seq, Lane::Renewals);
        }
    }

    /// A pushed grant. Its claim window began after the last time we were told "still queued".
    pub(super) fn on_pushed_grant(&mut self, now: Moment, run: RunId, seq: u64, (stamp, line): (Stamp, Line)) {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return self.unknown_grant(now, seq) };
        match claim.phase {
            Phase::Queued { last } if stamp <= last => return,
            Phase::Queued { .. } | Phase::Sent => {}
            Phase::New | Phase::Confirming | Phase::Withdrawing => return,
        }
        claim.how = How::HandOff;
        let unproven = run == RunId::UNKNOWN || claim.run.id().is_some_and(|known| known != run);
        let sent = if zoo::has(Bug::WindowFromReceipt) { now } else { claim.asked };
        let lease = claim.lease;
        // A push of another life of the store, or of nobody knows whom, proves nothing: an empty remainder makes us ask.
        let remaining = if unproven { Duration::ZERO } else { self.window(lease) };
        self.land(now, seq, Landing { stamp, sent, pushed: Some(run), remaining, line, confirmed: false });
    }

    fn unknown_grant(&mut self, now: Moment, seq: u64) {
        if !self.holds.iter().any(|(_, hold)| hold.seq == seq) {
            let id = self.client.holder(seq);
            // Whatever copy of its claim is still on its way was sent before now: none is valid after this.
            self.part_unknown(now, id);
        }
    }

    // ---- Heartbeats ----

    /// The next heartbeat is half a claim window away, or at the blocker's lease end if that is sooner.
    fn schedule_heartbeat(&mut self, now: Moment, asked: Moment, lease: Lease, queued: &Queued) {
        let blocked_until = queued.blocker.as_ref().map_or(Moment::FAR, |blocker| {
            asked + blocker.remaining + STAGGER.saturating_mul(queued.ahead.saturating_add(1))
        });
        let at = (now + self.window(lease) / 2).min(blocked_until.max(now + STAGGER));
        self.bustle.heartbeat_at = Some(self.bustle.heartbeat_at.map_or(at, |known| known.min(at)));
    }

    /// A heartbeat is due. While a round goes on, the first are asked after once more, and the round goes on: it may take longer
    /// than until the blocker's lease ends.
    pub(super) fn ask_after(&mut self) {
        match self.bustle.beaten_to {
            Some(_) => self.bustle.todo.push_back(Todo::HeartbeatOfFirst),
            None => self.ask_after_all(),
        }
    }

    /// A heartbeat for everybody, from the first on.
    pub(super) fn ask_after_all(&mut self) {
        self.bustle.beaten_to = None;
        self.bustle.todo.push_back(Todo::Heartbeat);
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
        if self.bustle.beaten_to.is_some() {
            self.bustle.todo.push_back(Todo::Heartbeat);
        }
    }

    /// One standing from a heartbeat.
    fn on_standing(&mut self, now: Moment, sent: Moment, run: RunId, seq: u64, standing: Standing) {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        let Phase::Queued { .. } = claim.phase else { return };
        match standing {
            Standing::Queued(queued) => {
                claim.asked = sent;
                claim.run = Some(run).into();
                self.on_queued(now, seq, queued);
            }
            Standing::Granted(grant) => {
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                self.land(now, seq, Landing { stamp, sent, pushed: None, remaining, line, confirmed: false });
            }
            Standing::Gone if zoo::has(Bug::ForgottenPlace) => drop(self.forget_claim(seq)),
            Standing::Revoked { .. } | Standing::Gone => self.reclaim(now, seq),
        }
    }

    // ---- Upgrades ----

    /// The claim of a pending upgrade of this hold.
    pub(super) fn upgrade_of(&self, grip: Grip) -> Option<u64> {
        let upgrades = |taker: Taker| matches!(taker, Taker::Upgrade(_, of) if of == grip);
        self.bustle.claims.iter().find(|(_, claim)| upgrades(claim.taker)).map(|(seq, _)| *seq)
    }

    pub(super) fn is_upgrade(&self, seq: u64) -> bool {
        matches!(self.bustle.claims.get(&seq).map(|claim| claim.taker), Some(Taker::Upgrade(..)))
    }

    /// The read hold is gone while its upgrade is pending: it may have been exchanged. Asks, and says whether it did.
    pub(super) fn confirm_upgrade(&mut self, seq: u64) -> bool {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return false };
        match claim.phase {
            Phase::New => return false,
            Phase::Confirming | Phase::Withdrawing => {}
            Phase::Sent | Phase::Queued { .. } => {
                claim.phase = Phase::Confirming;
                self.bustle.todo.push_back(Todo::Confirm(seq));
            }
        }
        true
    }

    /// An upgrade is over, for this reason: back to reading, whichever side of the exchange we are on.
    pub(super) fn withdraw(&mut self, seq: u64, why: Why) {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        match (claim.phase, claim.taker) {
            (Phase::New, Taker::Upgrade(slip, _)) => {
                self.forget_claim(seq);
                self.fail(slip, why);
            }
            (Phase::New | Phase::Withdrawing, _) => {}
            (Phase::Sent | Phase::Queued { .. } | Phase::Confirming, _) => {
                claim.phase = Phase::Withdrawing;
                claim.giving_up = Some(Box::new(why));
                self.bustle.todo.push_back(Todo::Withdraw(seq));
            }
        }
    }

    pub(super) fn on_withdrawn(&mut self, now: (Moment, LeaseTime), seq: u64, sent: Moment, answer: Downgraded) {
        let (now, at) = now;
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        let Taker::Upgrade(slip, grip) = claim.taker else { return };
        let may_arrive = claim.run.id().is_none() && at <= claim.not_after;
        let why = claim.giving_up.take();
        match answer {
            Downgraded::Withdrawn => {
                self.forget_claim(seq);
            }
            Downgraded::Shared(grant) => {
                // The exchange had happened: the hold goes on under its new id, shared again.
                let (stamp, remaining, line) = (grant.stamp, grant.remaining, grant.line);
                self.settle_claim(
                    now,
                    seq,
                    slip,
                    &Landing { stamp, sent, pushed: None, remaining, line, confirmed: true },
                );
                if let Some(hold) = self.holds.get_mut(grip.0) {
                    hold.mode = Mode::Shared;
                }
            }
            // The exchange had happened, and neither side of it is left.
            Downgraded::Revoked { reason } => {
                self.forget_claim(seq);
                self.lose_revoked(now, grip, LossReason::Revoked(reason.into()));
            }
            // The upgrade may yet arrive and take the read hold with it.
            Downgraded::NotHolder if may_arrive => self.end_both(now, seq, grip),
            Downgraded::NotHolder => {
                self.forget_claim(seq);
                self.bustle.todo.push_back(Todo::Renew(grip, None));
            }
        }
        self.fail(slip, why.map_or(Why::Timeout(None), |why| *why));
    }

    pub(super) fn on_withdraw_error(&mut self, now: Moment, seq: u64, error: StoreError) {
        let Some(Taker::Upgrade(slip, grip)) = self.bustle.claims.get(&seq).map(|claim| claim.taker) else { return };
        self.end_both(now, seq, grip);
        self.fail(slip, Why::Store(error));
    }

    /// Nobody knows on which side of the exchange we are.
    fn end_both(&mut self, now: Moment, seq: u64, grip: Grip) {
        self.part_claim(now, seq, Lane::Renewals);
        self.forget_claim(seq);
        self.lose(now, grip, LossReason::Unreachable);
    }

    /// A hold was lost: its pending upgrade has nothing to stand on.
    pub(super) fn end_upgrade(&mut self, now: Moment, grip: Grip, reason: &LossReason) {
        let Some(seq) = self.upgrade_of(grip) else { return };
        let slip = self.bustle.claims.get(&seq).and_then(|claim| self.taker(claim));
        self.abandon(now, seq);
        if let Some(slip) = slip {
            self.fail(slip, Why::Lost(reason.clone()));
        }
    }

    // ---- Waits that run out ----

    pub(super) fn wait_over(&mut self, now: Moment, slip: Slip) {
        self.alert_wait(now, slip);
        let why = self.why_over(now, slip);
        match self.bustle.slips.stage(slip) {
            Some(Stage::Claimed(seq)) => {
                let seq = *seq;
                if matches!(self.bustle.claims.get(&seq).map(|claim| claim.taker), Some(Taker::Upgrade(..))) {
                    return self.withdraw(seq, why);
                }
                self.fail(slip, why);
                self.abandon(now, seq);
            }
            Some(Stage::InLine) => {
                self.fail(slip, why);
                self.line_shrank(now);
            }
            Some(Stage::Unclaimed) => self.fail(slip, why),
            _ => {}
        }
    }

    /// Whether the wait ended before a holder, or before a store that says nothing.
    fn why_over(&self, now: Moment, slip: Slip) -> Why {
        if let Some(error) = self.trouble_of(slip) {
            return Why::Store(error);
        }
        if let Some(silent) = self.silence(now, slip) {
            return Why::Store(StoreError::unknown(format!("the store has not answered for {silent:.1?}")));
        }
        let blocker = self.in_the_way(now);
        if blocker.is_none() && self.is_held_back(slip) {
            let words = "too many ask for this lock at once, and it was not its turn to ask within the wait";
            return Why::Store(StoreError::not_executed(StoreErrorKind::Unavailable, words));
        }
        if blocker.is_none() && self.is_unanswered(slip) {
            return Why::Store(StoreError::unknown("the store did not answer within the wait"));
        }
        Why::Timeout(blocker)
    }

    /// How long ago the store last said that this waiter is queued, if that is longer than a request and the pause before it may take:
    /// then nobody knows whether the lock is still held.
    fn silence(&self, now: Moment, slip: Slip) -> Option<Duration> {
        let claim = self.bustle.claims.get(&self.claim_of(slip)?)?;
        let silent = now.since(claim.asked);
        let said = matches!(claim.phase, Phase::Queued { .. }) && !zoo::has(Bug::HeartbeatsMayFail);
        (said && silent >= self.window(claim.lease).max(self.settings.response)).then_some(silent)
    }

    /// The claim that a waiter rests on: its own or its line's.
    pub(super) fn claim_of(&self, slip: Slip) -> Option<u64> {
        match (self.bustle.slips.stage(slip)?, self.cohort) {
            (Stage::Claimed(seq), _) => Some(*seq),
            (Stage::InLine, Cohort::Claiming(seq)) => Some(seq),
            _ => None,
        }
    }

    fn is_held_back(&self, slip: Slip) -> bool {
        let Some(Stage::Claimed(seq)) = self.bustle.slips.stage(slip) else { return false };
        let is_new = self.bustle.claims.get(seq).is_some_and(|claim| claim.phase == Phase::New);
        is_new && !self.bustle.held_back.is_empty()
    }

    fn is_unanswered(&self, slip: Slip) -> bool {
        let Some(seq) = self.claim_of(slip) else { return false };
        let asks = |phase: Phase| matches!(phase, Phase::New | Phase::Sent);
        let unanswered = |claim: &Claiming| asks(claim.phase) && !matches!(claim.taker, Taker::Upgrade(..));
        self.bustle.claims.get(&seq).is_some_and(|claim| unanswered(claim))
    }

    // ---- Ends ----

    pub(super) fn on_claim_error(&mut self, now: Moment, seq: u64, error: StoreError) {
        let need = if self.is_confirming(seq) { Need::Grants } else { Need::Claims };
        self.claim_failed(now, seq, need, error);
    }

    /// A claim came to nothing because the store failed the need.
    fn claim_failed(&mut self, now: Moment, seq: u64, need: Need, error: StoreError) {
        let Some(claim) = self.bustle.claims.get(&seq).filter(|claim| claim.phase != Phase::Withdrawing) else {
            return;
        };
        let (taker, patience, sent) = (claim.taker, claim.patience, claim.asked);
        // What is being confirmed was granted: it must not wait for its window to end.
        // What takes a hold again may have been answered to nobody before.
        let regains = matches!(taker, Taker::Regain(..));
        let may_be_executed = error.outcome == Sure::Unknown && claim.phase != Phase::New;
        if may_be_executed || claim.phase == Phase::Confirming || regains {
            if let Taker::Upgrade(..) = taker {
                // Releasing it would leave a reader who believes in a hold that was exchanged.
                return self.withdraw(seq, Why::Store(error));
            }
            self.part_claim(now, seq, Lane::Renewals);
        }
        if let Taker::Regain(grip, _) = taker {
            return self.on_regain_error(seq, grip);
        }
        let passing = error.is_transient() && patience == Patience::Queue && !matches!(taker, Taker::Upgrade(..));
        if !passing {
            return self.drop_claim(now, seq, |_| Why::Store(error.clone()));
        }
        self.forget_claim(seq);
        if let Taker::Slip(slip) = taker {
            self.bustle.slips.set(slip, Stage::Unclaimed);
        }
        if taker != Taker::Nobody {
            self.note_failure(now, need, sent, error);
        }
    }

    /// A claim that was certainly not executed never will be.
    pub(super) fn note_unsent(&mut self, seq: u64, error: &StoreError) {
        if let Some(claim) = self.bustle.claims.get_mut(&seq).filter(|_| error.outcome == Sure::NotExecuted) {
            claim.not_after = LeaseTime::ZERO;
        }
    }

    /// A claim came to nothing without anybody's fault: claim anew.
    fn reclaim(&mut self, now: Moment, seq: u64) {
        let Some(claim) = self.forget_claim(seq) else { return };
        match claim.taker {
            Taker::Cohort => self.advance(now),
            Taker::Slip(slip) => self.claim_for(now, slip),
            // If the read hold has ended too, the store will say so.
            Taker::Upgrade(slip, grip) => self.claim_upgrade(now, slip, grip),
            Taker::Regain(..) | Taker::Nobody => {}
        }
    }

    /// Ends a claim and tells everybody who counted on it.
    fn drop_claim(&mut self, now: Moment, seq: u64, why: impl Fn(Slip) -> Why) {
        if matches!(self.bustle.claims.get(&seq).map(|claim| claim.phase), Some(Phase::Queued { .. })) {
            self.part_claim(now, seq, Lane::Renewals);
        }
        let Some(claim) = self.forget_claim(seq) else { return };
        let told = match claim.taker {
            Taker::Cohort => self.bustle.slips.line(),
            Taker::Slip(slip) | Taker::Upgrade(slip, _) => vec![slip],
            Taker::Regain(..) | Taker::Nobody => Vec::new(),
        };
        for slip in told {
            self.fail(slip, why(slip));
        }
    }

    /// Nobody wants this claim any more.
    pub(super) fn abandon(&mut self, now: Moment, seq: u64) {
        let Some(claim) = self.bustle.claims.get_mut(&seq) else { return };
        match claim.phase {
            Phase::New => {
                self.forget_claim(seq);
            }
            Phase::Sent | Phase::Confirming => {
                let taker = std::mem::replace(&mut claim.taker, Taker::Nobody);
                self.bustle.orphans += usize::from(taker != Taker::Nobody);
                if self.cohort == Cohort::Claiming(seq) {
                    self.cohort = Cohort::Idle;
                }
            }
            Phase::Queued { .. } | Phase::Withdrawing => self.abandon_granted(now, seq),
        }
    }

    pub(super) fn abandon_granted(&mut self, now: Moment, seq: u64) {
        self.part_claim(now, seq, Lane::Renewals);
        self.forget_claim(seq);
    }

    pub(super) fn line_shrank(&mut self, now: Moment) {
        if let Cohort::Claiming(seq) = self.cohort
            && self.bustle.slips.line_is_empty()
        {
            self.abandon(now, seq);
        }
    }

    pub(super) fn forget_claim(&mut self, seq: u64) -> Option<Box<Claiming>> {
        if self.cohort == Cohort::Claiming(seq) {
            self.cohort = Cohort::Idle;
        }
        let claim = self.bustle.claims.remove(&seq);
        self.bustle.orphans -= usize::from(claim.as_ref().is_some_and(|claim| claim.taker == Taker::Nobody));
        claim
    }

    pub(super) fn taker(&self, claim: &Claiming) -> Option<Slip> {
        match claim.taker {
            Taker::Cohort => self.bustle.slips.head(),
            Taker::Slip(slip) | Taker::Upgrade(slip, _) => Some(slip),
            Taker::Regain(..) | Taker::Nobody => None,
        }
    }

    fn taker_gone(&self, seq: u64) -> bool {
        self.bustle.claims.get(&seq).is_some_and(|claim| self.taker(claim).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_thread_gives_back_is_small() {
        assert!(size_of::<Claiming>() <= 104, "{} bytes", size_of::<Claiming>());
    }
}
