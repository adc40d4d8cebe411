//! Every input of the machine: what waiters and guards ask, what the store answers, and what time brings.
//!
//! | group | inputs |
//! |---|---|
//! | waiters | [`handle_ask`](Machine::handle_ask), [`pick`](Machine::pick), [`handle_cancel`](Machine::handle_cancel) |
//! | re-entry | [`reenter`](Machine::reenter), [`leave`](Machine::leave), [`left`](Machine::left) |
//! | the end of a guard | [`handle_release`](Machine::handle_release), [`handle_last_release`](Machine::handle_last_release), [`handle_abandon`](Machine::handle_abandon), [`handle_detach`](Machine::handle_detach) |
//! | a guard that goes on | [`handle_renew`](Machine::handle_renew), [`handle_upgrade`](Machine::handle_upgrade), [`handle_downgrade`](Machine::handle_downgrade), [`handle_unbind`](Machine::handle_unbind), [`handle_progress`](Machine::handle_progress) |
//! | the end of a holder | [`handle_owner_ended`](Machine::handle_owner_ended), [`handle_task_ended`](Machine::handle_task_ended) |
//! | the store | [`handle_reply`](Machine::handle_reply), [`handle_push`](Machine::handle_push), [`handle_inbox`](Machine::handle_inbox), [`handle_due`](Machine::handle_due) |
//! | time | [`handle_timeout`](Machine::handle_timeout), [`handle_round`](Machine::handle_round) |
//! | shutdown | [`handle_close`](Machine::handle_close) |
//!
//! An input changes the state and queues what follows from it; the [outputs](super::outputs) hand that to the driver. What an answer
//! means is decided where the thing it answers lives: [claims](super::claim), [holds](super::hold), [releases](super::release).

use std::time::Duration;

use crate::holder::HolderId;
use crate::mode::Mode;
use crate::op::{Body, News, Patience, Reply};
use crate::store::StoreError;
use crate::time::{Moment, RunId};
use crate::zoo::{self, Bug};

use super::claim::REUSED;
use super::hold::Hold;
use super::state::{Bustle, HoldKey, Stage};
use super::{
    Ask, Cohort, Errand, Grip, How, Lane, LossReason, Machine, Outcome, OwnerId, Recovery, Released, Slip, Tally, Todo,
    Why,
};

impl Machine {
    // ---- Waiters ----

    /// Somebody wants the lock.
    pub fn handle_ask(&mut self, now: Moment, ask: impl Into<Box<Ask>>) -> Slip {
        let mut ask = ask.into();
        ask.since = now;
        self.begin_patience();
        if self.closed {
            return self.answered(Why::Closed);
        }
        self.notice_ends(now, ask.owner);
        let again = ask.owner.and_then(|owner| self.reenter(now, owner, ask.mode, ask.reentrant));
        if let Some(outcome) = again {
            return self.bustle.slips.insert(None, Stage::Ready(outcome));
        }
        if ask.patience == Patience::Try && ask.mode == Mode::Exclusive && matches!(self.cohort, Cohort::Holding(_)) {
            return self.answered(Why::Busy(self.own_blocker(now)));
        }
        let until = ask.until;
        let with_cohort = ask.mode == Mode::Exclusive && !ask.fair && ask.patience == Patience::Queue;
        let slip = self.bustle.slips.insert(Some(ask), Stage::Unclaimed);
        self.bustle.arm_wait(until, slip);
        if with_cohort {
            self.bustle.slips.join(slip);
            self.advance(now);
        } else {
            self.claim_for(now, slip);
        }
        slip
    }

    fn answered(&mut self, why: Why) -> Slip {
        self.bustle.slips.insert(None, Stage::Ready(why.into()))
    }

