//! Sending: each request is polled once where it is made, or on the renewal thread if that place has no runtime, and if the
//! store has not answered by then, finished by a task that runs where the answer comes in.
//!
//! The task outlives whoever asked: a dropped future cancels nothing that was sent. Should the task itself be dropped
//! with its runtime, the machine hears that the outcome is unknown, and releases.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bandog_core::lock::{Action, Errand, Lane};
use bandog_core::op::{Body, Reply, Verdict};
use bandog_core::store::{Answer, StoreError};
use tokio::sync::oneshot;

use super::shield::{shield, shielded};
use super::told::waiters;
use super::{Cohort, Driver, inline};
use crate::blocking::is_blocking;
use crate::error::store_kind;
use crate::signals::{Alert, Phase};
use crate::sync::Handle;

impl Driver {
    pub(super) fn send(self: &Arc<Self>, cohort: &Arc<Cohort>, action: Action) {
        let Action { errand, op, lane } = action;
        tracing::trace!(target: "bandog", lock = %cohort.name(), ?errand, "send");
        if lane == Lane::Renewals && !self.capabilities.in_process {
            return self.keeper.post(Arc::clone(cohort), errand, op);
        }
        let store = if lane == Lane::Claims { &self.store } else { &self.renewals };
        let begun = shield("a store", || {
            let mut answer = store.apply(cohort.name().clone(), op);
            // What is not answered at once is polled, where it may be, by the task that waits for it.
            let polled = if self.capabilities.in_process { poll_once(&mut answer) } else { Poll::Pending };
            (answer, polled)
        });
        match begun {
            Some((_, Poll::Ready(result))) => self.reply(cohort, errand, result),
            Some((answer, Poll::Pending)) => self.finish_later(cohort, errand, answer),
            None => self.reply(cohort, errand, Err(StoreError::unknown("the store panicked"))),
        }
    }

    /// The answer to a request past the machines, or that it did not come in time.
    pub(crate) async fn answer<T: Send + 'static>(&self, answer: Answer<T>) -> Result<T, StoreError> {
        let clock = self.clock.clone();
        let patience = clock.now() + self.settings.response;
        let late = || Err(StoreError::unknown("the store did not answer in time"));
        let answer = async move { first(answer, clock.sleep_until(patience)).await.unwrap_or_else(late) };
        if self.may_poll() {
            return answer.await;
        }
        let (tell, told) = oneshot::channel();
        self.keeper.spawn(async move { drop(tell.send(answer.await)) });
        told.await.unwrap_or_else(|_| Err(StoreError::unknown("the client ended before the store answered")))
    }

    // I/O belongs to the runtime that polls it first: none, or one that stands still, would be the wrong one.
    pub(super) fn may_poll(&self) -> bool {
        self.capabilities.in_process || (!is_blocking() && Handle::try_current().is_ok())
    }

    /// The caller's own runtime, if what is left to it will be run.
    fn home(&self) -> Option<Handle> {
        let runtime = Handle::try_current().ok()?;
        (!is_blocking() && !self.keeper.runs_on(&runtime)).then_some(runtime)
    }

    pub(super) fn reply(self: &Arc<Self>, cohort: &Arc<Cohort>, errand: Errand, result: Result<Reply, StoreError>) {
        self.heard(cohort, &errand, &result);
        self.with(cohort, |now, machine| machine.handle_reply(now, errand, result));
    }

    /// Tells what an answer shows, before the machine acts on it.
    // A call of its own: inlined into the path of every answer it makes a pair slower.
    #[inline(never)]
    fn heard(&self, cohort: &Cohort, errand: &Errand, result: &Result<Reply, StoreError>) {
        match result.as_ref().map(|reply| (&reply.body, waiters(&reply.body))) {
            Ok((_, None | Some(0))) => {}
            Ok((body, Some(waiters))) => drop(shield("a listener", || self.seen(cohort, errand, body, waiters))),
            Err(error) => self.failed(cohort, errand, error),
        }
        self.alert_renewal(cohort, errand);
    }

    #[cold]
    fn seen(&self, cohort: &Cohort, errand: &Errand, body: &Body, waiters: u32) {
        self.signals.queue_seen(waiters);
        if let (Errand::Claim { .. }, Body::Verdict(Verdict::Queued(queued))) = (errand, body) {
            self.signals.waiting(cohort.name(), || queued.blocker.clone().map(Into::into));
        }
    }

    #[cold]
    fn failed(&self, cohort: &Cohort, errand: &Errand, error: &StoreError) {
        let phase = match errand {
            Errand::Renew { .. } => Phase::Renew,
            Errand::Part { .. } | Errand::Downgrade { .. } => Phase::Release,
            Errand::Claim { .. } | Errand::Confirm { .. } | Errand::Heartbeat { .. } | Errand::Withdraw { .. } => {
                Phase::Acquire
            }
        };
        shield("a listener", || {
            self.signals.failed(store_kind(error.kind), phase);
            let (lock, phase, outcome) = (cohort.name(), phase.as_str(), error.outcome);
            tracing::debug!(target: "bandog", %lock, phase, ?errand, %error, ?outcome, "the store failed");
        });
    }

    fn alert_renewal(&self, cohort: &Cohort, errand: &Errand) {
        let (Errand::Renew { grip, sent, .. }, Some(limit)) = (errand, self.defaults.options.alerts.renewal) else {
            return;
        };
        let late = self.clock.now().since(*sent);
        let token = (late > limit).then(|| cohort.lock().machine.token(*grip)).flatten();
        if let Some(token) = token {
            let lock = cohort.name().clone();
            shield("a listener", || self.signals.alerted(Alert::Renewal { lock, token, late, limit }));
        }
    }

    fn finish_later(self: &Arc<Self>, cohort: &Arc<Cohort>, errand: Errand, answer: Answer<Reply>) {
        let patience = self.clock.now() + self.settings.response;
        let clock = self.clock.clone();
        let call = Call { driver: Arc::clone(self), cohort: Arc::clone(cohort), errand: Some(errand) };
        let task = async move {
            let silent = clock.sleep_until(patience);
            let result = first(shielded("a store", answer), silent).await.flatten();
            call.answered(result.unwrap_or_else(|| Err(StoreError::unknown("the store did not answer in time"))));
        };
        match self.home() {
            Some(runtime) => inline::begin(runtime, task),
            None => self.keeper.spawn(task),
        }
    }
}

/// A request under way. Dropped without an answer, it reports that nobody knows.
struct Call {
    driver: Arc<Driver>,
    cohort: Arc<Cohort>,
    errand: Option<Errand>,
}

impl Call {
    fn answered(mut self, result: Result<Reply, StoreError>) {
        if let Some(errand) = self.errand.take() {
            self.driver.reply(&self.cohort, errand, result);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(errand) = self.errand.take() {
            let error = StoreError::unknown("the runtime ended before the store answered");
            self.driver.reply(&self.cohort, errand, Err(error));
        }
    }
}

/// Polls a future once, from wherever we are.
pub(crate) fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> Poll<T> {
    // Whoever polls it next brings a real waker.
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// The future's output, or `None` if `limit` comes first.
pub(crate) async fn first<T>(future: impl Future<Output = T>, limit: impl Future<Output = ()>) -> Option<T> {
    let (mut future, mut limit) = (pin!(future), pin!(limit));
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
    })
    .await
}
