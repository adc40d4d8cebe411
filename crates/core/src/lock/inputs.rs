//! Every input of the machine: what waiters and guards ask, what the store answers, and what time brings.
//!
//! | group | inputs |
//! |---|---|
//! | waiters | [`handle_ask`](Machine::handle_ask), [`take_outcome`](Machine::take_outcome), [`handle_cancel`](Machine::handle_cancel) |
//! | re-entry | [`reenter`](Machine::reenter), [`leave`](Machine::leave), [`left`](Machine::left) |
//! | the end of a guard | [`handle_release`](Machine::handle_release), [`handle_last_release`](Machine::handle_last_release), [`handle_abandon`](Machine::handle_abandon), [`handle_detach`](Machine::handle_detach) |
//! | a guard that goes on | [`handle_renew`](Machine::handle_renew), [`handle_upgrade`](Machine::handle_upgrade), [`handle_downgrade`](Machine::handle_downgrade), [`handle_unbind`](Machine::handle_unbind), [`handle_progress`](Machine::handle_progress) |
//! | the end of a holder | [`handle_owner_ended`](Machine::handle_owner_ended), [`handle_task_ended`](Machine::handle_task_ended) |
//! | the store | [`handle_reply`](Machine::handle_reply), [`handle_push`](Machine::handle_push), [`handle_inbox`](Machine::handle_inbox), [`handle_due`](Machine::handle_due) |
//! | time | [`handle_timeout`](Machine::handle_timeout), [`handle_tick`](Machine::handle_tick) |
//! | shutdown | [`handle_close`](Machine::handle_close) |
//!
//! An input changes the state and queues what follows from it; the [outputs](super::outputs) hand that to the driver. What an answer
//! means is decided where the thing it answers lives: [claims](super::claim), [holds](super::hold), [releases](super::release).

use std::time::Duration;

use crate::holder::HolderId;
use crate::mode::Mode;
use crate::op::{Body, Line, News, Patience, Reply};
use crate::store::StoreError;
use crate::time::{Moment, RunId};
use crate::zoo::{self, Bug};

use super::claim::REUSED;
use super::hold::Hold;
use super::state::{Active, Stage};
use super::{
    Ask, CohortState, ConnectionKind, Failure, HoldKey, HoldState, How, LossReason, Machine, OwnerId, Recovery,
    Released, RequestContext, Tally, Todo, WaitOutcome, WaiterId,
};

impl Machine {
    // ---- Waiters ----

    /// Somebody wants the lock.
    pub fn handle_ask(&mut self, now: Moment, ask: impl Into<Box<Ask>>) -> WaiterId {
        let mut ask = ask.into();
        ask.since = now;
        self.forget_old_failures();
        if self.closed {
            return self.answered(Failure::Closed);
        }
        self.notice_ends(now, ask.owner);
        let again = ask.owner.and_then(|owner| self.reenter(now, owner, ask.mode, ask.reentrant));
        if let Some(outcome) = again {
            return self.active.waiters.insert(None, Stage::Ready(outcome));
        }
        if ask.patience == Patience::Try
            && ask.mode == Mode::Exclusive
            && matches!(self.cohort, CohortState::Holding(_))
        {
            return self.answered(Failure::Busy(self.own_blocker(now)));
        }
        let until = ask.until;
        let with_cohort = ask.mode == Mode::Exclusive && !ask.fair && ask.patience == Patience::Queue;
        let waiter = self.active.waiters.insert(Some(ask), Stage::Unclaimed);
        self.active.arm_wait(until, waiter);
        if with_cohort {
            self.active.waiters.join(waiter);
            self.advance(now);
        } else {
            self.claim_for(now, waiter);
        }
        waiter
    }

    fn answered(&mut self, failure: Failure) -> WaiterId {
        self.active.waiters.insert(None, Stage::Ready(failure.into()))
    }

