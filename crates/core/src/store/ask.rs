//! Calls as futures, for whoever awaits an answer: tools and tests. The library itself [receives](Receiver) its answers.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::name::LockName;
use crate::op::{Op, Reply};

use super::{Answer, Answers, Call, Push, Receiver, ReplyTo, Store, StoreError};

/// Calls of a store as futures. They are submitted at once, not when they are polled; a dropped future cancels nothing.
pub trait Ask: Store {
    /// Applies one operation to one lock.
    fn apply(&self, name: LockName, op: Op) -> Answer<Reply> {
        let (call, answer) = call(name, op);
        self.submit(vec![call]);
        answer
    }

    /// Applies many operations, to any locks; one result each, in order.
    fn batch(&self, asked: Vec<(LockName, Op)>) -> Answers {
        let (calls, answers): (Vec<_>, Vec<_>) = asked.into_iter().map(|(name, op)| call(name, op)).unzip();
        if !calls.is_empty() {
            self.submit(calls);
        }
        Box::pin(async move {
            let mut results = Vec::with_capacity(answers.len());
            for answer in answers {
                results.push(answer.await);
            }
            results
        })
    }
}

impl<S: Store + ?Sized> Ask for S {}

/// A call, and its answer.
pub fn call(name: LockName, op: Op) -> (Call, Answer<Reply>) {
    let slot = Arc::new(Slot::default());
    let reply = ReplyTo::new(Arc::clone(&slot) as Arc<dyn Receiver>, name.clone(), 0);
    let answer = Box::pin(poll_fn(move |context| slot.poll(context)));
    (Call { name, op, unattended: false, reply }, answer)
}

/// Holds an answer until somebody asks for it.
#[derive(Default)]
struct Slot(Mutex<Stage>);

#[derive(Default)]
struct Stage {
    answer: Option<Result<Reply, StoreError>>,
    waker: Option<Waker>,
}

impl Slot {
    fn poll(&self, context: &Context<'_>) -> Poll<Result<Reply, StoreError>> {
        let mut stage = self.lock();
        if let Some(answer) = stage.answer.take() {
            return Poll::Ready(answer);
        }
        let replaced = stage.waker.replace(context.waker().clone());
        drop(stage);
        drop(replaced);
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver for Slot {
    fn answered(&self, _: &LockName, _: u64, answer: Result<Reply, StoreError>) {
        let mut stage = self.lock();
        stage.answer = Some(answer);
        let waker = stage.waker.take();
        drop(stage);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn deliver(&self, _: Push) {}

    fn connected(&self, _: bool) {}
}
