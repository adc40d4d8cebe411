//! A holder that did not hear of a revocation at once is told of it, with its reason, by whatever it asks the store next.

mod common;

use std::time::Duration;

use bandog::{Check, Event, Fault, LossReason, OpKind, Recovery};
use common::{World, ms, secs};

/// Ends every hold of the lock, and the holders do not hear of it.
async fn broken(world: &World, lock: &str) {
    world.store.inject(OpKind::Any, Fault::LosePush, u32::MAX);
    let left = world.locks().revoke(lock, "stuck since noon").now().await.expect("a store that answers");
    assert_eq!(left, Some(Duration::ZERO));
    world.store.heal();
}

fn revoked() -> LossReason {
    LossReason::Revoked("stuck since noon".into())
}

#[tokio::test]
async fn a_guard_that_missed_it_is_told_within_a_period_of_the_watchdog() {
    for world in World::both() {
        for recovery in [Recovery::Notify, Recovery::Release, Recovery::Reacquire] {
            let locks = world.locks();
            let mut events = locks.events();
            let guard = locks.mutex("job").recovery(recovery).acquire().await.unwrap();
            broken(&world, "job").await;
            assert!(guard.is_held(), "it has not heard of it");
            world.pass(secs(10)).await;
            assert_eq!(guard.lost().await, revoked());
            assert_eq!(guard.lost().await.to_string(), "revoked: stuck since noon");
            assert_eq!(guard.release().await.unwrap_err().to_string().matches("revoked: stuck since noon").count(), 1);
            world.pass(secs(60)).await;
            assert!(world.is_free("job"), "and it is not taken again");
            assert_eq!(locks.health().findings.record, 0, "an order is no finding");
            drop(locks);
            let mut heard = Vec::new();
            while let Some(event) = events.next().await {
                heard.push(event);
            }
            let losses =
                heard.iter().filter(|event| matches!(event, Event::Lost { reason, .. } if *reason == revoked()));
            assert_eq!(losses.count(), 1, "{heard:?}");
            assert!(!heard.iter().any(|event| matches!(event, Event::Found { check: Check::Record, .. })), "{heard:?}");
        }
    }
}

#[tokio::test]
async fn every_kind_of_hold_is_told() {
    for world in World::both() {
        let locks = world.locks();
        let permits = locks.semaphore("gpu", 4).permits(2).acquire().await.unwrap();
        let other = locks.semaphore("gpu", 4).acquire().await.unwrap();
        let (reader, writer) = (locks.rwlock("page").read(), locks.rwlock("index").write());
        let (reader, writer) = (reader.acquire().await.unwrap(), writer.acquire().await.unwrap());
        for lock in ["gpu", "page", "index"] {
            broken(&world, lock).await;
        }
        world.pass(secs(10)).await;
        for lost in [permits.lost().await, other.lost().await, reader.lost().await, writer.lost().await] {
            assert_eq!(lost, revoked());
        }
    }
}

#[tokio::test]
async fn next_request_of_a_guard_reports_its_revocation() {
    for world in World::both() {
        let locks = world.locks();
        let renewing = locks.mutex("renew").acquire().await.unwrap();
        let releasing = locks.mutex("release").acquire().await.unwrap();
        let reading = locks.rwlock("upgrade").read().acquire().await.unwrap();
        let writing = locks.rwlock("downgrade").write().acquire().await.unwrap();
        for lock in ["renew", "release", "upgrade", "downgrade"] {
            broken(&world, lock).await;
        }
        let errors = [
            renewing.renew().await.unwrap_err().to_string(),
            releasing.release().await.unwrap_err().to_string(),
            reading.upgrade().await.unwrap_err().to_string(),
            writing.downgrade().await.unwrap_err().to_string(),
        ];
        for error in errors {
            assert!(error.contains("revoked: stuck since noon"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_ticket_is_told_at_its_renewal_and_at_its_release() {
    let world = World::near();
    let locks = world.locks();
    let ticket = locks.mutex("job").acquire().await.unwrap().detach().await.unwrap();
    broken(&world, "job").await;
    let next = locks.mutex("job").acquire().await.unwrap();
    for error in
        [ticket.renew(&locks).await.unwrap_err().to_string(), ticket.release(&locks).await.unwrap_err().to_string()]
    {
        assert!(error.contains("lost") && error.ends_with("revoked: stuck since noon"), "{error}");
    }
    assert!(next.is_held());
}

#[tokio::test]
async fn a_lock_that_is_to_stay_tells_its_release() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").lock_at_least(secs(60)).acquire().await.unwrap();
        broken(&world, "job").await;
        let before = world.store.applied();
        let error = guard.release().await.unwrap_err();
        assert!(error.to_string().contains("revoked: stuck since noon"), "{error}");
        world.pass(ms(100)).await;
        assert_eq!(world.store.applied() - before, 1, "asked once, and nothing left to release");
    }
}

#[test]
fn threads_are_told() {
    let world = World::near();
    let locks = bandog::blocking::Locks::from(world.locks());
    let guard = locks.mutex("job").acquire().unwrap();
    world.store.inject(OpKind::Any, Fault::LosePush, u32::MAX);
    locks.revoke_with("job", "stuck since noon", |revoke| revoke.now()).unwrap();
    world.store.heal();
    let error = guard.release().unwrap_err();
    assert!(error.to_string().contains("revoked: stuck since noon"), "{error}");
}
