//! What happens by itself: waits run out, heartbeats are due, failed requests are tried again, holds are looked after.

use std::ops::Bound;
use std::time::Duration;

use crate::lease::Lease;
use crate::op::{Heartbeat, News, Op, Queued, Standing};
use crate::store::{StoreError, StoreErrorKind};
use crate::time::{LeaseTime, Moment, RunId};

use crate::zoo::{self, Bug};

use super::bustle::Bustle;
use super::claim::{Claiming, Phase, REUSED, Taker};
use super::slips::Stage;
use super::{Action, Cohort, Errand, Grip, Lane, LossReason, Machine, Slip, Todo, Why};

/// Waiters further back ask a little later after the blocker's lease end: the first is the one to profit.
const STAGGER: Duration = Duration::from_millis(5);
/// So many claims are asked after with one heartbeat.
pub(super) const BEAT: usize = 128;

impl Machine {
    /// When [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Moment> {
        let or_far = |at: Option<Moment>| at.unwrap_or(Moment::FAR);
        let wait = or_far(self.bustle.waits.first().map(|(until, _)| *until));
        let failing = self.bustle.failing.as_ref().filter(|_| !self.bustle.slips.is_empty());
        let failing = failing.map(|failing| failing.next(self.settings.unavailable_after));
        let partings = self.bustle.partings.iter().map(|(_, parting)| or_far(parting.retry_at));
        let holds = self.holds.iter().map(|(_, hold)| hold.next(&self.settings));
        let first = wait.min(or_far(self.bustle.heartbeat_at)).min(or_far(failing));
        let first = holds.fold(partings.fold(first, Moment::min), Moment::min);
        (first < Moment::FAR).then_some(first)
    }

    /// Does whatever is due.
    pub fn handle_timeout(&mut self, now: Moment) {
        if !self.bustle.is_quiet() {
            self.tend_bustle(now);
        }
        let due: Vec<_> =
            self.holds.iter().filter(|(_, hold)| hold.next(&self.settings) <= now).map(|(key, _)| key).collect();
        due.into_iter().for_each(|key| self.attend(now, key));
    }

    fn tend_bustle(&mut self, now: Moment) {
        while let Some((until, slip)) = self.bustle.waits.first().copied().filter(|(until, _)| *until <= now) {
            self.bustle.waits.remove(&(until, slip));
            self.wait_over(now, slip);
        }
        if self.bustle.heartbeat_at.is_some_and(|at| at <= now) {
            self.bustle.heartbeat_at = None;
            self.ask_after();
        }
        self.tend_failing(now);
        let Bustle { partings, todo, .. } = &mut *self.bustle;
        for (key, parting) in partings {
            if parting.retry_at.take_if(|at| *at <= now).is_some() {
                todo.push_back(Todo::Part(key));
            }
        }
    }

    /// News from the store, or from somebody who pretends to be it. Only the store knows the number of a claim of ours before it is
    /// published, so a grant that names one is believed. That of a revocation may have been read where its grant was published:
    /// it is a reason to ask the store, which says whether the hold is revoked. That somebody waits costs a hand-off at most.
    pub fn handle_push(&mut self, now: Moment, run: RunId, news: News) {
        match news {
            News::Granted { number, stamp, line } => {
                if let Some(seq) = self.named_by(number) {
                    self.on_pushed_grant(now, run, seq, (stamp, line));
                }
            }
            News::Waiting { fair } => self.learn(now, now, crate::op::Line { waiters: 1, fair }),
            News::Revoked { number, reason } => {
                let seq = self.named_by(number);
                let named = self.holds.iter().find(|(_, hold)| Some(hold.seq) == seq).map(|(key, _)| Grip(key));
                match named {
                    Some(grip) if zoo::has(Bug::TrustingPushes) => {
                        self.lose(now, grip, LossReason::Revoked(reason.into()));
                    }
                    Some(grip) => self.bustle.todo.push_back(Todo::Renew(grip, None)),
                    None => {}
                }
            }
        }
    }

    fn named_by(&self, number: u64) -> Option<u64> {
        if zoo::has(Bug::HolderIdReused) {
            return Some(REUSED);
        }
        let named = self.client.ordinal(number);
        if zoo::has(Bug::TrustingPushes) { named.or(Some(number)) } else { named }
    }

    /// Whether news arrives. Coming back, anything may have been missed: ask once.
    pub fn handle_inbox(&mut self, now: Moment, up: bool) {
        self.inbox_up = up;
        if up {
            // What was asked for may go out at once. It proves nothing about the other connections.
            self.retry(now);
            self.ask_after_all();
        }
    }

    pub(super) fn prepare(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, todo: Todo) -> Option<Action> {
        match todo {
            Todo::Claim(seq) => self.send_or_hold_back(now, store, seq),
            Todo::Confirm(seq) => self.confirm_action(now, seq),
            Todo::Renew(grip, slip) => self.renew_action(now, grip, slip, now),
            Todo::Prepare(grip, due) => self.renew_action(now, grip, None, due),
            Todo::Look(grip) => self.look_action(now, grip),
            Todo::Heartbeat => self.next_heartbeat(now),
            Todo::HeartbeatOfFirst => self.heartbeat(now, Bound::Unbounded).map(|(beat, _)| beat),
            Todo::Part(key) => self.part_action(now, store, key),
            Todo::Downgrade(grip, slip) => self.downgrade_action(grip, slip),
            Todo::Withdraw(seq) => self.withdraw_action(now, seq),
        }
    }

    fn wait_over(&mut self, now: Moment, slip: Slip) {
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

    /// The next heartbeat is half a claim window away, or at the blocker's lease end if that is sooner.
    pub(super) fn schedule_heartbeat(&mut self, now: Moment, asked: Moment, lease: Lease, queued: &Queued) {
        let blocked_until = queued.blocker.as_ref().map_or(Moment::FAR, |blocker| {
            asked + blocker.remaining + STAGGER.saturating_mul(queued.ahead.saturating_add(1))
        });
        let at = (now + self.window(lease) / 2).min(blocked_until.max(now + STAGGER));
        self.bustle.heartbeat_at = Some(self.bustle.heartbeat_at.map_or(at, |known| known.min(at)));
    }

    /// A heartbeat is due. While a round goes on, the first are asked after once more, and the round goes on: it may take longer
    /// than until the blocker's lease ends.
    fn ask_after(&mut self) {
        match self.bustle.beaten_to {
            Some(_) => self.bustle.todo.push_back(Todo::HeartbeatOfFirst),
            None => self.ask_after_all(),
        }
    }

    /// A heartbeat for everybody, from the first on.
    fn ask_after_all(&mut self) {
        self.bustle.beaten_to = None;
        self.bustle.todo.push_back(Todo::Heartbeat);
    }

    /// Asks after the next of the queued claims, some at a time: a store that answers for thousands at once serves nobody else meanwhile.
    fn next_heartbeat(&mut self, now: Moment) -> Option<Action> {
        let from = self.bustle.beaten_to.take().map_or(Bound::Unbounded, Bound::Excluded);
        let (beat, to) = self.heartbeat(now, from)?;
        self.bustle.beaten_to = to;
        Some(beat)
    }

    /// A heartbeat for claims from there on, and the last of them if there are more.
    fn heartbeat(&mut self, now: Moment, from: Bound<u64>) -> Option<(Action, Option<u64>)> {
        let beats = |phase: Phase| matches!(phase, Phase::Queued { .. }) && !zoo::has(Bug::NoHeartbeats);
        let queued = |from| self.bustle.claims.range((from, Bound::Unbounded)).filter(|(_, claim)| beats(claim.phase));
        let windows = || queued(Bound::Unbounded).map(|(_, claim)| self.window(claim.lease));
        let (shortest, longest) = (windows().min()?, windows().max()?);
        let mut seqs: Vec<u64> = queued(from).map(|(seq, _)| *seq).take(BEAT + 1).collect();
        let is_more = seqs.len() > BEAT;
        seqs.truncate(BEAT);
        let last = *seqs.last()?;
        // Set before the answer: an answer that never comes must not end the heartbeats. What an answer has said of the blocker
        // stays if it is sooner.
        let next = now + shortest / 2;
        self.bustle.heartbeat_at = Some(self.bustle.heartbeat_at.map_or(next, |known| known.min(next)));
        let ids = seqs.iter().map(|seq| self.client.holder(*seq)).collect();
        let op = Op::Heartbeat(Heartbeat { inbox: self.client.inbox(), ids, alive: longest * 2 });
        let action = Action { errand: Errand::Heartbeat { seqs, sent: now }, op, lane: Lane::Renewals };
        Some((action, is_more.then_some(last)))
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
}
