//! One moment of the world: clients, store, network, and what the checker remembers about them.
//!
//! No clock is kept. Every time is kept as what is left of it, or as how long ago it was, so that moments which differ only in
//! when they happen are one state and time needs no horizon.

use super::law::Law;
use super::message::Message;

/// A length of time.
pub(super) type Ticks = u8;

/// The most clients there can be.
pub(super) const CROWD: usize = 3;

/// A claim's id: its client and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id {
    /// Whose.
    pub client: u8,
    /// Which of its claims.
    pub seq: u8,
}

/// Where a client's claim stands, as the client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    /// It has none.
    Idle,
    /// Not answered yet.
    Sent,
    /// In line.
    Queued,
    /// Granted with too little time left: a renewal must confirm it first.
    Confirming,
    /// A guard exists. It says held while something is left.
    Held {
        /// Until its deadline.
        left: Ticks,
    },
}

/// One client: one process with one wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Client {
    /// Where its claim stands.
    pub phase: Phase,
    /// The claim's number.
    pub seq: u8,
    /// What a push would be good for: the claim window less the time since `s*` (rule 1).
    pub asked: Ticks,
    /// How long a copy of an unanswered claim may still be accepted; nothing once it was answered (rule 4).
    pub unanswered: Ticks,
}

impl Client {
    /// A client that wants nothing.
    pub(super) const IDLE: Self = Self { phase: Phase::Idle, seq: 0, asked: 0, unanswered: 0 };

    /// Whether its guard says held.
    pub(super) fn believes(&self) -> bool {
        matches!(self.phase, Phase::Held { left } if left > 0)
    }

    fn tick(&mut self) {
        self.asked = self.asked.saturating_sub(1);
        self.unanswered = self.unanswered.saturating_sub(1);
        if let Phase::Held { left } = &mut self.phase {
            *left = left.saturating_sub(1);
        }
    }
}

/// The hold in the store's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Hold {
    /// Whose.
    pub id: Id,
    /// Until the lease end; at nothing it is over, purged or not.
    pub left: Ticks,
    /// Granted from the queue and not yet confirmed.
    pub unclaimed: bool,
    /// For how long it has been unclaimed.
    pub waited: Ticks,
    /// Until the not-after of its claim.
    pub fresh: Ticks,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Waiter {
    /// Whose.
    pub id: Id,
    /// Until the not-after of its claim.
    pub fresh: Ticks,
}

/// The store's record of the one lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Store {
    /// Who holds.
    pub holder: Option<Hold>,
    /// Who waits, in order.
    pub queue: Vec<Waiter>,
    /// The last token, counted from an arbitrary one.
    pub last: u8,
    /// Until live-until, per client.
    pub alive: [Ticks; CROWD],
    /// Ended ids, each until its claim's not-after.
    pub done: Vec<(Id, Ticks)>,
}

/// A promise that a step of the store broke; a state alone could not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Breach {
    /// A token was not higher than the one before.
    Token,
    /// A grant passed a live waiter.
    Order,
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The clients; those beyond the bound never want anything.
    pub clients: [Client; CROWD],
    /// The store.
    pub store: Store,
    /// Messages in flight.
    pub net: Vec<Message>,
    /// Ids that the store has ended, as long as a request could bring one back.
    pub over: Vec<Id>,
    /// The highest token ever granted, counted from the same one as the store's last.
    pub highest: u8,
    /// What went wrong on the way here.
    pub breach: Option<Breach>,
}

impl State {
    /// Nobody has asked for anything.
    pub(super) fn new() -> Self {
        let store = Store { holder: None, queue: Vec::new(), last: 0, alive: [0; CROWD], done: Vec::new() };
        Self { clients: [Client::IDLE; CROWD], store, net: Vec::new(), over: Vec::new(), highest: 0, breach: None }
    }

    /// One client.
    pub(super) fn client(&self, client: u8) -> &Client {
        &self.clients[usize::from(client)]
    }

    /// One client, to change it.
    pub(super) fn client_mut(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    /// The id of a client's present claim.
    pub(super) fn current(&self, client: u8) -> Id {
        Id { client, seq: self.client(client).seq }
    }

    /// Remembers that the store has ended an id.
    pub(super) fn end(&mut self, id: Id) {
        if !self.over.contains(&id) {
            self.over.push(id);
        }
    }

    /// One tick for everybody. A client that does nothing meanwhile is slow, paused or dead: nothing tells which.
    pub(super) fn tick(&mut self, law: &Law) {
        self.clients.iter_mut().for_each(Client::tick);
        self.net.iter_mut().for_each(|message| message.tick(law));
        if let Some(ended) = self.store.tick(law) {
            self.end(ended);
        }
    }
}

impl Store {
    /// Whether an id waits and its client is alive.
    pub(super) fn lives(&self, waiter: &Waiter) -> bool {
        self.alive[usize::from(waiter.id.client)] > 0
    }

    /// One tick; the id whose lease ended with it.
    fn tick(&mut self, law: &Law) -> Option<Id> {
        self.alive.iter_mut().for_each(|left| *left = left.saturating_sub(1));
        self.queue.iter_mut().for_each(|waiter| waiter.fresh = waiter.fresh.saturating_sub(1));
        self.done.iter_mut().for_each(|(_, left)| *left = left.saturating_sub(1));
        self.done.retain(|(_, left)| *left > 0);
        let hold = self.holder.as_mut()?;
        let lived = hold.left > 0;
        hold.left = hold.left.saturating_sub(1);
        hold.fresh = hold.fresh.saturating_sub(1);
        if hold.unclaimed {
            hold.waited = (hold.waited + 1).min(law.bounds.window);
        }
        (lived && hold.left == 0).then_some(hold.id)
    }
}
