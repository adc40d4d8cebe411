//! The jobs for one connection, and the task that is started when the first one comes.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bandog_core::store::{StoreError, StoreErrorKind};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::clock::Clock;
use crate::config::PostgresConfig;
use crate::inboxes::Inboxes;
use crate::rows::Rows;
use crate::session::Session;
use crate::worker::{Job, Worker};

/// What all handles of one store have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: PostgresConfig,
    pub(crate) rows: Rows,
    pub(crate) clock: Clock,
    pub(crate) inboxes: Inboxes,
}

pub(crate) struct Queue {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<State>,
    jobs: Mutex<Jobs>,
}

/// What can be seen of a connection from outside its task.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// How many connections were opened.
    pub(crate) opened: AtomicU64,
    pub(crate) is_open: AtomicBool,
    dead: Mutex<Option<Arc<Notify>>>,
}

#[derive(Default)]
struct Jobs {
    /// Opened ahead of the task, if it was.
    session: Option<Session>,
    sender: Option<UnboundedSender<Job>>,
}

impl State {
    pub(crate) fn opened(&self, session: &Session) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        *self.lock() = Some(Arc::clone(&session.dead));
        self.is_open.store(true, Ordering::Release);
    }

    pub(crate) fn forget(&self) {
        self.is_open.store(false, Ordering::Release);
        *self.lock() = None;
    }

    /// The connection did not answer in time: it counts as dead.
    pub(crate) fn give_up(&self) {
        let dead = self.lock().clone();
        if let Some(dead) = dead {
            dead.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Notify>>> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    pub(crate) fn new(shared: Arc<Shared>, session: Option<Session>) -> Self {
        let state = Arc::new(State::default());
        if let Some(session) = &session {
            state.opened(session);
        }
        Self { shared, state, jobs: Mutex::new(Jobs { session, sender: None }) }
    }

    /// Queues a job behind all before it, or gives it back. The task ends when the queue is dropped and empty.
    pub(crate) fn send(&self, job: Job) -> Result<(), (Job, StoreError)> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let job = match &jobs.sender {
            Some(sender) => match sender.send(job) {
                Ok(()) => return Ok(()),
                // Its runtime has ended; what it had in hand is answered as unknown, and another goes on.
                Err(unsent) => unsent.0,
            },
            None => job,
        };
        let Ok(runtime) = Handle::try_current() else { return Err((job, no_runtime())) };
        let (sender, receiver) = unbounded_channel();
        let session = jobs.session.take();
        let worker = Worker::new(Arc::clone(&self.shared), Arc::clone(&self.state), receiver, session);
        // The receiver is right here.
        drop(sender.send(job));
        let ended = jobs.sender.replace(sender);
        // Unlocked: a runtime that has ended drops the task at once, which answers its calls.
        drop(jobs);
        drop(ended);
        runtime.spawn(worker.run());
        Ok(())
    }
}

pub(crate) fn no_runtime() -> StoreError {
    let message = "PostgreSQL is spoken to on a tokio runtime, and there is none here";
    StoreError::not_executed(StoreErrorKind::Unavailable, message)
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("state", &self.state).finish_non_exhaustive()
    }
}
