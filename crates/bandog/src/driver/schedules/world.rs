//! One memory store in virtual time, near or far, as a shuttle test sees it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Reply};
use bandog_core::store::{Answer, Ask, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store};
use bandog_core::time::{LeaseTime, Moment};
use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::{Guard, Locks, LocksBuilder, MemoryStore, Token, VirtualClock};

pub(super) struct World {
    pub(super) clock: VirtualClock,
    pub(super) store: MemoryStore,
    far: bool,
}

impl World {
    pub(super) fn new(far: bool) -> Self {
        let clock = VirtualClock::new();
        Self { store: MemoryStore::with_clock(clock.clock()), clock, far }
    }

    /// Near or far, as the schedule has it.
    pub(super) fn any() -> Self {
        Self::new(thread_rng().gen_bool(0.5))
    }

    pub(super) fn builder(&self) -> LocksBuilder {
        // Time passes while requests are under way: they are late, but not lost.
        let builder = Locks::builder().clock(self.clock.clock()).response_timeout(Duration::from_secs(600));
        if self.far {
            builder.store(Far(self.store.clone(), self.clock.clone()))
        } else {
            builder.store(self.store.clone())
        }
    }

    pub(super) fn locks(&self) -> Locks {
        self.builder().build().unwrap()
    }

    /// Lets time pass and the renewal thread do what is due; others go on meanwhile.
    pub(super) fn pass(&self, by: Duration) {
        self.clock.advance_blocking(by);
    }

    /// Nobody holds the lock and nobody waits for it.
    pub(super) fn is_free(&self, name: &str) -> bool {
        let mut answer = self.store.apply(LockName::new(name).unwrap(), Op::Inspect);
        match peek(&mut answer) {
            Poll::Ready(Ok(Reply { body: Body::Record(record), .. })) => {
                record.is_none_or(|record| record.holders.is_empty() && record.waiters.is_empty())
            }
            other => panic!("no record but {other:?}"),
        }
    }
}

/// Waits for every release that is under way.
pub(super) fn drained(locks: &Locks) {
    block_on(locks.handle.janitor.drained(&locks.handle.clock, Moment::FAR)).unwrap();
}

/// Waits for every release, without the help of time, and sees that nothing is left.
pub(super) fn close<const N: usize>(world: &World, clients: [Locks; N], names: &[&str]) {
    for locks in clients {
        block_on(locks.shutdown()).unwrap();
        let janitor = locks.janitor();
        assert_eq!((janitor.pending, janitor.abandoned), (0, 0));
        for cohort in locks.handle.all_cohorts() {
            let state = cohort.lock();
            assert!(state.machine.is_idle(), "left of a lock that nobody uses: {:?}", state.machine);
        }
    }
    assert!(names.iter().all(|name| world.is_free(name)), "an orphan in the store");
}

/// What a lock protects: sees whether two are inside, and whether tokens grow.
#[derive(Default)]
pub(super) struct Inside(Mutex<(usize, Option<Token>)>);

impl Inside {
    pub(super) fn visit(&self, guard: Guard) {
        {
            let mut seen = self.0.lock().unwrap();
            assert_eq!(seen.0, 0, "two are inside");
            assert!(Some(guard.token()) > seen.1, "{} after {:?}", guard.token(), seen.1);
            *seen = (1, Some(guard.token()));
        }
        thread::yield_now();
        self.0.lock().unwrap().0 = 0;
        drop(guard);
    }
}

pub(super) fn join(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Polls once, and leaves no trace of who did.
pub(super) fn peek<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Acquires and waits for it.
pub(super) fn take(locks: &Locks, name: &str) -> Guard {
    block_on(locks.mutex(name).acquire()).unwrap()
}

/// The memory store behind a network: answers come later, on a task, and renewals and releases through the renewal
/// thread.
#[derive(Debug, Clone)]
struct Far(MemoryStore, VirtualClock);

impl Store for Far {
    fn capabilities(&self) -> Capabilities {
        Capabilities::FULL
    }

    fn time(&self) -> LeaseTime {
        self.0.time()
    }

    fn submit(&self, calls: Vec<Call>) {
        let (inner, busy) = (self.0.clone(), self.1.busy());
        drop(shuttle::future::spawn(async move {
            for call in calls {
                let Call { name, op, reply, .. } = call;
                shuttle::future::yield_now().await;
                let answer = inner.apply(name, op).await;
                shuttle::future::yield_now().await;
                reply.send(answer);
            }
            drop(busy);
        }));
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.0.list(query)
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.0.listen(inbox, receiver)
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        self.0.probe(connection)
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.0.is_open(connection)
    }
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "far {}", self.0)
    }
}