    /// Takes the outcome of a waiter, if it has one; the waiter is gone then.
    #[inline(always)]
    pub fn take_outcome(&mut self, now: Moment, waiter: WaiterId) -> Option<WaitOutcome> {
        let Some(Stage::Ready(outcome)) = self.active.waiters.stage(waiter) else { return None };
        // A re-entry has no ask: it shares the fate of the hold that it entered.
        if let WaitOutcome::Granted { hold_key, .. } = *outcome
            && self.active.waiters.ask(waiter).is_some()
        {
            if self.holds.get(hold_key).is_none_or(|hold| hold.is_lost(now)) {
                // Lost before anybody saw it: the waiter waits again.
                self.return_to_wait(now, waiter, hold_key);
                return None;
            }
            if let Some(hold) = self.holds.get_mut(hold_key) {
                hold.pick_up();
            }
        }
        match self.active.waiters.remove(waiter) {
            Some((_, Stage::Ready(outcome))) => Some(outcome),
            _ => None,
        }
    }

    /// A waiter gives up: its future was dropped.
    pub fn handle_cancel(&mut self, now: Moment, waiter: WaiterId) {
        self.disarm_wait(waiter);
        match self.active.waiters.remove(waiter) {
            Some((_, Stage::Ready(WaitOutcome::Granted { .. }))) if zoo::has(Bug::CancelledGrantKept) => {}
            Some((_, Stage::Ready(WaitOutcome::Granted { hold_key, .. }))) => {
                drop(self.handle_release(now, hold_key, false));
            }
            Some((_, Stage::Claimed(seq))) => self.abandon(now, seq),
            Some((_, Stage::InLine)) => self.line_shrank(now),
            _ => {}
        }
    }

    // ---- Re-entry ----

    /// Enters again if the owner already holds the lock, or says at once that the owner would wait for itself.
    pub fn reenter(&mut self, now: Moment, owner: OwnerId, mode: Mode, reentrant: bool) -> Option<WaitOutcome> {
        if self.closed {
            return None;
        }
        // A grant that was not picked up may yet go to another waiter: nobody is inside.
        let whose = |hold: &Hold| hold.owner == Some(owner) || (reentrant && zoo::has(Bug::ReentryByAnybody));
        let inside = |hold: &Hold| whose(hold) && !hold.is_lost(now) && hold.is_picked_up();
        let own = |hold: &Hold| inside(hold) && hold.mode.kind() == mode.kind();
        let (key, hold) = self.holds.iter_mut().find(|(_, hold)| own(hold))?;
        if matches!(mode, Mode::Permits { .. }) {
            return None;
        }
        let enough = hold.mode == Mode::Exclusive || mode == Mode::Shared;
        if !enough || (!reentrant && hold.mode == Mode::Exclusive) {
            return Some(Failure::WouldDeadlock.into());
        }
        if !reentrant {
            // One owner may have two shared holds, as long as the second does not have to wait.
            return None;
        }
        let Some(deeper) = hold.word.enter() else { return Some(Failure::TooDeep.into()) };
        hold.word = deeper;
        // In use from here on, even if its first waiter has not picked it up.
        hold.pick_up();
        Some(WaitOutcome::Granted { hold_key: key, token: hold.token(), how: How::Reentry })
    }

    /// Leaves one level of re-entry. False at the last level: the hold must be released instead.
    pub fn leave(&mut self, hold_key: HoldKey) -> bool {
        let deeper = self.holds.get_mut(hold_key).filter(|hold| hold.word.depth() > 1);
        deeper.map(|hold| hold.word = hold.word.leave()).is_some()
    }

    /// The result for a guard that has [left](Self::leave) a lock that others are still inside: whether it is held.
    #[inline]
    pub fn left(&self, now: Moment, hold_key: HoldKey) -> Released {
        // Asked in two steps: a reason is large, and would be copied even where there is none (decision 0022).
        if self.holds.get(hold_key).is_some_and(|hold| hold.is_lost(now)) {
            self.left_lost(now, hold_key)
        } else {
            Released::Now(Ok(()))
        }
    }

    #[cold]
    fn left_lost(&self, now: Moment, hold_key: HoldKey) -> Released {
        Released::Now(self.loss(now, hold_key).map_or(Ok(()), |reason| Err(Failure::Lost(reason))))
    }

    // ---- The end of a guard ----

