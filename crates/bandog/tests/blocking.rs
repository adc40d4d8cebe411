//! The same locks for threads.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use bandog::blocking::{Interrupt, Locks};
use bandog::{ErrorKind, LossReason, MemoryStore, RunError};
use common::{World, ms, ready, secs};

/// Spins until something is so on another thread.
fn until(what: &str, so: impl Fn() -> bool) {
    for _ in 0..10_000_000_u64 {
        if so() {
            return;
        }
        thread::yield_now();
    }
    panic!("never: {what}");
}

#[test]
fn blocking_mirrors_async() {
    for world in World::both() {
        let locks = Locks::from(world.locks());
        let guard = locks.mutex("job").lease(secs(10)).acquire().unwrap();
        assert!(guard.is_held() && guard.remaining() > secs(9));
        guard.renew().unwrap();
        let elsewhere = |ask: &(dyn Fn() -> bool + Sync)| thread::scope(|scope| scope.spawn(ask).join().unwrap());
        assert!(elsewhere(&|| locks.mutex("job").try_acquire().unwrap().is_none()));
        guard.release().unwrap();
        assert_eq!(locks.mutex("job").run(|hold| u64::from(hold.is_held())).unwrap(), 1);
        assert!(world.is_free("job"));

        let reader = locks.rwlock("cfg").read().acquire().unwrap();
        let writer = reader.upgrade().unwrap();
        let reader = writer.downgrade().unwrap();
        assert!(elsewhere(&|| locks.rwlock("cfg").read().try_acquire().unwrap().is_some()));
        drop(reader);
        let permits = locks.semaphore("gpu", 2).permits(2).acquire().unwrap();
        assert_eq!(locks.list("gpu").unwrap().len(), 1);
        assert!(locks.inspect("gpu").unwrap().is_some());
        assert!(locks.revoke("gpu", "enough").unwrap().is_some());
        until("revoked", || !permits.is_held());
        assert_eq!(permits.release().unwrap_err().kind(), ErrorKind::Lost);

        let lost = locks.mutex("job").max_renewals(0).run(|_| world.clock.pause(secs(31)));
        assert!(matches!(lost, Err(RunError::Lost { reason: LossReason::Expired, .. })), "{lost:?}");
        world.clock.advance_blocking(secs(1));
        locks.shutdown().unwrap();
        assert_eq!(locks.mutex("job").acquire().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(locks.janitor().pending, 0);
    }
}

#[test]
fn threads_exclude_each_other() {
    let store = MemoryStore::named("threads_exclude_each_other");
    let counter = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let locks = Locks::connect("memory:threads_exclude_each_other").unwrap();
                for _ in 0..100 {
                    let guard = locks.mutex("job").acquire().unwrap();
                    let read = counter.load(Ordering::SeqCst);
                    thread::yield_now();
                    counter.store(read + 1, Ordering::SeqCst);
                    guard.release().unwrap();
                }
            });
        }
    });
    assert_eq!(counter.load(Ordering::SeqCst), 600);
    drop(store);
}

#[test]
fn blocking_wait_ends_at_its_limit() {
    for world in World::both() {
        let locks = Locks::from(world.locks());
        let _held = world_holds(&world);
        let waits = {
            let locks = locks.clone();
            thread::spawn(move || locks.mutex("job").wait(secs(5)).acquire().map(drop))
        };
        until("queued", || world.waiters("job") == 1);
        // The waiter's own thread has heard of its place once it sends heartbeats.
        let applied = world.store.applied();
        until("heard", || {
            world.clock.advance_blocking(ms(100));
            world.store.applied() > applied
        });
        world.clock.advance_blocking(secs(5));
        assert_eq!(waits.join().unwrap().unwrap_err().kind(), ErrorKind::Timeout);
        world.clock.advance_blocking(ms(0));
        assert_eq!(world.waiters("job"), 0);
    }
}

#[expect(clippy::unwrap_used, reason = "a part of a test")]
fn world_holds(world: &World) -> bandog::Guard {
    Locks::from(world.locks()).mutex("job").acquire().unwrap().unbind()
}

#[test]
fn blocking_wait_can_be_interrupted() {
    for world in World::both() {
        let held = world_holds(&world);
        let locks = Locks::from(world.locks());
        let stop = Interrupt::new();
        thread::scope(|scope| {
            let waiters: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| locks.mutex("job").fair().interruptible(&stop).acquire().map(drop)))
                .collect();
            until("queued", || world.waiters("job") == 3);
            stop.interrupt();
            for waiter in waiters {
                assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
            }
        });
        world.clock.advance_blocking(ms(0));
        assert_eq!(world.waiters("job"), 0, "nobody is left in the queue");
        assert!(stop.is_interrupted());
        let later = locks.mutex("job").interruptible(&stop).acquire();
        assert_eq!(later.unwrap_err().kind(), ErrorKind::Interrupted, "it stays interrupted");
        assert!(held.is_held());
        drop(held);
    }
}

/// Collects what is logged as a warning.
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{field}={value:?} "));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn ended_thread_is_noticed() {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    // For the whole process: what a thread logs while it ends is past any default of its own.
    tracing::subscriber::set_global_default(Warnings(Arc::clone(&warnings))).unwrap();
    for world in World::both() {
        let locks = Locks::from(world.locks());
        let (holds, asked) = (Arc::new(Mutex::new(None)), Arc::new(Barrier::new(2)));
        let thread = {
            let (locks, holds, asked) = (locks.clone(), Arc::clone(&holds), Arc::clone(&asked));
            thread::spawn(move || {
                let guard = locks.mutex("leaked").acquire().unwrap();
                let again = locks.mutex("deep").reentrant();
                std::mem::forget((again.acquire().unwrap(), again.acquire().unwrap()));
                *holds.lock().unwrap() = Some((guard.hold(), Box::pin(guard.lost())));
                std::mem::forget(guard);
                asked.wait();
            })
        };
        asked.wait();
        thread.join().unwrap();
        let (hold, mut lost) = holds.lock().unwrap().take().unwrap();
        assert!(!hold.is_held());
        assert_eq!(ready(&mut lost), LossReason::OwnerEnded);
        world.clock.advance_blocking(ms(0));
        assert!(world.is_free("leaked") && world.is_free("deep"), "released at once, not at the lease end");
    }
    let warnings = warnings.lock().unwrap();
    let about = |lock: &str| warnings.iter().filter(|text| text.contains(&format!("lock={lock} "))).count();
    assert_eq!((about("leaked"), about("deep")), (2, 2), "{warnings:?}");
}
