//! Loss: told in time, told truly, told once; and what a late writer can still do.

mod common;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use bandog::{Fault, GuardState, LossReason, OpKind, ReleaseError, Token};
use common::{World, ms, name, poll, ready, secs, waiting};

#[tokio::test]
async fn loss_is_told_before_the_lease_can_end() {
    for world in World::both() {
        for fault in [Fault::LoseRequest, Fault::Refuse] {
            let locks = world.locks();
            let guard = locks.mutex("job").acquire().await.unwrap();
            let mut lost = Box::pin(guard.lost());
            world.store.inject(OpKind::Any, fault, u32::MAX);
            let mut seen = vec!["held"];
            let told = loop {
                world.pass(ms(10)).await;
                let state = match guard.state() {
                    GuardState::Held { .. } => "held",
                    GuardState::Uncertain { .. } => "uncertain",
                    GuardState::Lost { .. } => "lost",
                };
                if seen.last() != Some(&state) {
                    seen.push(state);
                }
                assert_eq!(world.holders("job"), 1, "another could hold it by now");
                if let std::task::Poll::Ready(reason) = poll(&mut lost) {
                    break reason;
                }
                assert_ne!(state, "lost", "lost() must resolve with the loss");
            };
            assert_eq!(seen, ["held", "uncertain", "lost"]);
            assert_eq!(told, LossReason::Unreachable);
            world.store.heal();
            drop(guard);
            world.pass(secs(60)).await;
            assert!(world.is_free("job"));
        }
    }
}

#[tokio::test]
async fn a_loss_that_only_the_release_notices_is_told_to_watchers() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let mut lost = Box::pin(guard.lost());
        // Every thread stands still past the deadline, and whoever releases is the first to go on.
        world.clock.pause(secs(31));
        let released = guard.release();
        assert_eq!(ready(&mut lost), LossReason::Expired);
        let error = released.await.unwrap_err();
        assert!(matches!(error, ReleaseError::Lost { reason: LossReason::Expired, .. }), "{error}");
    }
}