    /// A guard is released. With `listen` the caller gets a waiter for the store's answer.
    pub fn handle_release(&mut self, now: Moment, hold_key: HoldKey, listen: bool) -> Released {
        if self.leave(hold_key) {
            return self.left(now, hold_key);
        }
        self.handle_last_release(now, hold_key, listen)
    }

    /// The same for the last guard of a hold: nobody is inside by re-entry.
    pub fn handle_last_release(&mut self, now: Moment, hold_key: HoldKey, listen: bool) -> Released {
        let connection = if listen { ConnectionKind::Claims } else { ConnectionKind::Renewals };
        let Some(hold) = self.holds.get(hold_key) else { return Released::Now(Err(Failure::Lost(LossReason::Gone))) };
        let (over, watched) = (hold.is_live() && hold.deadline() <= now, hold.watch().is_some());
        if watched {
            self.alert_hold(now, hold_key);
        }
        if over {
            self.lose(now, hold_key, LossReason::Expired);
        }
        if let Some(reason) = self.holds.get(hold_key).and_then(|hold| hold.loss().cloned()) {
            self.end_hold(now, hold_key, connection);
            return Released::Now(Err(Failure::Lost(reason)));
        }
        let Some(key) = self.pass_or_release(now, hold_key, connection) else { return Released::Now(Ok(())) };
        if !listen {
            return Released::Now(Ok(()));
        }
        let waiter = self.active.waiters.insert(None, Stage::Request);
        self.active.releases[key].waiter = Some(waiter);
        Released::Later(waiter)
    }

    /// A guard is dropped where nobody can send its release: the hold is no longer renewed, and its lease runs out.
    pub fn handle_abandon(&mut self, now: Moment, hold_key: HoldKey) {
        if !self.leave(hold_key)
            && self.holds.remove(hold_key).is_some()
            && self.cohort == CohortState::Holding(hold_key)
        {
            self.cohort = CohortState::Idle;
            self.advance(now);
        }
    }

    /// A hold leaves this process without ending: from now on the owner of its id renews and releases it.
    ///
    /// `None`, and nothing changes, if it is lost, entered more than once, or its claim is not answered yet: a late answer
    /// would find no hold and release it.
    pub fn handle_detach(&mut self, now: Moment, hold_key: HoldKey) -> Option<HolderId> {
        let hold = self.holds.get(hold_key).filter(|hold| hold.word.depth() == 1 && !hold.is_lost(now))?;
        let id = hold.unanswered().is_none().then_some(hold.id)?;
        self.handle_abandon(now, hold_key);
        Some(id)
    }

    // ---- A guard that goes on ----

    /// A guard wants its lease renewed now.
    pub fn handle_renew(&mut self, now: Moment, hold_key: HoldKey) -> WaiterId {
        if let Some(failure) = self.lost(now, hold_key) {
            return self.answered(failure);
        }
        let waiter = self.active.waiters.insert(None, Stage::Request);
        self.active.todo.push_back(Todo::Renew(hold_key, Some(waiter)));
        waiter
    }

    /// A reader wants to write. The outcome is `Done`, or the read hold goes on as it was.
    pub fn handle_upgrade(
        &mut self,
        now: Moment,
        hold_key: HoldKey,
        patience: Patience,
        until: Option<Moment>,
    ) -> WaiterId {
        if let Some(failure) = self.lost(now, hold_key) {
            return self.answered(failure);
        }
        let Some(hold) = self.holds.get(hold_key).filter(|hold| hold.word.depth() == 1) else {
            // The outer guards read, and the upgrade would wait for them.
            return self.answered(Failure::WouldDeadlock);
        };
        let (owner, terms) = (hold.owner, *hold.tracker.terms());
        let reads_too = |other: &Hold| other.owner == owner && other.is_live() && other.mode == Mode::Shared;
        if owner.is_some() && self.holds.iter().any(|(key, other)| key != hold_key && reads_too(other)) {
            return self.answered(Failure::WouldDeadlock);
        }
        let (mode, until) = (Mode::Exclusive, until.unwrap_or(Moment::FAR));
        let (fair, reentrant, limits, recovery) = (false, false, None, Recovery::Notify);
        let ask = Ask { mode, fair, patience, since: now, until, owner, reentrant, terms, limits, recovery };
        let waiter = self.active.waiters.insert(Some(Box::new(ask)), Stage::Unclaimed);
        self.active.arm_wait(until, waiter);
        self.claim_upgrade(now, waiter, hold_key);
        waiter
    }

