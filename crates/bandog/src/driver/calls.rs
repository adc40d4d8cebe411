//! Sending: each request is polled once where it is made, or on the renewal thread if that place has no runtime, and if the
//! store has not answered by then, finished by a task that runs where the answer comes in.
//!
//! The task outlives whoever asked: a dropped future cancels nothing that was sent. Should the task itself be dropped
//! with its runtime, the machine hears that the outcome is unknown, and releases.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bandog_core::lock::{Action, ConnectionKind, RequestContext};
use bandog_core::op::{Body, Reply, Verdict};
use bandog_core::store::{Answer, StoreError};
use tokio::sync::oneshot;

use super::letter::Letter;
use super::shield::shield;
use super::{Cohort, Driver, inline};
use crate::blocking::is_blocking;
use crate::clock::Sleeping;
use crate::error::store_kind;
use crate::signals::Phase;
use crate::sync::{Handle, has_workers};

impl Driver {
    pub(super) fn send(self: &Arc<Self>, cohort: &Arc<Cohort>, action: Action) {
        let Action { context, op, connection } = action;
        tracing::trace!(target: "bandog", lock = %cohort.name(), ?context, "send");
        if connection == ConnectionKind::Renewals && !self.capabilities.in_process {
            let letter = Letter { cohort: Arc::clone(cohort), context, op };
            // Whoever was handed the lock has been woken here, and comes first. A runtime without workers may end before it rings.
            let behind = letter.can_wait() && !inline::is_polling() && self.home().as_ref().is_some_and(has_workers);
            return if behind { self.keeper.post_behind(letter) } else { self.keeper.post([letter]) };
        }
        let store = if connection == ConnectionKind::Renewals { self.renewals() } else { Arc::clone(&self.store) };
        let begun = shield("a store", || {
            let name = cohort.name().clone();
            let mut answer = if connection == ConnectionKind::AtOnce {
                store.apply_at_once(name, op)
            } else {
                store.apply(name, op)
            };
            // What is not answered at once is polled, where it may be, by the task that waits for it.
            let polled = if self.capabilities.in_process { poll_once(&mut answer) } else { Poll::Pending };
            (answer, polled)
        });
        match begun {
            Some((_, Poll::Ready(result))) => self.reply(cohort, context, result),
            Some((answer, Poll::Pending)) => self.finish_later(cohort, context, answer),
            None => self.reply(cohort, context, Err(StoreError::unknown("the store panicked"))),
        }
    }

    /// The answer to a request past the machines, or that it did not come in time.
    pub(crate) async fn answer<T: Send + 'static>(&self, answer: Answer<T>) -> Result<T, StoreError> {
        let clock = self.clock.clone();
        let patience = clock.now() + self.settings.response;
        let late = || Err(StoreError::unknown("the store did not answer in time"));
        let answer = async move {
            let (answer, silent) = (pin!(answer), pin!(clock.sleep_until(patience)));
            first(answer, silent).await.unwrap_or_else(late)
        };
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

    /// Whether a request that nobody waits for may be sent from here: it is on its way before the caller goes on, and somebody else
    /// than the caller goes on with it. Otherwise the renewal thread sends it, which nothing of the caller's holds up.
    pub(crate) fn goes_on_here(&self) -> bool {
        !self.capabilities.in_process && self.home().as_ref().is_some_and(has_workers) && self.store.sends_at_once()
    }

    pub(super) fn reply(
        self: &Arc<Self>,
        cohort: &Arc<Cohort>,
        context: RequestContext,
        result: Result<Reply, StoreError>,
    ) {
        self.heard(cohort, &context, &result);
        self.with(cohort, |now, machine| machine.handle_reply(now, context, result));
    }

    /// Tells what an answer shows, before the machine acts on it.
    // A call of its own: inlined into the path of every answer it makes a pair slower.
    #[inline(never)]
    fn heard(&self, cohort: &Cohort, context: &RequestContext, result: &Result<Reply, StoreError>) {
        match result.as_ref().map(|reply| (&reply.body, reply.body.waiters())) {
            Ok((_, None | Some(0))) => {}
            Ok((body, Some(waiters))) => drop(shield("a listener", || self.seen(cohort, context, body, waiters))),
            Err(error) => self.failed(cohort, context, error),
        }
    }

