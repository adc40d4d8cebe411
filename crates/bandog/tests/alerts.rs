//! Alerts: what takes longer, or happens more often, than somebody said is told, once each.

mod common;

use bandog::{Alert, Event, Events, Fault, LockConfig, Locks, OpKind, Recovery};
use common::{World, ms, secs};

/// The alerts since the last look.
fn alerts(events: &mut Events) -> Vec<Alert> {
    let alert = |event| if let Event::Alert(alert) = event { Some(alert) } else { None };
    std::iter::from_fn(|| events.try_next()).filter_map(alert).collect()
}

fn client(world: &World, defaults: LockConfig) -> Locks {
    Locks::builder().store(world.store.clone()).clock(world.clock.clock()).defaults(defaults).build().expect("a client")
}

#[tokio::test]
async fn long_holds_and_long_waits_are_told() {
    let world = World::near();
    let config = LockConfig::builder().alert_hold(secs(2)).alert_wait(secs(1)).build().unwrap();
    let locks = world.locks();
    let mut events = locks.events();
    let quick = locks.mutex("job").config(&config).acquire().await.unwrap();
    world.clock.advance(secs(1)).await;
    drop(quick);
    assert_eq!(alerts(&mut events), [], "nothing took long");

    let slow = locks.mutex("job").config(&config).acquire().await.unwrap();
    let token = slow.token();
    let waiting = tokio::spawn(locks.mutex("job").config(&config).acquire());
    world.clock.advance(secs(3)).await;
    slow.release().await.unwrap();
    drop(waiting.await.unwrap().unwrap());
    let [Alert::Hold { token: held, held: long, .. }, Alert::Wait { waited, limit, .. }] = &alerts(&mut events)[..]
    else {
        panic!("one alert each")
    };
    assert_eq!((*held, *long, *waited, *limit), (token, secs(3), secs(3), secs(1)));
}

#[tokio::test]
async fn long_holds_and_waits_alert_while_they_last() {
    let world = World::near();
    let config = LockConfig::builder().alert_hold(secs(7)).alert_wait(secs(7)).build().unwrap();
    let locks = world.locks();
    let mut events = locks.events();
    let guard = locks.mutex("job").config(&config).acquire().await.unwrap();
    let waiting = tokio::spawn(locks.mutex("job").config(&config).acquire());
    world.clock.advance(secs(9)).await;
    assert_eq!(alerts(&mut events), []);
    world.clock.advance(secs(3)).await;
    let told = alerts(&mut events);
    assert!(matches!(&told[..], [Alert::Hold { .. }, Alert::Wait { .. }]), "{told:?}");
    world.clock.advance(secs(60)).await;
    drop(guard);
    drop(waiting.await.unwrap().unwrap());
    assert_eq!(alerts(&mut events), [], "once");
}

#[tokio::test]
async fn late_renewals_are_told() {
    let world = World::near();
    let locks = client(&world, LockConfig::builder().alert_renewal(ms(100)).build().unwrap());
    let guard = locks.mutex("job").acquire().await.unwrap();
    let mut events = locks.events();
    world.clock.advance(secs(15)).await;
    world.store.inject(OpKind::Renew, Fault::Delay { before: ms(0), after: ms(500) }, 1);
    world.clock.advance(secs(15)).await;
    drop(guard);
    let told = alerts(&mut events);
    let [Alert::Renewal { late, limit, .. }] = &told[..] else { panic!("one alert: {told:?}") };
    assert_eq!((*late, *limit), (ms(500), ms(100)));
}

#[tokio::test]
async fn many_recoveries_in_a_short_time_are_told() {
    let world = World::near();
    let locks = client(&world, LockConfig::builder().alert_recoveries(3, secs(60)).build().unwrap());
    let mut events = locks.events();
    for n in 0..5 {
        let guard = locks.mutex(format!("job:{n}")).max_hold(secs(10)).acquire().await.unwrap();
        world.clock.advance(secs(15)).await;
        assert!(!guard.is_held());
    }
    let told = alerts(&mut events);
    assert_eq!(told, [Alert::Recoveries { count: 3, within: secs(60) }], "and counted anew from there");
}

#[tokio::test]
async fn a_lost_lock_is_freed_at_once_if_asked_for() {
    for (recovery, free) in [(Recovery::Notify, false), (Recovery::Release, true)] {
        let world = World::near();
        let locks = world.locks();
        let config = LockConfig::builder().recovery(recovery).build().unwrap();
        let guard = locks.mutex("job").config(&config).acquire().await.unwrap();
        locks.revoke("job", "deploying").await.unwrap();
        guard.lost().await;
        let next = world.locks().mutex("job").try_acquire().await.unwrap();
        assert_eq!(next.is_some(), free, "{recovery:?}");
    }
}
