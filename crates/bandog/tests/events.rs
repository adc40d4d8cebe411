//! Events: typed, in order, cheap, and never in the way of a lock. See docs/events.md.

mod common;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bandog::{Event, Events, Fault, How, LossReason, OpKind, Owner, Token, blocking};
use common::{World, ms, name, secs, until};
use futures_core::Stream;

/// What was told since the last look, without tokens and times, and without the watchdog's findings (see watchdog.rs).
fn told(events: &mut Events) -> Vec<String> {
    let word = |event: Event| match event {
        Event::Waiting { lock, holder } => format!("waiting for {lock}, held: {}", holder.is_some()),
        Event::Acquired { lock, how, .. } => format!("acquired {lock} {how}"),
        Event::RenewedLate { lock, .. } => format!("renewed {lock} late"),
        Event::Uncertain { lock, .. } => format!("uncertain of {lock}"),
        Event::Lost { lock, reason, .. } => format!("lost {lock}: {reason}"),
        Event::Released { lock, .. } => format!("released {lock}"),
        other => other.to_string(),
    };
    let found = |event: &Event| matches!(event, Event::Found { .. } | Event::Recovered { .. });
    std::iter::from_fn(|| events.try_next()).filter(|event| !found(event)).map(word).collect()
}

#[tokio::test]
async fn every_way_to_a_lock_is_told() {
    for world in World::both() {
        let locks = world.locks();
        let mut events = locks.events();
        let me = Owner::new();
        let outer = locks.mutex("job").owner(&me).reentrant().acquire().await.unwrap();
        drop(locks.mutex("job").owner(&me).reentrant().acquire().await.unwrap());
        let next = tokio::spawn(locks.mutex("job").acquire());
        world.settle().await;
        drop(outer);
        drop(next.await.unwrap().unwrap());
        let expected = [
            "acquired job at once",
            "acquired job by re-entry",
            "waiting for job, held: true",
            "released job",
            "acquired job locally",
            "released job",
        ];
        assert_eq!(told(&mut events), expected);

        let elsewhere = world.locks().mutex("job").acquire().await.unwrap();
        let next = tokio::spawn(locks.mutex("job").acquire());
        world.settle().await;
        assert_eq!(told(&mut events), ["waiting for job, held: true"]);
        drop(elsewhere);
        world.settle().await;
        drop(next.await.unwrap().unwrap());
        assert_eq!(told(&mut events), ["acquired job by hand-off", "released job"]);
    }
}

#[tokio::test]
async fn an_event_carries_what_it_is_about() {
    let world = World::near();
    let (locks, other) = (world.locks(), world.locks());
    let mut events = locks.events();
    let held = other.mutex("job").acquire().await.unwrap();
    let next = tokio::spawn(locks.mutex("job").acquire());
    world.pass(secs(1)).await;
    let Some(Event::Waiting { lock, holder: Some(holder) }) = events.next().await else { panic!("not waiting") };
    assert_eq!((lock, Some(holder.holder)), (name("job"), held.hold().holder()));
    drop(held);
    let guard = next.await.unwrap().unwrap();
    let token = guard.token();
    let acquired = Event::Acquired { lock: name("job"), token, how: How::HandOff, waited: secs(1) };
    assert_eq!(events.next().await, Some(acquired));
    world.pass(secs(2)).await;
    guard.release().await.unwrap();
    assert_eq!(events.next().await, Some(Event::Released { lock: name("job"), token, held: secs(2) }));
}

#[tokio::test]
async fn late_renewals_doubts_and_losses_are_told() {
    for world in World::both() {
        let locks = world.locks();
        let mut events = locks.events();
        let guard = locks.mutex("job").acquire().await.unwrap();
        world.pass(secs(25)).await;
        assert_eq!(told(&mut events), ["acquired job at once"], "renewals in time are no event");
        world.store.inject(OpKind::Renew, Fault::LoseRequest, 1);
        world.pass(secs(20)).await;
        assert_eq!(told(&mut events), ["uncertain of job", "renewed job late"]);
        world.store.inject(OpKind::Any, Fault::Refuse, u32::MAX);
        world.pass(secs(60)).await;
        let lost = format!("lost job: {}", LossReason::Unreachable);
        assert_eq!(told(&mut events), ["uncertain of job".to_owned(), lost], "nobody watched the guard itself");
        world.store.heal();
        drop(guard);
        world.settle().await;
        assert_eq!(told(&mut events), [""; 0], "a lost hold is not released again");
    }
}

#[tokio::test]
async fn a_loss_that_only_the_release_notices_is_told() {
    let world = World::near();
    let locks = world.locks();
    let mut events = locks.events();
    let guard = locks.mutex("job").acquire().await.unwrap();
    world.clock.pause(secs(31));
    drop(guard);
    assert_eq!(told(&mut events), ["acquired job at once".to_owned(), format!("lost job: {}", LossReason::Expired)]);
}

