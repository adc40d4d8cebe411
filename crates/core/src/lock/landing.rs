//! How a grant arrives: by reply, push or heartbeat, believed at once or confirmed first.

use std::time::Duration;

use crate::op::{Line, Renewal, Standing};
use crate::store::StoreError;
use crate::time::{Moment, RunId};
use crate::token::Stamp;
use crate::zoo::{self, Bug};

use super::claim::{Claiming, Phase, Taker};
use super::giving_up::Need;
use super::{How, Lane, LossReason, Machine, Slip, Todo, Why};

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
    /// A grant has arrived: make it a hold, or confirm it first, or give it back.
    pub(super) fn land(&mut self, now: Moment, seq: u64, landing: Landing) {
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

    // The answer says who waits elsewhere.
    fn may_pass_on(&mut self, now: Moment, sent: Moment, line: Line) -> bool {
        self.learn(now, sent, line);
        self.may_pass(now)
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

    /// One standing from a heartbeat.
    pub(super) fn on_standing(&mut self, now: Moment, sent: Moment, run: RunId, seq: u64, standing: Standing) {
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
}