#[tokio::test]
async fn uncertain_returns_to_held() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let mut lost = Box::pin(guard.lost());
        for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Refuse] {
            world.store.inject(OpKind::Renew, fault, 2);
            world.pass(secs(10)).await;
            let mut uncertain = false;
            for _ in 0..50 {
                world.pass(ms(100)).await;
                uncertain |= matches!(guard.state(), GuardState::Uncertain { .. });
            }
            assert!(uncertain, "{fault:?}");
            world.store.heal();
            world.pass(secs(10)).await;
            assert!(matches!(guard.state(), GuardState::Held { .. }), "{fault:?}: {guard:?}");
        }
        assert!(poll(&mut lost).is_pending());
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn vanished_hold_is_lost_at_the_next_renewal() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let deletes = |world: &World| world.store.delete(&name("job"));
        let expires = |world: &World| world.store.expire(&name("job"));
        for vanish in [&deletes as &dyn Fn(&World), &expires] {
            let guard = a.mutex("job").acquire().await.unwrap();
            let mut lost = Box::pin(guard.lost());
            world.pass(secs(5)).await;
            vanish(&world);
            let other = b.mutex("job").acquire().await.unwrap();
            assert!(other.token() > guard.token());
            world.pass(ms(5_001)).await;
            assert_eq!(ready(&mut lost), LossReason::Gone);
            assert!(!guard.is_held() && other.is_held());
            drop(guard);
            world.settle().await;
            assert!(other.is_held() && world.holders("job") == 1, "the late guard's end touches nobody");
            other.release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn release_after_loss_says_so() {
    for world in World::both() {
        let locks = world.locks();
        // Told by a renewal, noticed by the clock, and noticed only by the release itself.
        let gone = locks.mutex("gone").acquire().await.unwrap();
        world.store.delete(&name("gone"));
        world.pass(secs(11)).await;
        let expired = locks.mutex("expired").max_renewals(0).acquire().await.unwrap();
        let unseen = locks.mutex("unseen").max_renewals(0).acquire().await.unwrap();
        world.clock.pause(secs(30));
        let deleted = locks.mutex("deleted").acquire().await.unwrap();
        world.store.delete(&name("deleted"));
        world.pass(ms(1)).await;
        for (guard, expected) in [
            (gone, LossReason::Gone),
            (expired, LossReason::Expired),
            (unseen, LossReason::Expired),
            (deleted, LossReason::Gone),
        ] {
            let lock = guard.name().to_owned();
            match guard.release().await {
                Err(ReleaseError::Lost { reason, .. }) => assert_eq!(reason, expected, "{lock}"),
                other => panic!("{lock}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn stale_write_is_refused_by_its_token() {
    struct Resource(Option<Token>);
    impl Resource {
        fn write(&mut self, token: Token) -> bool {
            let fresh = self.0.is_none_or(|highest| token >= highest);
            self.0 = self.0.filter(|_| !fresh).or(Some(token));
            fresh
        }
    }
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let mut resource = Resource(None);
        let paused = a.mutex("job").acquire().await.unwrap();
        assert!(resource.write(paused.token()));
        // The process is stopped between its look and its write, for longer than its lease.
        assert!(paused.is_held());
        world.clock.pause(secs(31));
        assert!(!paused.is_held(), "lost at the first look, before any timer ran");
        assert_eq!(paused.state(), GuardState::Lost { reason: LossReason::Expired });
        let other = b.mutex("job").acquire().await.unwrap();
        assert!(resource.write(other.token()));
        assert!(!resource.write(paused.token()), "the late write is refused");
        assert!(resource.write(other.token()));
    }
}

#[tokio::test]
async fn restarted_store_loses_its_holds() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        let mut lost = Box::pin(guard.lost());
        let mut queued = waiting(b.mutex("job").acquire());
        world.settle().await;
        let before = guard.token();
        world.store.restart();
        // The waiter's next heartbeat finds nothing and queues again; the lock is free, so it is granted.
        world.pass(ms(1_001)).await;
        let other = ready(&mut queued).unwrap();
        assert!(other.token() > before);
        world.pass(secs(10)).await;
        assert_eq!(ready(&mut lost), LossReason::Gone);
        assert!(other.is_held());
    }
}

#[tokio::test]
async fn an_answer_from_a_new_run_makes_holds_be_confirmed() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.rwlock("cfg").read().acquire().await.unwrap();
        world.pass(secs(1)).await;
        world.store.restart();
        // Another request about the same lock meets the new run: the hold is confirmed at once, not in nine seconds.
        drop(locks.rwlock("cfg").read().acquire().await.unwrap());
        world.settle().await;
        assert_eq!(guard.state(), GuardState::Lost { reason: LossReason::Gone });
    }
}

#[tokio::test]
async fn an_ended_hold_of_our_own_is_not_in_the_way() {
    for world in World::both() {
        let locks = world.locks();
        let old = locks.mutex("job").acquire().await.unwrap();
        // Nothing has noticed the end of the lease yet, here or in the store.
        world.clock.pause(secs(31));
        let fresh = locks.mutex("job").try_acquire().await.unwrap().expect("the lock is free");
        assert!(fresh.token() > old.token() && !old.is_held());
        drop(old);
        world.settle().await;
        assert!(fresh.is_held() && world.holders("job") == 1);
    }
}

#[tokio::test]
async fn a_released_hold_is_never_lost() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let mut lost = Box::pin(guard.lost());
        assert!(poll(&mut lost).is_pending());
        let mut next = waiting(locks.mutex("job").max_renewals(0).acquire());
        let release = guard.release();
        world.settle().await;
        release.await.unwrap();
        let _next = ready(&mut next).unwrap();
        world.clock.pause(secs(31));
        assert!(poll(&mut lost).is_pending());
    }
}

/// Notes when it was woken, in the order of all that are.
struct Order(Arc<AtomicUsize>, AtomicUsize);

impl Wake for Order {
    fn wake(self: Arc<Self>) {
        self.1.store(self.0.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn watchers_of_a_loss_hear_of_it_before_event_listeners() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    let mut events = locks.events();
    let count = Arc::new(AtomicUsize::new(0));
    let [stops, listens] = [(); 2].map(|()| Arc::new(Order(Arc::clone(&count), 0.into())));
    let mut lost = Box::pin(guard.lost());
    assert!(lost.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&stops)))).is_pending());
    let mut heard = Box::pin(events.next());
    assert!(heard.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&listens)))).is_pending());
    locks.revoke("job", "deploying").await.unwrap();
    let at = |order: &Order| order.1.load(Ordering::SeqCst);
    assert_eq!((at(&stops), at(&listens)), (1, 2));
}
