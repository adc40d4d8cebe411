//! Metrics through the facade, as a recorder of the user's sees them. The table itself is checked next to its code.

#![allow(clippy::unwrap_used, reason = "parts of tests")]

mod common;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex, PoisonError};

use bandog::{Fault, Locks, OpKind, Owner, Recovery};
use common::{World, ms, secs, waiting};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// The one recorder of this process: renewals report from a thread of their own.
static RECORDER: LazyLock<Mutex<Snapshotter>> = LazyLock::new(|| {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    Mutex::new(snapshotter)
});

/// What was recorded, by `name{label=value}`.
struct Numbers(BTreeMap<String, DebugValue>);

impl Numbers {
    fn take(from: &Snapshotter) -> Self {
        let series = from.snapshot().into_vec().into_iter().map(|(key, unit, words, value)| {
            assert!(unit.is_some() && words.is_some(), "{key:?} is not described");
            let label = |label: &metrics::Label| format!("{}={}", label.key(), label.value());
            let labels: Vec<String> = key.key().labels().map(label).collect();
            (format!("{}{{{}}}", key.key().name(), labels.join(",")), value)
        });
        Self(series.collect())
    }

    fn count(&self, series: &str) -> u64 {
        match self.0.get(series) {
            Some(DebugValue::Counter(count)) => *count,
            other => panic!("{series} is no counter but {other:?}"),
        }
    }

    fn seconds(&self, series: &str) -> Vec<f64> {
        match self.0.get(series) {
            Some(DebugValue::Histogram(values)) => values.iter().map(|value| value.into_inner()).collect(),
            other => panic!("{series} is no histogram but {other:?}"),
        }
    }

    fn gauge(&self, series: &str) -> f64 {
        match self.0.get(series) {
            Some(DebugValue::Gauge(value)) => value.into_inner(),
            other => panic!("{series} is no gauge but {other:?}"),
        }
    }
}

/// What a story leaves in the recorder. One story at a time.
fn measured(story: impl Future<Output = ()>) -> Numbers {
    let recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    drop(recorder.snapshot());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(story);
    Numbers::take(&recorder)
}

#[test]
fn attempts_grants_and_times_are_counted() {
    for world in World::both() {
        let numbers = measured(async {
            let (locks, me) = (world.locks(), Owner::new());
            let outer = locks.mutex("job").owner(&me).reentrant().acquire().await.unwrap();
            drop(locks.mutex("job").owner(&me).reentrant().acquire().await.unwrap());
            let next = tokio::spawn(locks.mutex("job").acquire());
            world.pass(secs(2)).await;
            drop(outer);
            let next = next.await.unwrap().unwrap();
            world.pass(secs(1)).await;
            next.release().await.unwrap();
            drop(locks.rwlock("cfg").read().acquire().await.unwrap());
            let permit = world.locks().semaphore("gpu", 1).acquire().await.unwrap();
            let waits = tokio::spawn(locks.semaphore("gpu", 1).acquire());
            world.pass(ms(10)).await;
            drop(permit);
            world.pass(ms(10)).await;
            drop(waits.await.unwrap().unwrap());
        });
        let modes = ["exclusive", "shared", "permits"]
            .map(|mode| numbers.count(&format!("bandog_acquires_total{{mode={mode}}}")));
        assert_eq!(modes, [3, 1, 2]);
        let ways = ["at_once", "local", "hand_off", "reentry"];
        assert_eq!(ways.map(|how| numbers.count(&format!("bandog_grants_total{{how={how}}}"))), [3, 1, 1, 1]);
        let waits = numbers.seconds("bandog_wait_seconds{outcome=granted}");
        assert_eq!(waits.iter().filter(|wait| **wait >= 2.0).count(), 1, "{waits:?}");
        assert_eq!(waits.len(), 6);
        let held = numbers.seconds("bandog_hold_seconds{end=released}");
        assert_eq!(held.len(), 5, "an inner level is no hold: {held:?}");
        assert_eq!((held[0], held[1]), (2.0, 1.0));
        assert!(numbers.seconds("bandog_queue_length{}").contains(&1.0), "one waited for the semaphore");
        assert_eq!(numbers.gauge("bandog_connection_up{connection=inbox}"), 1.0);
    }
}

