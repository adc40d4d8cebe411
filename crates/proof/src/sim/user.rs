//! The users of a world: they ask, hold, write, change their minds and go, as their script says.

use bandog_conformance::history::{Hold, OPEN};
use bandog_core::lease::Lease;
use bandog_core::lock::{Ask, HoldKey, HoldState, OwnerId, Released, WaitOutcome, WaiterId};
use bandog_core::mode::Mode;
use bandog_core::op::Patience;
use bandog_core::renewal::{RenewalPolicy, Terms};
use bandog_core::time::Moment;
use bandog_core::token::Token;

use crate::plan::{End, Turn, User};

use super::patience::Waited;
use super::watch::Loss;
use super::{Count, Event, Nanos, Who, World, nanos};

/// One user.
#[derive(Debug)]
pub(super) struct Person {
    script: User,
    pub(super) turn: usize,
    pub(super) state: State,
    /// The loss that its guard tells of.
    pub(super) loss: Option<Loss>,
    pub(super) waited: Waited,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    Away,
    Asking {
        who: Who,
        waiter: WaiterId,
        since: Nanos,
    },
    Holding(Held),
    /// Waits for the outcome of an upgrade or downgrade.
    Changing {
        held: Held,
        waiter: WaiterId,
        since: Nanos,
    },
    /// Waits for the answer to a release.
    Leaving {
        who: Who,
        waiter: WaiterId,
        record: usize,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) who: Who,
    pub(super) hold_key: HoldKey,
    pub(super) token: Token,
    pub(super) mode: Mode,
    /// Index into the history.
    pub(super) record: usize,
}

/// What a user does next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Ask(usize),
    Cancel(usize),
    Act(usize, usize),
    End(usize),
}

impl Person {
    pub(super) fn new(script: User) -> Self {
        Self { script, turn: 0, state: State::Away, loss: None, waited: Waited::default() }
    }

    pub(super) fn has(&self, who: Who, waiter: WaiterId) -> bool {
        match self.state {
            State::Asking { who: mine, waiter: held, .. } | State::Leaving { who: mine, waiter: held, .. } => {
                (mine, held) == (who, waiter)
            }
            State::Changing { held, waiter: mine, .. } => (held.who, mine) == (who, waiter),
            State::Away | State::Holding(_) => false,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Asking { .. } | State::Changing { .. } | State::Leaving { .. })
    }

    pub(super) fn held(&self) -> Option<Held> {
        match self.state {
            State::Holding(held) | State::Changing { held, .. } => Some(held),
            _ => None,
        }
    }

    pub(super) fn script(&self, turn: usize) -> Option<&Turn> {
        self.script.turns.get(turn)
    }
}

impl World {
    pub(super) fn step(&mut self, who: Who, user: usize, step: Step) {
        match step {
            Step::Ask(turn) => self.ask(who, user, turn),
            Step::Cancel(turn) => self.cancel(user, turn),
            Step::Act(turn, act) => self.perform(user, turn, act),
            Step::End(turn) => self.end(user, turn),
        }
    }

    fn ask(&mut self, who: Who, user: usize, turn: usize) {
        if self.is_calm() || !matches!(self.people[user].state, State::Away) {
            return;
        }
        let Some(script) = self.people[user].script(turn).cloned() else { return };
        self.people[user].turn = turn;
        let now = self.processes[who.client].local(self.now);
        let Some(ask) = self.wish(now, user, &script) else { return };
        self.say(|| {
            format!("user {user} on p{} asks: {:?}{}", who.client, ask.mode, if ask.fair { ", fair" } else { "" })
        });
        let since = self.now;
        let machine = &mut self.processes[who.client].machine;
        let waiter = machine.handle_ask(now, ask);
        self.people[user].state = State::Asking { who, waiter, since };
        self.people[user].waited = Waited::begin(since);
        self.drain(who.client);
        if let Some(after) = script.cancel_after {
            self.schedule(self.now + nanos(after), Event::Step(who, user, Step::Cancel(turn)));
        }
        self.look(who, user, waiter);
    }

