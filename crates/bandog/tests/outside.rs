//! Used where there is no runtime, or one that cannot do what ours can.

mod common;

use bandog::blocking::Locks;
use bandog::{ErrorKind, Fault, MemoryStore, OpKind};
use common::{Far, ms, secs, within};
use tokio::runtime::Builder;

#[expect(clippy::unwrap_used, reason = "a part of a test")]
fn clients(store: &MemoryStore) -> [bandog::Locks; 2] {
    let builder = || bandog::Locks::builder().response_timeout(ms(200));
    [builder().store(store.clone()).build().unwrap(), builder().store(Far::new(store.clone())).build().unwrap()]
}

/// Everything that sleeps, on the calling thread.
#[expect(clippy::unwrap_used, reason = "a part of a test")]
fn use_every_timer() {
    let store = MemoryStore::new();
    let slow = Fault::Delay { before: ms(20), after: ms(20) };
    for locks in clients(&store).map(Locks::from) {
        store.inject(OpKind::Acquire, slow, 1);
        store.inject(OpKind::Release, slow, 1);
        drop(locks.mutex("dropped").acquire().unwrap());
        let held = locks.mutex("held").acquire().unwrap();
        store.inject(OpKind::Any, slow, 1);
        assert!(locks.inspect("held").unwrap().is_some());
        assert!(locks.revoke("held", "enough").unwrap().is_some());
        store.inject(OpKind::Any, Fault::LoseRequest, u32::MAX);
        assert_eq!(locks.revoke("held", "more").unwrap_err().kind(), ErrorKind::Unavailable);
        store.heal();
        store.inject(OpKind::Release, slow, 1);
        drop(held);
        locks.shutdown().unwrap();
    }
}

#[test]
fn no_runtime_is_needed() {
    within(secs(20), use_every_timer);
}

#[test]
fn a_runtime_without_timers_is_enough() {
    within(secs(20), || Builder::new_current_thread().build().unwrap().block_on(async { use_every_timer() }));
    within(secs(20), || {
        Builder::new_current_thread().build().unwrap().block_on(async {
            let store = MemoryStore::new();
            for locks in clients(&store) {
                store.inject(OpKind::Any, Fault::Delay { before: ms(20), after: ms(20) }, 1);
                let guard = locks.mutex("job").acquire().await.unwrap();
                store.inject(OpKind::Any, Fault::LoseRequest, u32::MAX);
                assert_eq!(locks.revoke("job", "enough").await.unwrap_err().kind(), ErrorKind::Unavailable);
                store.heal();
                drop(guard);
                locks.shutdown().await.unwrap();
            }
        });
    });
}

#[tokio::test(start_paused = true)]
async fn a_runtime_whose_time_is_paused_ends_no_wait_early() {
    let store = MemoryStore::new();
    for locks in clients(&store) {
        store.inject(OpKind::Any, Fault::Delay { before: ms(20), after: ms(20) }, 2);
        let guard = locks.mutex("job").acquire().await.unwrap();
        assert!(locks.inspect("job").await.unwrap().is_some());
        guard.release().await.unwrap();
        store.inject(OpKind::Release, Fault::Delay { before: ms(20), after: ms(20) }, 1);
        drop(locks.mutex("job").acquire().await.unwrap());
        locks.shutdown().await.unwrap();
    }
}

#[test]
fn blocking_calls_on_the_only_thread_of_a_runtime_do_not_hang() {
    within(secs(20), || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let store = MemoryStore::new();
            let locks = Locks::from(bandog::Locks::builder().store(Far::new(store)).build().unwrap());
            let guard = locks.mutex("job").acquire().unwrap();
            assert!(locks.inspect("job").unwrap().is_some());
            guard.renew().unwrap();
            guard.release().unwrap();
            drop(locks.mutex("job").acquire().unwrap());
            // Waits for the release of the one just dropped.
            drop(locks.mutex("job").acquire().unwrap());
            locks.mutex("job").acquire().unwrap().release().unwrap();
        });
    });
}
