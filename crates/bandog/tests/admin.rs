//! Looking at locks and taking them away.

mod common;

use bandog::store::Outcome;
use bandog::{AdminError, ErrorKind, Fault, LockInfo, LossReason, OpKind, PublicId, blocking};
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
async fn a_scan_gives_every_lock_once_and_goes_on_elsewhere() {
    for world in World::both() {
        let (locks, other) = (world.locks(), world.locks());
        let names = ["order:1", "order:2", "order:3", "order:4", "order:5"];
        let mut guards = Vec::new();
        for name in names.into_iter().chain(["stock:1"]) {
            guards.push(locks.mutex(name).acquire().await.unwrap());
        }
        let seen = |page: Option<Vec<LockInfo>>| -> Vec<String> {
            page.expect("a page").into_iter().map(|lock| lock.name.to_string()).collect()
        };
        let mut pages = locks.scan("order:*").limit(2);
        assert_eq!(pages.cursor(), None);
        assert_eq!(seen(pages.next().await.unwrap()), names[..2]);
        let cursor = pages.cursor().expect("more to come").to_owned();
        let mut rest = other.scan("order:*").limit(2).after(cursor);
        for scan in [&mut pages, &mut rest] {
            assert_eq!(seen(scan.next().await.unwrap()), names[2..4]);
            assert_eq!(seen(scan.next().await.unwrap()), names[4..]);
            assert_eq!(scan.cursor(), None);
            assert_eq!(scan.next().await.unwrap(), None);
        }
        assert_eq!(seen(locks.scan("order:*").next().await.unwrap()), names);
        assert_eq!(locks.scan("[").next().await.unwrap_err().kind(), ErrorKind::Invalid);
        let mut pages = blocking::Locks::from(locks.clone()).scan("order:*").limit(3);
        assert_eq!(seen(pages.next().transpose().unwrap()), names[..3]);
        let after = pages.cursor().unwrap().to_owned();
        assert_eq!(pages.map(|page| page.unwrap().len()).collect::<Vec<_>>(), [2]);
        assert_eq!(blocking::Locks::from(locks.clone()).scan("*").after(after).flatten().flatten().count(), 3);
    }
}

#[tokio::test]
async fn revocation_ends_the_named_holder_only() {
    for world in World::both() {
        let locks = world.locks();
        let (one, two) = (locks.semaphore("gpu", 2), locks.semaphore("gpu", 2));
        let (one, two) = (one.acquire().await.unwrap(), two.acquire().await.unwrap());
        let id: PublicId = two.hold().holder().unwrap().to_string().parse().unwrap();
        assert!(locks.revoke("gpu", "you").only(id).await.unwrap().is_some());
        world.settle().await;
        assert!(one.is_held() && !two.is_held());
        assert_eq!(two.lost().await, LossReason::Revoked("you".into()));
        drop(two);
        world.settle().await;
        assert_eq!(locks.revoke("gpu", "again").only(id).await.unwrap(), None, "it is not there any more");
        let threads = blocking::Locks::from(locks.clone());
        let id = one.hold().holder().unwrap();
        assert!(threads.revoke_with("gpu", "and you", |revoke| revoke.only(id)).unwrap().is_some());
        world.settle().await;
        assert!(!one.is_held());
    }
}

#[tokio::test]
async fn a_revocation_at_once_lets_the_next_in_before_the_answer() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").acquire().await.unwrap();
        let mut next = waiting(b.mutex("job").acquire());
        world.settle().await;
        assert_eq!(b.revoke("job", "its host is gone").now().await.unwrap(), Some(secs(0)));
        world.settle().await;
        let next = ready(&mut next).unwrap();
        assert_eq!(guard.lost().await, LossReason::Revoked("its host is gone".into()));
        assert!(next.is_held());
    }
}

#[tokio::test]
async fn a_revocation_stays_on_record() {
    for world in World::both() {
        let holder = world.builder().label("billing").build().unwrap();
        let operator = world.builder().label("on call").build().unwrap();
        let guard = holder.mutex("job").acquire().await.unwrap();
        let (token, id) = (guard.token(), guard.hold().holder().unwrap());
        operator.revoke("job", "please").await.unwrap();
        operator.revoke("job", "stuck").now().await.unwrap();
        drop(guard);
        world.settle().await;
        world.pass(secs(60)).await;
        assert!(operator.list("*").await.unwrap().is_empty(), "nobody holds it or waits for it");
        drop(holder.mutex("job").acquire().await.unwrap());
        world.settle().await;
        let record = operator.inspect("job").await.unwrap().unwrap().record;
        let [first, second] = &record.revocations[..] else { panic!("{record:?}") };
        assert_eq!((&*first.reason, first.now), ("please", false));
        assert_eq!((&*second.reason, second.now), ("stuck", true));
        assert_eq!((second.holder, second.stamp, &*second.who.label), (id, token.stamp(), "billing"));
        assert_eq!((second.by.pid, &*second.by.label), (std::process::id(), "on call"));
    }
}

#[tokio::test]
async fn a_reason_is_bounded_and_nothing_is_sent_before_it_is_awaited() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    let error = locks.revoke("job", "x".repeat(1_025)).now().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("1025") && error.to_string().contains("1024"), "{error}");
    drop(locks.revoke("job", "never sent").into_future());
    world.settle().await;
    assert!(guard.is_held());
    assert!(locks.revoke("job", "x".repeat(1_024)).await.unwrap().is_some());
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
    let mut revoke = locks.revoke("job", "deploying").into_future();
    assert!(poll(&mut revoke).is_pending());
    world.pass(secs(2) + ms(1)).await;
    let error = ready(&mut revoke).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("revoking"), "{error}");
    let AdminError::Store { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.outcome, Outcome::Unknown, "it may have been revoked");
}
