//! Entering again: an owner or a thread, counted, local, and never by accident.

mod common;

use bandog::blocking;
use bandog::{ErrorKind, Locks, Owner};
use common::{World, poll, ready, secs, waiting};

#[tokio::test]
async fn reentry_counts_depth_and_releases_last() {
    for world in World::both() {
        let (locks, me) = (world.locks(), Owner::new());
        let request = locks.mutex("job").owner(&me).reentrant();
        let outer = request.acquire().await.unwrap();
        let middle = request.try_acquire().await.unwrap().unwrap();
        let inner = me.scope(locks.mutex("job").reentrant().acquire()).await.unwrap();
        assert_eq!([outer.depth(), middle.depth(), inner.depth()], [3, 3, 3]);
        assert_eq!([outer.token(), middle.token()], [inner.token(), inner.token()]);
        assert_eq!(outer.hold().word(), 0x0103_0000);
        // In any order: the last one to go releases.
        outer.release().await.unwrap();
        drop(middle);
        world.settle().await;
        assert!(inner.is_held() && inner.depth() == 1 && world.holders("job") == 1);
        // A wait inside a hold does not count as an entry.
        let mut other = waiting(locks.mutex("job").owner(&Owner::new()).reentrant().acquire());
        assert_eq!(inner.depth(), 1);
        let old = inner.hold();
        inner.release().await.unwrap();
        world.settle().await;
        let other = ready(&mut other).unwrap();
        assert_eq!(other.depth(), 1);
        assert_eq!((old.depth(), old.word()), (0, 0), "it does not show another's");
        other.release().await.unwrap();
        assert!(world.is_free("job"));
    }
}

#[test]
fn a_thread_enters_again() {
    for world in World::both() {
        let locks = blocking::Locks::from(world.locks());
        let outer = locks.mutex("job").reentrant().acquire().unwrap();
        let inner = locks.mutex("job").reentrant().acquire().unwrap();
        assert_eq!((outer.token(), inner.depth()), (inner.token(), 2));
        let elsewhere = std::thread::scope(|scope| {
            let other = scope.spawn(|| locks.mutex("job").reentrant().try_acquire().map(|guard| guard.is_some()));
            other.join().unwrap()
        });
        assert!(!elsewhere.unwrap(), "another thread is another owner");
        inner.release().unwrap();
        assert!(outer.is_held());
        outer.release().unwrap();
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn reentry_costs_no_store_call() {
    let world = World::near();
    let (locks, me) = (world.locks(), Owner::new());
    let request = locks.rwlock("cfg").write().owner(&me).reentrant();
    let outer = request.acquire().await.unwrap();
    let before = world.store.applied();
    for _ in 0..100 {
        let again = request.acquire().await.unwrap();
        let reads = locks.rwlock("cfg").read().owner(&me).reentrant().acquire().await.unwrap();
        assert_eq!((again.token(), reads.token()), (outer.token(), outer.token()));
        again.release().await.unwrap();
        drop(reads);
    }
    assert_eq!(world.store.applied(), before);
    assert_eq!(outer.depth(), 1);
}

#[tokio::test]
async fn waiting_for_oneself_would_deadlock() {
    for world in World::both() {
        let (locks, me) = (world.locks(), Owner::new());
        let held = locks.mutex("job").owner(&me).acquire().await.unwrap();
        for request in [locks.mutex("job"), locks.mutex("job").wait(secs(5)), locks.mutex("job").fair()] {
            let error = request.owner(&me).acquire().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
        }
        let error = me.scope(locks.mutex("job").try_acquire()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
        drop(held);

        // A reader that wants to write would wait for itself; two readers of one owner only if a writer is between.
        let read = locks.rwlock("cfg").read().owner(&me);
        let one = read.acquire().await.unwrap();
        let error = locks.rwlock("cfg").write().owner(&me).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
        let two = read.acquire().await.unwrap();
        let mut writer = waiting(world.locks().rwlock("cfg").write().acquire());
        world.settle().await;
        let error = read.acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
        drop((one, two));
        world.settle().await;
        drop(ready(&mut writer).unwrap());

        // Without an owner there is nobody to notice.
        let held = locks.mutex("anonymous").acquire().await.unwrap();
        let mut hangs = waiting(locks.mutex("anonymous").acquire());
        world.pass(secs(100)).await;
        assert!(poll(&mut hangs).is_pending() && held.is_held());
    }
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    let locks = blocking::Locks::connect("memory:").unwrap();
    let held = locks.mutex("job").acquire().unwrap();
    assert_eq!(locks.mutex("job").acquire().unwrap_err().kind(), ErrorKind::WouldDeadlock);
    let unbound = held.unbind();
    assert!(locks.mutex("job").try_acquire().unwrap().is_none(), "no longer its owner: it would wait like anybody");
    std::thread::spawn(move || drop(unbound)).join().unwrap();
    locks.mutex("job").acquire().unwrap().release().unwrap();
}

#[tokio::test]
async fn reentry_into_an_ended_hold_is_a_new_hold() {
    for world in World::both() {
        let (locks, me) = (world.locks(), Owner::new());
        let request = locks.mutex("job").owner(&me).reentrant();
        let old = request.acquire().await.unwrap();
        // Stopped for longer than the lease: nothing has noticed yet when the owner comes again.
        world.clock.pause(secs(31));
        let mut again = request.acquire();
        let fresh = match poll(&mut again) {
            std::task::Poll::Ready(result) => result.unwrap(),
            std::task::Poll::Pending => {
                world.pass(secs(5)).await;
                ready(&mut again).unwrap()
            }
        };
        assert!(fresh.token() > old.token(), "a lost hold is not entered");
        assert!(fresh.is_held() && !old.is_held());
        drop(old);
        world.settle().await;
        assert!(fresh.is_held() && world.holders("job") == 1);
    }
}

#[tokio::test]
async fn a_client_can_make_reentry_the_default() {
    let locks = Locks::builder().reentrant().build().unwrap();
    let me = Owner::new();
    let outer = locks.mutex("job").owner(&me).acquire().await.unwrap();
    let inner = locks.mutex("job").owner(&me).acquire().await.unwrap();
    assert_eq!((inner.token(), inner.depth()), (outer.token(), 2));
    let stranger = locks.mutex("job").try_acquire().await.unwrap();
    assert!(stranger.is_none(), "without an owner nothing changes");
}
