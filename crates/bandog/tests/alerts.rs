//! Alerts: what takes longer than somebody said is told in the log.

mod common;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use bandog::{Alert, Event, Fault, LockConfig, Locks, OpKind, Recovery};
use common::{World, ms, secs};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

/// Keeps the warnings of one thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0.lock().unwrap_or_else(|poison| poison.into_inner()), "{field}={value:?} ");
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Warnings {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(|poison| poison.into_inner()))
    }
}

#[tokio::test]
async fn long_holds_and_long_waits_are_told() {
    let warnings = Warnings::default();
    let _listening = tracing::subscriber::set_default(warnings.clone());
    let world = World::near();
    let config = LockConfig::builder().alert_hold(secs(2)).alert_wait(secs(1)).build().unwrap();
    let locks = world.locks();
    let quick = locks.mutex("job").config(&config).acquire().await.unwrap();
    world.clock.advance(secs(1)).await;
    drop(quick);
    assert_eq!(warnings.take(), "", "nothing took long");

    let slow = locks.mutex("job").config(&config).acquire().await.unwrap();
    let waiting = tokio::spawn(locks.mutex("job").config(&config).acquire());
    world.clock.advance(secs(3)).await;
    slow.release().await.unwrap();
    drop(waiting.await.unwrap().unwrap());
    let told = warnings.take();
    assert!(told.contains("held job") && told.contains("waited 3s for job"), "{told}");
}

#[tokio::test]
async fn late_renewals_are_told() {
    let world = World::near();
    let defaults = LockConfig::builder().alert_renewal(ms(100)).build().unwrap();
    let locks =
        Locks::builder().store(world.store.clone()).clock(world.clock.clock()).defaults(defaults).build().unwrap();
    let guard = locks.mutex("job").acquire().await.unwrap();
    let mut events = locks.events();
    world.clock.advance(secs(15)).await;
    world.store.inject(OpKind::Renew, Fault::Delay { before: ms(0), after: ms(500) }, 1);
    world.clock.advance(secs(15)).await;
    drop(guard);
    let alerts = std::iter::from_fn(|| events.try_next()).filter(|event| matches!(event, Event::Alert(_)));
    let alerts: Vec<Event> = alerts.collect();
    let [Event::Alert(Alert::Renewal { late, limit, .. })] = &alerts[..] else { panic!("one alert: {alerts:?}") };
    assert_eq!((*late, *limit), (ms(500), ms(100)));
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