    pub(super) fn wish(&self, now: Moment, user: usize, script: &Turn) -> Option<Ask> {
        let max_renewals = script.fixed.then_some(0);
        let policy = RenewalPolicy { max_renewals, ..RenewalPolicy::default() };
        let lease = Lease::new(self.plan.lease).ok()?;
        let drift = bandog_core::lease::Drift::default();
        let terms = Terms::new(policy, lease, drift, self.plan.lease / 4).ok()?;
        let patience = if script.only_try { Patience::Try } else { Patience::Queue };
        let until = script.wait.map_or(Moment::FAR, |wait| now + wait);
        let owner = Some(OwnerId::new(user as u64));
        Some(Ask {
            mode: script.mode,
            fair: script.fair,
            patience,
            since: now,
            until,
            owner,
            reentrant: false,
            terms,
            limits: script.limits.shared(),
            recovery: script.recovery,
        })
    }

    /// A user looks whether its outcome is there.
    pub(super) fn look(&mut self, who: Who, user: usize, waiter: WaiterId) {
        if !self.people[user].has(who, waiter) {
            return;
        }
        let outcome = self.feed(who.client, |now, machine| machine.take_outcome(now, waiter));
        let Some(outcome) = outcome else { return };
        match (self.people[user].state, outcome) {
            (State::Asking { since, .. }, WaitOutcome::Granted { hold_key, token, .. }) => {
                self.granted(who, user, since, hold_key, token);
            }
            (State::Asking { .. }, outcome) => {
                self.say(|| format!("user {user} does not get it: {outcome:?}"));
                self.next_turn(who, user);
            }
            (State::Changing { held, since, .. }, outcome) => self.changed(user, held, since, &outcome),
            (State::Leaving { record, .. }, outcome) => {
                if matches!(outcome, WaitOutcome::Done) {
                    self.history.holds[record].released.to = self.now;
                }
                self.next_turn(who, user);
            }
            (State::Away | State::Holding(_), _) => {}
        }
    }

    fn granted(&mut self, who: Who, user: usize, since: Nanos, hold_key: HoldKey, token: Token) {
        let turn = self.people[user].turn;
        let Some(script) = self.people[user].script(turn).cloned() else { return };
        self.coverage.note(Count::Grant);
        self.say(|| format!("user {user} on p{} holds with token {token}", who.client));
        let record = self.record(user, token, script.mode, since);
        self.people[user].state = State::Holding(Held { who, hold_key, token, mode: script.mode, record });
        self.people[user].loss = None;
        self.note_beliefs(who.client);
        self.note_neighbour(who);
        for (index, (part, _)) in script.acts.iter().enumerate() {
            let at = self.now + nanos(script.hold) / 1000 * u64::from(*part);
            self.schedule(at, Event::Step(who, user, Step::Act(turn, index)));
        }
        self.schedule(self.now + nanos(script.hold), Event::Step(who, user, Step::End(turn)));
    }

    pub(super) fn record(&mut self, user: usize, token: Token, mode: Mode, since: Nanos) -> usize {
        self.history.holds.push(Hold::new(user as u64, token.into(), mode, since, self.now));
        self.history.holds.len() - 1
    }

    fn cancel(&mut self, user: usize, turn: usize) {
        let person = &self.people[user];
        let State::Asking { who, waiter, .. } = person.state else { return };
        if person.turn != turn {
            return;
        }
        self.coverage.note(Count::Dropped);
        self.say(|| format!("user {user} drops its future"));
        self.people[user].state = State::Away;
        self.feed(who.client, |now, machine| machine.handle_cancel(now, waiter));
        self.next_turn(who, user);
    }

    fn end(&mut self, user: usize, turn: usize) {
        if self.people[user].turn != turn {
            return;
        }
        match self.people[user].state {
            State::Holding(held) => self.leave(user, held),
            State::Changing { held, waiter, .. } => {
                // The future of the change is dropped, and the guard in it.
                self.coverage.note(Count::Dropped);
                self.people[user].state = State::Away;
                self.feed(held.who.client, |now, machine| machine.handle_cancel(now, waiter));
                self.depart(held, false);
                self.next_turn(held.who, user);
            }
            State::Away | State::Asking { .. } | State::Leaving { .. } => {}
        }
    }

