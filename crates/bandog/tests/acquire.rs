//! Taking a lock: at once, after a wait, not at all, around a piece of work.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use bandog::{AcquireError, ErrorKind, Fault, Guard, LossReason, OpKind, PermitGuard, ReadGuard, RunError, WriteGuard};
use common::{World, ms, poll, ready, secs, waiting};

#[tokio::test]
async fn acquire_hold_release() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        assert!(guard.is_held());
        assert_eq!((guard.name(), guard.depth()), ("job", 1));
        let record = world.view("job").unwrap();
        assert_eq!(record.holders[0].stamp, guard.token().stamp());

        let mut next = waiting(b.mutex("job").acquire());
        world.settle().await;
        assert!(poll(&mut next).is_pending());
        assert_eq!(world.waiters("job"), 1);

        let first = guard.token();
        guard.release().await.unwrap();
        world.settle().await;
        let second = ready(&mut next).unwrap();
        assert!(second.token() > first);
        drop(second);
        world.settle().await;
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn try_acquire_is_none_when_busy() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").try_acquire().await.unwrap().unwrap();
        assert!(a.mutex("job").try_acquire().await.unwrap().is_none(), "held by our own process");
        assert!(b.mutex("job").try_acquire().await.unwrap().is_none(), "held by another process");
        assert_eq!(world.waiters("job"), 0, "somebody who only tries takes no place");
        guard.release().await.unwrap();
        assert!(b.mutex("job").try_acquire().await.unwrap().is_some());
    }
}

#[tokio::test]
async fn wait_ends_at_its_limit() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        // In the store's queue, and in the local line.
        for locks in [&a, &b] {
            let mut asks = waiting(locks.mutex("job").wait(secs(5)).acquire());
            let mut tries = waiting(locks.mutex("job").wait(secs(5)).try_acquire());
            let mut fair = waiting(locks.mutex("job").wait(secs(5)).fair().acquire());
            let mut reads = waiting(locks.rwlock("job").read().wait(secs(5)).acquire());
            world.pass(ms(4_999)).await;
            assert!(poll(&mut asks).is_pending() && poll(&mut tries).is_pending());
            assert!(poll(&mut fair).is_pending() && poll(&mut reads).is_pending());
            world.pass(ms(1)).await;
            let error = ready(&mut asks).unwrap_err();
            let AcquireError::Timeout { waited, holder, .. } = &error else { panic!("{error}") };
            assert_eq!(*waited, secs(5));
            assert!(holder.is_some(), "{error}");
            assert!(ready(&mut tries).unwrap().is_none());
            assert_eq!(ready(&mut fair).unwrap_err().kind(), ErrorKind::Timeout);
            assert_eq!(ready(&mut reads).unwrap_err().kind(), ErrorKind::Timeout);
            world.settle().await;
            assert_eq!(world.waiters("job"), 0, "nobody is left in the queue");
        }
        assert!(guard.is_held());
    }
}

#[tokio::test]
async fn a_grant_in_the_last_moment_is_not_orphaned() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        // Granted just before the limit, looked at just after it: the guard is there.
        let guard = a.mutex("job").acquire().await.unwrap();
        let mut late = waiting(b.mutex("job").wait(secs(5)).acquire());
        world.pass(ms(4_999)).await;
        guard.release().await.unwrap();
        world.pass(ms(500)).await;
        ready(&mut late).unwrap().release().await.unwrap();

        // Granted in the store, but the news is lost: the one who gives up gives the grant back.
        let guard = a.mutex("job").acquire().await.unwrap();
        let mut late = waiting(b.mutex("job").wait(secs(5)).acquire());
        world.pass(ms(4_999)).await;
        world.store.inject(OpKind::Any, Fault::LosePush, 1);
        guard.release().await.unwrap();
        assert_eq!(world.holders("job"), 1);
        world.pass(ms(1)).await;
        assert_eq!(ready(&mut late).unwrap_err().kind(), ErrorKind::Timeout);
        world.settle().await;
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn run_returns_the_value_and_releases() {
    for world in World::both() {
        let locks = world.locks();
        let value = locks.mutex("job").run(|hold| async move { hold.is_held().then_some("done") }).await.unwrap();
        assert_eq!(value, Some("done"));
        assert!(world.is_free("job"));

        let failed: Result<(), String> = locks.mutex("job").run(|_| async { Err("no".to_owned()) }).await.unwrap();
        assert_eq!(failed.unwrap_err(), "no", "the work's own result is the work's own");
        assert!(world.is_free("job"));

        let held = locks.mutex("job").acquire().await.unwrap();
        let busy = locks.mutex("job").wait(ms(0)).run(|_| async { "not run" }).await;
        assert_eq!(busy.unwrap_err().kind(), ErrorKind::Timeout);
        drop(held);
    }
}

