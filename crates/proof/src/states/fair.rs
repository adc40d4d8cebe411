//! Bounded liveness: from some moment on nothing is lost and everybody acts once per tick. Who gets what?
//!
//! Whoever holds keeps renewing for longer than a waiter lives without heartbeats, then everybody releases as soon as it
//! holds. A waiter that the store knows when this begins must hold with the same id before it ends, and in the end nobody
//! has a claim and the lock is free.

use super::law::Law;
use super::state::{Id, Phase, State};

/// Whether a fair course from here serves everybody.
pub(super) fn serves(law: &Law, state: &State) -> bool {
    let mut state = state.clone();
    let mut owed = state.owed();
    let patience = law.alive() + 1;
    let enough = patience + law.bounds.lease + law.alive() * law.bounds.clients;
    for round in 0..enough {
        for who in 0..law.bounds.clients {
            state.turn(law, who, round < patience);
            state.deliver_all(law);
            owed.retain(|id| !(state.current(id.client) == *id && state.client(id.client).believes()));
        }
        if state.is_quiet() {
            break;
        }
        state.tick(law);
    }
    owed.is_empty() && state.is_quiet()
}

impl State {
    /// Waiters that the store knows.
    fn owed(&self) -> Vec<Id> {
        let store = &self.store;
        let waits = |id: Id| store.queue.iter().any(|waiter| waiter.id == id && store.lives(waiter));
        let holds = |id: Id| store.holder.is_some_and(|hold| hold.id == id && hold.left > 0);
        let queued = (0..).zip(&self.clients).filter(|(_, client)| client.phase == Phase::Queued);
        queued.map(|(who, _)| self.current(who)).filter(|id| waits(*id) || holds(*id)).collect()
    }

    fn turn(&mut self, law: &Law, who: u8, keep: bool) {
        match self.client(who).phase {
            Phase::Idle => {}
            Phase::Queued => self.beat(law, who),
            Phase::Held { left: 1.. } if keep => self.keep(who),
            // The answer to whatever was sent before is lost; so is a hold without time left.
            Phase::Sent | Phase::Confirming | Phase::Held { .. } => self.part(who),
        }
    }

    fn deliver_all(&mut self, law: &Law) {
        while !self.net.is_empty() {
            let message = self.net.remove(0);
            self.arrive(law, message);
        }
    }

    /// Nobody has a claim, and the next to ask would find the lock free, whether or not what is over has been purged.
    fn is_quiet(&self) -> bool {
        let over = self.store.holder.is_none_or(|hold| hold.left == 0);
        let free = over && !self.store.queue.iter().any(|waiter| self.store.lives(waiter));
        free && self.clients.iter().all(|client| client.phase == Phase::Idle)
    }
}
