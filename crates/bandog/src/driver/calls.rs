//! Calls: what the machines want sent goes to the store, and what the store answers comes back to them.
//!
//! A call outlives whoever asked: a dropped future cancels nothing that was sent. Each call is noted in its [cohort](super::cohort) until
//! it is answered, or until the response timeout has passed: then the machine hears that the outcome is unknown. A later answer
//! finds no note, and is ignored.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bandog_core::lock::{Action, ConnectionKind, RequestContext};
use bandog_core::name::LockName;
use bandog_core::op::{Op, Reply};
use bandog_core::store::{Answer, Call, ReplyTo, Store, StoreError};
use bandog_core::time::Moment;
use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::cohort::State;
use super::notice::Notice;
use super::renewals::OutboxEntry;
use super::shield::shield;
use super::{Cohort, Driver};
use crate::blocking::is_blocking;
use crate::sync::atomic::Ordering;
use crate::sync::{Handle, has_workers, thread_local};

/// The calls of one lock that are not answered yet. Mostly there are none, of very many locks.
#[derive(Default)]
pub(super) struct Calls(Option<Box<UnderWay>>);

struct UnderWay {
    /// Mostly one.
    calls: SmallVec<[Noted; 1]>,
    /// No deadline is earlier.
    earliest: Moment,
}

struct Noted {
    id: u64,
    context: RequestContext,
    deadline: Moment,
}

/// A call that is to be sent.
pub(super) struct Outgoing {
    pub(super) call: Call,
    pub(super) id: u64,
    connection: ConnectionKind,
    /// Whether it releases a hold.
    is_release: bool,
    /// When it is to be sent, if not at once: whether it is still wanted then is [asked](Calls::context) again.
    pub(super) due: Option<Moment>,
}

impl Calls {
    fn begin(&mut self, id: u64, context: RequestContext, deadline: Moment) {
        let nothing = || Box::new(UnderWay { calls: SmallVec::new(), earliest: Moment::FAR });
        let under_way = self.0.get_or_insert_with(nothing);
        under_way.earliest = under_way.earliest.min(deadline);
        under_way.calls.push(Noted { id, context, deadline });
    }

    /// The context of a call, for whoever ends it; `None` if it has ended.
    pub(super) fn end(&mut self, id: u64) -> Option<RequestContext> {
        let calls = &mut self.0.as_mut()?.calls;
        let at = calls.iter().position(|call| call.id == id)?;
        Some(calls.swap_remove(at).context)
    }

    /// What a call is for, while it is under way.
    pub(super) fn context(&self, id: u64) -> Option<&RequestContext> {
        self.0.as_ref()?.calls.iter().find(|call| call.id == id).map(|call| &call.context)
    }

    /// A call that should have been answered by now; it is over.
    fn next_overdue(&mut self, now: Moment) -> Option<RequestContext> {
        let UnderWay { calls, earliest } = &mut **self.0.as_mut().filter(|under_way| under_way.earliest <= now)?;
        let at = calls.iter().position(|call| call.deadline <= now);
        if at.is_none() {
            *earliest = calls.iter().map(|call| call.deadline).min().unwrap_or(Moment::FAR);
        }
        Some(calls.swap_remove(at?).context)
    }

    /// When to look for overdue calls.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.0.as_ref().filter(|under_way| !under_way.calls.is_empty()).map(|under_way| under_way.earliest)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|under_way| under_way.calls.is_empty())
    }

    /// Frees the memory that only calls need.
    pub(super) fn tidy(&mut self) {
        self.0.take_if(|under_way| under_way.calls.is_empty());
    }
}

impl State {
    /// Notes a request of the machine and makes its call.
    pub(super) fn begin_call(&mut self, driver: &Driver, name: &LockName, now: Moment, action: Action) -> Outgoing {
        let Action { context, op, connection } = action;
        let due = match context {
            RequestContext::Renew { sent, due, .. } if due > sent => Some(due),
            _ => None,
        };
        let is_release = matches!(context, RequestContext::Release { .. });
        let id = driver.next_call.fetch_add(1, Ordering::Relaxed);
        self.calls.begin(id, context, due.unwrap_or(now) + driver.settings.response);
        let reply = ReplyTo::new(driver.receiver(), name.clone(), id);
        Outgoing { call: Call { name: name.clone(), op, unattended: false, reply }, id, connection, is_release, due }
    }
}

impl Driver {
    /// Sends the calls of one machine.
    pub(super) fn send(self: &Arc<Self>, cohort: &Arc<Cohort>, outgoing: Vec<Outgoing>) {
        let mut claims = Vec::new();
        for mut outgoing in outgoing {
            tracing::trace!(target: "bandog", lock = %cohort.name(), id = outgoing.id, op = ?outgoing.call.op, "send");
            if outgoing.connection == ConnectionKind::Claims {
                claims.push(outgoing.call);
            } else if self.capabilities.in_process {
                self.submit(&self.renewal_store(), vec![outgoing.call]);
            } else if outgoing.is_release && self.sends_at_once() {
                outgoing.call.unattended = true;
                claims.push(outgoing.call);
            } else {
                self.renewal_thread.post([(Arc::clone(cohort), outgoing)]);
            }
        }
        if !claims.is_empty() {
            self.submit(&self.store, claims);
        }
    }

