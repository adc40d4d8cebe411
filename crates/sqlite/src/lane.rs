//! A lane: a queue of jobs, and the worker that is started when the first one comes.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bandog_core::store::StoreError;

use crate::error;
use crate::link::Link;
use crate::store::Shared;
use crate::worker::{Job, Worker};

pub(crate) struct Lane {
    pub(crate) shared: Arc<Shared>,
    queue: Mutex<Queue>,
    opened: Arc<AtomicU64>,
}

#[derive(Default)]
struct Queue {
    /// Opened ahead of the worker, if it was.
    link: Option<Link>,
    jobs: Option<Sender<Job>>,
}

impl Lane {
    pub(crate) fn new(shared: Arc<Shared>, link: Option<Link>) -> Self {
        let opened = Arc::new(AtomicU64::new(u64::from(link.is_some())));
        Self { shared, queue: Mutex::new(Queue { link, jobs: None }), opened }
    }

    /// Queues a job behind all before it, or gives it back. The worker ends when the lane is dropped and the queue is empty.
    pub(crate) fn send(&self, job: Job) -> Result<(), (Job, StoreError)> {
        let mut queue = self.lock();
        let job = match &queue.jobs {
            Some(jobs) => match jobs.send(job) {
                Ok(()) => return Ok(()),
                // The worker has died; what it had in hand is answered as unknown, and another goes on.
                Err(unsent) => unsent.0,
            },
            None => job,
        };
        let jobs = match self.start(queue.link.take()) {
            Ok(jobs) => jobs,
            Err(error) => return Err((job, error)),
        };
        // The worker has just been started and waits for this.
        drop(jobs.send(job));
        queue.jobs = Some(jobs);
        Ok(())
    }

    fn start(&self, link: Option<Link>) -> Result<Sender<Job>, StoreError> {
        let worker = Worker { shared: Arc::clone(&self.shared), link, opened: Arc::clone(&self.opened) };
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("bandog-sqlite".to_owned());
        let started = thread.spawn(move || worker.run(&receiver));
        started.map(|_| sender).map_err(|error| error::no_thread(&self.shared.place, error))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("started", &self.lock().jobs.is_some()).finish_non_exhaustive()
    }
}
