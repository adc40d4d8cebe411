//! A process that did not run for longer than its lease.

use std::time::Duration;

use bandog::{Locks, MemoryStore, Owner, VirtualClock};

#[tokio::test]
async fn entering_again_after_a_pause_acquires_anew_and_does_not_hang() {
    let clock = VirtualClock::new();
    let store = MemoryStore::with_clock(clock.clock());
    let locks = Locks::builder().store(store).clock(clock.clock()).build().unwrap();
    let request = locks.mutex("job").owner(&Owner::new()).reentrant();
    let outer = request.acquire().await.unwrap();

    clock.pause(Duration::from_secs(31));
    let inner = tokio::spawn(request.acquire());
    tokio::task::yield_now().await;
    clock.advance(Duration::from_secs(1)).await;

    assert!(inner.is_finished(), "the lease has ended, so nobody is in the way");
    let inner = inner.await.unwrap().unwrap();
    assert!(inner.is_held() && !outer.is_held());
    assert!(inner.token() > outer.token());
}