#[tokio::test]
async fn a_slow_listener_loses_the_newest_and_is_told_how_many() {
    let world = World::near();
    let locks = world.locks();
    let (mut slow, mut quick) = (locks.events_with_room(3), locks.events());
    for _ in 0..4 {
        drop(locks.mutex("job").acquire().await.unwrap());
    }
    let pair = ["acquired job at once", "released job"];
    assert_eq!(told(&mut quick), [pair; 4].concat(), "another listener's slowness is not ours");
    assert_eq!(slow.try_next().map(|event| matches!(event, Event::Acquired { .. })), Some(true));
    drop(locks.mutex("job").acquire().await.unwrap());
    assert_eq!(told(&mut slow), ["released job", "acquired job at once", "missed 7 events"]);
    drop(locks.mutex("job").acquire().await.unwrap());
    assert_eq!(told(&mut slow), pair, "it goes on");
    for _ in 0..2 {
        drop(locks.mutex("job").acquire().await.unwrap());
    }
    slow.try_next();
    slow.try_next();
    drop(locks.mutex("job").acquire().await.unwrap());
    let in_place = ["acquired job at once", "missed 1 events", "acquired job at once", "missed 1 events"];
    assert_eq!(told(&mut slow), in_place, "the number stands where the events are missing");
}

#[tokio::test]
async fn events_end_with_the_client_and_do_not_keep_it_alive() {
    for world in World::both() {
        let locks = world.locks();
        let mut events = locks.events();
        let guard = locks.mutex("job").acquire().await.unwrap();
        drop((guard, locks));
        let all = tokio::spawn(async move {
            let mut count = 0;
            while events.next().await.is_some() {
                count += 1;
            }
            count
        });
        world.settle().await;
        assert_eq!(all.await.unwrap(), 2, "acquired and released, and then the end");
    }
}

#[test]
fn a_thread_hears_events_too() {
    let locks = blocking::Locks::connect("memory:").unwrap();
    let events = locks.events();
    let listener = std::thread::spawn(move || events.map(|event| event.lock().map(ToString::to_string)).collect());
    drop(locks.mutex("job").acquire().unwrap());
    drop(locks);
    let heard: Vec<Option<String>> = listener.join().unwrap();
    assert_eq!(heard, [Some("job".to_owned()), Some("job".to_owned())]);
}

#[tokio::test]
async fn events_are_a_stream() {
    let world = World::near();
    let locks = world.locks();
    let mut events = locks.events();
    let mut poll = || Pin::new(&mut events).poll_next(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    let guard = locks.mutex("job").acquire().await.unwrap();
    assert!(matches!(poll(), Poll::Ready(Some(Event::Acquired { .. }))));
    drop(guard);
    drop(locks);
}

/// A waker that uses the lock it is told of, and then panics.
struct Nosy(bandog::Locks, AtomicUsize);

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        assert_eq!(self.0.locks_in_use(), 1);
        let mut tried = self.0.mutex("job").try_acquire();
        drop(common::poll(&mut tried));
        panic!("a waker that panics");
    }
}

