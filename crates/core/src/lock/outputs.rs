//! Every output of the machine: the next request, the next event, the next timer; and what can be seen of it without changing it.
//!
//! | group | functions |
//! |---|---|
//! | what the driver drains | [`poll_action`](Machine::poll_action), [`poll_event`](Machine::poll_event), [`poll_timeout`](Machine::poll_timeout), [`tidy`](Machine::tidy) |
//! | requests, made when they are taken | one `…_action` for each kind |
//! | the in-flight limit | [`UNDER_WAY`], [`LET_IN`] |
//! | views | [`state`](Machine::state), [`token`](Machine::token), [`slips`](Machine::slips), … |
//!
//! # The in-flight limit
//! When very many ask at once, claims go out some at a time, in the order in which they were made. A request under way takes more memory
//! than a waiter, and the store serves one after the other anyway. Claims that are held back are sent as answers come in. A claim
//! that does not want to wait is never held back, and holds up nobody.
//!
//! Invariant: while claims are held back, as many of their kind as are allowed are under way, or the machine is about to be asked for
//! actions.

use std::ops::Bound;

use crate::holder::HolderId;
use crate::lease::{self, Lease};
use crate::op::{Blocker, Body, Claim, Heartbeat, Op, Patience, Release, Renew, Upgrade, Verdict};
use crate::time::{LeaseTime, Moment};
use crate::token::Token;
use crate::zoo::{self, Bug};

use super::claim::{Claiming, Phase, Taker};
use super::hold::{Hold, Rare};
use super::release::Parting;
use super::state::Stage;
use super::{Action, Ask, Cohort, Errand, Event, Grip, HoldState, Lane, LossReason, Machine, Slip, Todo, Word};

/// So many claims of one lock are under way at once: more than a server nearby answers within a round trip, and little beside
/// what so many waiters need anyway.
pub(super) const UNDER_WAY: usize = 64;

/// So many more, one after the other, where the store grants them at once: readers and permits, who are over as soon as they are answered.
pub(super) const LET_IN: usize = 192;

/// So many claims are asked after with one heartbeat.
pub(super) const BEAT: usize = 128;

impl Machine {
    // ---- What the driver drains ----

    /// The next request to send. `store_time` is asked only when a claim needs its not-after.
    pub fn poll_action(&mut self, now: Moment, store_time: impl Fn() -> LeaseTime) -> Option<Action> {
        while let Some(todo) = self.bustle.next_todo() {
            if let Some(action) = self.prepare(now, &store_time, todo) {
                return Some(action);
            }
        }
        self.next_held_back(now, store_time)
    }

