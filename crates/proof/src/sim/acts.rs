//! What a user does while it holds: write, look, enter again, renew, change its way of holding, be revoked.

use std::sync::Arc;

use bandog_conformance::history::{OPEN, Span, Write};
use bandog_core::lock::{Ask, HoldState, WaitOutcome};
use bandog_core::mode::Mode;
use bandog_core::op::{Op, Patience, Revoke, Target};

use crate::plan::{Act, Turn};

use super::user::{Held, State};
use super::{Count, Nanos, World};

impl World {
    pub(super) fn perform(&mut self, user: usize, turn: usize, act: usize) {
        let person = &self.people[user];
        let State::Holding(held) = person.state else { return };
        if person.turn != turn {
            return;
        }
        let Some((_, act)) = person.script(turn).and_then(|script| script.acts.get(act)).copied() else { return };
        match act {
            Act::Write => self.write(held, true),
            Act::WriteBlindly => self.write(held, false),
            Act::Reenter => self.reenter(user, held),
            Act::Renew => self.renew(held),
            Act::Upgrade if held.mode == Mode::Shared => self.upgrade(user, held),
            Act::Downgrade if held.mode == Mode::Exclusive => self.downgrade(user, held),
            Act::Revoke => self.revoke(held, false),
            Act::RevokeNow => self.revoke(held, true),
            Act::Progress => self.feed(held.who.client, |now, machine| machine.handle_progress(now, held.hold_key)),
            Act::TaskEnds => self.feed(held.who.client, |now, machine| machine.handle_task_ended(now, held.hold_key)),
            Act::Upgrade | Act::Downgrade => {}
        }
    }

    fn believes(&self, held: Held) -> bool {
        let process = &self.processes[held.who.client];
        let state = process.machine.state(process.local(self.now), held.hold_key);
        matches!(state, Some(HoldState::Held { .. } | HoldState::Uncertain { .. }))
    }

    fn write(&mut self, held: Held, looks: bool) {
        if held.mode != Mode::Exclusive || (looks && !self.believes(held)) {
            return;
        }
        let token = held.token.into();
        let accepted = self.resource.write(token);
        if !accepted {
            self.coverage.note(Count::StaleRefused);
        }
        self.say(|| format!("write with token {token}: {}", if accepted { "accepted" } else { "refused" }));
        self.history.writes.push(Write { token, at: self.now, accepted, add: None });
    }

    // The future is dropped at once; the renewal goes on.
    fn renew(&mut self, held: Held) {
        self.feed(held.who.client, |now, machine| {
            let waiter = machine.handle_renew(now, held.hold_key);
            machine.handle_cancel(now, waiter);
        });
    }

    fn reenter(&mut self, user: usize, held: Held) {
        if !self.believes(held) || matches!(held.mode, Mode::Permits { .. }) {
            return;
        }
        let Some(script) = self.people[user].script(self.people[user].turn).cloned() else { return };
        let now = self.processes[held.who.client].local(self.now);
        let Some(ask) = self.wish(now, user, &Turn { mode: held.mode, only_try: false, wait: None, ..script }) else {
            return;
        };
        let ask = Ask { reentrant: true, ..ask };
        self.coverage.note(Count::Reentry);
        let outcome = self.feed(held.who.client, |now, machine| {
            let waiter = machine.handle_ask(now, ask);
            machine.take_outcome(now, waiter)
        });
        if let Some(WaitOutcome::Granted { hold_key, token, .. }) = outcome {
            if (hold_key, token) != (held.hold_key, held.token) {
                self.broken.get_or_insert_with(|| format!("user {user} re-entered another hold than its own"));
            }
            self.feed(held.who.client, |now, machine| drop(machine.handle_release(now, hold_key, false)));
        }
    }

    fn upgrade(&mut self, user: usize, held: Held) {
        self.coverage.note(Count::Change);
        self.say(|| format!("user {user} upgrades"));
        let wait = self.plan.lease;
        let waiter = self.feed(held.who.client, |now, machine| {
            machine.handle_upgrade(now, held.hold_key, Patience::Queue, Some(now + wait))
        });
        self.people[user].state = State::Changing { held, waiter, since: self.now };
        self.look(held.who, user, waiter);
    }

    fn downgrade(&mut self, user: usize, held: Held) {
        self.coverage.note(Count::Change);
        self.say(|| format!("user {user} downgrades"));
        // From the call on the writer no longer believes that it is alone.
        self.begin_end(held);
        let waiter = self.feed(held.who.client, |now, machine| machine.handle_downgrade(now, held.hold_key));
        self.people[user].state = State::Changing { held, waiter, since: self.now };
        self.look(held.who, user, waiter);
    }

    pub(super) fn changed(&mut self, user: usize, held: Held, since: Nanos, outcome: &WaitOutcome) {
        let machine = &self.processes[held.who.client].machine;
        let token = machine.token(held.hold_key).unwrap_or(held.token);
        let done = matches!(outcome, WaitOutcome::Done);
        self.say(|| format!("user {user} changed: {outcome:?}, token {token}"));
        let was_writer = held.mode == Mode::Exclusive;
        let mode = match (was_writer, done) {
            (false, true) => Mode::Exclusive,
            _ => Mode::Shared,
        };
        if was_writer && !done {
            // The guard is gone with the failed downgrade.
            self.people[user].state = State::Away;
            self.feed(held.who.client, |now, machine| drop(machine.handle_release(now, held.hold_key, false)));
            return self.next_turn(held.who, user);
        }
        let mut held = Held { token, mode, ..held };
        if done || token != self.people[user].held().map_or(token, |held| held.token) {
            self.close(held.record, if was_writer { since } else { self.now });
            // Lost before it was seen: the guard says so at the first look, and nobody believes in it.
            if self.believes(held) {
                held.record = self.record(user, token, mode, since);
            }
        }
        self.people[user].state = State::Holding(held);
        self.note_beliefs(held.who.client);
    }

    // A hold ends once.
    fn close(&mut self, record: usize, from: Nanos) {
        let released = &mut self.history.holds[record].released;
        if released.to == OPEN {
            *released = Span { from: released.from.min(from), to: self.now };
        }
    }

    fn revoke(&mut self, held: Held, now: bool) {
        self.coverage.note(Count::Revocation);
        let revoke =
            Revoke { target: Target::Stamp(held.token.stamp()), reason: "asked".to_owned(), by: Arc::default(), now };
        if self.server.down_until > self.now {
            return;
        }
        self.say(|| format!("somebody revokes {}", held.token));
        if let Ok(applied) = self.server.apply(self.now, &Op::Revoke(revoke)) {
            self.push(applied.effects);
        }
    }
}
