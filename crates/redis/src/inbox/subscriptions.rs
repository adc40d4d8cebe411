//! The receivers of each inbox, and the listener and connection that serve them. Shared by [`Inboxes`](super::Inboxes), the listener
//! and the push handlers of its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::store::{Receiver, StoreError};
use bandog_core::time::Moment;
use tokio::sync::oneshot;

use super::Home;
use crate::topology::Session;

/// A guest that has not been seen for so long stands still with its runtime.
const STALLED: Duration = Duration::from_secs(3);

/// Answers a call of `listen`.
pub(super) type Asking = oneshot::Sender<Result<(), StoreError>>;

#[derive(Clone, Default)]
pub(super) struct Subscriptions(Arc<Mutex<Table>>);

impl Subscriptions {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(super) struct Table {
    receivers: HashMap<InboxId, Weak<dyn Receiver>>,
    asking: Vec<Asking>,
    /// Counts connections: what arrives late from an old one is not news.
    connection: u64,
    /// The connection that is heard, while there is one.
    heard: Option<(u64, Session)>,
    /// How many were opened.
    opened: u64,
    /// Counts listeners: whoever's turn is over ends.
    turn: u64,
    /// When the listener was last seen, if it is a guest.
    seen: Option<Moment>,
}

impl Table {
    pub(super) fn enter(&mut self, inbox: InboxId, receiver: Weak<dyn Receiver>, asking: Asking) {
        self.receivers.insert(inbox, receiver);
        self.asking.push(asking);
    }

    /// Begins a listener's turn and ends the one before.
    pub(super) fn begin_turn(&mut self, home: Home, now: Moment) -> u64 {
        self.turn += 1;
        self.heard = None;
        self.seen = (home == Home::Guest).then_some(now);
        self.turn
    }

    fn is_turn(&self, turn: u64) -> bool {
        self.turn == turn
    }

    /// Notes that a listener is alive, and says whether it is still its turn.
    pub(super) fn see(&mut self, turn: u64, now: Moment) -> bool {
        let its_turn = self.is_turn(turn);
        if its_turn && self.seen.is_some() {
            self.seen = Some(now);
        }
        its_turn
    }

    pub(super) fn is_stalled(&self, now: Moment) -> bool {
        self.seen.is_some_and(|seen| now.since(seen) > STALLED)
    }

    /// The number of a new connection: from now on only that one is heard. None for whoever's turn is over.
    pub(super) fn next_connection(&mut self, turn: u64) -> Option<u64> {
        self.is_turn(turn).then(|| {
            self.connection += 1;
            self.connection
        })
    }

    /// Notes that a connection is open, for probes.
    pub(super) fn open(&mut self, connection: u64, session: &Session) {
        self.opened += 1;
        if connection == self.connection {
            self.heard = Some((connection, session.clone()));
        }
    }

    /// Notes that a connection is not heard any more.
    pub(super) fn close(&mut self, connection: u64) {
        self.heard.take_if(|(heard, _)| *heard == connection);
    }

    /// The connection that is heard and its number.
    pub(super) fn heard(&self) -> Option<(u64, Session)> {
        self.heard.clone().filter(|(_, session)| !session.is_gone())
    }

    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// The receiver of what was heard on a connection, if that is not an old one.
    pub(super) fn receiver(&self, connection: u64, inbox: InboxId) -> Option<Arc<dyn Receiver>> {
        if connection == self.connection { self.receivers.get(&inbox)?.upgrade() } else { None }
    }

    pub(super) fn everybody(&self) -> Vec<Arc<dyn Receiver>> {
        self.receivers.values().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn inboxes(&self) -> Vec<InboxId> {
        self.receivers.keys().copied().collect()
    }

    /// Those who are to be told by whoever's turn it is.
    pub(super) fn take_asking(&mut self, turn: u64) -> Vec<Asking> {
        if self.is_turn(turn) { std::mem::take(&mut self.asking) } else { Vec::new() }
    }

    // Their channels stay subscribed as long as others listen: nothing is published to the dead for long.
    pub(super) fn is_deserted(&mut self) -> bool {
        self.receivers.retain(|_, receiver| receiver.strong_count() > 0);
        self.receivers.is_empty()
    }
}
