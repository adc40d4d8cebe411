//! Keeping the lease: renewed while the guard lives, by one thread, whatever the user's runtime does, and not after.

mod common;

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use bandog::op::Op;
use bandog::{ErrorKind, Fault, GuardState, LossReason, OpKind};
use common::{World, ms, ready, secs, waiting};

#[tokio::test]
async fn hold_outlives_many_leases() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").lease(secs(10)).acquire().await.unwrap();
        let fair = locks.rwlock("cfg").read().lease(secs(2)).acquire().await.unwrap();
        for _ in 0..100 {
            world.pass(secs(10)).await;
            assert!(guard.is_held() && fair.is_held());
            assert!(matches!(guard.state(), GuardState::Held { remaining } if remaining > secs(6)), "{guard:?}");
            assert_eq!(world.view("job").unwrap().holders[0].stamp, guard.token().stamp(), "one and the same hold");
        }
        guard.release().await.unwrap();
        fair.release().await.unwrap();
    }
}

#[tokio::test]
async fn renewal_thread_serves_many_holds() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let locks = world.locks();
    let mut guards = Vec::new();
    for n in 0..1_000 {
        guards.push(locks.mutex(format!("job:{n}")).acquire().await.unwrap());
    }
    far.log.lock().unwrap().clear();
    world.pass(secs(300)).await;
    assert!(guards.iter().all(|guard| guard.is_held()));
    let log = far.log.lock().unwrap();
    let threads: HashSet<_> = log.iter().map(|(thread, ..)| *thread).collect();
    assert_eq!(threads.len(), 1);
    assert!(!threads.contains(&std::thread::current().id()), "not the user's");
    let (renewals, looks): (Vec<_>, Vec<_>) = log.iter().partition(|(_, _, op)| matches!(op, Op::Renew(_)));
    assert_eq!(renewals.len(), 30_000, "one renewal each third of the lease, no more");
    assert!(looks.iter().all(|(_, _, op)| matches!(op, Op::Heartbeat(_))), "and a look in between");
    // A round of the watchdog that falls on the moment of a renewal may come before it.
    assert!(looks.len() <= 60_000, "{} looks: more than one in each round", looks.len());
}

#[tokio::test]
async fn renewals_of_many_locks_go_together() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let locks = world.locks();
    let mut guards = Vec::new();
    for n in 0..1_000 {
        guards.push(locks.mutex(format!("job:{n}")).acquire().await.unwrap());
    }
    far.log.lock().unwrap().clear();
    let before = far.batches.load(Ordering::SeqCst);
    world.pass(secs(10)).await;
    let sent = far.sent();
    let renewals = sent.iter().filter(|op| matches!(op, Op::Renew(_))).count();
    let batches = far.batches.load(Ordering::SeqCst) - before;
    assert_eq!(renewals, 1_000);
    assert!(batches <= 20, "{batches} batches for them and a look at each");
}

#[tokio::test]
async fn fixed_lease_is_never_renewed() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let guard = a.mutex("job").lease(secs(10)).max_renewals(0).acquire().await.unwrap();
        let mut lost = Box::pin(guard.lost());
        // From the queue, too, a fixed lease is as long as it says: its confirmation is not a renewal.
        let mut next = waiting(b.mutex("job").lease(secs(10)).max_renewals(0).acquire());
        world.pass(ms(9_897)).await;
        assert!(guard.is_held());
        world.pass(ms(1)).await;
        assert_eq!(guard.state(), GuardState::Lost { reason: LossReason::Expired });
        assert_eq!(ready(&mut lost), LossReason::Expired);
        world.pass(ms(105)).await;
        let guard = ready(&mut next).unwrap();
        assert!(guard.remaining() > ms(9_800), "{guard:?}");
        world.pass(secs(10)).await;
        assert!(!guard.is_held());
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn a_fixed_lease_is_renewed_by_hand() {
    for world in World::both() {
        let guard = world.locks().mutex("job").lease(secs(10)).max_renewals(0).acquire().await.unwrap();
        world.pass(secs(6)).await;
        guard.renew().await.unwrap();
        world.pass(secs(6)).await;
        assert!(guard.is_held(), "{guard:?}");
        world.pass(secs(6)).await;
        assert!(!guard.is_held(), "nobody renews it but the caller");
    }
}

#[tokio::test]
async fn renewals_can_be_numbered_and_holds_limited() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").lease(secs(9)).max_renewals(2).acquire().await.unwrap();
        world.pass(secs(6 + 8)).await;
        assert!(guard.is_held(), "renewed after 3 s and after 6 s");
        world.pass(secs(1)).await;
        assert_eq!(guard.lost().await, LossReason::Expired);

        let guard = locks.mutex("other").max_hold(secs(45)).acquire().await.unwrap();
        world.pass(ms(44_999)).await;
        assert!(guard.is_held());
        world.pass(ms(1)).await;
        assert_eq!(guard.lost().await, LossReason::MaxHold);
        assert_eq!(guard.renew().await.unwrap_err().kind(), ErrorKind::Lost);
        guard.release().await.unwrap_err();
        world.settle().await;
        assert!(world.is_free("other"), "the hold that was overdue is released");
    }
}

#[tokio::test]
async fn renew_starts_the_lease_anew_now() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").renew_at(9, 10).acquire().await.unwrap();
        world.pass(secs(20)).await;
        assert!(guard.remaining() < secs(10));
        guard.renew().await.unwrap();
        assert!(guard.remaining() > secs(29));
        world.store.inject(OpKind::Renew, Fault::Refuse, 1);
        assert_eq!(guard.renew().await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(guard.is_held());
    }
}

#[test]
fn blocked_runtime_keeps_its_leases() {
    const LEASE: Duration = ms(400);
    for world in World::both() {
        let locks = world.locks();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let guard = runtime.block_on(locks.mutex("job").lease(LEASE).acquire()).unwrap();
        // Every worker of the runtime is blocked for five leases.
        let (begun, over) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
        for _ in 0..2 {
            let (begun, over) = (Arc::clone(&begun), Arc::clone(&over));
            drop(runtime.spawn(async move { (begun.wait(), over.wait()) }));
        }
        begun.wait();
        world.clock.advance_blocking(LEASE * 5);
        assert!(matches!(guard.state(), GuardState::Held { .. }), "{guard:?}");
        over.wait();
        runtime.block_on(guard.release()).unwrap();
    }
}

#[tokio::test]
async fn drop_disarms_renewal_before_release() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let locks = world.builder().janitor_limit(1).build().unwrap();
    let request = locks.mutex("job");
    // Whether the release arrives, is lost, or is refused for a while: nothing is renewed after the drop.
    for fault in [None, Some(Fault::LoseRequest), Some(Fault::LoseReply), Some(Fault::Refuse)] {
        let guard = request.acquire().await.unwrap();
        world.pass(secs(25)).await;
        if let Some(fault) = fault {
            world.store.inject(OpKind::Release, fault, 1);
        }
        far.log.lock().unwrap().clear();
        drop(guard);
        world.pass(secs(60)).await;
        let sent = far.sent();
        assert!(sent.iter().all(|op| matches!(op, Op::Release(_))), "{fault:?}: {sent:?}");
        assert_eq!(sent.len(), 1 + usize::from(fault.is_some()), "{fault:?}: {sent:?}");
        assert!(world.is_free("job"));
    }
}