#[tokio::test]
async fn run_drops_its_future_on_loss() {
    struct OnDrop(Arc<AtomicBool>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    for world in World::both() {
        let locks = world.locks();
        let dropped = Arc::new(AtomicBool::new(false));
        let seen = OnDrop(Arc::clone(&dropped));
        let work = locks.mutex("job").run(move |_| async move {
            let _seen = seen;
            std::future::pending::<()>().await;
        });
        let mut work = Box::pin(work);
        assert!(poll(&mut work).is_pending());
        world.settle().await;
        assert!(poll(&mut work).is_pending());
        world.store.delete(&common::name("job"));
        world.pass(secs(11)).await;
        let error = ready(&mut work).unwrap_err();
        assert!(matches!(&error, RunError::Lost { reason: LossReason::Gone, .. }), "{error}");
        assert!(dropped.load(Ordering::SeqCst), "the work was dropped with the loss, not later");
    }
}

#[tokio::test]
async fn run_does_not_go_on_after_a_pause() {
    for world in World::both() {
        let locks = world.locks();
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let work = locks.mutex("job").max_renewals(0).run(|_| {
            std::future::poll_fn(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                Poll::<()>::Pending
            })
        });
        let mut work = Box::pin(work);
        let _ = poll(&mut work);
        world.settle().await;
        assert!(poll(&mut work).is_pending());
        let before = polls.load(Ordering::SeqCst);
        assert!(before > 0);
        world.clock.pause(secs(31));
        let error = ready(&mut work).unwrap_err();
        assert!(matches!(&error, RunError::Lost { reason: LossReason::Expired, .. }), "{error}");
        assert_eq!(polls.load(Ordering::SeqCst), before, "not once more after the lease");
    }
}

#[tokio::test]
async fn run_polls_its_work_only_when_it_is_woken() {
    for world in World::both() {
        let locks = world.locks();
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let work = tokio::spawn(locks.mutex("job").run(move |_| {
            std::future::poll_fn(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                Poll::<()>::Pending
            })
        }));
        world.pass(secs(1)).await;
        let begun = polls.load(Ordering::SeqCst);
        world.pass(secs(100)).await;
        assert_eq!((begun, polls.load(Ordering::SeqCst)), (1, 1), "renewals are nothing to the work");
        assert_eq!(world.holders("job"), 1);
        work.abort();
    }
}

#[tokio::test]
async fn run_tells_a_loss_that_only_its_release_noticed() {
    for world in World::both() {
        let store = world.store.clone();
        let result = world.locks().mutex("job").run(|_| async move { store.delete(&common::name("job")) }).await;
        assert!(matches!(&result, Err(RunError::Lost { reason: LossReason::Gone, .. })), "{result:?}");
    }
}

#[tokio::test]
async fn dropped_future_leaves_nothing_behind() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        // Never polled, polled once, queued, granted but not looked at.
        drop(a.mutex("job").acquire());
        let mut sent = a.mutex("job").acquire();
        let _ = poll(&mut sent);
        drop(sent);
        world.settle().await;
        assert!(world.is_free("job"));

        let guard = b.mutex("job").acquire().await.unwrap();
        let queued = waiting(a.mutex("job").acquire());
        let fair = waiting(a.mutex("job").fair().acquire());
        world.settle().await;
        assert_eq!(world.waiters("job"), 2);
        drop(queued);
        world.settle().await;
        assert_eq!(world.waiters("job"), 1);
        guard.release().await.unwrap();
        world.settle().await;
        assert_eq!(world.holders("job"), 1);
        drop(fair);
        world.settle().await;
        assert!(world.is_free("job"));
        world.pass(secs(2)).await;
        assert_eq!((a.locks_in_use(), b.locks_in_use()), (0, 0));
    }
}

#[test]
fn guards_and_futures_can_be_sent() {
    fn sendable<T: Send + Sync + 'static>() {}
    fn moves<T: Send + 'static>(_: &T) {}
    sendable::<Guard>();
    sendable::<ReadGuard>();
    sendable::<WriteGuard>();
    sendable::<PermitGuard>();
    sendable::<bandog::Locks>();
    sendable::<bandog::Hold>();
    sendable::<bandog::Mutex>();
    sendable::<AcquireError>();
    let locks = World::near().locks();
    moves(&locks.mutex("job").acquire());
    moves(&locks.mutex("job").try_acquire());
    moves(&locks.mutex("job").run(|_| async {}));
}

#[tokio::test]
async fn a_wait_of_zero_is_no_wait_for_the_holder() {
    let world = World::far();
    let (a, b) = (world.locks(), world.locks());
    let free = b.mutex("job").wait(std::time::Duration::ZERO).try_acquire().await.unwrap();
    assert!(free.is_some(), "an answer that takes a while is not a wait");
    drop(free);
    let _guard = a.mutex("job").acquire().await.unwrap();
    assert!(b.mutex("job").wait(std::time::Duration::ZERO).try_acquire().await.unwrap().is_none());
}
