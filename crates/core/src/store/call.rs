//! A call to a store, and where its answer goes.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::name::LockName;
use crate::op::{Op, Reply};

use super::{Push, Receiver, StoreError};

/// One operation for one lock, and where its answer goes.
///
/// A store answers with [`reply.send`](ReplyTo::send). A store whose client is async has [`answer_with`](Self::answer_with).
#[derive(Debug)]
pub struct Call {
    /// Which lock.
    pub name: LockName,
    /// What is to be applied.
    pub op: Op,
    /// Whether nobody waits for the answer and the caller may keep its thread busy: a store that can write it before
    /// [`submit`](super::Store::submit) returns does so.
    pub unattended: bool,
    /// Where the answer goes.
    pub reply: ReplyTo,
}

impl Call {
    /// Applies the operation by an async client, and answers: a future to spawn.
    ///
    /// ```
    /// use bandog_core::name::LockName;
    /// use bandog_core::op::{Op, Reply};
    /// use bandog_core::store::{Call, StoreError};
    ///
    /// # #[derive(Clone)]
    /// # struct Client;
    /// # impl Client {
    /// #     async fn apply(&self, _: LockName, _: Op) -> Result<Reply, StoreError> { Err(StoreError::unknown("an example")) }
    /// # }
    /// # fn spawn(_: impl Future<Output = ()> + Send + 'static) {}
    /// fn submit(client: &Client, calls: Vec<Call>) {
    ///     for call in calls {
    ///         let client = client.clone();
    ///         spawn(call.answer_with(async move |name, op| client.apply(name, op).await));
    ///     }
    /// }
    /// ```
    pub async fn answer_with<F>(self, apply: impl FnOnce(LockName, Op) -> F)
    where
        F: Future<Output = Result<Reply, StoreError>>,
    {
        let Self { name, op, reply, .. } = self;
        reply.send(apply(name, op).await);
    }
}

/// Where the answer to one call goes. There is exactly one answer: dropped without it, it says that nobody knows whether the
/// operation took effect.
pub struct ReplyTo {
    name: LockName,
    id: u64,
    receiver: Option<Arc<dyn Receiver>>,
}

impl ReplyTo {
    /// The receiver is told the name and the id with the answer.
    pub fn new(receiver: Arc<dyn Receiver>, name: LockName, id: u64) -> Self {
        Self { name, id, receiver: Some(receiver) }
    }

    /// Answers. The receiver goes on right here: no lock may be held that a call of the same store takes.
    pub fn send(mut self, answer: Result<Reply, StoreError>) {
        self.give(answer);
    }

    /// Shows the answer to a wrapper on its way.
    #[must_use = "dropped, it answers that nobody knows"]
    pub fn inspect(self, look: impl FnOnce(&Result<Reply, StoreError>) + Send + 'static) -> Self {
        let (name, id) = (self.name.clone(), self.id);
        Self::new(Arc::new(Inspector(Mutex::new(Some((self, Box::new(look)))))), name, id)
    }

    fn give(&mut self, answer: Result<Reply, StoreError>) {
        if let Some(receiver) = self.receiver.take() {
            receiver.answered(&self.name, self.id, answer);
        }
    }
}

impl Drop for ReplyTo {
    fn drop(&mut self) {
        if self.receiver.is_some() {
            self.give(Err(StoreError::unknown("the store ended, or its runtime did, before it answered")));
        }
    }
}

type Look = Box<dyn FnOnce(&Result<Reply, StoreError>) + Send>;

/// Where an answer is looked at on its way.
struct Inspector(Mutex<Option<(ReplyTo, Look)>>);

impl Receiver for Inspector {
    fn answered(&self, _: &LockName, _: u64, answer: Result<Reply, StoreError>) {
        let inspected = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((reply, look)) = inspected {
            look(&answer);
            reply.send(answer);
        }
    }

    fn deliver(&self, _: Push) {}

    fn connected(&self, _: bool) {}
}

impl fmt::Debug for ReplyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyTo({}, {})", self.name, self.id)
    }
}
