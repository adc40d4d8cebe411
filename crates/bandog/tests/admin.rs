//! Looking at locks and taking them away.

mod common;

use bandog::store::Outcome;
use bandog::{AdminError, ErrorKind, Fault, LossReason, OpKind};
use common::{World, ms, poll, ready, secs, waiting};

#[tokio::test]
async fn list_and_inspect_show_who_holds_and_waits() {
    for world in World::both() {
        let holder = world.builder().label("billing").build().unwrap();
        let waiter = world.locks();
        let guard = holder.mutex("order:1").acquire().await.unwrap();
        let _permits = holder.semaphore("gpu", 4).permits(2).acquire().await.unwrap();
        let _waits = waiting(waiter.mutex("order:1").fair().acquire());
        world.settle().await;
        let found = waiter.list("order:*").await.unwrap();
        assert_eq!(found.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["order:1"]);
        assert_eq!(waiter.list("*").await.unwrap().len(), 2);
        let info = waiter.inspect("order:1").await.unwrap().unwrap();
        let [seen] = &info.record.holders[..] else { panic!("{info:?}") };
        assert_eq!((seen.who.label.as_str(), seen.stamp), ("billing", guard.token().stamp()));
        assert_eq!(info.record.waiters.len(), 1);
        assert!(info.record.waiters[0].fair);
        assert!(waiter.inspect("nothing").await.unwrap().is_none());
        assert_eq!(waiter.inspect("").await.unwrap_err().kind(), ErrorKind::Invalid);
        let error = waiter.list("[").await.unwrap_err();
        assert!(matches!(error, AdminError::Invalid { .. }), "known to be wrong before anything is sent: {error}");
    }
}

#[tokio::test]
async fn revoke_tells_the_holder_at_once() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        let mut lost = Box::pin(guard.lost());
        let mut next = waiting(b.mutex("job").acquire());
        world.settle().await;
        let left = b.revoke("job", "deploying").await.unwrap().unwrap();
        assert!(left > secs(29) && left <= secs(30), "{left:?}");
        world.settle().await;
        assert_eq!(ready(&mut lost), LossReason::Revoked("deploying".into()));
        assert!(!guard.is_held());
        world.settle().await;
        assert!(poll(&mut next).is_pending(), "nobody else enters before it is given up");
        let error = guard.release().await.unwrap_err();
        assert!(error.to_string().contains("deploying"), "{error}");
        world.settle().await;
        ready(&mut next).unwrap().release().await.unwrap();
        assert_eq!(a.revoke("job", "again").await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_lost_revocation_is_told_by_the_next_renewal() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").acquire().await.unwrap();
        world.store.inject(OpKind::Any, Fault::LosePush, 1);
        locks.revoke("job", "deploying").await.unwrap().unwrap();
        world.settle().await;
        assert!(guard.is_held());
        world.pass(secs(10)).await;
        assert_eq!(guard.lost().await, LossReason::Revoked("deploying".into()));
    }
}

#[tokio::test]
async fn a_silent_store_is_an_error_for_operators_too() {
    let world = World::near();
    let locks = world.locks();
    let _guard = locks.mutex("job").acquire().await.unwrap();
    world.store.inject(OpKind::Any, Fault::LoseRequest, 1);
    let mut revoke = Box::pin(locks.revoke("job", "deploying"));
    assert!(poll(&mut revoke).is_pending());
    world.pass(secs(2) + ms(1)).await;
    let error = ready(&mut revoke).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("revoking"), "{error}");
    let AdminError::Store { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.outcome, Outcome::Unknown, "it may have been revoked");
}