    /// Exchanges a slip for its outcome, if it is there.
    #[inline(always)]
    pub fn pick(&mut self, now: Moment, slip: Slip) -> Option<Outcome> {
        let Some(Stage::Ready(outcome)) = self.bustle.slips.stage(slip) else { return None };
        // A re-entry has no wish of its own left: it shares the fate of the hold it entered.
        if let Outcome::Granted { grip, .. } = *outcome
            && self.bustle.slips.ask(slip).is_some()
        {
            if self.holds.get(grip.0).is_none_or(|hold| hold.is_lost(now)) {
                // Lost before it was ever seen: the wish goes on.
                self.return_to_wait(now, slip, grip);
                return None;
            }
            if let Some(hold) = self.holds.get_mut(grip.0) {
                hold.pick_up();
            }
        }
        match self.bustle.slips.remove(slip) {
            Some((_, Stage::Ready(outcome))) => Some(outcome),
            _ => None,
        }
    }

    /// Nobody waits for this slip any more: the future was dropped.
    pub fn handle_cancel(&mut self, now: Moment, slip: Slip) {
        self.disarm_wait(slip);
        match self.bustle.slips.remove(slip) {
            Some((_, Stage::Ready(Outcome::Granted { .. }))) if zoo::has(Bug::CancelledGrantKept) => {}
            Some((_, Stage::Ready(Outcome::Granted { grip, .. }))) => drop(self.handle_release(now, grip, false)),
            Some((_, Stage::Claimed(seq))) => self.abandon(now, seq),
            Some((_, Stage::InLine)) => self.line_shrank(now),
            _ => {}
        }
    }

    // ---- Re-entry ----

    /// Enters again if the owner holds the lock already, or says at once that it would wait for itself.
    pub fn reenter(&mut self, now: Moment, owner: OwnerId, mode: Mode, reentrant: bool) -> Option<Outcome> {
        if self.closed {
            return None;
        }
        // A grant that was not picked up may yet go to another: nobody is inside.
        let whose = |hold: &Hold| hold.owner == Some(owner) || (reentrant && zoo::has(Bug::ReentryByAnybody));
        let inside = |hold: &Hold| whose(hold) && !hold.is_lost(now) && hold.is_picked_up();
        let own = |hold: &Hold| inside(hold) && hold.mode.kind() == mode.kind();
        let (key, hold) = self.holds.iter_mut().find(|(_, hold)| own(hold))?;
        if matches!(mode, Mode::Permits { .. }) {
            return None;
        }
        let enough = hold.mode == Mode::Exclusive || mode == Mode::Shared;
        if !enough || (!reentrant && hold.mode == Mode::Exclusive) {
            return Some(Why::WouldDeadlock.into());
        }
        if !reentrant {
            // Two shared holds of one owner are fine as long as the second does not have to wait.
            return None;
        }
        let Some(deeper) = hold.word.enter() else { return Some(Why::TooDeep.into()) };
        hold.word = deeper;
        // In use from here on, even if its first slip is still out.
        hold.pick_up();
        Some(Outcome::Granted { grip: Grip(key), token: hold.token(), how: How::Reentry })
    }

    /// Leaves one level of re-entry. False at the last one: that must be released.
    pub fn leave(&mut self, grip: Grip) -> bool {
        let deeper = self.holds.get_mut(grip.0).filter(|hold| hold.word.depth() > 1);
        deeper.map(|hold| hold.word = hold.word.leave()).is_some()
    }

    /// What is to be said to whoever has [left](Self::leave) a lock that others are still in: whether it is held.
    #[inline]
    pub fn left(&self, now: Moment, grip: Grip) -> Released {
        // Whether, and then why: a reason is large, and would be copied where there is none (decision 0042).
        if self.holds.get(grip.0).is_some_and(|hold| hold.is_lost(now)) {
            self.left_lost(now, grip)
        } else {
            Released::Now(Ok(()))
        }
    }

    #[cold]
    fn left_lost(&self, now: Moment, grip: Grip) -> Released {
        Released::Now(self.loss(now, grip).map_or(Ok(()), |reason| Err(Why::Lost(reason))))
    }

    // ---- The end of a guard ----

