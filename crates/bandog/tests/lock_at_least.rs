//! `lock_at_least`: a hold stays in the store for its least time, however early it is let go, and nobody waits for that.

mod common;
#[allow(dead_code, reason = "only a part is needed here")]
mod gate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bandog::op::Op;
use bandog::{ErrorKind, Fault, Locks, Mutex, OpKind, Owner};
use common::{World, ms, poll, ready, secs, waiting};
use gate::stage::Stage;

fn job(locks: &Locks) -> Mutex {
    locks.mutex("job").lock_at_least(secs(40))
}

fn remaining(world: &World) -> Option<Duration> {
    world.view("job")?.holders.first().map(|holder| holder.remaining)
}

#[tokio::test]
async fn a_released_lock_stays_for_its_least_time() {
    for world in World::both() {
        let (here, there) = (world.locks(), world.locks());
        let guard = job(&here).acquire().await.unwrap();
        let hold = guard.hold();
        world.pass(ms(1_500)).await;
        guard.release().await.unwrap();
        assert!(!hold.is_held(), "released is released, for whoever held it");
        assert_eq!(remaining(&world), Some(ms(38_500)), "renewed once, to end then");
        let mut near = waiting(here.mutex("job").acquire());
        world.settle().await;
        let mut far = waiting(there.mutex("job").fair().acquire());
        world.pass(ms(38_499)).await;
        assert!(poll(&mut near).is_pending() && poll(&mut far).is_pending());
        world.pass(ms(500)).await;
        ready(&mut near).unwrap().release().await.unwrap();
        world.settle().await;
        ready(&mut far).unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn however_it_is_let_go() {
    for world in World::both() {
        let locks = world.locks();
        drop(job(&locks).acquire().await.unwrap());
        world.settle().await;
        assert_eq!(remaining(&world), Some(secs(40)), "dropped");
        world.pass(secs(40)).await;

        let guard = job(&locks).acquire().await.unwrap();
        drop(guard.release());
        world.settle().await;
        assert_eq!(remaining(&world), Some(secs(40)), "its release not waited for");
        world.pass(secs(40)).await;

        let guard = job(&locks).acquire().await.unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _held = guard;
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        world.settle().await;
        assert_eq!(remaining(&world), Some(secs(40)), "by a panic");
        world.pass(secs(40)).await;
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn hold_ends_at_its_least_time_and_not_with_the_lease() {
    let world = World::near();
    let locks = world.locks();
    locks.mutex("job").lock_at_least(secs(5)).acquire().await.unwrap().release().await.unwrap();
    assert_eq!(remaining(&world), Some(secs(5)), "shorter than the lease");
    world.pass(secs(5)).await;
    assert!(world.is_free("job"));
    let fixed = locks.mutex("job").lease(secs(1)).max_renewals(0).lock_at_least(secs(300));
    fixed.acquire().await.unwrap().release().await.unwrap();
    world.pass(ms(299_999)).await;
    assert!(!world.is_free("job"), "longer than the lease");
    world.pass(ms(1)).await;
    assert!(world.is_free("job"));
    let guard = job(&locks).acquire().await.unwrap();
    world.pass(secs(40)).await;
    guard.release().await.unwrap();
    assert!(world.is_free("job"), "work that took as long leaves nothing behind");
}

#[tokio::test]
async fn staying_costs_one_renewal() {
    let world = World::far();
    let locks = world.locks();
    let guard = job(&locks).acquire().await.unwrap();
    world.far.as_ref().unwrap().log.lock().unwrap().clear();
    guard.release().await.unwrap();
    world.pass(secs(100)).await;
    let sent = world.far.as_ref().unwrap().sent();
    assert!(matches!(sent[..], [Op::Renew(_)]), "{sent:?}");
}

#[tokio::test]
async fn more_than_the_longest_lease_is_kept_while_the_client_lives() {
    for world in World::both() {
        let locks = world.locks();
        let quarter = locks.mutex("job").lock_at_least(secs(840));
        quarter.acquire().await.unwrap().release().await.unwrap();
        world.pass(ms(839_999)).await;
        assert!(!world.is_free("job"));
        world.pass(ms(1)).await;
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn hold_with_a_least_time_outlives_its_client() {
    let world = World::near();
    let locks = world.locks();
    drop(job(&locks).acquire().await.unwrap());
    drop(locks);
    world.pass(ms(39_999)).await;
    assert!(!world.is_free("job"));
    world.pass(ms(1)).await;
    assert!(world.is_free("job"));
}

#[tokio::test]
async fn shutdown_ends_what_is_held_and_leaves_what_stays() {
    let world = World::far();
    let locks = world.locks();
    drop(job(&locks).acquire().await.unwrap());
    let held = locks.mutex("work").lock_at_least(secs(40)).acquire().await.unwrap();
    locks.shutdown().await.unwrap();
    assert_eq!(remaining(&world), Some(secs(40)), "shutdown has waited for the renewal");
    assert!(world.is_free("work"), "its work was not done: another may do it");
    assert_eq!(held.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn a_lost_lock_does_not_stay() {
    for world in World::both() {
        let locks = world.locks();
        let guard = job(&locks).acquire().await.unwrap();
        locks.revoke("job", "deploying").await.unwrap();
        world.settle().await;
        assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
        world.settle().await;
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn hold_that_stays_can_be_revoked() {
    for world in World::both() {
        let (here, there) = (world.locks(), world.locks());
        job(&here).acquire().await.unwrap().release().await.unwrap();
        there.revoke("job", "run it again").await.unwrap();
        world.settle().await;
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn reentrant_guard_with_a_least_time_only_leaves() {
    let world = World::near();
    let (locks, me) = (world.locks(), Owner::new());
    let outer = job(&locks).owner(&me).reentrant().acquire().await.unwrap();
    let inner = job(&locks).owner(&me).reentrant().acquire().await.unwrap();
    inner.release().await.unwrap();
    assert!(outer.is_held());
    world.pass(secs(10)).await;
    outer.release().await.unwrap();
    assert_eq!(remaining(&world), Some(secs(30)));
}

#[tokio::test]
async fn a_store_that_fails_is_told_and_asked_again() {
    let world = World::near();
    let locks = world.locks();
    let guard = job(&locks).acquire().await.unwrap();
    world.pass(secs(1)).await;
    world.store.inject(OpKind::Renew, Fault::LoseRequest, 1);
    let released = tokio::spawn(guard.release());
    world.pass(secs(2)).await;
    assert_eq!(released.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    world.pass(secs(1)).await;
    assert_eq!(remaining(&world), Some(secs(36)));
}

#[tokio::test]
async fn a_hold_stays_whose_claim_is_answered_later() {
    let stage = Stage::new(true);
    let first = stage.rival.mutex("job").acquire().await.unwrap();
    stage.gate.close();
    let mut waits = waiting(job(&stage.locks).acquire());
    stage.turn().await;
    assert!(stage.gate.execute(0), "it stands in the queue and does not know yet");
    first.release().await.unwrap();
    assert!(stage.gate.deliver(0), "the push overtakes the answer");
    let guard = ready(&mut waits).unwrap();
    guard.release().await.expect("nobody waits for that");
    stage.turn().await;
    stage.gate.open();
    stage.clock.advance(secs(39)).await;
    assert!(stage.rival.mutex("job").try_acquire().await.unwrap().is_none());
    stage.clock.advance(secs(1)).await;
    assert!(stage.rival.mutex("job").try_acquire().await.unwrap().is_some());
}