    #[cold]
    fn seen(&self, cohort: &Cohort, context: &RequestContext, body: &Body, waiters: u32) {
        self.signals.queue_seen(waiters);
        if let (RequestContext::Claim { .. }, Body::Verdict(Verdict::Queued(queued))) = (context, body) {
            self.signals.waiting(cohort.name(), || queued.blocker.clone().map(Into::into));
        }
    }

    #[cold]
    fn failed(&self, cohort: &Cohort, context: &RequestContext, error: &StoreError) {
        let phase = match context {
            RequestContext::Renew { .. } | RequestContext::Check { .. } => Phase::Renew,
            RequestContext::Release { .. } | RequestContext::Downgrade { .. } => Phase::Release,
            RequestContext::Claim { .. }
            | RequestContext::Confirm { .. }
            | RequestContext::Heartbeat { .. }
            | RequestContext::Withdraw { .. } => Phase::Acquire,
        };
        shield("a listener", || {
            self.signals.failed(store_kind(error.kind), phase);
            let (lock, phase, outcome) = (cohort.name(), phase.as_str(), error.outcome);
            tracing::debug!(target: "bandog", %lock, phase, ?context, %error, ?outcome, "the store failed");
        });
    }

    fn finish_later(self: &Arc<Self>, cohort: &Arc<Cohort>, context: RequestContext, answer: Answer<Reply>) {
        let silent = self.clock.limit(self.clock.now() + self.settings.response);
        let home = self.home();
        let context = match &home {
            Some(_) => Owed::Here(Arc::clone(cohort), context),
            None => Owed::Kept(self.keeper.begin(vec![(Arc::clone(cohort), context)])),
        };
        let call = Call { driver: Arc::clone(self), owed: Some(context) };
        let finish = Finish { answer: Some(answer), silent, call };
        match home {
            Some(runtime) => inline::begin(runtime, finish),
            None => self.keeper.spawn(finish),
        }
    }
}

/// Waits for an answer, as long as there is patience, and gives it.
///
/// Written out: an async block keeps its parts twice, and what one thread makes and another gives back is to be small (decision
/// 0035).
struct Finish {
    /// None once it is there.
    answer: Option<Answer<Reply>>,
    silent: Sleeping,
    call: Call,
}

impl Future for Finish {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { answer, silent, call } = &mut *self;
        let Some(under_way) = answer else { return Poll::Ready(()) };
        let result = match shield("a store", || under_way.as_mut().poll(cx)) {
            Some(Poll::Ready(result)) => result,
            Some(Poll::Pending) => {
                ready!(Pin::new(silent).poll(cx));
                Err(StoreError::unknown("the store did not answer in time"))
            }
            None => Err(StoreError::unknown("the store panicked")),
        };
        call.give(result);
        // Here, inside its runtime: it may be somebody else's.
        *answer = None;
        Poll::Ready(())
    }
}

/// A request under way. Dropped without an answer, it reports that nobody knows.
struct Call {
    driver: Arc<Driver>,
    owed: Option<Owed>,
}

/// An answer that is owed to a machine.
enum Owed {
    Here(Arc<Cohort>, RequestContext),
    /// On the renewal thread: should that stand still, the watchdog gives the answer.
    Kept(u64),
}

impl Call {
    fn give(&mut self, result: Result<Reply, StoreError>) {
        match self.owed.take() {
            Some(Owed::Here(cohort, context)) => self.driver.reply(&cohort, context, result),
            Some(Owed::Kept(batch)) => self.driver.answered(batch, vec![result]),
            None => {}
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.owed.is_some() {
            self.give(Err(StoreError::unknown("the runtime ended before the store answered")));
        }
    }
}

/// Polls a future once, from wherever we are.
pub(crate) fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> Poll<T> {
    // Whoever polls it next brings a real waker.
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// The future's output, or `None` if `limit` comes first.
///
/// Both are pinned by the caller: what an async function pins itself takes its room twice.
pub(crate) async fn first<T>(
    mut future: Pin<&mut impl Future<Output = T>>,
    mut limit: Pin<&mut impl Future<Output = ()>>,
) -> Option<T> {
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn what_another_thread_gives_back_is_small() {
        assert!(size_of::<Finish>() <= 120, "{} bytes", size_of::<Finish>());
    }
}
