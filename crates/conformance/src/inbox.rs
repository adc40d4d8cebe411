//! A client's inbox: collects what the store pushes and lets a story wait for it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bandog_core::name::LockName;
use bandog_core::op::Reply;
use bandog_core::store::StoreError;
use bandog_core::store::{Push, Receiver};

use crate::bench::Passage;

/// Pushes in the order of arrival, and whoever waits for the next.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<Letters>);

#[derive(Debug, Default)]
struct Letters {
    all: Vec<Push>,
    waker: Option<Waker>,
}

impl Mailbox {
    /// Takes the first push that fits, waiting for it as long as `time` has patience.
    pub(crate) async fn take(&self, time: &dyn Passage, fits: impl Fn(&Push) -> bool) -> Option<Push> {
        let mut patience = pin!(time.patience());
        poll_fn(|context| {
            if let Some(push) = self.find(&fits, context.waker()) {
                return Poll::Ready(Some(push));
            }
            // Looked at again after patience ended: what came last still counts.
            patience.as_mut().poll(context).map(|()| self.find(&fits, context.waker()))
        })
        .await
    }

    /// Takes the first push that fits and has arrived.
    pub(crate) fn has(&self, fits: impl Fn(&Push) -> bool) -> bool {
        self.find(fits, Waker::noop()).is_some()
    }

    fn find(&self, fits: impl Fn(&Push) -> bool, waker: &Waker) -> Option<Push> {
        let mut letters = self.letters();
        let at = letters.all.iter().position(fits);
        letters.waker = at.is_none().then(|| waker.clone());
        at.map(|at| letters.all.remove(at))
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver for Mailbox {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        let waker = {
            let mut letters = self.letters();
            letters.all.push(push);
            letters.waker.take()
        };
        waker.iter().for_each(Waker::wake_by_ref);
    }

    fn connected(&self, _: bool) {}
}