#[test]
fn waits_that_come_to_nothing_are_counted_by_what_became_of_them() {
    for world in World::both() {
        let numbers = measured(async {
            let locks = world.locks();
            let held = locks.mutex("job").acquire().await.unwrap();
            assert!(locks.mutex("job").try_acquire().await.unwrap().is_none());
            let elsewhere = world.locks();
            assert!(elsewhere.mutex("job").try_acquire().await.unwrap().is_none());
            let late = tokio::spawn(locks.mutex("job").wait(secs(1)).acquire());
            world.pass(secs(2)).await;
            late.await.unwrap().unwrap_err();
            drop(waiting(locks.mutex("job").acquire()));
            locks.mutex("").acquire().await.unwrap_err();
            locks.semaphore("job", 2).acquire().await.unwrap_err();
            drop(held);
        });
        assert_eq!(numbers.count("bandog_timeouts_total{kind=busy}"), 2);
        assert_eq!(numbers.count("bandog_timeouts_total{kind=timeout}"), 1);
        assert_eq!(numbers.count("bandog_errors_total{class=invalid,phase=acquire}"), 1);
        assert_eq!(numbers.count("bandog_errors_total{class=wrong_kind,phase=acquire}"), 1);
        assert!(numbers.seconds("bandog_wait_seconds{outcome=timeout}").contains(&1.0));
        assert_eq!(numbers.seconds("bandog_wait_seconds{outcome=cancelled}").len(), 1);
        assert_eq!(numbers.seconds("bandog_wait_seconds{outcome=failed}").len(), 1, "what was never sent did not wait");
    }
}

#[test]
fn renewals_and_losses_are_counted() {
    for world in World::both() {
        let numbers = measured(async {
            let locks = world.locks();
            let _guard = locks.mutex("job").acquire().await.unwrap();
            world.pass(secs(25)).await;
            world.store.inject(OpKind::Renew, Fault::LoseRequest, 1);
            world.pass(secs(9)).await;
            world.store.delete(&common::name("job"));
            world.pass(secs(20)).await;
        });
        let results =
            ["ok", "late", "failed"].map(|result| numbers.count(&format!("bandog_renewals_total{{result={result}}}")));
        assert_eq!(results, [2, 1, 2], "one had no answer, one found no hold");
        assert_eq!(numbers.count("bandog_losses_total{reason=gone}"), 1);
        assert_eq!(numbers.count("bandog_errors_total{class=unavailable,phase=renew}"), 1);
        assert_eq!(numbers.seconds("bandog_hold_seconds{end=lost}").len(), 1);
        assert_eq!(numbers.count("bandog_losses_total{reason=expired}"), 0, "there, and at nothing");
    }
}

#[test]
fn failures_of_the_store_are_counted_once_each() {
    for world in World::both() {
        let numbers = measured(async {
            let locks = world.locks();
            world.store.inject(OpKind::Acquire, Fault::Refuse, 3);
            let asks = tokio::spawn(locks.mutex("job").acquire());
            world.pass(secs(5)).await;
            let guard = asks.await.unwrap().unwrap();
            world.store.inject(OpKind::Release, Fault::Deny, 1);
            guard.release().await.unwrap_err();
            world.store.inject(OpKind::Acquire, Fault::Deny, 1);
            locks.mutex("other").acquire().await.unwrap_err();
        });
        assert_eq!(numbers.count("bandog_errors_total{class=unavailable,phase=acquire}"), 3);
        assert_eq!(numbers.count("bandog_errors_total{class=refused,phase=release}"), 1);
        assert_eq!(numbers.count("bandog_errors_total{class=refused,phase=acquire}"), 1);
    }
}

#[test]
fn alerts_and_missed_events_are_counted() {
    let world = World::near();
    let numbers = measured(async {
        let alerting = bandog::LockConfig::builder().alert_hold(secs(1)).build().unwrap();
        let locks = world.locks();
        let slow = locks.events_with_room(1);
        let guard = locks.mutex("job").config(&alerting).acquire().await.unwrap();
        world.pass(secs(2)).await;
        drop((guard, slow));
    });
    assert_eq!(numbers.count("bandog_alerts_total{alert=hold}"), 1);
    assert_eq!(numbers.count("bandog_events_missed_total{}"), 2, "the alert and the release");
}

