//! A memory store behind a gate: requests wait to be executed, answers to be given and pushes to be delivered, each
//! until the test says so. Open, it is the memory store.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub(crate) mod stage;

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};

use bandog::op::{Op, Reply};
use bandog::store::{Answer, Answers, Capabilities, Inbox, Listing, Page, Pulse, Push, Store, StoreError, Way};
use bandog::{LockName, MemoryStore};
use bandog_core::holder::InboxId;
use bandog_core::time::LeaseTime;

#[derive(Clone)]
pub(crate) struct Gate(Arc<Shared>);

struct Shared {
    inner: MemoryStore,
    far: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    next: u64,
    calls: Vec<Call>,
    pushes: VecDeque<(Weak<dyn Inbox>, Push)>,
    inboxes: Vec<Arc<dyn Inbox>>,
}

struct Call {
    id: u64,
    stage: Stage,
    waker: Option<Waker>,
    /// Nobody waits for the answer any more; the request may arrive all the same.
    dropped: bool,
}

enum Stage {
    Sent(Box<(LockName, Op)>),
    Executed(Result<Reply, StoreError>),
    Answered(Result<Reply, StoreError>),
}

impl Gate {
    /// Far away, releases in the background and renewals go through the renewal thread.
    pub(crate) fn new(inner: MemoryStore, far: bool) -> Self {
        Self(Arc::new(Shared { inner, far, state: Mutex::default() }))
    }

    pub(crate) fn is_far(&self) -> bool {
        self.0.far
    }

    pub(crate) fn close(&self) {
        self.state().closed = true;
    }

    /// Lets everything through that waits, and whatever comes.
    pub(crate) fn open(&self) {
        self.state().closed = false;
        while self.execute(0) || self.answer(0) || self.deliver(0) {}
    }

    /// Requests that have not arrived.
    pub(crate) fn sent(&self) -> usize {
        self.state().calls.iter().filter(|call| matches!(call.stage, Stage::Sent(_))).count()
    }

    /// Requests whose answer is on its way.
    pub(crate) fn executed(&self) -> usize {
        self.state().calls.iter().filter(|call| matches!(call.stage, Stage::Executed(_))).count()
    }

    /// Pushes on their way.
    pub(crate) fn pushes(&self) -> usize {
        self.state().pushes.len()
    }

    /// A request arrives: the nth of those on their way, round and round. False if there is none.
    pub(crate) fn execute(&self, nth: usize) -> bool {
        let mut state = self.state();
        let sent = |call: &&mut Call| matches!(call.stage, Stage::Sent(_));
        let waiting: Vec<&mut Call> = state.calls.iter_mut().filter(sent).collect();
        if waiting.is_empty() {
            return false;
        }
        let at = nth % waiting.len();
        let (id, dropped) = (waiting[at].id, waiting[at].dropped);
        let Stage::Sent(request) = &waiting[at].stage else { return false };
        let (name, op) = (**request).clone();
        drop(state);
        let result = now(self.0.inner.apply(name, op));
        let mut state = self.state();
        match dropped {
            true => state.calls.retain(|call| call.id != id),
            false => state.calls.iter_mut().filter(|call| call.id == id).for_each(|call| {
                call.stage = Stage::Executed(result.clone());
            }),
        }
        true
    }

