//! Holds that end in two ways at once: released, renewed, lost, and watched by others meanwhile.

use std::task::Poll;
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;

use super::explore;
use super::world::{World, close, join, peek, take};
use crate::{LossReason, ReleaseError};

const NAME: &str = "job";
const LEASE: Duration = Duration::from_secs(4);

#[test]
fn release_and_watcher_agree_on_the_loss() {
    explore("release and loss", 5000, || {
        let world = World::any();
        let locks = world.locks();
        let guard = block_on(locks.mutex(NAME).lease(LEASE).max_renewals(0).acquire()).unwrap();
        let mut watcher = Box::pin(guard.lost());
        let release = thread::spawn(move || block_on(guard.release()));
        world.pass(LEASE);
        match (release.join().unwrap(), peek(&mut watcher)) {
            (Ok(()), Poll::Pending) => {}
            // Released in time; it reached the store too late, and only the store could know.
            (Err(ReleaseError::Lost { reason: LossReason::Gone, .. }), Poll::Pending) => {}
            (Err(ReleaseError::Lost { reason, .. }), Poll::Ready(told)) => assert_eq!(reason, told),
            (released, told) => panic!("released: {released:?}, watcher: {told:?}"),
        }
        close(&world, [locks], &[NAME]);
    });
}

#[test]
fn a_watcher_does_not_hear_of_the_next_holds_loss() {
    explore("watcher of the hold before", 5000, || {
        let world = World::any();
        let locks = world.locks();
        let request = locks.mutex(NAME).lease(LEASE).max_renewals(0);
        let guard = block_on(request.acquire()).unwrap();
        let (mut early, hold) = (Box::pin(guard.lost()), guard.hold());
        let late = thread::spawn(move || Box::pin(hold.lost()));
        let next = thread::spawn(move || block_on(request.acquire()).unwrap());
        drop(guard);
        let (mut late, next) = (late.join().unwrap(), next.join().unwrap());
        world.pass(LEASE);
        assert!(!next.is_held() && peek(&mut Box::pin(next.lost())).is_ready());
        assert!(peek(&mut early).is_pending(), "heard from early on");
        assert!(peek(&mut late).is_pending(), "heard, called late");
        drop(next);
        close(&world, [locks], &[NAME]);
    });
}

#[test]
fn a_release_races_with_renewals() {
    explore("release and renewal", 3000, || {
        let world = World::any();
        let locks = world.locks();
        let guard = block_on(locks.mutex(NAME).lease(LEASE).renew_every(Duration::from_secs(1)).acquire()).unwrap();
        let mut watcher = Box::pin(guard.lost());
        let next = locks.clone();
        let threads = vec![thread::spawn(move || drop(guard)), thread::spawn(move || drop(take(&next, NAME)))];
        world.pass(Duration::from_secs(3));
        join(threads);
        assert!(peek(&mut watcher).is_pending(), "a hold that was never lost");
        close(&world, [locks], &[NAME]);
    });
}