#[test]
fn releases_that_are_not_taken_on_are_counted() {
    let world = World::far();
    let numbers = measured(async {
        let locks = world.builder().janitor_limit(0).build().unwrap();
        drop(locks.mutex("job").acquire().await.unwrap());
    });
    assert_eq!(numbers.count("bandog_janitor_abandoned_total{}"), 1);
}

#[test]
fn groups_are_what_the_user_says_they_are() {
    let world = World::near();
    let numbers = measured(async {
        let group = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        let locks: Locks = world.builder().group_by(group).build().unwrap();
        for order in 0..3 {
            drop(locks.mutex(format!("order:{order}")).acquire().await.unwrap());
        }
    });
    assert_eq!(numbers.count("bandog_acquires_total{mode=exclusive,group=order}"), 3);
    assert_eq!(numbers.count("bandog_grants_total{how=at_once,group=order}"), 3);
    assert_eq!(numbers.seconds("bandog_hold_seconds{end=released,group=order}").len(), 3);
    assert!(!numbers.0.keys().any(|series| series.contains("order:")), "names of locks are no labels");
}

#[test]
fn gauges_say_what_the_client_has() {
    for world in World::both() {
        let numbers = measured(async {
            let locks = world.locks();
            let _listens = locks.events();
            let mut guards = Vec::new();
            for n in 0..4 {
                guards.push(locks.mutex(format!("job:{n}")).acquire().await.unwrap());
            }
            let waits = [(); 2].map(|()| tokio::spawn(locks.mutex("job:0").acquire()));
            world.pass(ms(4_500)).await;
            // Its answer is still awaited when the watchdog comes round.
            world.store.inject(OpKind::Release, Fault::LoseRequest, 1);
            drop(guards.pop());
            world.pass(ms(500)).await;
            waits.iter().for_each(tokio::task::JoinHandle::abort);
        });
        let gauges = ["holds", "waiters", "locks_in_use", "janitor_pending", "listeners"];
        let seen = gauges.map(|gauge| numbers.gauge(&format!("bandog_{gauge}{{}}")));
        assert_eq!(seen, [3.0, 2.0, 4.0, 1.0, 1.0], "{gauges:?}");
        let bytes = numbers.gauge("bandog_hold_bytes{}");
        assert!((100.0..4_000.0).contains(&bytes), "{bytes} bytes for each of them");
    }
}

#[test]
fn rounds_of_the_watchdog_are_counted() {
    for world in World::both() {
        let numbers = measured(async {
            let locks = world.locks();
            world.pass(secs(60)).await;
            drop(locks);
        });
        assert_eq!(numbers.count("bandog_watchdog_runs_total{}"), 12, "every 5 s");
        assert_eq!(numbers.seconds("bandog_watchdog_run_seconds{}").len(), 12);
    }
}

#[test]
fn connections_that_give_no_answer_are_shown_as_down() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let locks = world.locks();
    for (deaf, up) in [(false, 1.0), (true, 0.0), (false, 1.0)] {
        far.deaf.store(deaf, Ordering::SeqCst);
        let numbers = measured(world.pass(secs(30)));
        let seen = ["renewals", "inbox"].map(|way| numbers.gauge(&format!("bandog_connection_up{{connection={way}}}")));
        assert_eq!(seen, [up, up], "deaf: {deaf}");
        assert!(!deaf || numbers.count("bandog_watchdog_findings_total{check=connection}") > 0);
    }
    drop(locks);
}

#[test]
fn recoveries_are_counted_by_what_became_of_them() {
    for world in World::both() {
        let numbers = measured(async {
            let (ann, bob) = (world.locks(), world.locks());
            let again = |lock: &str| ann.mutex(lock).recovery(Recovery::Reacquire).acquire();
            // Two that nobody had meanwhile, and one that another has by then.
            let (free, taken) =
                ([again("one").await.unwrap(), again("two").await.unwrap()], again("taken").await.unwrap());
            world.clock.pause(secs(35));
            let theirs = bob.mutex("taken").acquire().await.unwrap();
            assert!(free.iter().chain([&taken]).all(|guard| !guard.is_held()));
            world.pass(secs(5)).await;
            assert!(free.iter().all(|guard| guard.is_held()) && !taken.is_held() && theirs.is_held());
        });
        let results = ["ok", "failed"]
            .map(|result| numbers.count(&format!("bandog_recoveries_total{{strategy=reacquire,result={result}}}")));
        assert_eq!(results, [2, 1]);
    }
}
