//! A renewal thread that stands still, its successor, and what becomes of it. Alone in its process: threads are counted.
#![cfg(target_os = "linux")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Wake, Waker};

use bandog::{LockConfig, Locks, MemoryStore};
use common::{ms, secs};

/// A waker that holds up whoever wakes it first, until the end of the test.
#[derive(Default)]
struct Stops {
    caught: AtomicBool,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Wake for Stops {
    fn wake(self: Arc<Self>) {
        if !self.caught.swap(true, Ordering::SeqCst) {
            let open = self.open.lock().expect("nobody panics under it");
            drop(self.opened.wait_while(open, |open| !*open).expect("nobody panics under it"));
        }
    }
}

// In real time: a thread that stands still stands still in virtual time too.
#[tokio::test]
async fn a_successor_serves_what_was_due_with_the_thread_that_stood_still() {
    let store = MemoryStore::new();
    let config = LockConfig::builder().watchdog_period(ms(50)).build().unwrap();
    let hasty = Locks::builder().defaults(config).response_timeout(ms(200));
    let (locks, other) = (hasty.store(store.clone()).build().unwrap(), Locks::builder().store(store).build().unwrap());
    let stops = Arc::new(Stops::default());
    let waker = Waker::from(Arc::clone(&stops));
    let (mut held, mut waits) = (Vec::new(), Vec::new());
    for n in 0..32 {
        held.push(other.mutex(format!("job:{n}")).acquire().await.unwrap());
        let mut wait = Box::pin(locks.mutex(format!("job:{n}")).wait(ms(100)).acquire());
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        waits.push(wait);
    }
    // Before anybody looks: whoever looks late ends its wait by itself.
    until("caught, and found", || stops.caught.load(Ordering::SeqCst) && locks.health().findings.renewal >= 1).await;
    for wait in waits {
        let over = tokio::time::timeout(secs(10), wait).await.expect("served by the one or the other");
        assert!(over.is_err(), "the wait is over");
    }
    until("the one that stands still, its successor, and the other client's", || renewal_threads() == 3).await;
    *stops.open.lock().unwrap() = true;
    stops.opened.notify_all();
    until("its turn is over, and it ends", || renewal_threads() == 2).await;
}

/// Waits for other threads, in real time.
async fn until(what: &str, so: impl Fn() -> bool) {
    let waits = async {
        while !so() {
            tokio::time::sleep(ms(10)).await;
        }
    };
    tokio::time::timeout(secs(30), waits).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The renewal threads of this process; no other test runs in it.
fn renewal_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "bandog-renewals").count()
}
