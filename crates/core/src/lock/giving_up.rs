//! Claims that come to nothing: the store failed, or nobody wants them any more.

use crate::op::Patience;
use crate::store::{Outcome as Sure, StoreError};
use crate::time::{LeaseTime, Moment};
use crate::zoo::{self, Bug};

use super::claim::{Phase, Taker};
use super::slips::Stage;
use super::{Cohort, Lane, Machine, Slip, Why};

/// A store in trouble, and when to try it again.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) since: Moment,
    pub(super) attempt: u32,
    /// When to try again or, while that is under way, to give up.
    pub(super) retry_at: Option<Moment>,
    pub(super) error: StoreError,
    /// It answers, but too late for the lease.
    pub(super) too_late: bool,
}

impl Machine {
    pub(super) fn on_claim_error(&mut self, now: Moment, seq: u64, error: StoreError) {
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
            self.note_failure(now, sent, error);
        }
    }

    /// A claim that was certainly not executed never will be.
    pub(super) fn note_unsent(&mut self, seq: u64, error: &StoreError) {
        if let Some(claim) = self.bustle.claims.get_mut(&seq).filter(|_| error.outcome == Sure::NotExecuted) {
            claim.not_after = LeaseTime::ZERO;
        }
    }

    /// The store failed a request of `sent`: the next one comes after a pause.
    pub(super) fn note_failure(&mut self, now: Moment, sent: Moment, error: StoreError) {
        // Not longer ago than a request may take: before that it was this process that did not run.
        let sent = sent.max(now - self.settings.response);
        let (since, attempt) =
            self.bustle.failing.as_ref().map_or((sent, 0), |failing| (failing.since, failing.attempt + 1));
        let pause = now + self.settings.backoff.delay(attempt, self.jitter.next());
        let retry_at = (!zoo::has(Bug::NoRetry)).then(|| pause.min(since + self.settings.unavailable_after));
        self.call_back();
        self.bustle.failing = Some(Box::new(Failing { since, attempt, retry_at, error, too_late: false }));
    }

    /// Ends a claim and tells everybody who counted on it.
    pub(super) fn drop_claim(&mut self, now: Moment, seq: u64, why: impl Fn(Slip) -> Why) {
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
}
