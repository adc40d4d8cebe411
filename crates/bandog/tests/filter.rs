//! A filter of the log is the user's code, and may look at the very lock that a line is about: nothing of ours is locked while it is asked.

#![allow(clippy::unwrap_used, reason = "parts of tests")]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bandog::{Hold, Locks, Owner};
use common::{secs, within};
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;

/// What the filter looks at.
static SEEN: Mutex<Option<Hold>> = Mutex::new(None);
static LOOKS: AtomicUsize = AtomicUsize::new(0);

fn look() -> bool {
    let hold = SEEN.lock().unwrap().clone();
    LOOKS.fetch_add(usize::from(hold.is_some_and(|hold| hold.is_held())), Ordering::Relaxed);
    true
}

async fn live() {
    let locks = Locks::builder().build().unwrap();
    let job = locks.mutex("job").owner(&Owner::new()).reentrant();
    for _ in 0..2 {
        let outer = job.acquire().await.unwrap();
        *SEEN.lock().unwrap() = Some(outer.hold());
        job.acquire().await.unwrap().release().await.unwrap();
        drop(job.acquire().await.unwrap());
        assert!(locks.mutex("job").try_acquire().await.unwrap().is_none());
        outer.release().await.unwrap();
    }
    let dropped = job.acquire().await.unwrap();
    *SEEN.lock().unwrap() = Some(dropped.hold());
    drop(dropped);
    locks.shutdown().await.unwrap();
}

#[test]
fn a_filter_may_look_at_the_lock() {
    let filter = tracing_subscriber::registry().with(dynamic_filter_fn(|_, _| look()));
    tracing::subscriber::set_global_default(filter).unwrap();
    within(secs(10), || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(live());
    });
    assert!(LOOKS.load(Ordering::Relaxed) > 0);
}
