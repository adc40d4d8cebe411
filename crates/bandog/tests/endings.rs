//! Every way in which a hold, a request or a client can end leaves nothing behind.

mod common;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bandog::{ErrorKind, Fault, Guard, Locks, LossReason, OpKind};
use common::{World, ms, name, poll, ready, secs, waiting};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn held(locks: &Locks) -> Guard {
    runtime().block_on(locks.mutex("job").acquire()).expect("free")
}

thread_local! {
    static KEPT: RefCell<Option<Guard>> = const { RefCell::new(None) };
}

fn returns_early(locks: &Locks) -> Option<()> {
    let _guard = held(locks);
    None?;
    Some(())
}

#[test]
fn drop_releases_on_every_exit_path() {
    type Exit = (&'static str, fn(&Locks));
    let exits: [Exit; 8] = [
        ("end of scope", |locks| drop(held(locks))),
        ("question mark", |locks| assert!(returns_early(locks).is_none())),
        ("panic", |locks| {
            let panics = AssertUnwindSafe(|| {
                let _guard = held(locks);
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            assert!(catch_unwind(panics).is_err());
        }),
        ("in a task", |locks| {
            let (guard, runtime) = (held(locks), runtime());
            runtime.block_on(async { tokio::spawn(async move { drop(guard) }).await }).expect("the task");
        }),
        ("in a runtime that ends", |locks| {
            let (guard, runtime) = (held(locks), runtime());
            drop(runtime.spawn(async move {
                std::future::pending::<()>().await;
                drop(guard);
            }));
            drop(runtime);
        }),
        ("on a thread without a runtime", |locks| {
            let guard = held(locks);
            std::thread::spawn(move || drop(guard)).join().expect("the thread");
        }),
        ("with the thread", |locks| {
            let guard = held(locks);
            std::thread::spawn(move || KEPT.set(Some(guard))).join().expect("the thread");
        }),
        ("after the client", |locks| drop(held(locks))),
    ];
    for world in World::both() {
        for (exit, leave) in exits {
            let locks = world.locks();
            leave(&locks);
            drop(locks);
            world.clock.advance_blocking(ms(0));
            assert!(world.is_free("job"), "{exit}: {:?}", world.view("job"));
        }
    }
}

#[test]
fn the_last_guard_outlives_its_client() {
    for world in World::both() {
        let guard = held(&world.locks());
        world.clock.advance_blocking(secs(100));
        assert!(guard.is_held());
        drop(guard);
        world.clock.advance_blocking(ms(0));
        assert!(world.is_free("job"));
    }
}

#[test]
fn a_claim_that_nobody_waits_for_is_released_after_the_client_has_gone() {
    let world = World::far();
    let runtime = runtime();
    runtime.block_on(async {
        let locks = world.locks();
        world.store.inject(OpKind::Acquire, Fault::Delay { before: ms(100), after: ms(0) }, 1);
        let sent = waiting(locks.mutex("job").acquire());
        world.settle().await;
        drop((sent, locks));
        world.pass(ms(200)).await;
        assert!(world.is_free("job"), "{:?}", world.view("job"));
    });
}

#[tokio::test]
async fn lost_reply_is_compensated() {
    let late = |before, after| Fault::Delay { before: ms(before), after: ms(after) };
    for world in World::both() {
        let locks = world.locks();
        // The answer never comes; it comes when nobody listens any more; the request arrives when it is too late.
        for fault in [Fault::LoseReply, Fault::LoseRequest, late(1_900, 1_000), late(2_001, 0), late(5_000, 0)] {
            world.store.inject(OpKind::Acquire, fault, 1);
            let mut tries = waiting(locks.mutex("job").try_acquire());
            world.pass(secs(2)).await;
            assert_eq!(ready(&mut tries).unwrap_err().kind(), ErrorKind::Unavailable, "{fault:?}");
            world.settle().await;
            assert!(world.is_free("job"), "{fault:?}");
            world.pass(secs(4)).await;
            assert!(world.is_free("job"), "{fault:?}: a late copy came to life");

            world.store.inject(OpKind::Acquire, fault, 1);
            let mut waits = waiting(locks.mutex("job").acquire());
            world.pass(secs(3)).await;
            let guard = ready(&mut waits).unwrap();
            world.pass(secs(6)).await;
            assert!(guard.is_held() && world.holders("job") == 1 && world.waiters("job") == 0, "{fault:?}");
            guard.release().await.unwrap();
            assert!(world.is_free("job"), "{fault:?}");

            let guard = locks.mutex("job").acquire().await.unwrap();
            world.store.inject(OpKind::Renew, fault, 1);
            world.pass(secs(100)).await;
            assert!(guard.is_held(), "{fault:?}: a lost renewal is tried again");

            world.store.inject(OpKind::Release, fault, 1);
            let mut release = Box::pin(guard.release());
            assert!(poll(&mut release).is_pending());
            world.pass(secs(2)).await;
            assert_eq!(ready(&mut release).unwrap_err().kind(), ErrorKind::Unavailable, "{fault:?}");
            world.pass(secs(1)).await;
            assert!(world.is_free("job"), "{fault:?}: a lost release is tried again");
        }
        world.pass(secs(10)).await;
        assert_eq!((locks.locks_in_use(), locks.janitor().pending), (0, 0));
    }
}

#[tokio::test]
async fn idle_records_are_dropped() {
    for world in World::both() {
        let locks = world.locks();
        for n in 0..1_000 {
            drop(locks.mutex(format!("order:{n}")).acquire().await.unwrap());
        }
        world.settle().await;
        assert!(locks.locks_in_use() > 900, "kept for a moment: locks are often taken again soon");
        world.pass(secs(2)).await;
        assert_eq!(locks.locks_in_use(), 0, "nothing is left in the client");
        world.pass(secs(11)).await;
        for n in 0..1_001 {
            drop(locks.mutex("order:sweep").acquire().await.unwrap());
            assert!(n < 1_000 || world.store.records() == 1, "{} records left", world.store.records());
        }
    }
}

#[tokio::test]
async fn shutdown_releases_and_drains() {
    for world in World::both() {
        let (locks, other) = (world.locks(), world.locks());
        let mutex = locks.mutex("job").acquire().await.unwrap();
        let read = locks.rwlock("cfg").read().acquire().await.unwrap();
        let mut lost = Box::pin(mutex.lost());
        let theirs = other.mutex("busy").acquire().await.unwrap();
        let mut asks = waiting(locks.mutex("busy").acquire());
        let mut local = waiting(locks.mutex("job").acquire());
        world.settle().await;
        locks.shutdown().await.unwrap();
        assert_eq!(ready(&mut lost), LossReason::Shutdown);
        assert!(!mutex.is_held() && !read.is_held());
        assert!(world.is_free("job") && world.is_free("cfg") && world.waiters("busy") == 0);
        assert_eq!(ready(&mut asks).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(ready(&mut local).unwrap_err().kind(), ErrorKind::Closed);
        for name in ["job", "never used before"] {
            assert_eq!(locks.mutex(name).acquire().await.unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(locks.mutex(name).try_acquire().await.unwrap_err().kind(), ErrorKind::Closed);
        }
        assert_eq!(mutex.release().await.unwrap_err().kind(), ErrorKind::Lost);
        locks.shutdown().await.unwrap();
        assert!(theirs.is_held(), "another client's holds are its own");
    }
}

#[tokio::test]
async fn shutdown_says_what_a_silent_store_leaves_open() {
    for world in World::both() {
        let locks = world.locks();
        let _one = locks.mutex("one").acquire().await.unwrap();
        let _two = locks.mutex("two").acquire().await.unwrap();
        world.store.inject(OpKind::Any, Fault::LoseRequest, u32::MAX);
        let mut shutdown = Box::pin(locks.shutdown());
        assert!(poll(&mut shutdown).is_pending());
        world.pass(ms(4_999)).await;
        assert!(poll(&mut shutdown).is_pending());
        world.pass(ms(1)).await;
        let error = ready(&mut shutdown).unwrap_err();
        assert_eq!(error.pending, 2, "{error}");
        world.store.heal();
        world.pass(secs(5)).await;
        assert!(world.is_free("one") && world.is_free("two"), "it goes on in the background");
    }
}

#[tokio::test]
async fn the_janitor_has_a_limit() {
    let world = World::far();
    let locks = world.builder().janitor_limit(3).build().unwrap();
    let mut guards = Vec::new();
    for n in 0..5 {
        guards.push(locks.mutex(format!("job:{n}")).acquire().await.unwrap());
    }
    world.store.inject(OpKind::Release, Fault::LoseRequest, 3);
    drop(guards);
    world.settle().await;
    let stats = locks.janitor();
    assert_eq!((stats.pending, stats.limit, stats.abandoned), (3, 3, 2));
    let left = (0..5).filter(|n| !world.is_free(&format!("job:{n}"))).count();
    assert_eq!(left, 5);
    world.pass(secs(5)).await;
    let left: Vec<_> = (0..5).filter(|n| !world.is_free(&format!("job:{n}"))).collect();
    assert_eq!(left.len(), 2, "those beyond the limit wait for their lease end: {left:?}");
    world.pass(secs(25)).await;
    assert!((0..5).all(|n| world.is_free(&format!("job:{n}"))), "and are not renewed until then");
    assert_eq!(locks.janitor().pending, 0);
}

#[tokio::test]
async fn a_store_that_forgets_a_waiter_is_asked_again() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        let mut next = waiting(b.mutex("job").acquire());
        world.settle().await;
        world.store.delete(&name("job"));
        world.pass(ms(1_100)).await;
        let next = ready(&mut next).unwrap();
        assert!(next.token() > guard.token());
    }
}
