//! Every output of the machine: the next request, the next event, the next timer; and views, which change nothing.
//!
//! | group | functions |
//! |---|---|
//! | what the driver drains | [`poll_action`](Machine::poll_action), [`poll_event`](Machine::poll_event), [`poll_timeout`](Machine::poll_timeout), [`tidy`](Machine::tidy) |
//! | requests, made when the driver takes them | one `…_action` for each kind |
//! | the in-flight limit | [`MAX_IN_FLIGHT`], [`MAX_EXTRA_IN_FLIGHT`] |
//! | views | [`state`](Machine::state), [`token`](Machine::token), [`waiters`](Machine::waiters), … |
//!
//! # The in-flight limit
//! When very many waiters ask at once, claims are sent some at a time, in the order in which they were made. A request in flight takes more
//! memory than a waiter, and the store serves one after the other anyway. Claims that are held back are sent as answers come in. A claim
//! that does not want to wait is never held back and does not count.
//!
//! Invariant: while claims are held back, as many as are allowed are in flight, or the driver is about to ask for actions.

use std::ops::Bound;

use crate::holder::HolderId;
use crate::lease::Lease;
use crate::op::{Blocker, Body, Claim, Heartbeat, Op, Patience, Release, Renew, Upgrade, Verdict};
use crate::time::{LeaseTime, Moment};
use crate::token::Token;
use crate::zoo::{self, Bug};

use super::claim::{PendingClaim, Phase, Recipient};
use super::hold::{ColdFields, Hold};
use super::release::PendingRelease;
use super::state::Stage;
use super::{
    Action, Ask, CohortState, ConnectionKind, Event, HoldKey, HoldState, LossReason, Machine, RequestContext, Todo,
    WaiterId, Word,
};

/// How many claims of one lock may be in flight: more than a nearby server answers within a round trip, and few beside the memory that
/// so many waiters need anyway.
pub(super) const MAX_IN_FLIGHT: usize = 64;

/// How many more may be in flight for readers and permits, whose claims end with the first answer. The limit grows by one with each claim
/// that is granted at once.
pub(super) const MAX_EXTRA_IN_FLIGHT: usize = 192;

/// How many claims one heartbeat names.
pub(super) const HEARTBEAT_BATCH: usize = 128;

impl Machine {
    // ---- What the driver drains ----

    /// The next request to send. `store_time` is asked only when a claim needs its not-after.
    pub fn poll_action(&mut self, now: Moment, store_time: impl Fn() -> LeaseTime) -> Option<Action> {
        while let Some(todo) = self.active.next_todo() {
            if let Some(action) = self.action_for(now, &store_time, todo) {
                return Some(action);
            }
        }
        self.next_held_back(now, store_time)
    }

