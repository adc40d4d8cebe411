//! Lost holds that are taken again: whose they are then, what ends the attempt, and what it does not give back.

mod common;

use bandog::{Fault, LossReason, OpKind, Owner, Recovery};
use common::{World, ms, ready, secs, waiting};

/// The store answers no renewal and no release: a hold is lost and cannot be taken again until it is healed.
fn cut(world: &World) {
    world.store.inject(OpKind::Renew, Fault::Refuse, u32::MAX);
    world.store.inject(OpKind::Release, Fault::Refuse, u32::MAX);
}

#[tokio::test]
async fn loss_asked_for_before_reacquire_fails_reports_the_failure() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
    cut(&world);
    world.pass(ms(30_500)).await;
    let mut again = tokio::spawn(guard.regained());
    world.pass(secs(60)).await;
    let told = tokio::time::timeout(secs(10), &mut again).await.expect("it is woken").unwrap();
    assert_eq!(told, Err(LossReason::Unreachable));
}

#[tokio::test]
async fn a_task_that_ends_meanwhile_ends_the_attempt() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
    let task = tokio::spawn(std::future::pending::<()>());
    guard.bind(&task);
    cut(&world);
    world.pass(ms(30_000)).await;
    task.abort();
    assert!(task.await.is_err());
    world.pass(secs(6)).await;
    world.store.heal();
    world.pass(secs(120)).await;
    assert_eq!(guard.regained().await, Err(LossReason::TaskEnded));
    assert!(world.is_free("job"));
}

#[tokio::test]
async fn hold_revoked_meanwhile_is_not_reacquired() {
    for told in [true, false] {
        let world = World::near();
        let (locks, operator) = (world.locks(), world.locks());
        let guard = locks.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
        cut(&world);
        world.pass(ms(29_600)).await;
        if !told {
            // The holder does not hear of it: only the record knows.
            world.store.inject(OpKind::Any, Fault::LosePush, 1);
        }
        operator.revoke("job", "stop it").await.unwrap();
        world.pass(ms(200)).await;
        world.store.heal();
        world.pass(secs(60)).await;
        assert!(!guard.is_held(), "the operator's word stands: {:?}", guard.state());
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn a_guard_that_was_changed_after_it_came_back_comes_back_again() {
    let world = World::near();
    let locks = world.locks();
    let writer = locks.rwlock("job").write().recovery(Recovery::Reacquire).acquire().await.unwrap();
    world.clock.pause(secs(35));
    world.pass(secs(1)).await;
    let reader = writer.downgrade().await.unwrap();
    world.clock.pause(secs(35));
    world.pass(secs(120)).await;
    assert!(reader.is_held(), "{:?}", reader.state());
    reader.release().await.unwrap();
    assert!(world.is_free("job"));
}

#[tokio::test]
async fn inner_and_outer_guards_come_back_together() {
    let world = World::near();
    let locks = world.locks();
    let me = Owner::new();
    let job = locks.mutex("job").owner(&me).reentrant().recovery(Recovery::Reacquire);
    let outer = job.acquire().await.unwrap();
    world.clock.pause(secs(35));
    world.pass(secs(1)).await;
    let inner = job.acquire().await.unwrap();
    world.clock.pause(secs(35));
    world.pass(secs(1)).await;
    assert!(outer.is_held() && inner.is_held());
    assert_eq!(outer.token(), inner.token());
}

#[tokio::test]
async fn a_lost_answer_does_not_overtake_its_own_claim() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
    world.store.inject(OpKind::Release, Fault::LoseReply, 1);
    world.clock.pause(secs(35));
    let mut again = waiting(Box::pin(guard.regained()));
    world.pass(secs(9)).await;
    assert_eq!(ready(&mut again), Ok(guard.token()));
}

#[tokio::test]
async fn a_shutdown_ends_the_attempt() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
    cut(&world);
    world.pass(ms(30_000)).await;
    let closing = tokio::spawn({
        let locks = locks.clone();
        async move { locks.shutdown().await }
    });
    world.settle().await;
    assert!(guard.regained().await.is_err());
    world.store.heal();
    world.pass(secs(10)).await;
    closing.await.unwrap().unwrap();
    assert!(world.is_free("job"));
}
