//! A recorder that panics: whoever asks may be harmed by it, the lock is not.
#![allow(clippy::unwrap_used, reason = "parts of tests")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use common::{World, poll, ready, secs, waiting};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

static PANICS: AtomicBool = AtomicBool::new(false);

struct Panicking;

fn panics() {
    assert!(!PANICS.load(Ordering::Acquire), "a recorder that panics");
}

impl Recorder for Panicking {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        // Attempts are counted before anything is asked for.
        if key.name() != "bandog_acquires_total" {
            panics();
        }
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        panics();
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panics();
        Histogram::noop()
    }
}

fn panicking<T>(call: impl FnOnce() -> T) -> std::thread::Result<T> {
    PANICS.store(true, Ordering::Release);
    let result = catch_unwind(AssertUnwindSafe(call));
    PANICS.store(false, Ordering::Release);
    result
}

#[tokio::test]
async fn a_recorder_that_panics_costs_no_lock() {
    metrics::set_global_recorder(Panicking).unwrap();
    for world in World::both() {
        let locks = world.locks();
        world.settle().await;
        // At the grant: whoever asked unwinds, and the lock goes back.
        let mut asks = locks.mutex("job").acquire();
        if world.far.is_some() {
            asks = waiting(asks);
            world.settle().await;
        }
        assert!(panicking(|| poll(&mut asks)).is_err(), "the recorder should have been asked");
        drop(asks);
        world.settle().await;
        assert!(world.is_free("job"));

        // At the drop, at a renewal, at a cancelled wait: nobody notices.
        let guard = locks.mutex("job").acquire().await.unwrap();
        PANICS.store(true, Ordering::Release);
        world.pass(secs(60)).await;
        PANICS.store(false, Ordering::Release);
        assert!(guard.is_held(), "renewed all the while");
        let waits = waiting(locks.mutex("job").acquire());
        panicking(|| drop(waits)).unwrap();
        panicking(|| drop(guard)).unwrap();
        world.settle().await;
        assert!(world.is_free("job"));
        let mut after = locks.mutex("job").acquire();
        if world.far.is_some() {
            after = waiting(after);
            world.settle().await;
        }
        drop(ready(&mut after).unwrap());
    }
}
