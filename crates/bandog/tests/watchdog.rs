//! The watchdog in virtual time: when it goes its rounds, what it costs, what it leaves alone. Real faults: bandog-redis, tests/watchdog.

mod common;

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use bandog::op::Op;
use bandog::{Event, Fault, GuardState, LockConfig, LossReason, OpKind, Recovery, Strategy};
use common::{World, ms, ready, secs};

#[tokio::test]
async fn ten_healthy_minutes_have_no_findings() {
    for world in World::both() {
        let locks = world.locks();
        let mut guards = Vec::new();
        for n in 0..1_000 {
            guards.push(locks.mutex(format!("job:{n}")).acquire().await.unwrap());
        }
        let waits = tokio::spawn(locks.mutex("job:0").acquire());
        world.pass(secs(600)).await;
        let health = locks.health();
        assert!(health.ready && health.problems.is_empty(), "{health}");
        assert_eq!((health.findings.total(), health.recoveries_worked, health.recoveries_failed), (0, 0, 0));
        assert_eq!((health.holds, health.waiters, health.uncertain, health.rounds), (1_000, 1, 0, 120));
        waits.abort();
    }
}

#[tokio::test]
async fn the_shortest_period_that_anybody_asked_for_counts() {
    let world = World::near();
    let locks = world.locks();
    world.pass(secs(60)).await;
    assert_eq!(locks.health().rounds, 12, "every 5 s");
    let hurried = LockConfig::builder().watchdog_period(secs(1)).build().unwrap();
    let guard = locks.mutex("job").config(&hurried).acquire().await.unwrap();
    world.pass(secs(60)).await;
    assert_eq!(locks.health().rounds, 72, "every second");
    drop(guard);
}

#[tokio::test]
async fn released_holds_leave_the_watchdog() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let locks = world.locks();
    let fixed = locks.mutex("job").lease(secs(600)).max_renewals(0).acquire().await.unwrap();
    let looks = || far.log.lock().unwrap().iter().filter(|(_, _, op)| matches!(op, Op::Heartbeat(_))).count();
    world.pass(secs(61)).await;
    assert_eq!(looks(), 12, "one a round");
    fixed.release().await.unwrap();
    world.pass(secs(60)).await;
    assert_eq!((looks(), locks.health().holds), (12, 0));
}

#[tokio::test]
async fn of_very_many_holds_each_round_looks_at_a_part() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let locks = world.locks();
    let mut guards = Vec::new();
    for n in 0..25_000 {
        guards.push(locks.mutex(format!("job:{n}")).lease(secs(600)).max_renewals(0).acquire().await.unwrap());
    }
    let mut looked_at = HashSet::new();
    for round in 1..=3 {
        far.log.lock().unwrap().clear();
        world.pass(secs(5)).await;
        let log = std::mem::take(&mut *far.log.lock().unwrap());
        let named = log.into_iter().filter(|(_, _, op)| matches!(op, Op::Heartbeat(_))).map(|(_, name, _)| name);
        let named: Vec<_> = named.collect();
        assert!((7_000..10_000).contains(&named.len()), "a third: {} in round {round}", named.len());
        looked_at.extend(named);
    }
    assert_eq!(looked_at.len(), 25_000, "and all of them in turn");
}

#[tokio::test]
async fn a_process_that_was_paused_takes_its_lock_again_if_nobody_had_it() {
    for world in World::both() {
        let locks = world.locks();
        let mut events = locks.events();
        let guard = locks.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
        let given = guard.token();
        world.clock.pause(secs(35));
        assert_eq!(guard.state(), GuardState::Lost { reason: LossReason::Expired }, "at the first look");
        // The renewal thread may be done with it before anybody asks.
        let mut again = Box::pin(guard.regained());
        world.pass(secs(1)).await;
        let again = ready(&mut again).unwrap();
        assert!(again > given && guard.token() == again && guard.is_held());
        let recovered = |event: &Event| matches!(event, Event::Recovered { strategy: Strategy::Reacquire, worked: true, token, .. } if *token == Some(again));
        assert!(std::iter::from_fn(|| events.try_next()).any(|event| recovered(&event)));
        world.pass(secs(120)).await;
        assert!(guard.is_held(), "kept like any other");
        guard.release().await.unwrap();
        assert!(world.is_free("job"));
    }
}

#[tokio::test]
async fn a_lock_that_another_had_in_between_stays_lost() {
    for world in World::both() {
        let (ann, bob) = (world.locks(), world.locks());
        let guard = ann.mutex("job").recovery(Recovery::Reacquire).acquire().await.unwrap();
        let waits = tokio::spawn(bob.mutex("job").acquire());
        world.store.inject(OpKind::Renew, Fault::Refuse, u32::MAX);
        world.pass(ms(29_800)).await;
        world.store.heal();
        let theirs = waits.await.unwrap().unwrap();
        assert_eq!(guard.regained().await, Err(LossReason::Unreachable));
        assert!(theirs.is_held() && theirs.token() > guard.token());
    }
}

#[tokio::test]
async fn time_passes_while_a_connection_gives_no_answer() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let locks = world.locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    far.deaf.store(true, Ordering::SeqCst);
    world.pass(secs(60)).await;
    let health = locks.health();
    assert!(guard.is_held() && !health.ready, "{health}");
    assert!(health.findings.connection > 0 && health.findings.renewal == 0, "{health}");
    far.deaf.store(false, Ordering::SeqCst);
    world.pass(secs(30)).await;
    assert!(locks.health().ready, "{}", locks.health());
}

#[tokio::test]
async fn a_bound_task_that_ended_is_noticed_within_a_period() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    let task = tokio::spawn(std::future::pending::<()>());
    guard.bind(&task);
    world.pass(secs(60)).await;
    assert!(guard.is_held());
    task.abort();
    assert!(task.await.is_err());
    world.pass(secs(5)).await;
    assert_eq!(guard.state(), GuardState::Lost { reason: LossReason::TaskEnded });
    assert_eq!(locks.health().findings.holder, 1);
}

#[tokio::test]
async fn a_bond_ends_with_its_guard() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    guard.bind(&tokio::spawn(async {}));
    // Passed on in this process, the next one has the same hold in the store.
    let next = tokio::spawn(locks.mutex("job").acquire());
    world.settle().await;
    guard.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    world.pass(secs(20)).await;
    assert!(next.is_held(), "it is not the next one's");
    assert_eq!(locks.health().findings.total(), 0);
}

#[tokio::test]
async fn progress_keeps_a_hold_and_silence_ends_it() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").progress_within(secs(8)).acquire().await.unwrap();
    for _ in 0..10 {
        world.pass(secs(7)).await;
        guard.progress();
    }
    assert!(guard.is_held());
    world.pass(secs(13) + ms(1)).await;
    assert_eq!(guard.state(), GuardState::Lost { reason: LossReason::NoProgress });
}
