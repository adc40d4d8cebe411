//! For the authors of stores: answers calls by an async client.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bandog_core::name::LockName;
use bandog_core::op::{Op, Reply};
use bandog_core::store::{Answer, Call, StoreError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::driver::lock;
use crate::sync::Mutex;

type Apply = Arc<dyn Fn(LockName, Op) -> Answer<Reply> + Send + Sync>;

/// Answers the calls of a [`Store`](crate::store::Store) by an async client: one after the other, in the order in which they were
/// submitted, on a task of the runtime that submits the first. Should that runtime end, the next call starts a task on its own.
///
/// ```
/// use bandog::store::{Call, StoreError};
/// use bandog::{Answering, LockName, op::{Op, Reply}};
/// # #[derive(Clone)]
/// # struct Client;
/// # impl Client {
/// #     async fn apply(&self, _: LockName, _: Op) -> Result<Reply, StoreError> { Err(StoreError::unknown("an example")) }
/// # }
/// struct MyStore {
///     answering: Answering,
/// }
///
/// impl MyStore {
///     fn new(client: Client) -> Self {
///         Self { answering: Answering::new(move |name, op| {
///             let client = client.clone();
///             async move { client.apply(name, op).await }
///         }) }
///     }
///
///     // of the trait `Store`
///     fn submit(&self, calls: Vec<Call>) {
///         self.answering.submit(calls);
///     }
/// }
/// # let _store = MyStore::new(Client);
/// ```
pub struct Answering {
    apply: Apply,
    queue: Mutex<Option<UnboundedSender<Call>>>,
}

impl Answering {
    /// Each call is answered with what `apply` returns.
    pub fn new<F>(apply: impl Fn(LockName, Op) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Reply, StoreError>> + Send + 'static,
    {
        Self { apply: Arc::new(move |name, op| Box::pin(apply(name, op))), queue: Mutex::default() }
    }

    /// Takes calls, for [`Store::submit`](crate::store::Store::submit). It must be called inside a tokio runtime, as that is.
    pub fn submit(&self, calls: Vec<Call>) {
        for call in calls {
            let unsent = match &*lock(&self.queue) {
                Some(sender) => sender.send(call).err().map(|unsent| unsent.0),
                None => Some(call),
            };
            let Some(call) = unsent else { continue };
            let (sender, calls) = unbounded_channel();
            // The receiver is right here.
            drop(sender.send(call));
            // Unlocked: a runtime that has ended drops the task at once, which answers its calls.
            let ended = lock(&self.queue).replace(sender);
            drop(ended);
            drop(tokio::spawn(answer(Arc::clone(&self.apply), calls)));
        }
    }
}

async fn answer(apply: Apply, mut calls: UnboundedReceiver<Call>) {
    while let Some(call) = calls.recv().await {
        call.answer_with(&*apply).await;
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}
