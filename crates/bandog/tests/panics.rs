//! Code of others that panics or calls back: a waker, a store. The locks of the client do not suffer.

mod common;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use bandog::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store};
use bandog::{Hold, Locks, MemoryStore, VirtualClock};
use bandog_core::holder::InboxId;
use bandog_core::time::LeaseTime;
use common::{World, poll, ready, secs, within};

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker of the test");
    }
}

#[test]
fn a_waker_that_panics_ends_no_renewals() {
    within(secs(20), || {
        for world in World::both() {
            let locks = bandog::blocking::Locks::from(world.locks());
            let guard = locks.mutex("job").acquire().unwrap();
            let mut waits = world.locks().mutex("job").wait(secs(1)).acquire();
            let waker = Waker::from(Arc::new(Panics));
            assert!(Pin::new(&mut waits).poll(&mut Context::from_waker(&waker)).is_pending());
            let mut lost = Box::pin(guard.lost());
            assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            world.clock.advance_blocking(secs(60));
            assert!(guard.is_held(), "it was renewed all the while");
            assert!(ready(&mut waits).is_err());
            drop(lost);
        }
    });
}

#[derive(Clone)]
struct Broken {
    inner: MemoryStore,
    /// How many calls panic from now on.
    panics: Arc<AtomicU32>,
}

impl Broken {
    fn strike(&self) -> bool {
        self.panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

impl Store for Broken {
    fn capabilities(&self) -> Capabilities {
        Capabilities::FULL
    }

    fn time(&self) -> LeaseTime {
        self.inner.time()
    }

    fn submit(&self, calls: Vec<Call>) {
        assert!(!self.strike(), "a store of the test, asked");
        self.inner.submit(calls);
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.inner.list(query)
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.inner.listen(inbox, receiver)
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        self.inner.probe(connection)
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.inner.is_open(connection)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken")
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[test]
fn a_store_that_panics_has_not_answered() {
    within(secs(20), || {
        let clock = VirtualClock::new();
        let store = Broken { inner: MemoryStore::with_clock(clock.clock()), panics: Arc::default() };
        let locks = Locks::builder().store(store.clone()).clock(clock.clock()).build().unwrap();
        let guard = bandog::blocking::Locks::from(locks.clone()).mutex("job").acquire().unwrap();
        for panics in [1, 2, 3] {
            store.panics.store(panics, Ordering::SeqCst);
            clock.advance_blocking(secs(25));
            assert!(guard.is_held(), "renewed after {panics} panics");
            assert_eq!(store.panics.load(Ordering::SeqCst), 0);
        }
        store.panics.store(1, Ordering::SeqCst);
        let mut other = locks.mutex("other").acquire();
        // Granted and not picked up within the claim window, it goes back to the line: looked at often enough, it comes. The
        // pause after the panic may be so short that it is there at the first look.
        let looked = (0..60).find_map(|_| match poll(&mut other) {
            Poll::Ready(guard) => Some(guard),
            Poll::Pending => {
                clock.advance_blocking(secs(1));
                None
            }
        });
        assert!(looked.expect("within a minute").unwrap().is_held());
    });
}

/// Looks at the lock when it is woken and when it is dropped.
struct Looks(Hold);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.0.state();
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.0.state();
    }
}

#[test]
fn a_waker_may_look_at_its_lock() {
    within(secs(20), || {
        for world in World::both() {
            let locks = world.locks();
            let guard = bandog::blocking::Locks::from(locks.clone()).mutex("job").acquire().unwrap().unbind();
            let looks = || Waker::from(Arc::new(Looks(guard.hold())));
            // Replaced, cancelled, timed out; told of a loss, and of a release.
            let mut waits = locks.mutex("job").acquire();
            for _ in 0..2 {
                assert!(Pin::new(&mut waits).poll(&mut Context::from_waker(&looks())).is_pending());
            }
            drop(waits);
            let mut waits = locks.mutex("job").wait(secs(1)).acquire();
            assert!(Pin::new(&mut waits).poll(&mut Context::from_waker(&looks())).is_pending());
            world.clock.advance_blocking(secs(2));
            assert!(ready(&mut waits).is_err());
            let mut lost = Box::pin(guard.lost());
            assert!(lost.as_mut().poll(&mut Context::from_waker(&looks())).is_pending());
            world.store.delete(&common::name("job"));
            world.clock.advance_blocking(secs(11));
            assert!(!guard.is_held());
            ready(&mut lost);
            let guard = bandog::blocking::Locks::from(locks.clone()).mutex("job").acquire().unwrap().unbind();
            let waker = Waker::from(Arc::new(Looks(guard.hold())));
            let mut lost = Box::pin(guard.lost());
            assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            drop(guard);
            assert!(poll(&mut lost).is_pending());
        }
    });
}
