//! A memory store behind a gate: requests wait to be executed, answers to be given and pushes to be delivered, each
//! until the test says so. Open, it is the memory store.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub(crate) mod stage;

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};

use bandog::op::Reply;
use bandog::store::{
    Answer, Ask, Call, Capabilities, Connection, Listing, Page, Pulse, Push, Receiver, ReplyTo, Store, StoreError,
};
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
    calls: Vec<Stage>,
    pushes: VecDeque<(Weak<dyn Receiver>, Push)>,
    inboxes: Vec<Arc<dyn Receiver>>,
}

enum Stage {
    Sent(Call),
    Executed(ReplyTo, Result<Reply, StoreError>),
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
        self.state().calls.iter().filter(|call| matches!(call, Stage::Sent(_))).count()
    }

    /// Requests whose answer is on its way.
    pub(crate) fn executed(&self) -> usize {
        self.state().calls.iter().filter(|call| matches!(call, Stage::Executed(..))).count()
    }

    /// Pushes on their way.
    pub(crate) fn pushes(&self) -> usize {
        self.state().pushes.len()
    }

    /// Takes out the nth of those at a stage, round and round.
    fn take(&self, nth: usize, at_stage: impl Fn(&Stage) -> bool) -> Option<(usize, Stage)> {
        let mut state = self.state();
        let waiting: Vec<usize> = (0..state.calls.len()).filter(|at| at_stage(&state.calls[*at])).collect();
        let at = *waiting.get(nth.checked_rem(waiting.len())?)?;
        Some((at, state.calls.remove(at)))
    }

    /// A request arrives: the nth of those on their way, round and round. False if there is none.
    pub(crate) fn execute(&self, nth: usize) -> bool {
        let Some((at, Stage::Sent(call))) = self.take(nth, |call| matches!(call, Stage::Sent(_))) else { return false };
        let result = now(self.0.inner.apply(call.name, call.op));
        let mut state = self.state();
        let at = at.min(state.calls.len());
        state.calls.insert(at, Stage::Executed(call.reply, result));
        true
    }

    /// An answer arrives. False if none is on its way.
    pub(crate) fn answer(&self, nth: usize) -> bool {
        match self.take(nth, |call| matches!(call, Stage::Executed(..))) {
            Some((_, Stage::Executed(reply, result))) => reply.send(result),
            _ => return false,
        }
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
}

/// Keeps pushes back while the gate is closed.
struct Held {
    gate: Weak<Shared>,
    receiver: Weak<dyn Receiver>,
}

impl Receiver for Held {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

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

    fn submit(&self, calls: Vec<Call>) {
        let mut state = self.state();
        if state.closed {
            return state.calls.extend(calls.into_iter().map(Stage::Sent));
        }
        drop(state);
        self.0.inner.submit(calls);
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.0.inner.list(query)
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        let held: Arc<dyn Receiver> = Arc::new(Held { gate: Arc::downgrade(&self.0), receiver });
        let answer = self.0.inner.listen(inbox, Arc::downgrade(&held));
        self.state().inboxes.push(held);
        answer
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        self.0.inner.probe(connection)
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.0.inner.is_open(connection)
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
