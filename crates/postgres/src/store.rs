//! The handle that people hold: it turns calls into jobs for its lane.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bandog_core::holder::InboxId;
use bandog_core::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store, StoreError};
use bandog_core::time::LeaseTime;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::config::PostgresConfig;
use crate::inboxes::Inboxes;
use crate::lane::{Lane, Shared, State};
use crate::listener::Listener;
use crate::rows::{self, Rows};
use crate::session::Session;
use crate::worker::{self, Job};

/// Locks in a PostgreSQL database. Clones share their connections.
#[derive(Clone)]
pub struct PostgresStore {
    lane: Arc<Lane>,
    listener: Arc<Listener>,
}

impl PostgresStore {
    /// Connects to the database, and makes the tables if there are none.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses us, or is not fit for locks. The message says which.
    pub async fn connect(config: PostgresConfig) -> Result<Self, StoreError> {
        let (session, _) = Session::open(&config).await?;
        let rows = Rows::new(&config.schema);
        let shared = Shared { config, rows, clock: Clock::default(), inboxes: Inboxes::default() };
        let now = rows::now(&session.client, session.run).await;
        if let Ok(now) = now {
            shared.clock.set(now.lease);
        }
        Ok(Self { lane: Arc::new(Lane::new(Arc::new(shared), Some(session))), listener: Arc::default() })
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.lane.shared
    }

    /// Sends a job and waits for its answer.
    async fn ask<T>(self, job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.lane.send(job(sender))?;
        receiver.await.map_err(|_| ended())?
    }
}

fn ended() -> StoreError {
    StoreError::unknown("the store's task ended with this call in hand")
}

/// A probe that is dropped before it is answered: the connection counts as dead.
struct Probing(Option<Arc<State>>);

impl Probing {
    async fn answered<T>(mut self, asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let done = asked.await;
        self.0 = None;
        done
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            state.give_up();
        }
    }
}

impl Store for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::FULL
    }

    fn time(&self) -> LeaseTime {
        self.shared().clock.time()
    }

    fn submit(&self, calls: Vec<Call>) {
        let job = |call: Call| {
            let Call { name, op, reply, .. } = call;
            worker::Call { asked: (name, op), answer: Box::new(move |answer| reply.send(answer)) }
        };
        if !calls.is_empty() {
            // Without a runtime the calls are dropped, which answers them.
            drop(self.lane.send(Job::Apply(calls.into_iter().map(job).collect())));
        }
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        let store = self.clone();
        Box::pin(store.ask(|answer| Job::List(query, answer)))
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        let store = self.clone();
        store.shared().inboxes.add(inbox, receiver);
        Box::pin(async move { store.listener.listen(store.shared()).await })
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self {
            lane: Arc::new(Lane::new(Arc::clone(self.shared()), None)),
            listener: Arc::clone(&self.listener),
        })
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        let store = self.clone();
        Box::pin(async move {
            let state = match connection {
                Connection::Calls => &store.lane.state,
                Connection::News => &store.listener.state,
            };
            let probing = Probing(Some(Arc::clone(state)));
            match connection {
                Connection::Calls => probing.answered(store.clone().ask(Job::Probe)).await,
                Connection::News => probing.answered(store.listener.probe(store.shared())).await,
            }
        })
    }

    fn is_open(&self, connection: Connection) -> bool {
        let state = match connection {
            Connection::Calls => &self.lane.state,
            Connection::News => &self.listener.state,
        };
        state.is_open.load(Ordering::Acquire)
    }
}

impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared().config.fmt(f)
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({self}, {:?})", self.lane)
    }
}