    /// The next thing to tell somebody.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.bustle.next_event()
    }

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

    /// Frees the room that only waiting needs, once there are no [slips](Self::slips): an idle lock should weigh as
    /// little as possible.
    pub fn tidy(&mut self) {
        self.bustle.tidy();
    }

    // ---- Requests ----

    fn prepare(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, todo: Todo) -> Option<Action> {
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

    /// Sends a claim, or holds it back.
    fn send_or_hold_back(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, seq: u64) -> Option<Action> {
        let is_rush = !self.has_room() || !self.bustle.held_back.is_empty();
        if is_rush && self.can_wait(seq) {
            self.bustle.held_back.push_back(seq);
            return None;
        }
        self.claim_action(now, store(), seq)
    }

    fn claim_action(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Action> {
        let from = match self.bustle.claims.get(&seq)?.taker {
            Taker::Upgrade(_, grip) => Some(self.holds.get(grip.0)?.id),
            _ => None,
        };
        let claim = self.send_claim(now, store, seq)?;
        let op = match from {
            Some(from) => Op::Upgrade(Upgrade { from, claim }),
            None => Op::Acquire(claim),
        };
        let counts = self.can_wait(seq);
        self.bustle.under_way += usize::from(counts);
        Some(Action { errand: Errand::Claim { seq, counts }, op, lane: Lane::Claims })
    }

    /// Marks a claim as sent and makes its request.
    fn send_claim(&mut self, now: Moment, store: LeaseTime, seq: u64) -> Option<Claim> {
        let not_after = store + self.settings.response;
        let window = self.bustle.claims.get(&seq).map(|claim| self.window(claim.lease))?;
        let claim = self.bustle.claims.get_mut(&seq)?;
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
            after: claim.taker.after(),
        })
    }

    fn confirm_action(&mut self, now: Moment, seq: u64) -> Option<Action> {
        let claim = self.bustle.claims.get(&seq).filter(|claim| claim.phase == Phase::Confirming)?;
        let lease =
            self.taker(claim).and_then(|taker| self.bustle.slips.ask(taker)).map_or(claim.lease, |ask| ask.lease());
        let claim = self.bustle.claims.get_mut(&seq)?;
        claim.lease = lease;
        let op = Op::Renew(Renew::new(self.client.holder(seq), lease));
        Some(Action { errand: Errand::Confirm { seq, sent: now }, op, lane: Lane::Renewals })
    }

    fn withdraw_action(&self, now: Moment, seq: u64) -> Option<Action> {
        self.bustle.claims.get(&seq)?;
        let id = self.client.holder(seq);
        Some(Action { errand: Errand::Withdraw { seq, sent: now }, op: Op::Downgrade(id), lane: Lane::Claims })
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

    fn renew_action(&mut self, now: Moment, grip: Grip, slip: Option<Slip>, due: Moment) -> Option<Action> {
        let hold = self.holds.get_mut(grip.0).filter(|hold| hold.is_live())?;
        // What is kept back is not under way.
        hold.confirming |= due <= now;
        let errand = Errand::Renew { grip, seq: hold.seq, sent: now, slip, due };
        // Asked about a hold that is not to be renewed any more, the store lengthens nothing.
        let lease = match slip {
            None if hold.keeping.is_exhausted() => {
                Lease::new(hold.deadline().since(now).max(lease::MIN)).unwrap_or_else(|_| hold.lease())
            }
            _ => hold.lease(),
        };
        let op = Op::Renew(Renew { id: hold.id, lease, started: hold.started });
        Some(Action { errand, op, lane: Lane::Renewals })
    }

    fn look_action(&self, now: Moment, grip: Grip) -> Option<Action> {
        let hold = self.holds.get(grip.0).filter(|hold| hold.is_live())?;
        // As long as any heartbeat of ours keeps an inbox alive: none is cut short.
        let beat = Heartbeat { inbox: self.client.inbox(), ids: vec![hold.id], alive: self.settings.window * 2 };
        let errand = Errand::Look { grip, seq: hold.seq, sent: now };
        Some(Action { errand, op: Op::Heartbeat(beat), lane: Lane::Renewals })
    }

    fn downgrade_action(&self, grip: Grip, slip: Slip) -> Option<Action> {
        let &Hold { seq, id, .. } = self.holds.get(grip.0)?;
        let errand = Errand::Downgrade { grip, seq, slip };
        Some(Action { errand, op: Op::Downgrade(id), lane: Lane::Claims })
    }

    fn part_action(&mut self, now: Moment, store: &impl Fn() -> LeaseTime, key: usize) -> Option<Action> {
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

    // ---- The in-flight limit ----

    /// The next claim that was held back, if it may be sent now. Some are not wanted any more.
    fn next_held_back(&mut self, now: Moment, store: impl Fn() -> LeaseTime) -> Option<Action> {
        while !self.bustle.held_back.is_empty() && self.has_room() {
            let seq = self.bustle.held_back.pop_front()?;
            if let Some(action) = self.claim_action(now, store(), seq) {
                return Some(action);
            }
        }
        None
    }

    fn has_room(&self) -> bool {
        self.bustle.under_way < UNDER_WAY + self.bustle.let_in.min(LET_IN)
    }

    /// Whether a claim may be held back. Others do not count either: a stream of them must not keep anybody waiting.
    fn can_wait(&self, seq: u64) -> bool {
        let claim = self.bustle.claims.get(&seq);
        claim.is_some_and(|claim| matches!(claim.taker, Taker::Slip(_)) && claim.patience == Patience::Queue)
    }

    /// A claim that could have been held back is answered.
    pub(super) fn note_back(&mut self, body: Option<&Body>) {
        let bustle = &mut *self.bustle;
        bustle.under_way = bustle.under_way.saturating_sub(1);
        bustle.let_in = match body {
            Some(Body::Verdict(Verdict::Granted(_))) => bustle.let_in.saturating_add(1),
            _ => 0,
        };
    }

    /// The store fails: who was held back waits for its pause like everybody else.
    pub(super) fn call_back(&mut self) {
        while let Some(seq) = self.bustle.held_back.pop_front() {
            if let Some(Taker::Slip(slip)) = self.forget_claim(seq).map(|claim| claim.taker) {
                self.bustle.slips.set(slip, Stage::Unclaimed);
            }
        }
    }

    // ---- Views of a hold ----

    /// How a hold stands; `None` once it was released.
    pub fn state(&self, now: Moment, grip: Grip) -> Option<HoldState> {
        self.holds.get(grip.0).map(|hold| hold.state(now))
    }

    /// Why a hold is lost, if it is.
    pub fn loss(&self, now: Moment, grip: Grip) -> Option<LossReason> {
        match self.state(now, grip) {
            Some(HoldState::Lost(reason)) => Some(reason),
            _ => None,
        }
    }

    /// The fencing token of a hold.
    pub fn token(&self, grip: Grip) -> Option<Token> {
        self.holds.get(grip.0).map(Hold::token)
    }

    /// When whoever has the hold now was granted it.
    pub fn since(&self, grip: Grip) -> Option<Moment> {
        self.holds.get(grip.0).map(|hold| hold.since)
    }

    /// The id of a hold in the store, and the length of its lease.
    pub fn holder(&self, grip: Grip) -> Option<(HolderId, Lease)> {
        self.holds.get(grip.0).map(|hold| (hold.id, hold.lease()))
    }

    /// The state word of a hold.
    pub fn word(&self, grip: Grip) -> Word {
        self.holds.get(grip.0).map(|hold| hold.word).unwrap_or_default()
    }

    /// Whether a guard that was given `token` has this hold: also if it was exchanged or [taken again](Recovery::Reacquire) since.
    /// Whoever had it before has a lower token than any that its guard was given.
    pub fn belongs(&self, grip: Grip, token: Token) -> bool {
        self.holds.get(grip.0).is_some_and(|hold| hold.is_of(token))
    }

    /// Whether a lost hold is being taken again.
    pub fn is_regaining(&self, grip: Grip) -> bool {
        self.holds.get(grip.0).and_then(|hold| hold.care()).is_some_and(|care| care.regaining)
    }

    /// Whether a hold was lost, and is not being taken again.
    pub fn is_lost_for_good(&self, grip: Grip) -> bool {
        self.holds.get(grip.0).is_none_or(|hold| !hold.is_live()) && !self.is_regaining(grip)
    }

    // ---- Views of a waiter ----

    /// The number of the claim that a waiter rests on: its own, or that of the line it stands in. `None` if it rests on none now.
    pub fn claim_behind(&self, slip: Slip) -> Option<u64> {
        self.claim_of(slip)
    }

    /// Whether a slip is known to have to wait: behind a hold of this process, or behind a claim that the store has queued.
    pub fn waits(&self, slip: Slip) -> bool {
        let queued =
            |seq: &u64| self.bustle.claims.get(seq).is_some_and(|claim| matches!(claim.phase, Phase::Queued { .. }));
        matches!(self.bustle.slips.stage(slip), Some(Stage::InLine))
            && match &self.cohort {
                Cohort::Holding(_) => true,
                Cohort::Claiming(seq) => queued(seq),
                Cohort::Idle => false,
            }
    }

    /// Whoever is in the way: seen in the store, or a hold of this process.
    pub fn in_the_way(&self, now: Moment) -> Option<Blocker> {
        self.bustle.blocker.as_deref().cloned().or_else(|| self.own_blocker(now))
    }

    /// Whoever was last seen in the way.
    pub fn blocker(&self) -> Option<&Blocker> {
        self.bustle.blocker.as_deref()
    }

    // ---- Views of the whole machine ----

    /// Slips out, of waiters and others.
    #[inline]
    pub fn slips(&self) -> usize {
        self.bustle.slips.len()
    }

    /// Live holds.
    pub fn holds(&self) -> usize {
        self.holds.len()
    }

    /// Releases under way, and claims under way that will have to be released.
    pub fn unsettled(&self) -> usize {
        self.bustle.partings.len() + self.bustle.orphans
    }

    /// Whether the machine can be thrown away.
    pub fn is_idle(&self) -> bool {
        self.bustle.slips.is_empty()
            && self.bustle.claims.is_empty()
            && self.holds.is_empty()
            && self.bustle.partings.is_empty()
    }

    /// The bytes it takes, as far as it can tell.
    pub fn footprint(&self) -> usize {
        let slips = self.bustle.slips.len() * (size_of::<Ask>() + size_of::<Stage>() + 4 * size_of::<usize>());
        let claims = self.bustle.claims.len() * (size_of::<Claiming>() + 2 * size_of::<usize>());
        let rare = self.holds.iter().filter(|(_, hold)| hold.rare.is_some()).count() * size_of::<Rare>();
        let holds = self.holds.elsewhere() * size_of::<Hold>() + rare;
        size_of::<Self>() + slips + claims + holds + self.bustle.partings.len() * size_of::<Parting>()
    }
}