    /// A writer wants to read.
    pub fn handle_downgrade(&mut self, now: Moment, hold_key: HoldKey) -> WaiterId {
        if let Some(failure) = self.lost(now, hold_key) {
            return self.answered(failure);
        }
        if self.word(hold_key).depth() > 1 {
            return self.answered(Failure::WouldDeadlock);
        }
        if self.cohort == CohortState::Holding(hold_key) && !zoo::has(Bug::DowngradeStillPasses) {
            // A shared hold is not passed locally: the local line needs a claim of its own from here on.
            self.cohort = CohortState::Idle;
            self.advance(now);
        }
        let waiter = self.active.waiters.insert(None, Stage::Request);
        self.active.todo.push_back(Todo::Downgrade(hold_key, waiter));
        waiter
    }

    /// Why the hold is lost, if it is.
    pub(super) fn lost(&mut self, now: Moment, hold_key: HoldKey) -> Option<Failure> {
        match self.state(now, hold_key) {
            None => Some(Failure::Lost(LossReason::Gone)),
            Some(HoldState::Lost(reason)) => {
                self.lose(now, hold_key, reason.clone());
                Some(Failure::Lost(reason))
            }
            Some(_) => None,
        }
    }

    /// A hold is no longer bound to its owner: its guard may move to another thread.
    pub fn handle_unbind(&mut self, hold_key: HoldKey) {
        // If it is entered more than once, the outer guards stay bound.
        if let Some(hold) = self.holds.get_mut(hold_key).filter(|hold| hold.word.depth() == 1) {
            hold.owner = None;
        }
    }

    /// The holder makes progress.
    pub fn handle_progress(&mut self, now: Moment, hold_key: HoldKey) {
        if let Some(watch) = self.holds.get_mut(hold_key).and_then(|hold| hold.watch_mut()) {
            watch.progressed = now;
        }
    }

    // ---- The end of a holder ----

    /// The thread that owned these holds has ended: nobody can use or release them any more.
    pub fn handle_owner_ended(&mut self, now: Moment, owner: OwnerId) -> usize {
        let own = self.holds.iter().filter(|(_, hold)| hold.owner == Some(owner)).map(|(key, _)| key);
        let hold_keys: Vec<HoldKey> = own.collect();
        for hold_key in &hold_keys {
            self.lose(now, *hold_key, LossReason::OwnerEnded);
            self.end_hold(now, *hold_key, ConnectionKind::Renewals);
        }
        hold_keys.len()
    }

    /// The task that a hold was bound to has ended.
    pub fn handle_task_ended(&mut self, now: Moment, hold_key: HoldKey) {
        self.lose(now, hold_key, LossReason::TaskEnded);
    }

    // ---- The store ----

