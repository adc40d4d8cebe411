//! One name for states that can never be told apart: what keeps the world finite and small.
//!
//! - What nothing can depend on any more is forgotten: a reply that its client would ignore, a done mark or not-after of a
//!   claim of which no copy is under way, the memory of an ended id that no request names and that
//!   has not come back.
//! - Messages have no order. Tokens count from the last one.
//! - Clients are alike: [`State::reorder`] sorts them. Any order would do, so a tie costs a few more states and nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::take;

use super::message::{Ask, Message};
use super::state::{CROWD, Client, Id, Phase, State};

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
        let store = &self.store;
        let back = |id: Id| {
            store.queue.iter().any(|it| it.id == id) || store.holder.is_some_and(|it| it.id == id && it.left > 0)
        };
        self.over.retain(|id| asked(*id) || clients[usize::from(id.client)].claims(*id) || back(*id));
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
    pub(super) fn reorder(&mut self, clients: u8) {
        (0..clients).for_each(|who| self.renumber(who));
        let mut order = [0, 1, 2];
        order[..usize::from(clients)].sort_by_cached_key(|who| self.looks(*who));
        if !order.is_sorted() {
            let (clients, alive) = (self.clients, self.store.alive);
            let mut names = [0; CROWD];
            for (new, old) in (0..).zip(order.map(usize::from)) {
                names[old] = new;
                self.clients[usize::from(new)] = clients[old];
                self.store.alive[usize::from(new)] = alive[old];
            }
            self.rename(|id| id.client = names[usize::from(id.client)]);
        }
        self.sort();
    }

    fn renumber(&mut self, who: u8) {
        let first = match self.client(who) {
            Client { phase: Phase::Idle, .. } => {
                (0..=1).find(|seq| self.knows(Id { client: who, seq: *seq })).unwrap_or(0)
            }
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

    /// A client without its name. What it leaves out, or confuses, costs no more than a tie.
    fn looks(&self, who: u8) -> impl Ord + use<> {
        let own = |id: Id| id.client == who;
        let place = |places: u32, id: Id| places << 1 | u32::from(own(id));
        let places = self.store.queue.iter().map(|waiter| waiter.id).fold(1, place);
        let holds = self.store.holder.filter(|hold| own(hold.id)).map(|hold| hold.id.seq);
        let messages = self.net.iter().filter(|message| own(message.id())).fold(0, |sum: u64, message| {
            let mut anonymous = *message;
            anonymous.id_mut().client = 0;
            let mut hasher = DefaultHasher::new();
            anonymous.hash(&mut hasher);
            sum.wrapping_add(hasher.finish())
        });
        (*self.client(who), places, self.store.alive[usize::from(who)], holds, messages)
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