    fn leave(&mut self, user: usize, held: Held) {
        let end = self.people[user].script(self.people[user].turn).map_or(End::Drop, |script| script.end);
        match end {
            End::Leak if !self.is_calm() => self.say(|| format!("user {user} leaks its guard")),
            End::Leak | End::Drop => {
                self.say(|| format!("user {user} drops its guard"));
                self.people[user].state = State::Away;
                self.depart(held, false);
                self.next_turn(held.who, user);
            }
            End::Release => {
                self.say(|| format!("user {user} releases"));
                self.people[user].state = State::Away;
                match self.depart(held, true) {
                    Some(waiter) => {
                        self.people[user].state = State::Leaving { who: held.who, waiter, record: held.record };
                        self.look(held.who, user, waiter);
                    }
                    None => self.next_turn(held.who, user),
                }
            }
        }
    }

    fn depart(&mut self, held: Held, listen: bool) -> Option<WaiterId> {
        self.begin_end(held);
        match self.feed(held.who.client, |now, machine| machine.handle_release(now, held.hold_key, listen)) {
            Released::Later(waiter) => Some(waiter),
            Released::Now(_) => None,
        }
    }

    /// From now on the holder does not count on its hold, unless that ended before: one that was lost while it changed.
    pub(super) fn begin_end(&mut self, held: Held) {
        let released = &mut self.history.holds[held.record].released;
        if released.to == OPEN {
            released.from = released.from.min(self.now);
        }
    }

    pub(super) fn next_turn(&mut self, who: Who, user: usize) {
        let person = &mut self.people[user];
        person.state = State::Away;
        let rest = person.script(person.turn).map_or(0, |script| nanos(script.rest));
        person.turn += 1;
        let turn = person.turn;
        self.schedule(self.now + rest, Event::Step(who, user, Step::Ask(turn)));
    }

    /// Writes down until when the users of a process believe.
    pub(super) fn note_beliefs(&mut self, client: usize) {
        let process = &self.processes[client];
        let local = process.local(self.now);
        for person in &self.people {
            let Some(held) = person.held().filter(|held| held.who == Who { client, life: process.life }) else {
                continue;
            };
            let hold = &mut self.history.holds[held.record];
            match process.machine.state(local, held.hold_key) {
                Some(HoldState::Held { until } | HoldState::Uncertain { until }) => {
                    hold.deadline = process.global(until);
                    if person.loss.is_some() {
                        self.undone.get_or_insert_with(|| "a hold is held again after its loss was told".to_owned());
                    }
                }
                Some(HoldState::Lost(_)) | None if hold.deadline == OPEN => hold.deadline = self.now,
                Some(HoldState::Lost(_)) | None => {}
            }
        }
    }

    /// The process of these users died.
    pub(super) fn bereave(&mut self, client: usize) {
        for person in &mut self.people {
            let theirs = match person.state {
                State::Asking { who, .. } | State::Leaving { who, .. } => who.client == client,
                State::Holding(held) | State::Changing { held, .. } => held.who.client == client,
                State::Away => false,
            };
            if !theirs {
                continue;
            }
            if let Some(held) = person.held() {
                let hold = &mut self.history.holds[held.record];
                hold.lost_at = hold.lost_at.min(self.now);
            }
            person.state = State::Away;
        }
    }

    /// A new process took its place: its users go on with their next turns.
    pub(super) fn return_to_work(&mut self, client: usize) {
        let life = self.processes[client].life;
        for user in 0..self.people.len() {
            if self.people[user].script.client == client && matches!(self.people[user].state, State::Away) {
                self.next_turn(Who { client, life }, user);
            }
        }
    }

    /// Everybody ends, and nothing goes wrong any more.
    pub(super) fn calm(&mut self) {
        self.say(|| "calm".to_owned());
        self.server.down_until = 0;
        self.server.stalled_until = 0;
        for client in 0..self.processes.len() {
            let process = &mut self.processes[client];
            process.cut_until = 0;
            process.paused_until = process.paused_until.min(self.now);
            process.deaf_until = process.deaf_until.min(self.now);
            process.failing.clear();
            self.restart(client);
        }
        for user in 0..self.people.len() {
            let turn = self.people[user].turn;
            self.end(user, turn);
        }
    }
}
