//! The stage of a play about cancellation: clients, clocks, and looks at what is left.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog::op::{Body, Op, Reply};
use bandog::store::Ask;
use bandog::store::Store;
use bandog::{LockName, Locks, MemoryStore, VirtualClock};

use super::{Gate, now};

pub(crate) type Output = Box<dyn Any>;
pub(crate) type Operation = Pin<Box<dyn Future<Output = Output>>>;

/// Longer than any check waits: an orphan must not end by itself.
const WINDOW: Duration = Duration::from_secs(15);

/// One client behind a gate, another one without, in virtual time.
pub(crate) struct Stage {
    pub(crate) clock: VirtualClock,
    store: MemoryStore,
    pub(crate) gate: Gate,
    pub(crate) locks: Locks,
    pub(crate) rival: Locks,
}

impl Stage {
    pub(crate) fn new(far: bool) -> Self {
        let clock = VirtualClock::new();
        let store = MemoryStore::with_clock(clock.clock());
        let gate = Gate::new(store.clone(), far);
        let locks = client(&clock, gate.clone());
        let rival = client(&clock, store.clone());
        Self { clock, store, gate, locks, rival }
    }

    /// Lets tasks run that have something to do; no time passes.
    pub(crate) async fn turn(&self) {
        if self.gate.is_far() {
            return self.settle().await;
        }
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until every thread has finished what it does in this instant.
    pub(crate) async fn settle(&self) {
        self.clock.advance(Duration::ZERO).await;
    }

    pub(crate) fn is_free(&self, lock: &str) -> bool {
        let name = LockName::new(lock).unwrap();
        match now(self.store.apply(name, Op::Inspect)) {
            Ok(Reply { body: Body::Record(record), .. }) => {
                record.is_none_or(|record| record.holders.is_empty() && record.waiters.is_empty())
            }
            other => panic!("no record but {other:?}"),
        }
    }

    /// Waits for other threads to finish what they do in this instant.
    pub(crate) async fn until(&self, what: &str, so: impl Fn() -> bool) {
        for _ in 0..200_000 {
            self.gate.open();
            self.turn().await;
            if so() {
                return;
            }
            std::thread::yield_now();
        }
        let (janitor, in_use) = (self.locks.janitor(), self.locks.locks_in_use());
        panic!("never: {what}; {janitor:?}, {in_use} in use, {} requests on their way", self.gate.sent());
    }
}

pub(crate) fn client(clock: &VirtualClock, store: impl Store) -> Locks {
    Locks::builder().store(store).clock(clock.clock()).claim_window(WINDOW).build().unwrap()
}

pub(crate) fn boxed<T: 'static>(future: impl Future<Output = T> + 'static) -> Operation {
    Box::pin(async move { Box::new(future.await) as Output })
}

/// Polls once; the caller wakes by hand.
pub(crate) fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