    /// An answer arrives. False if none is on its way.
    pub(crate) fn answer(&self, nth: usize) -> bool {
        let mut state = self.state();
        let executed = |call: &&mut Call| matches!(call.stage, Stage::Executed(_));
        let mut waiting: Vec<&mut Call> = state.calls.iter_mut().filter(executed).collect();
        if waiting.is_empty() {
            return false;
        }
        let at = nth % waiting.len();
        let Stage::Executed(result) = &waiting[at].stage else { return false };
        waiting[at].stage = Stage::Answered(result.clone());
        let waker = waiting[at].waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// A push arrives. False if none is on its way.
    pub(crate) fn deliver(&self, nth: usize) -> bool {
        let mut state = self.state();
        if state.pushes.is_empty() {
            return false;
        }
        let at = nth % state.pushes.len();
        let Some((receiver, push)) = state.pushes.remove(at) else { return false };
        drop(state);
        if let Some(receiver) = receiver.upgrade() {
            receiver.deliver(push);
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// A call's answer, once it is there; sends the request at the first look.
    fn poll_call(
        &self,
        id: &mut Option<u64>,
        request: &(LockName, Op),
        cx: &Context<'_>,
    ) -> Poll<Result<Reply, StoreError>> {
        let mut state = self.state();
        let Some(known) = *id else {
            if !state.closed {
                drop(state);
                return Poll::Ready(now(self.0.inner.apply(request.0.clone(), request.1.clone())));
            }
            state.next += 1;
            let fresh = state.next;
            *id = Some(fresh);
            let stage = Stage::Sent(Box::new(request.clone()));
            state.calls.push(Call { id: fresh, stage, waker: Some(cx.waker().clone()), dropped: false });
            return Poll::Pending;
        };
        let Some(at) = state.calls.iter().position(|call| call.id == known) else { return Poll::Pending };
        if let Stage::Answered(result) = &state.calls[at].stage {
            let result = result.clone();
            state.calls.remove(at);
            return Poll::Ready(result);
        }
        state.calls[at].waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn give_up(&self, id: u64) {
        let mut state = self.state();
        state.calls.retain(|call| call.id != id || matches!(call.stage, Stage::Sent(_)));
        state.calls.iter_mut().filter(|call| call.id == id).for_each(|call| call.dropped = true);
    }
}

/// A request that was polled may still arrive after its future is gone.
struct GateCall {
    gate: Gate,
    request: (LockName, Op),
    id: Option<u64>,
}

impl Future for GateCall {
    type Output = Result<Reply, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { gate, request, id } = &mut *self;
        gate.poll_call(id, request, cx)
    }
}

impl Drop for GateCall {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.gate.give_up(id);
        }
    }
}

/// Keeps pushes back while the gate is closed.
struct Held {
    gate: Weak<Shared>,
    receiver: Weak<dyn Inbox>,
}

impl Inbox for Held {
    fn deliver(&self, push: Push) {
        let Some(gate) = self.gate.upgrade().map(Gate) else { return };
        let mut state = gate.state();
        if state.closed {
            return state.pushes.push_back((Weak::clone(&self.receiver), push));
        }
        drop(state);
        if let Some(receiver) = self.receiver.upgrade() {
            receiver.deliver(push);
        }
    }

    fn connected(&self, up: bool) {
        if let Some(receiver) = self.receiver.upgrade() {
            receiver.connected(up);
        }
    }
}

impl Store for Gate {
    fn capabilities(&self) -> Capabilities {
        Capabilities { in_process: !self.0.far, ..Capabilities::FULL }
    }

    fn time(&self) -> LeaseTime {
        self.0.inner.time()
    }

    fn apply(&self, name: LockName, op: Op) -> Answer<Reply> {
        Box::pin(GateCall { gate: self.clone(), request: (name, op), id: None })
    }

    fn batch(&self, calls: Vec<(LockName, Op)>) -> Answers {
        let calls: Vec<_> = calls.into_iter().map(|(name, op)| self.apply(name, op)).collect();
        Box::pin(async move {
            let mut answers = Vec::new();
            for call in calls {
                answers.push(call.await);
            }
            answers
        })
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.0.inner.list(query)
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Inbox>) -> Answer<()> {
        let held: Arc<dyn Inbox> = Arc::new(Held { gate: Arc::downgrade(&self.0), receiver });
        let answer = self.0.inner.listen(inbox, Arc::downgrade(&held));
        self.state().inboxes.push(held);
        answer
    }

    fn lane(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn probe(&self, way: Way) -> Answer<Pulse> {
        self.0.inner.probe(way)
    }

    fn is_open(&self, way: Way) -> bool {
        self.0.inner.is_open(way)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gated {}", self.0.inner)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The output of a future that is ready at its first poll.
#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it should be ready at once"),
    }
}
