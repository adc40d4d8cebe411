//! One name for states that can never be told apart: what keeps the world finite and small.
//!
//! - What nothing can depend on any more is forgotten: a reply that its client would ignore, a done mark or not-after of a
//!   claim of which no copy is under way, the memory of an ended id that no request names.
//! - Messages have no order. Tokens count from the last one.
//! - Clients are alike: [`State::reorder`] sorts them. Any order would do, so a tie costs a few more states and nothing else.

use std::mem::take;

use super::message::{Ask, Message};
use super::state::{Client, Id, Phase, State};

impl State {
    /// Forgets whatever nothing can depend on any more, and brings the rest into one order.
    pub(super) fn normalise(&mut self) {
        self.drop_moot();
        self.drop_unheard();
        let base = self.store.last.min(self.highest);
        self.store.last -= base;
        self.highest -= base;
        self.sort();
    }

    fn sort(&mut self) {
        self.net.sort_unstable();
        self.store.done.sort_unstable();
        self.over.sort_unstable();
    }

    fn drop_moot(&mut self) {
        let mut net = take(&mut self.net);
        let claims: Vec<Id> = net.iter().filter(|message| message.is_claim()).map(Message::id).collect();
        let copied = |id: Id| claims.contains(&id);
        self.store.done.retain(|(id, _)| copied(*id));
        self.store.queue.iter_mut().filter(|waiter| !copied(waiter.id)).for_each(|waiter| waiter.fresh = 0);
        self.store.holder.iter_mut().filter(|hold| !copied(hold.id)).for_each(|hold| hold.fresh = 0);
        for message in &mut net {
            if let Message::Release(id, unanswered) = message
                && !copied(*id)
            {
                *unanswered = 0;
            }
        }
        for (who, client) in (0..).zip(&mut self.clients) {
            client.drop_moot(copied(Id { client: who, seq: client.seq }));
        }
        let clients = &self.clients;
        let asked = |id: Id| net.iter().any(|message| message.is_request() && message.id() == id);
        self.over.retain(|id| asked(*id) || clients[usize::from(id.client)].claims(*id));
        self.net = net;
    }

    fn drop_unheard(&mut self) {
        let clients = &self.clients;
        self.net.retain(|message| match message {
            Message::Reply(ask, id, _) => clients[usize::from(id.client)].listens(*ask, *id),
            _ => true,
        });
    }

    /// Sorts the clients, and numbers their claims from the present one.
    pub(super) fn reorder(&mut self) {
        for who in 0..self.crowd() {
            self.renumber(who);
        }
        let mut order: Vec<u8> = (0..self.crowd()).collect();
        order.sort_by_cached_key(|who| self.looks(*who));
        if order.is_sorted() {
            return self.sort();
        }
        self.clients = order.iter().map(|who| self.clients[usize::from(*who)]).collect();
        self.store.alive = order.iter().map(|who| self.store.alive[usize::from(*who)]).collect();
        let mut names = vec![0; order.len()];
        for (new, old) in (0..).zip(&order) {
            names[usize::from(*old)] = new;
        }
        self.rename(|id| id.client = names[usize::from(id.client)]);
        self.sort();
    }

    fn crowd(&self) -> u8 {
        (0..).zip(&self.clients).map(|(who, _): (u8, _)| who + 1).max().unwrap_or(0)
    }

    fn renumber(&mut self, who: u8) {
        let first = match self.client(who) {
            Client { phase: Phase::Idle, .. } => (0..=1).find(|seq| self.knows(Id { client: who, seq: *seq })).unwrap_or(0),
            busy => busy.seq,
        };
        if first == 0 {
            return;
        }
        let swap = |seq: u8| match seq {
            0 => first,
            _ if seq == first => 0,
            _ => seq,
        };
        self.client_mut(who).seq = 0;
        self.rename(|id| {
            if id.client == who {
                id.seq = swap(id.seq);
            }
        });
    }

    /// A client without its name.
    fn looks(&self, who: u8) -> impl Ord + use<> {
        let own = |id: Id| id.client == who;
        let places = self.store.queue.iter().map(|waiter| own(waiter.id)).fold(1_u32, |bits, own| bits << 1 | u32::from(own));
        let alive = self.store.alive[usize::from(who)];
        let holds = self.store.holder.filter(|hold| own(hold.id)).map(|hold| hold.id.seq);
        let anonymous = |message: &Message| {
            let mut message = *message;
            message.id_mut().client = 0;
            message
        };
        let messages: Vec<Message> = self.net.iter().filter(|message| own(message.id())).map(anonymous).collect();
        (*self.client(who), places, alive, holds, messages)
    }

    fn rename(&mut self, name: impl FnMut(&mut Id)) {
        let store = &mut self.store;
        let ids = store.holder.iter_mut().map(|hold| &mut hold.id);
        let ids = ids.chain(store.queue.iter_mut().map(|waiter| &mut waiter.id));
        let ids = ids.chain(store.done.iter_mut().map(|(id, _)| id));
        ids.chain(self.net.iter_mut().map(Message::id_mut)).chain(self.over.iter_mut()).for_each(name);
    }
}

impl Client {
    fn drop_moot(&mut self, copied: bool) {
        if !copied {
            self.unanswered = 0;
        }
        if !matches!(self.phase, Phase::Sent | Phase::Queued) {
            self.asked = 0;
        }
    }

    /// Whether it still has a claim of this number.
    fn claims(&self, id: Id) -> bool {
        self.phase != Phase::Idle && self.seq == id.seq
    }

    fn listens(&self, ask: Ask, id: Id) -> bool {
        let waits = match ask {
            Ask::Claim => self.phase == Phase::Sent || self.unanswered > 0,
            Ask::Heartbeat => self.phase == Phase::Queued,
            Ask::Renew => matches!(self.phase, Phase::Confirming | Phase::Held { .. }),
        };
        waits && self.claims(id)
    }
}
