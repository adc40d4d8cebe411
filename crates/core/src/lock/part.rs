//! How a hold, a place in the line or a claim goes back to the store: asked for again until that is certain or no longer matters.

use std::time::Duration;

use crate::holder::HolderId;
use crate::op::{Op, Parted, Release, ReleaseReply};
use crate::store::{Outcome as Sure, StoreError};
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::Token;

use super::hold::Hold;
use super::{Action, Errand, Grip, Lane, LossReason, Machine, Outcome, Slip, Todo, Why};

/// A release on its way.
#[derive(Debug)]
pub(super) struct Parting {
    pub(super) id: HolderId,
    not_after: Option<LeaseTime>,
    /// Nobody here knows the claim: its not-after is the latest that it can have.
    unknown: bool,
    /// The claim that is made in the same request.
    pub(super) again: Option<u64>,
    /// The claim that is made once this is answered: whoever is next elsewhere does not wait for it to be queued.
    pub(super) then: Option<u64>,
    /// The lost hold, and its token, for whose recovery this is.
    pub(super) recovers: Option<(Grip, Token)>,
    lane: Lane,
    pub(super) slip: Option<Slip>,
    attempt: u32,
    /// Whether another try, or the release that answers a late push, may have been executed before it.
    resent: bool,
    pub(super) retry_at: Option<Moment>,
    /// When the store has forgotten the hold by itself.
    moot_at: Moment,
}

impl Machine {
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

    /// Releases a claim that may have been granted, or may yet be.
    pub(super) fn part_claim(&mut self, now: Moment, seq: u64, lane: Lane) {
        let Some(claim) = self.bustle.claims.get(&seq) else { return };
        let (id, lease) = (self.client.holder(seq), claim.lease.length());
        let unanswered = claim.run.id().is_none().then_some(claim.not_after);
        self.part(now, id, unanswered, lease, lane);
    }

    pub(super) fn part_hold(&mut self, now: Moment, hold: &Hold, lane: Lane) -> usize {
        self.part(now, hold.id, hold.unanswered(), hold.lease().length(), lane)
    }

    pub(super) fn part_action(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, key: usize) -> Option<Action> {
        self.drop_unwanted_regain(now, key);
        let parting = self.bustle.partings.get_mut(key)?;
        parting.retry_at = None;
        if parting.unknown {
            parting.not_after.get_or_insert_with(|| store() + self.settings.response);
        }
        let (id, not_after, lane, again) = (parting.id, parting.not_after, parting.lane, parting.again);
        let again = again.and_then(|seq| self.send_claim(now, store(), seq)).map(Box::new);
        let op = Op::Release(Release { id, not_after, again });
        Some(Action { errand: Errand::Part { key }, op, lane })
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