    /// The next event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.active.next_event()
    }

    /// When [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Moment> {
        let or_far = |at: Option<Moment>| at.unwrap_or(Moment::FAR);
        let wait = or_far(self.active.waits.first().map(|(until, _)| *until));
        let failing = self.active.failing.as_ref().filter(|_| !self.active.waiters.is_empty());
        let failing = failing.map(|failing| failing.next(self.settings.unavailable_after));
        let releases = self.active.releases.iter().map(|(_, pending)| or_far(pending.retry_at));
        let holds = self.holds.iter().map(|(_, hold)| hold.next(&self.settings));
        let first = wait.min(or_far(self.active.heartbeat_at)).min(or_far(failing));
        let first = holds.fold(releases.fold(first, Moment::min), Moment::min);
        (first < Moment::FAR).then_some(first)
    }

    /// Frees the memory that only waiting needs, once there are no [waiters](Self::waiters): an idle lock should take as
    /// little as possible.
    pub fn tidy(&mut self) {
        self.active.tidy();
    }

    // ---- Requests ----

    fn action_for(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, todo: Todo) -> Option<Action> {
        match todo {
            Todo::Claim(seq) => self.send_or_hold_back(now, store, seq),
            Todo::Confirm(seq) => self.confirm_action(now, seq),
            Todo::Renew(hold_key, waiter) => self.renew_action(now, hold_key, waiter, now),
            Todo::RenewAt(hold_key, due) => self.renew_action(now, hold_key, None, due),
            Todo::Check(hold_key) => self.check_action(now, hold_key),
            Todo::Heartbeat => self.next_heartbeat(now),
            Todo::HeartbeatOfFirst => self.heartbeat(now, Bound::Unbounded).map(|(beat, _)| beat),
            Todo::Release(key) => self.release_action(now, store, key),
            Todo::Downgrade(hold_key, waiter) => self.downgrade_action(hold_key, waiter),
            Todo::Withdraw(seq) => self.withdraw_action(now, seq),
        }
    }

    /// Sends a claim, or holds it back.
    fn send_or_hold_back(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, seq: u64) -> Option<Action> {
        let is_full = !self.has_room() || !self.active.held_back.is_empty();
        if is_full && self.can_be_held_back(seq) {
            self.active.held_back.push_back(seq);
            return None;
        }
        self.claim_action(now, store(), seq)
    }

    fn claim_action(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Action> {
        let from = match self.active.claims.get(&seq)?.recipient {
            Recipient::Upgrade(_, hold_key) => Some(self.holds.get(hold_key)?.id),
            _ => None,
        };
        let claim = self.send_claim(now, store, seq)?;
        let op = match from {
            Some(from) => Op::Upgrade(Upgrade { from, claim }),
            None => Op::Acquire(claim),
        };
        let counts = self.can_be_held_back(seq);
        self.active.in_flight += usize::from(counts);
        Some(Action { context: RequestContext::Claim { seq, counts }, op, connection: ConnectionKind::Claims })
    }

    /// Marks a claim as sent and makes its request.
    fn send_claim(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Claim> {
        let not_after = store + self.settings.response;
        let window = self.active.claims.get(&seq).map(|claim| self.window(claim.lease))?;
        let claim = self.active.claims.get_mut(&seq)?;
        (claim.phase, claim.asked, claim.not_after) = (Phase::Sent, now, not_after);
        Some(Claim {
            id: self.client.holder(seq),
            inbox: self.client.inbox(),
            who: self.client.who().clone(),
            mode: claim.mode,
            lease: claim.lease,
            window,
            fair: claim.fair,
            patience: claim.patience,
            not_after,
            ballot: None,
            after: claim.recipient.after(),
        })
    }

    fn confirm_action(&mut self, now: Moment, seq: u64) -> Option<Action> {
        let claim = self.active.claims.get(&seq).filter(|claim| claim.phase == Phase::Confirming)?;
        let lease = self
            .recipient(claim)
            .and_then(|recipient| self.active.waiters.ask(recipient))
            .map_or(claim.lease, |ask| ask.lease());
        let claim = self.active.claims.get_mut(&seq)?;
        claim.lease = lease;
        let op = Op::Renew(Renew::new(self.client.holder(seq), lease));
        Some(Action { context: RequestContext::Confirm { seq, sent: now }, op, connection: ConnectionKind::Renewals })
    }

    fn withdraw_action(&self, now: Moment, seq: u64) -> Option<Action> {
        self.active.claims.get(&seq)?;
        let id = self.client.holder(seq);
        Some(Action {
            context: RequestContext::Withdraw { seq, sent: now },
            op: Op::Downgrade(id),
            connection: ConnectionKind::Claims,
        })
    }

    /// A heartbeat for the next of the queued claims. A store that answers for thousands at once would serve nobody else meanwhile.
    fn next_heartbeat(&mut self, now: Moment) -> Option<Action> {
        let from = self.active.heartbeat_cursor.take().map_or(Bound::Unbounded, Bound::Excluded);
        let (beat, to) = self.heartbeat(now, from)?;
        self.active.heartbeat_cursor = to;
        Some(beat)
    }

    /// A heartbeat for the claims after `from`, and the last claim in it if more follow.
    fn heartbeat(&mut self, now: Moment, from: Bound<u64>) -> Option<(Action, Option<u64>)> {
        let beats = |phase: Phase| matches!(phase, Phase::Queued { .. }) && !zoo::has(Bug::NoHeartbeats);
        let queued = |from| self.active.claims.range((from, Bound::Unbounded)).filter(|(_, claim)| beats(claim.phase));
        let windows = || queued(Bound::Unbounded).map(|(_, claim)| self.window(claim.lease));
        let (shortest, longest) = (windows().min()?, windows().max()?);
        let mut seqs: Vec<u64> = queued(from).map(|(seq, _)| *seq).take(HEARTBEAT_BATCH + 1).collect();
        let is_more = seqs.len() > HEARTBEAT_BATCH;
        seqs.truncate(HEARTBEAT_BATCH);
        let last = *seqs.last()?;
        // Set before the answer comes: a lost answer must not end the heartbeats. An earlier time, known from a blocker, stays.
        let next = now + shortest / 2;
        self.active.heartbeat_at = Some(self.active.heartbeat_at.map_or(next, |known| known.min(next)));
        let ids = seqs.iter().map(|seq| self.client.holder(*seq)).collect();
        let op = Op::Heartbeat(Heartbeat { inbox: self.client.inbox(), ids, alive: longest * 2 });
        let action =
            Action { context: RequestContext::Heartbeat { seqs, sent: now }, op, connection: ConnectionKind::Renewals };
        Some((action, is_more.then_some(last)))
    }

    fn renew_action(
        &mut self,
        now: Moment,
        hold_key: HoldKey,
        waiter: Option<WaiterId>,
        due: Moment,
    ) -> Option<Action> {
        let hold = self.holds.get_mut(hold_key).filter(|hold| hold.is_live())?;
        // A renewal that is kept until later is not under way.
        hold.confirming |= due <= now;
        let context = RequestContext::Renew { hold_key, seq: hold.seq, sent: now, waiter, due };
        let op = Op::Renew(Renew { id: hold.id, lease: hold.lease(), started: hold.started });
        Some(Action { context, op, connection: ConnectionKind::Renewals })
    }

    fn check_action(&self, now: Moment, hold_key: HoldKey) -> Option<Action> {
        let hold = self.holds.get(hold_key).filter(|hold| hold.is_live())?;
        // Never shorter than a heartbeat for waiters keeps the inbox alive.
        let beat = Heartbeat { inbox: self.client.inbox(), ids: vec![hold.id], alive: self.settings.window * 2 };
        let context = RequestContext::Check { hold_key, seq: hold.seq, sent: now };
        Some(Action { context, op: Op::Heartbeat(beat), connection: ConnectionKind::Renewals })
    }

    fn downgrade_action(&self, hold_key: HoldKey, waiter: WaiterId) -> Option<Action> {
        let &Hold { seq, id, .. } = self.holds.get(hold_key)?;
        let context = RequestContext::Downgrade { hold_key, seq, waiter };
        Some(Action { context, op: Op::Downgrade(id), connection: ConnectionKind::Claims })
    }

    fn release_action(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, key: usize) -> Option<Action> {
        self.drop_unwanted_regain(now, key);
        let pending = self.active.releases.get_mut(key)?;
        pending.retry_at = None;
        if pending.unknown {
            pending.not_after.get_or_insert_with(|| store() + self.settings.response);
        }
        let (id, not_after, connection, again) = (pending.id, pending.not_after, pending.connection, pending.again);
        let again = again.and_then(|seq| self.send_claim(now, store(), seq)).map(Box::new);
        let op = Op::Release(Release { id, not_after, again });
        Some(Action { context: RequestContext::Release { key }, op, connection })
    }

    // ---- The in-flight limit ----

    /// The next claim that was held back, if the limit allows one. Claims that nobody wants any more are skipped.
    fn next_held_back(&mut self, now: Moment, store: impl Fn() -> LeaseTime) -> Option<Action> {
        while !self.active.held_back.is_empty() && self.has_room() {
            let seq = self.active.held_back.pop_front()?;
            if let Some(action) = self.claim_action(now, store(), seq) {
                return Some(action);
            }
        }
        None
    }

    fn has_room(&self) -> bool {
        self.active.in_flight < MAX_IN_FLIGHT + self.active.granted_at_once.min(MAX_EXTRA_IN_FLIGHT)
    }

    /// Whether a claim may be held back. Only such claims count towards the limit: a stream of others must not keep these waiting.
    fn can_be_held_back(&self, seq: u64) -> bool {
        let claim = self.active.claims.get(&seq);
        claim.is_some_and(|claim| matches!(claim.recipient, Recipient::Waiter(_)) && claim.patience == Patience::Queue)
    }

    /// A claim that counted towards the limit is answered.
    pub(super) fn note_claim_answered(&mut self, body: Option<&Body>) {
        let active = &mut *self.active;
        active.in_flight = active.in_flight.saturating_sub(1);
        active.granted_at_once = match body {
            Some(Body::Verdict(Verdict::Granted(_))) => active.granted_at_once.saturating_add(1),
            _ => 0,
        };
    }

    /// The store fails: waiters whose claims were held back wait for the pause like everybody else.
    pub(super) fn recall_held_back(&mut self) {
        while let Some(seq) = self.active.held_back.pop_front() {
            if let Some(Recipient::Waiter(waiter)) = self.forget_claim(seq).map(|claim| claim.recipient) {
                self.active.waiters.set(waiter, Stage::Unclaimed);
            }
        }
    }

    // ---- Views of a hold ----

    /// How a hold stands; `None` once it was released.
    pub fn state(&self, now: Moment, hold_key: HoldKey) -> Option<HoldState> {
        self.holds.get(hold_key).map(|hold| hold.state(now))
    }

    /// Why a hold is lost, if it is.
    pub fn loss(&self, now: Moment, hold_key: HoldKey) -> Option<LossReason> {
        match self.state(now, hold_key) {
            Some(HoldState::Lost(reason)) => Some(reason),
            _ => None,
        }
    }

    /// The fencing token of a hold.
    pub fn token(&self, hold_key: HoldKey) -> Option<Token> {
        self.holds.get(hold_key).map(Hold::token)
    }

    /// When the present holder was granted it.
    pub fn since(&self, hold_key: HoldKey) -> Option<Moment> {
        self.holds.get(hold_key).map(|hold| hold.since)
    }

    /// The id of a hold in the store, and the length of its lease.
    pub fn holder(&self, hold_key: HoldKey) -> Option<(HolderId, Lease)> {
        self.holds.get(hold_key).map(|hold| (hold.id, hold.lease()))
    }

    /// The state word of a hold.
    pub fn word(&self, hold_key: HoldKey) -> Word {
        self.holds.get(hold_key).map(|hold| hold.word).unwrap_or_default()
    }

    /// Whether the guard that was given `token` has this hold, also if the hold was exchanged or
    /// [taken again](super::Recovery::Reacquire) since. Guards that had it earlier have lower tokens.
    pub fn belongs(&self, hold_key: HoldKey, token: Token) -> bool {
        self.holds.get(hold_key).is_some_and(|hold| hold.is_of(token))
    }

    /// Whether a lost hold is being taken again.
    pub fn is_regaining(&self, hold_key: HoldKey) -> bool {
        self.holds.get(hold_key).and_then(|hold| hold.watch()).is_some_and(|watch| watch.regaining)
    }

    /// Whether a hold was lost, and is not being taken again.
    pub fn is_lost_for_good(&self, hold_key: HoldKey) -> bool {
        self.holds.get(hold_key).is_none_or(|hold| !hold.is_live()) && !self.is_regaining(hold_key)
    }

    // ---- Views of a waiter ----

    /// The number of the claim that a waiter depends on: its own, or that of its line. `None` if there is none now.
    pub fn claim_behind(&self, waiter: WaiterId) -> Option<u64> {
        self.claim_of(waiter)
    }

    /// Whether a waiter certainly has to wait: for a hold of this process, or because the store has queued its claim.
    pub fn waits(&self, waiter: WaiterId) -> bool {
        let queued =
            |seq: &u64| self.active.claims.get(seq).is_some_and(|claim| matches!(claim.phase, Phase::Queued { .. }));
        matches!(self.active.waiters.stage(waiter), Some(Stage::InLine))
            && match &self.cohort {
                CohortState::Holding(_) => true,
                CohortState::Claiming(seq) => queued(seq),
                CohortState::Idle => false,
            }
    }

    /// Who blocks this lock: a holder seen in the store, or a hold of this process.
    pub fn in_the_way(&self, now: Moment) -> Option<Blocker> {
        self.active.blocker.as_deref().cloned().or_else(|| self.own_blocker(now))
    }

    /// The holder that the store last named as blocking.
    pub fn blocker(&self) -> Option<&Blocker> {
        self.active.blocker.as_deref()
    }

    // ---- Views of the whole machine ----

    /// How many wait for an outcome, for the lock or for anything else.
    #[inline]
    pub fn waiters(&self) -> usize {
        self.active.waiters.len()
    }

    /// Live holds.
    pub fn holds(&self) -> usize {
        self.holds.len()
    }

    /// Releases under way, and claims under way that must be released once they are answered.
    pub fn unsettled(&self) -> usize {
        self.active.releases.len() + self.active.orphans
    }

    /// Whether the machine can be thrown away.
    pub fn is_idle(&self) -> bool {
        self.active.waiters.is_empty()
            && self.active.claims.is_empty()
            && self.holds.is_empty()
            && self.active.releases.is_empty()
    }

    /// About how many bytes it takes.
    pub fn footprint(&self) -> usize {
        let waiters = self.active.waiters.len() * (size_of::<Ask>() + size_of::<Stage>() + 4 * size_of::<usize>());
        let claims = self.active.claims.len() * (size_of::<PendingClaim>() + 2 * size_of::<usize>());
        let cold = self.holds.iter().filter(|(_, hold)| hold.cold.is_some()).count() * size_of::<ColdFields>();
        let holds = self.holds.outside() * size_of::<Hold>() + cold;
        size_of::<Self>() + waiters + claims + holds + self.active.releases.len() * size_of::<PendingRelease>()
    }
}