    /// The store answered a request, or failed.
    pub fn handle_reply(&mut self, now: Moment, context: RequestContext, result: Result<Reply, StoreError>) {
        if let Ok(reply) = &result {
            self.note_run(reply.run);
        }
        if let RequestContext::Claim { counts: true, .. } = context {
            self.note_claim_answered(result.as_ref().ok().map(|reply| &reply.body));
        }
        let (run, at) = result.as_ref().map(|reply| (reply.run, reply.at)).unwrap_or_default();
        let fits = |body: &Body| context.is_answered_by(body);
        let result = result.map(|reply| reply.body).and_then(|body| match fits(&body) {
            true => Ok(body),
            false => Err(StoreError::unknown("the store answered another question")),
        });
        if let Ok(body) = &result {
            self.note_served(now, &context, body);
        }
        match (context, result) {
            (RequestContext::Claim { seq, .. }, Ok(Body::Verdict(verdict))) => self.on_verdict(now, seq, run, verdict),
            (RequestContext::Claim { seq, .. }, Err(error)) => {
                self.note_unsent(seq, &error);
                self.on_claim_error(now, seq, error);
            }
            (RequestContext::Confirm { seq, sent }, Ok(Body::Renewal(renewal))) => {
                self.on_confirmed(now, seq, sent, renewal);
            }
            (RequestContext::Confirm { seq, .. }, Err(error)) => self.on_claim_error(now, seq, error),
            (RequestContext::Renew { hold_key, seq, sent, waiter, .. }, Ok(Body::Renewal(renewal))) => {
                self.on_renewal((now, at), (hold_key, seq, sent), waiter, renewal);
            }
            (RequestContext::Renew { hold_key, seq, sent, waiter, .. }, Err(error)) => {
                self.on_renewal_error(now, (hold_key, seq, sent), waiter, error);
            }
            (RequestContext::Heartbeat { seqs, sent }, Ok(Body::Standings(standings))) => {
                self.on_standings(now, sent, run, &seqs, standings);
            }
            (RequestContext::Heartbeat { sent, .. }, Err(error)) => self.on_heartbeat_error(now, sent, error),
            (RequestContext::Check { hold_key, seq, sent }, Ok(Body::Standings(standings))) => {
                self.on_check((now, at), (hold_key, seq, sent), standings.first());
            }
            (RequestContext::Release { key }, Ok(Body::Release(reply))) => self.on_released(now, key, run, reply),
            (RequestContext::Release { key }, Err(error)) => self.on_release_error(now, key, error),
            (RequestContext::Downgrade { hold_key, seq, waiter }, Ok(Body::Downgraded(answer))) => {
                self.on_downgraded(now, hold_key, seq, waiter, answer);
            }
            (RequestContext::Downgrade { waiter, .. }, Err(error)) => self.finish(waiter, Failure::Store(error).into()),
            (RequestContext::Withdraw { seq, sent }, Ok(Body::Downgraded(answer))) => {
                self.on_withdrawn((now, at), seq, sent, answer);
            }
            (RequestContext::Withdraw { seq, .. }, Err(error)) => self.on_withdraw_error(now, seq, error),
            // A check that failed is followed by the next tick. Answers that do not fit were replaced by errors above.
            (_, _) => {}
        }
    }

    /// News from the store, or from somebody who pretends to be the store.
    ///
    /// Only the store knows the number of our claim before the grant is published, so a grant that names it is believed. The number in a
    /// revocation may have been read from the published grant, so it is only a reason to ask the store whether the hold is revoked. A
    /// false notice that somebody waits costs one local pass at most.
    pub fn handle_push(&mut self, now: Moment, run: RunId, news: News) {
        match news {
            News::Granted { number, stamp, line } => {
                if let Some(seq) = self.named_by(number) {
                    self.on_pushed_grant(now, run, seq, (stamp, line));
                }
            }
            News::Waiting { fair } => self.note_line(now, now, Line { waiters: 1, fair }),
            News::Revoked { number, reason } => {
                let seq = self.named_by(number);
                let named = self.holds.iter().find(|(_, hold)| Some(hold.seq) == seq).map(|(key, _)| key);
                match named {
                    Some(hold_key) if zoo::has(Bug::TrustingPushes) => {
                        self.lose(now, hold_key, LossReason::Revoked(reason.into()));
                    }
                    Some(hold_key) => self.ask_whether_revoked(hold_key, LossReason::Revoked(reason.into())),
                    None => {}
                }
            }
        }
    }

    fn ask_whether_revoked(&mut self, hold_key: HoldKey, order: LossReason) {
        match self.holds.get_mut(hold_key).filter(|hold| hold.is_live()) {
            Some(hold) => {
                hold.cold_mut().order = Some(order);
                self.active.todo.push_back(Todo::Renew(hold_key, None));
            }
            // It is lost already; if somebody did not want it, it is not taken again.
            None => self.lose_for_good(hold_key, order),
        }
    }

    fn named_by(&self, number: u64) -> Option<u64> {
        if zoo::has(Bug::HolderIdReused) {
            return Some(REUSED);
        }
        let named = self.client.ordinal(number);
        if zoo::has(Bug::TrustingPushes) { named.or(Some(number)) } else { named }
    }