    /// A guard is released. With `listen` the caller gets a slip for the store's answer.
    pub fn handle_release(&mut self, now: Moment, grip: Grip, listen: bool) -> Released {
        if self.leave(grip) {
            return self.left(now, grip);
        }
        let lane = if listen { Lane::Claims } else { Lane::Renewals };
        self.handle_last_release(now, grip, lane, listen)
    }

    /// The same for a guard that is known to be the only one: nobody has entered again. It goes by `lane`: applied at once, it
    /// comes before whatever is claimed next on the same one.
    pub fn handle_last_release(&mut self, now: Moment, grip: Grip, lane: Lane, listen: bool) -> Released {
        let Some(hold) = self.holds.get(grip.0) else { return Released::Now(Err(Why::Lost(LossReason::Gone))) };
        let (over, watched) = (hold.is_live() && hold.deadline() <= now, hold.care().is_some());
        if watched {
            self.alert_hold(now, grip);
        }
        if over {
            self.lose(now, grip, LossReason::Expired);
        }
        if let Some(reason) = self.holds.get(grip.0).and_then(|hold| hold.loss().cloned()) {
            self.let_go(now, grip, lane);
            return Released::Now(Err(Why::Lost(reason)));
        }
        let Some(key) = self.pass_or_part(now, grip, lane) else { return Released::Now(Ok(())) };
        if !listen {
            return Released::Now(Ok(()));
        }
        let slip = self.bustle.slips.insert(None, Stage::Errand);
        self.bustle.partings[key].slip = Some(slip);
        Released::Later(slip)
    }

    /// A guard is dropped while nobody can send its release: it stops being renewed, and the lease runs out.
    pub fn handle_abandon(&mut self, now: Moment, grip: Grip) {
        if !self.leave(grip) && self.holds.remove(grip.0).is_some() && self.cohort == Cohort::Holding(grip.0) {
            self.cohort = Cohort::Idle;
            self.advance(now);
        }
    }

    /// A hold leaves this process without ending: whoever has its id keeps and releases it from now on.
    ///
    /// `None`, and nothing changed, when it is lost, entered more than once, or its claim is not answered yet: a late answer
    /// would find it unknown and release it.
    pub fn handle_detach(&mut self, now: Moment, grip: Grip) -> Option<HolderId> {
        let hold = self.holds.get(grip.0).filter(|hold| hold.word.depth() == 1 && !hold.is_lost(now))?;
        let id = hold.unanswered().is_none().then_some(hold.id)?;
        self.handle_abandon(now, grip);
        Some(id)
    }

    // ---- A guard that goes on ----

    /// A guard wants its lease renewed now.
    pub fn handle_renew(&mut self, now: Moment, grip: Grip) -> Slip {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        let slip = self.bustle.slips.insert(None, Stage::Errand);
        self.bustle.todo.push_back(Todo::Renew(grip, Some(slip)));
        slip
    }

    /// A reader wants to write. The outcome is `Done`, or the read hold goes on as it was.
    pub fn handle_upgrade(&mut self, now: Moment, grip: Grip, patience: Patience, until: Option<Moment>) -> Slip {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        let Some(hold) = self.holds.get(grip.0).filter(|hold| hold.word.depth() == 1) else {
            // The outer guards believe they read: they would wait for themselves.
            return self.answered(Why::WouldDeadlock);
        };
        let (owner, terms) = (hold.owner, *hold.keeping.terms());
        let reads_too = |other: &Hold| other.owner == owner && other.is_live() && other.mode == Mode::Shared;
        if owner.is_some() && self.holds.iter().any(|(key, other)| key != grip.0 && reads_too(other)) {
            return self.answered(Why::WouldDeadlock);
        }
        let (mode, until) = (Mode::Exclusive, until.unwrap_or(Moment::FAR));
        let (fair, reentrant, vigil, recovery) = (false, false, None, Recovery::Notify);
        let ask = Ask { mode, fair, patience, since: now, until, owner, reentrant, terms, vigil, recovery };
        let slip = self.bustle.slips.insert(Some(Box::new(ask)), Stage::Unclaimed);
        self.bustle.arm_wait(until, slip);
        self.claim_upgrade(now, slip, grip);
        slip
    }

