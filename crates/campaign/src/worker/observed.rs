//! A store with a notebook: every call is noted where it goes out and where its answer comes back.
//!
//! What is noted, and what for, is the notebook's matter: [places](super::places), [lease ends](super::ends),
//! [counts](super::counts).

use std::fmt;
use std::sync::{Arc, Weak};

use bandog_core::holder::InboxId;
use bandog_core::op::{Op, Reply};
use bandog_core::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store, StoreError};
use bandog_core::time::LeaseTime;

/// What is noted of calls.
pub(super) trait Notebook: Send + Sync + 'static {
    /// What is known of a call when it goes out, until it is answered.
    type Mark: Send + 'static;

    /// A call goes out.
    fn sent(&self, op: &Op) -> Self::Mark;

    /// It was answered.
    fn answered(&self, mark: Self::Mark, reply: &Reply);

    /// Something goes out that is waited for: a call, several together, or a probe.
    fn trip(&self) {}
}

pub(super) struct Observed<N> {
    store: Arc<dyn Store>,
    notes: Arc<N>,
}

impl<N> Observed<N> {
    pub(super) fn new(store: impl Store, notes: &Arc<N>) -> Self {
        Self { store: Arc::new(store), notes: Arc::clone(notes) }
    }
}

impl<N: Notebook> Store for Observed<N> {
    fn submit(&self, calls: Vec<Call>) {
        self.notes.trip();
        let observed = |call: Call| {
            let (mark, notes) = (self.notes.sent(&call.op), Arc::clone(&self.notes));
            let look = move |answer: &Result<Reply, StoreError>| {
                if let Ok(reply) = answer {
                    notes.answered(mark, reply);
                }
            };
            Call { reply: call.reply.inspect(look), ..call }
        };
        self.store.submit(calls.into_iter().map(observed).collect());
    }

    fn sends_at_once(&self) -> bool {
        self.store.sends_at_once()
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self { store: self.store.connection(), notes: Arc::clone(&self.notes) })
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        self.notes.trip();
        self.store.probe(connection)
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.store.is_open(connection)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn time(&self) -> LeaseTime {
        self.store.time()
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.store.list(query)
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.store.listen(inbox, receiver)
    }
}

impl<N> fmt::Debug for Observed<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.store, f)
    }
}

impl<N> fmt::Display for Observed<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.store, f)
    }
}