#[tokio::test]
async fn a_listener_that_comes_back_or_panics_harms_no_lock() {
    let world = World::near();
    let locks = world.locks();
    let mut events = locks.events();
    let nosy = Arc::new(Nosy(locks.clone(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&nosy));
    let mut hears = |polled: fn(Poll<Option<Event>>)| {
        polled(Pin::new(&mut events).poll_next(&mut Context::from_waker(&waker)));
    };
    hears(|none| assert!(none.is_pending()));
    let guard = locks.mutex("job").acquire().await.unwrap();
    hears(|some| assert!(some.is_ready()));
    hears(|none| assert!(none.is_pending()));
    guard.release().await.unwrap();
    assert_eq!(nosy.1.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn callbacks_hear_of_the_loss_on_a_thread_of_their_own() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        for _ in 0..2 {
            let tell = tell.clone();
            guard.on_lost(move |reason| {
                tell.send((reason, std::thread::current().name().map(str::to_owned))).unwrap();
                panic!("harms nobody");
            });
        }
        guard.hold().on_lost(move |reason| tell.send((reason, None)).unwrap());
        locks.revoke("job", "deploying").await.unwrap();
        let reason = LossReason::Revoked("deploying".into());
        let thread = Some("bandog-herald".to_owned());
        let mut all: Vec<_> = told.iter().collect();
        all.sort_by_key(|(_, thread)| thread.is_none());
        assert_eq!(all, [(reason.clone(), thread.clone()), (reason.clone(), thread), (reason, None)], "once each");
    }
}

#[tokio::test]
async fn danger_is_told_a_chosen_time_before_the_end() {
    for world in World::both() {
        let locks = world.locks();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        guard.on_danger(secs(5), move |remaining| tell.send(remaining).unwrap());
        let danger = tokio::spawn(guard.danger(secs(5)));
        world.pass(secs(3600)).await;
        assert!(told.try_recv().is_err() && !danger.is_finished(), "every renewal puts it off");
        world.store.inject(OpKind::Any, Fault::Refuse, u32::MAX);
        let began = world.clock.now();
        while !danger.is_finished() {
            world.pass(ms(10)).await;
        }
        let remaining = danger.await.unwrap();
        assert!(remaining <= secs(5) && remaining > ms(4_950), "{remaining:?}");
        let callback = told.recv().unwrap();
        assert!(callback <= secs(5) && callback > ms(4_950), "{callback:?}");
        assert!(guard.is_held(), "before the end");
        assert!(world.clock.now().since(began) > secs(14), "at least two thirds of the lease were left");
    }
}

#[tokio::test]
async fn a_loss_before_the_danger_is_danger_with_nothing_left() {
    let world = World::near();
    let locks = world.locks();
    let guard = locks.mutex("job").acquire().await.unwrap();
    let danger = tokio::spawn(guard.danger(secs(5)));
    world.settle().await;
    locks.revoke("job", "deploying").await.unwrap();
    assert_eq!(danger.await.unwrap(), secs(0));
}

#[tokio::test]
async fn callbacks_end_with_the_release_and_leak_nothing() {
    for world in World::both() {
        let locks = world.locks();
        let kept = Arc::new(());
        for _ in 0..3 {
            let guard = locks.mutex("job").acquire().await.unwrap();
            let (one, two) = (Arc::clone(&kept), Arc::clone(&kept));
            guard.on_lost(move |_| panic!("not lost: {one:?}"));
            guard.on_danger(secs(5), move |_| panic!("not in danger: {two:?}"));
            assert!(Arc::strong_count(&kept) > 1);
            let hold = guard.hold();
            guard.release().await.unwrap();
            let late = Arc::clone(&kept);
            hold.on_lost(move |_| panic!("released before: {late:?}"));
            world.settle().await;
            until("the callbacks are gone", || Arc::strong_count(&kept) == 1).await;
        }
        drop(locks);
        world.pass(secs(60)).await;
    }
}

#[tokio::test]
async fn a_callback_that_blocks_delays_no_renewal() {
    let world = World::near();
    let locks = world.locks();
    let (blocked, goes_on) = (locks.mutex("one").acquire().await.unwrap(), locks.mutex("two").acquire().await.unwrap());
    let (started, starts) = std::sync::mpsc::channel();
    let (end, ends) = std::sync::mpsc::channel::<()>();
    // The clock of the world waits for the callback's thread: time does not pass, but the lock goes on.
    blocked.on_lost(move |_| {
        started.send(()).unwrap();
        let _ = ends.recv();
    });
    locks.revoke("one", "deploying").await.unwrap();
    starts.recv().unwrap();
    goes_on.renew().await.unwrap();
    drop(locks.mutex("three").acquire().await.unwrap());
    end.send(()).unwrap();
    world.pass(secs(60)).await;
    assert!(goes_on.is_held());
}

#[test]
fn every_event_is_one_line_for_people() {
    let (lock, token) = (name("job"), Token::from_u64(7));
    let texts = [
        (Event::Waiting { lock: lock.clone(), holder: None }, "waiting for job"),
        (
            Event::Acquired { lock: lock.clone(), token, how: How::HandOff, waited: ms(1500) },
            "acquired job (token 7) by hand-off after 1s 500ms",
        ),
        (
            Event::RenewedLate { lock: lock.clone(), token, late: secs(3) },
            "renewed job (token 7) late: 3s after it was due",
        ),
        (Event::Uncertain { lock: lock.clone(), token, remaining: secs(9) }, "uncertain of job (token 7): 9s left"),
        (Event::Released { lock: lock.clone(), token, held: secs(2) }, "released job (token 7) after 2s"),
        (
            Event::Recovered {
                lock: Some(lock),
                strategy: bandog::Strategy::Reacquire,
                worked: true,
                token: Some(token),
            },
            "recovery of job: reacquire worked (token 7)",
        ),
        (
            Event::Found { lock: None, check: bandog::Check::Connection, what: "no answer".into() },
            "the check of the connection of the client found: no answer",
        ),
        (Event::Missed { count: 2 }, "missed 2 events"),
    ];
    for (event, text) in texts {
        assert_eq!(event.to_string(), text);
    }
}