    /// A writer wants to read.
    pub fn handle_downgrade(&mut self, now: Moment, grip: Grip) -> Slip {
        if let Some(why) = self.lost(now, grip) {
            return self.answered(why);
        }
        if self.word(grip).depth() > 1 {
            return self.answered(Why::WouldDeadlock);
        }
        if self.cohort == Cohort::Holding(grip.0) && !zoo::has(Bug::DowngradeStillPasses) {
            // A shared hold is not passed locally: from here on the line has its own claim.
            self.cohort = Cohort::Idle;
            self.advance(now);
        }
        let slip = self.bustle.slips.insert(None, Stage::Errand);
        self.bustle.todo.push_back(Todo::Downgrade(grip, slip));
        slip
    }

    fn lost(&mut self, now: Moment, grip: Grip) -> Option<Why> {
        match self.state(now, grip) {
            None => Some(Why::Lost(LossReason::Gone)),
            Some(super::HoldState::Lost(reason)) => {
                self.lose(now, grip, reason.clone());
                Some(Why::Lost(reason))
            }
            Some(_) => None,
        }
    }

    /// A hold is no longer bound to its owner: its guard may travel.
    pub fn handle_unbind(&mut self, grip: Grip) {
        // Entered more than once, the outer guards stay where they are.
        if let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.word.depth() == 1) {
            hold.owner = None;
        }
    }

    /// The holder says that it gets on.
    pub fn handle_progress(&mut self, now: Moment, grip: Grip) {
        if let Some(care) = self.holds.get_mut(grip.0).and_then(|hold| hold.care_mut()) {
            care.progressed = now;
        }
    }

    // ---- The end of a holder ----

    /// The thread that owned these holds has ended: nobody can use or release them any more.
    pub fn handle_owner_ended(&mut self, now: Moment, owner: OwnerId) -> usize {
        let own = self.holds.iter().filter(|(_, hold)| hold.owner == Some(owner)).map(|(key, _)| Grip(key));
        let grips: Vec<Grip> = own.collect();
        for grip in &grips {
            self.lose(now, *grip, LossReason::OwnerEnded);
            self.let_go(now, *grip, Lane::Renewals);
        }
        grips.len()
    }

    /// The task that a hold was bound to has ended.
    pub fn handle_task_ended(&mut self, now: Moment, grip: Grip) {
        self.lose(now, grip, LossReason::TaskEnded);
    }

    // ---- The store ----

    /// The answer to an action.
    pub fn handle_reply(&mut self, now: Moment, errand: Errand, result: Result<Reply, StoreError>) {
        if let Ok(reply) = &result {
            self.note_alive(reply.run);
        }
        if let Errand::Claim { counts: true, .. } = errand {
            self.note_back(result.as_ref().ok().map(|reply| &reply.body));
        }
        let (run, at) = result.as_ref().map(|reply| (reply.run, reply.at)).unwrap_or_default();
        let fits = |body: &Body| errand.is_answered_by(body);
        let result = result.map(|reply| reply.body).and_then(|body| match fits(&body) {
            true => Ok(body),
            false => Err(StoreError::unknown("the store answered another question")),
        });
        if let Ok(body) = &result {
            self.note_served(now, &errand, body);
        }
        match (errand, result) {
            (Errand::Claim { seq, .. }, Ok(Body::Verdict(verdict))) => self.on_verdict(now, seq, run, verdict),
            (Errand::Claim { seq, .. }, Err(error)) => {
                self.note_unsent(seq, &error);
                self.on_claim_error(now, seq, error);
            }
            (Errand::Confirm { seq, sent }, Ok(Body::Renewal(renewal))) => self.on_confirmed(now, seq, sent, renewal),
            (Errand::Confirm { seq, .. }, Err(error)) => self.on_claim_error(now, seq, error),
            (Errand::Renew { grip, seq, sent, slip, .. }, Ok(Body::Renewal(renewal))) => {
                self.on_renewal((now, at), (grip, seq, sent), slip, renewal);
            }
            (Errand::Renew { grip, seq, sent, slip, .. }, Err(error)) => {
                self.on_renewal_error(now, (grip, seq, sent), slip, error);
            }
            (Errand::Heartbeat { seqs, sent }, Ok(Body::Standings(standings))) => {
                self.on_standings(now, sent, run, &seqs, standings);
            }
            (Errand::Heartbeat { sent, .. }, Err(error)) => self.on_heartbeat_error(now, sent, error),
            (Errand::Look { grip, seq, sent }, Ok(Body::Standings(standings))) => {
                self.on_look((now, at), (grip, seq, sent), standings.first());
            }
            (Errand::Part { key }, Ok(Body::Release(reply))) => self.on_parted(now, key, run, reply),
            (Errand::Part { key }, Err(error)) => self.on_part_error(now, key, error),
            (Errand::Downgrade { grip, seq, slip }, Ok(Body::Downgraded(answer))) => {
                self.on_downgraded(now, grip, seq, slip, answer);
            }
            (Errand::Downgrade { slip, .. }, Err(error)) => self.finish(slip, Why::Store(error).into()),
            (Errand::Withdraw { seq, sent }, Ok(Body::Downgraded(answer))) => {
                self.on_withdrawn((now, at), seq, sent, answer);
            }
            (Errand::Withdraw { seq, .. }, Err(error)) => self.on_withdraw_error(now, seq, error),
            // A look that failed is followed by the next one; other kinds of answers were sorted out above.
            (_, _) => {}
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

    /// A renewal that was kept until it was [due](Errand::Renew::due) is about to be sent. False if it is not to be sent any more: the
    /// hold was released, or another has confirmed it or is about to.
    pub fn handle_due(&mut self, errand: &Errand) -> bool {
        let Errand::Renew { grip, seq, .. } = errand else { return true };
        let wanted = |hold: &&mut Hold| hold.seq == *seq && hold.is_live() && !hold.confirmed && !hold.confirming;
        self.holds.get_mut(grip.0).filter(wanted).map(|hold| hold.confirming = true).is_some()
    }

    // ---- Time ----

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

    /// A round of the watchdog: judges every hold, and asks for the records that no answer has named for `period`.
    pub fn handle_round(&mut self, now: Moment, period: Duration) -> Tally {
        let mut tally = Tally { waiters: self.bustle.slips.waiting().len(), ..Tally::default() };
        let live: Vec<HoldKey> = self.holds.iter().filter(|(_, hold)| hold.is_live()).map(|(key, _)| key).collect();
        for key in live {
            self.check(now, key, period);
            let Some(hold) = self.holds.get(key).filter(|hold| hold.is_live()) else { continue };
            tally.holds += 1;
            tally.uncertain += usize::from(hold.doubted || hold.keeping.overdue(now).is_some());
        }
        self.bustle.slips.waiting().into_iter().for_each(|slip| self.alert_wait(now, slip));
        tally
    }

    // ---- Shutdown ----

    /// The client shuts down: waiters are told, holds end and are released.
    pub fn handle_close(&mut self, now: Moment) {
        self.closed = true;
        for slip in self.bustle.slips.waiting() {
            if let Some(Stage::Claimed(seq)) = self.bustle.slips.stage(slip) {
                self.abandon(now, *seq);
            }
            self.fail(slip, Why::Closed);
        }
        self.line_shrank(now);
        let live: Vec<Grip> = self.holds.iter().filter(|(_, hold)| hold.is_live()).map(|(key, _)| Grip(key)).collect();
        let regaining = self.holds.iter().map(|(key, _)| Grip(key)).filter(|grip| self.is_regaining(*grip));
        regaining.collect::<Vec<_>>().into_iter().for_each(|grip| self.end_regain(grip));
        for grip in live {
            if let Some(hold) = self.holds.get(grip.0) {
                self.part(now, hold.id, hold.unanswered(), hold.lease().length(), Lane::Renewals);
            }
            self.lose(now, grip, LossReason::Shutdown);
        }
    }
}
