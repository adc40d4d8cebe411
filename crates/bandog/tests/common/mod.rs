//! A world in virtual time: one memory store, near or far, and any number of clients.
#![allow(dead_code, reason = "every test file is a crate of its own and uses a part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use bandog::ledger::Limits;
use bandog::op::{Body, Op, RecordView, Reply};
use bandog::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store};
use bandog::{LockName, Locks, LocksBuilder, MemoryStore, VirtualClock};
use bandog_core::holder::InboxId;
use bandog_core::store::Ask;
use bandog_core::time::LeaseTime;
use tokio::sync::Notify;

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn name(name: &str) -> LockName {
    LockName::new(name).unwrap()
}

/// A test on a thread of its own, that fails rather than hang.
#[track_caller]
pub(crate) fn within<T: Send + 'static>(limit: Duration, test: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let output = test();
        let _ = tell.send(());
        output
    });
    if told.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    match thread.join() {
        Ok(output) => output,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// One store and its clock.
pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) store: MemoryStore,
    pub(crate) far: Option<Far>,
}

impl World {
    /// The store answers within the call.
    pub(crate) fn near() -> Self {
        Self::with_limits(Limits::default())
    }

    /// The store answers later, as one behind a network does.
    pub(crate) fn far() -> Self {
        let near = Self::near();
        Self { far: Some(Far { clock: Some(near.clock.clone()), ..Far::new(near.store.clone()) }), ..near }
    }

    pub(crate) fn both() -> [Self; 2] {
        [Self::near(), Self::far()]
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let clock = VirtualClock::new();
        let store = MemoryStore::with_limits(clock.clock(), limits);
        Self { clock, store, far: None }
    }

    pub(crate) fn builder(&self) -> LocksBuilder {
        let builder = Locks::builder().clock(self.clock.clock());
        match &self.far {
            Some(far) => builder.store(far.clone()),
            None => builder.store(self.store.clone()),
        }
    }

    /// One more client.
    pub(crate) fn locks(&self) -> Locks {
        self.builder().build().unwrap()
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, by: Duration) {
        self.clock.advance(by).await;
    }

    /// Lets everything that is under way come to rest, in no time.
    pub(crate) async fn settle(&self) {
        self.pass(Duration::ZERO).await;
    }

    /// The record as an operator would see it.
    pub(crate) fn view(&self, lock: &str) -> Option<RecordView> {
        let mut answer = self.store.apply(name(lock), Op::Inspect);
        match poll(&mut answer) {
            Poll::Ready(Ok(Reply { body: Body::Record(record), .. })) => record,
            other => panic!("no record but {other:?}"),
        }
    }

    pub(crate) fn holders(&self, lock: &str) -> usize {
        self.view(lock).map_or(0, |record| record.holders.len())
    }

    pub(crate) fn waiters(&self, lock: &str) -> usize {
        self.view(lock).map_or(0, |record| record.waiters.len())
    }

    /// Nobody holds and nobody waits.
    pub(crate) fn is_free(&self, lock: &str) -> bool {
        self.holders(lock) + self.waiters(lock) == 0
    }
}

/// Polls a future once.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A future that was polled once and waits.
pub(crate) fn waiting<F: Future + Unpin>(mut future: F) -> F {
    assert!(poll(&mut future).is_pending(), "it should have to wait");
    future
}

/// The output of a future that must be ready.
#[track_caller]
pub(crate) fn ready<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it should be ready"),
    }
}

/// Yields until something is so; other threads do the rest.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..1_000_000 {
        if so() {
            return;
        }
        std::thread::yield_now();
        tokio::task::yield_now().await;
    }
    panic!("never: {what}");
}

/// The memory store behind a network: calls are answered later, but for those of the renewal thread.
#[derive(Clone)]
pub(crate) struct Far {
    inner: Arc<dyn Store>,
    pub(crate) log: Arc<Mutex<Vec<(ThreadId, LockName, Op)>>>,
    /// Whose time stands still while a call is on its way.
    clock: Option<VirtualClock>,
    /// Whether it is the handle of the renewal thread.
    renews: bool,
    /// How often the renewal thread sent something.
    pub(crate) batches: Arc<AtomicUsize>,
    pub(crate) capabilities: Capabilities,
    /// No probe is answered while it is set.
    pub(crate) deaf: Arc<AtomicBool>,
    /// If set, whoever begins to listen is not heard before it is notified.
    pub(crate) subscribes: Arc<Mutex<Option<Arc<Notify>>>>,
}

impl Far {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self {
            inner: Arc::new(store),
            log: Arc::default(),
            clock: None,
            renews: false,
            batches: Arc::default(),
            capabilities: Capabilities::FULL,
            deaf: Arc::default(),
            subscribes: Arc::default(),
        }
    }

    /// What was sent, in order.
    pub(crate) fn sent(&self) -> Vec<Op> {
        self.log.lock().unwrap().iter().map(|(_, _, op)| op.clone()).collect()
    }

    fn note(&self, name: &LockName, op: &Op) {
        self.log.lock().unwrap().push((std::thread::current().id(), name.clone(), op.clone()));
    }
}

impl Store for Far {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn time(&self) -> LeaseTime {
        self.inner.time()
    }

    fn submit(&self, calls: Vec<Call>) {
        calls.iter().for_each(|call| self.note(&call.name, &call.op));
        if self.renews {
            self.batches.fetch_add(1, Ordering::SeqCst);
            return self.inner.submit(calls);
        }
        let (inner, busy) = (Arc::clone(&self.inner), self.clock.as_ref().map(VirtualClock::busy));
        drop(tokio::spawn(async move {
            tokio::task::yield_now().await;
            inner.submit(calls);
            drop(busy);
        }));
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.inner.list(query)
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        let inner = Arc::clone(&self.inner);
        match self.subscribes.lock().unwrap().clone() {
            None => inner.listen(inbox, receiver),
            Some(subscribed) => Box::pin(async move {
                subscribed.notified().await;
                inner.listen(inbox, receiver).await
            }),
        }
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self { renews: true, ..self.clone() })
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        if self.deaf.load(Ordering::SeqCst) {
            return Box::pin(std::future::pending());
        }
        self.inner.probe(connection)
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.inner.is_open(connection)
    }
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "far {}", self.inner)
    }
}

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