    /// The connection for news went up or down. When it comes back, anything may have been missed, so the store is asked once.
    pub fn handle_inbox(&mut self, now: Moment, up: bool) {
        self.inbox_up = up;
        if up {
            // Claims that wait for a pause are sent at once. This proves nothing about the other connections.
            self.retry(now);
            self.restart_heartbeats();
        }
    }

    /// A renewal that was kept until it was [due](RequestContext::Renew::due) is about to be sent. False if it is not wanted any more:
    /// the hold was released, or another renewal has confirmed it or is under way.
    pub fn handle_due(&mut self, context: &RequestContext) -> bool {
        let RequestContext::Renew { hold_key, seq, .. } = context else { return true };
        let wanted = |hold: &&mut Hold| hold.seq == *seq && hold.is_live() && !hold.confirmed && !hold.confirming;
        self.holds.get_mut(*hold_key).filter(wanted).map(|hold| hold.confirming = true).is_some()
    }

    // ---- Time ----

    /// Does what is due: waits that run out, heartbeats, retries, renewals.
    pub fn handle_timeout(&mut self, now: Moment) {
        if !self.active.is_quiet() {
            self.tend_active(now);
        }
        let due: Vec<_> =
            self.holds.iter().filter(|(_, hold)| hold.next(&self.settings) <= now).map(|(key, _)| key).collect();
        due.into_iter().for_each(|key| self.tend_hold(now, key));
    }

    fn tend_active(&mut self, now: Moment) {
        while let Some((until, waiter)) = self.active.waits.first().copied().filter(|(until, _)| *until <= now) {
            self.active.waits.remove(&(until, waiter));
            self.wait_over(now, waiter);
        }
        if self.active.heartbeat_at.is_some_and(|at| at <= now) {
            self.active.heartbeat_at = None;
            self.heartbeat_due();
        }
        self.tend_failing(now);
        let Active { releases, todo, .. } = &mut *self.active;
        for (key, pending) in releases {
            if pending.retry_at.take_if(|at| *at <= now).is_some() {
                todo.push_back(Todo::Release(key));
            }
        }
    }

    /// A tick of the watchdog: judges every hold, and asks for each record that no answer has named for `period`.
    pub fn handle_tick(&mut self, now: Moment, period: Duration) -> Tally {
        let mut tally = Tally { waiters: self.active.waiters.waiting().len(), ..Tally::default() };
        let live: Vec<HoldKey> = self.holds.iter().filter(|(_, hold)| hold.is_live()).map(|(key, _)| key).collect();
        for key in live {
            self.check_hold(now, key, period);
            let Some(hold) = self.holds.get(key).filter(|hold| hold.is_live()) else { continue };
            tally.holds += 1;
            tally.uncertain += usize::from(hold.doubted || hold.tracker.overdue(now).is_some());
        }
        self.active.waiters.waiting().into_iter().for_each(|waiter| self.alert_wait(now, waiter));
        tally
    }

    // ---- Shutdown ----

    /// The client shuts down: waiters fail, and holds end and are released.
    pub fn handle_close(&mut self, now: Moment) {
        self.closed = true;
        for waiter in self.active.waiters.waiting() {
            if let Some(Stage::Claimed(seq)) = self.active.waiters.stage(waiter) {
                self.abandon(now, *seq);
            }
            self.fail(waiter, Failure::Closed);
        }
        self.line_shrank(now);
        let live: Vec<HoldKey> = self.holds.iter().filter(|(_, hold)| hold.is_live()).map(|(key, _)| key).collect();
        let regaining = self.holds.iter().map(|(key, _)| key).filter(|hold_key| self.is_regaining(*hold_key));
        regaining.collect::<Vec<_>>().into_iter().for_each(|hold_key| self.end_regain(hold_key));
        for hold_key in live {
            if let Some(hold) = self.holds.get(hold_key) {
                self.release_in_store(now, hold.id, hold.unanswered(), hold.lease().length(), ConnectionKind::Renewals);
            }
            self.lose(now, hold_key, LossReason::Shutdown);
        }
    }
}