    /// Sends the calls of many machines: those for the renewal thread in one batch.
    pub(super) fn send_together(self: &Arc<Self>, mut entries: Vec<OutboxEntry>) {
        let is_for_renewals = |(_, outgoing): &mut OutboxEntry| {
            !self.capabilities.in_process && outgoing.connection == ConnectionKind::Renewals
        };
        let renewals: Vec<OutboxEntry> = entries.extract_if(.., is_for_renewals).collect();
        self.renewal_thread.post(renewals);
        for (cohort, outgoing) in entries {
            self.send(&cohort, vec![outgoing]);
        }
    }

    /// Hands calls to the store. It does its I/O on the caller's runtime, or on the renewal thread's where the caller has none or blocks it.
    pub(super) fn submit(&self, store: &Arc<dyn Store>, calls: Vec<Call>) {
        let Some(_nested) = Nested::enter() else {
            // An answer within `submit` may make the next call, and so on: on this thread the stack would end.
            let store = Arc::clone(store);
            return self.renewal_thread.spawn(async move {
                let _ = shield("a store", || store.submit(calls));
            });
        };
        let runtime = (!self.has_runtime()).then(|| self.renewal_thread.runtime());
        // If it panics, the dropped calls are answered with an unknown outcome.
        let _ = shield("a store", || {
            let _inside = runtime.as_ref().map(Handle::enter);
            store.submit(calls);
        });
    }

    /// Whether a release that nobody waits for is sent on the connection for claims: then it goes out before the caller goes on, ahead
    /// of its next claim. Otherwise the renewal thread sends it, which the caller's runtime cannot delay.
    fn sends_at_once(&self) -> bool {
        !is_blocking()
            && Handle::try_current()
                .is_ok_and(|runtime| !self.renewal_thread.runs_on(&runtime) && has_workers(&runtime))
            && self.store.sends_at_once()
    }

    /// Takes the answer to a call: notes it for listeners, and hands it to the machine.
    pub(super) fn answered(self: &Arc<Self>, cohort: &Arc<Cohort>, id: u64, answer: Result<Reply, StoreError>) {
        let mut state = cohort.lock();
        let Some(context) = state.calls.end(id) else { return };
        self.step(cohort, state, |now, state, notices| {
            notices.extend(Notice::of_answer(&context, &answer));
            state.machine.handle_reply(now, context, answer);
        });
    }

    /// Ends the calls whose answer is overdue.
    pub(super) fn end_overdue_calls(self: &Arc<Self>, cohort: &Arc<Cohort>) {
        loop {
            let (now, mut state) = (self.clock.now(), cohort.lock());
            let Some(context) = state.calls.next_overdue(now) else { return };
            let answer = Err(StoreError::unknown("the store did not answer in time"));
            self.step(cohort, state, |now, state, notices| {
                notices.extend(Notice::of_answer(&context, &answer));
                state.machine.handle_reply(now, context, answer);
            });
        }
    }

    /// Applies an operation past the machines, on this handle of the store.
    pub(crate) async fn ask(&self, store: &Arc<dyn Store>, name: LockName, op: Op) -> Result<Reply, StoreError> {
        let (call, answer) = bandog_core::store::call(name, op);
        self.submit(store, vec![call]);
        self.in_time(answer).await
    }

    /// The answer to a request past the machines, or that it did not come in time.
    pub(crate) async fn answer<T: Send + 'static>(&self, answer: Answer<T>) -> Result<T, StoreError> {
        if self.has_runtime() {
            return self.in_time(answer).await;
        }
        let (mut sender, receiver) = oneshot::channel();
        self.renewal_thread.spawn(async move {
            // Not for longer than somebody waits.
            let answered = first(pin!(answer), pin!(sender.closed())).await;
            drop(answered.map(|answer| sender.send(answer)));
        });
        let lost = || Err(StoreError::unknown("the client ended before the store answered"));
        self.in_time(Box::pin(async move { receiver.await.unwrap_or_else(|_| lost()) })).await
    }

    async fn in_time<T>(&self, answer: Answer<T>) -> Result<T, StoreError> {
        let (answer, silent) = (pin!(answer), pin!(self.clock.sleep_until(self.clock.now() + self.settings.response)));
        let late = || Err(StoreError::unknown("the store did not answer in time"));
        first(answer, silent).await.unwrap_or_else(late)
    }

    /// Whether the store can do its I/O on the caller's runtime: there is one, and the caller does not block it.
    pub(super) fn has_runtime(&self) -> bool {
        self.capabilities.in_process || (!is_blocking() && Handle::try_current().is_ok())
    }
}

/// So many calls may be submitted within each other on one thread.
const DEPTH: u32 = 16;

thread_local! {
    static SUBMITTING: Cell<u32> = const { Cell::new(0) };
}

/// A call that is being submitted on this thread, perhaps within the answer to another.
struct Nested;

impl Nested {
    /// Nothing if there are too many.
    fn enter() -> Option<Self> {
        SUBMITTING
            .try_with(|depth| {
                if depth.get() >= DEPTH {
                    return None;
                }
                depth.set(depth.get() + 1);
                Some(Self)
            })
            .unwrap_or(None)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let _ = SUBMITTING.try_with(|depth| depth.set(depth.get() - 1));
    }
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
