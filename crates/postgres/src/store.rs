//! The handle that people hold: it turns calls into jobs for its connection.

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
use crate::listener::Listener;
use crate::queue::{Queue, Shared, State};
use crate::rows::{self, Rows};
use crate::session::Session;
use crate::worker::Job;

/// Locks in a PostgreSQL database. Clones share their connections.
#[derive(Clone)]
pub struct PostgresStore {
    queue: Arc<Queue>,
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
        Ok(Self { queue: Arc::new(Queue::new(Arc::new(shared), Some(session))), listener: Arc::default() })
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.queue.shared
    }

    fn state(&self, connection: Connection) -> &Arc<State> {
        match connection {
            Connection::Calls => &self.queue.state,
            Connection::News => &self.listener.state,
        }
    }

    /// Sends a job at once; its answer comes later.
    fn ask<T: Send + 'static>(&self, job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job) -> Answer<T> {
        let (sender, receiver) = oneshot::channel();
        let sent = self.queue.send(job(sender)).map_err(|(_, error)| error);
        // Kept while we wait: the task ends with its queue.
        let queue = Arc::clone(&self.queue);
        Box::pin(async move {
            sent?;
            let answer = receiver.await;
            drop(queue);
            answer.map_err(|_| ended())?
        })
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
        if let Err((Job::Apply(calls), error)) = self.queue.send(Job::Apply(calls)) {
            calls.into_iter().for_each(|call| call.reply.send(Err(error.clone())));
        }
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.ask(|answer| Job::List(query, answer))
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.shared().inboxes.add(inbox, receiver);
        Box::pin(self.listener.listen(self.shared()))
    }

    fn connection(&self) -> Arc<dyn Store> {
        let queue = Queue::new(Arc::clone(self.shared()), None);
        Arc::new(Self { queue: Arc::new(queue), listener: Arc::clone(&self.listener) })
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        let probing = Probing(Some(Arc::clone(self.state(connection))));
        match connection {
            Connection::Calls => Box::pin(probing.answered(self.ask(Job::Probe))),
            Connection::News => Box::pin(probing.answered(self.listener.probe(self.shared()))),
        }
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.state(connection).is_open.load(Ordering::Acquire)
    }
}

impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared().config.fmt(f)
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({self}, {:?})", self.queue)
    }
}
