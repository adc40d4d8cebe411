//! No answer is hidden: every error is of its own kind and says what, where, while doing what, and who is in the way.

mod common;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bandog::blocking::{self, Interrupt};
use bandog::ledger::Limits;
use bandog::op::Refusal;
use bandog::{AcquireError, ErrorKind, Fault, Guard, HeldBy, Locks, MemoryStore, OpKind, Owner, Place, PublicId, Who};
use bandog_core::token::Stamp;
use common::{Far, World, ms, poll, ready, secs, waiting};

/// One message per way in which something can fail, with its kind.
#[expect(clippy::unwrap_used, reason = "a part of a test")]
async fn messages() -> Vec<(&'static str, ErrorKind, String)> {
    let world = World::with_limits(Limits { waiters: 1, ..Limits::default() });
    let (locks, other, me) = (world.locks(), world.builder().label("billing").build().unwrap(), Owner::new());
    let mut found = Vec::new();
    let mut note = |what, kind, error: &dyn std::fmt::Display| found.push((what, kind, error.to_string()));

    let error = locks.mutex("job\n").acquire().await.unwrap_err();
    note("invalid", error.kind(), &error);
    let _held = other.mutex("job").acquire().await.unwrap();
    let mut waits = waiting(locks.mutex("job").wait(secs(5)).fair().acquire());
    let error = locks.mutex("job").fair().acquire().await.unwrap_err();
    note("queue full", error.kind(), &error);
    let stop = Interrupt::new();
    stop.interrupt();
    world.pass(secs(5)).await;
    let error = ready(&mut waits).unwrap_err();
    note("timeout", error.kind(), &error);
    let error = blocking::Locks::from(locks.clone()).mutex("job").interruptible(&stop).acquire().unwrap_err();
    note("interrupted", error.kind(), &error);
    let error = locks.semaphore("job", 3).acquire().await.unwrap_err();
    note("wrong kind", error.kind(), &error);

    let mine = locks.mutex("mine").owner(&me).reentrant().acquire().await.unwrap();
    let error = locks.mutex("mine").owner(&me).acquire().await.unwrap_err();
    note("deadlock", error.kind(), &error);
    let mut deep = Vec::new();
    let error = loop {
        match locks.mutex("mine").owner(&me).reentrant().acquire().await {
            Ok(guard) => deep.push(guard),
            Err(error) => break error,
        }
    };
    note("too deep", error.kind(), &error);
    drop((mine, deep));

    let (one, two) = (locks.rwlock("cfg").read().acquire(), locks.rwlock("cfg").read().acquire());
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    let mut first = Box::pin(one.upgrade());
    assert!(poll(&mut first).is_pending());
    let error = two.upgrade().await.unwrap_err();
    note("upgrade pending", error.reason.kind(), &error);

    world.store.inject(OpKind::Acquire, Fault::Deny, 1);
    let error = locks.mutex("shut").acquire().await.unwrap_err();
    note("denied", error.kind(), &error);
    world.store.inject(OpKind::Acquire, Fault::Refuse, 1);
    let error = locks.mutex("shut").try_acquire().await.unwrap_err();
    note("unavailable", error.kind(), &error);

    let gone = locks.mutex("gone").acquire().await.unwrap();
    world.store.delete(&common::name("gone"));
    let error = gone.renew().await.unwrap_err();
    note("not renewed", error.kind(), &error);
    let error = gone.release().await.unwrap_err();
    note("lost", error.kind(), &error);

    let mut far = Far::new(MemoryStore::new());
    far.capabilities.shared = false;
    let narrow = Locks::builder().store(far).build().unwrap();
    let error = narrow.rwlock("cfg").read().acquire().await.unwrap_err();
    note("unsupported", error.kind(), &error);
    assert_eq!(error.to_string(), r#"lock "cfg" (far memory:): not acquired: this store has no shared holds"#);
    locks.shutdown().await.unwrap();
    let error = locks.mutex("job").acquire().await.unwrap_err();
    note("closed", error.kind(), &error);
    found
}

#[tokio::test]
async fn errors_name_lock_store_phase_and_holder() {
    let messages = messages().await;
    let mut kinds = BTreeMap::new();
    for (what, kind, message) in &messages {
        println!("{what:16} {message}");
        kinds.entry(format!("{kind:?}")).or_insert_with(Vec::new).push(*what);
        assert!(message.contains("lock \""), "{what} names its lock: {message}");
        assert!(message.contains("memory:"), "{what} names its store: {message}");
        let phases = ["not acquired", "not upgraded", "not renewed", "released"];
        let said = phases.iter().filter(|phase| message.contains(**phase)).count();
        assert_eq!(said, 1, "{what} says once what was not done: {message}");
    }
    let shared: Vec<_> = kinds.values().filter(|whats| whats.len() > 1).collect();
    assert_eq!(shared, [&vec!["not renewed", "lost"]], "every other way to fail has a kind of its own");
    let said = |what: &str| messages.iter().find(|(known, ..)| *known == what).map(|(_, _, message)| message.clone());
    let timeout = said("timeout").unwrap();
    assert!(timeout.contains("held by ") && timeout.contains("billing"), "names the holder: {timeout}");
    assert!(timeout.contains("5s"), "says how long it waited: {timeout}");
    assert!(said("wrong kind").unwrap().contains("semaphore of 3"), "names both kinds");
    assert!(said("queue full").unwrap().contains("(1 waiters)"), "names the bound");
}

#[test]
fn the_readme_shows_a_message_as_it_is_printed() {
    let lock = common::name("order:1001");
    let who = Who { host: "host-a".into(), pid: 17, label: String::new() };
    let holder = HeldBy { holder: PublicId::from_bits(0x98fa_9e01_827d_0000), who: who.into(), remaining: secs(21) };
    let place = Place { lock, store: "memory:".into() };
    let message = AcquireError::Timeout { place, waited: secs(5), holder: Some(holder) }.to_string();
    let page = include_str!("../README.md");
    assert!(page.lines().any(|line| line == message), "README.md does not show {message}");
}

#[test]
fn error_of_an_overtaken_claim_says_why() {
    for (last, why) in [(Stamp::ZERO, "no record any more"), (Stamp::from_micros(7), "not the last one on record")] {
        let place = Place { lock: common::name("job"), store: "memory:".into() };
        let error = AcquireError::Refused { place, reason: Refusal::Overtaken { last } };
        assert_eq!(error.kind(), ErrorKind::Lost);
        let message = error.to_string();
        assert!(message.starts_with(r#"lock "job" (memory:): not acquired: it was to follow a hold"#), "{message}");
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn an_upgrade_that_fails_says_what_to_do() {
    let world = World::near();
    let (locks, me) = (world.locks(), Owner::new());
    let outer = locks.rwlock("cfg").read().owner(&me).reentrant().acquire().await.unwrap();
    let inner = locks.rwlock("cfg").read().owner(&me).reentrant().acquire().await.unwrap();
    let error = inner.upgrade().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldDeadlock);
    let says = r#"lock "cfg" (memory:): not upgraded: entered more than once; release the inner guards first"#;
    assert_eq!((error.to_string(), error.reason.to_string()), (says.to_owned(), says.to_owned()));
    drop(error);

    let other = world.locks().rwlock("cfg").read().acquire().await.unwrap();
    let mut late = Box::pin(outer.upgrade_within(secs(1)));
    assert!(poll(&mut late).is_pending());
    world.pass(secs(1)).await;
    let error = ready(&mut late).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(r#"lock "cfg" (memory:): not upgraded after waiting 1s"#), "{message}");
    assert!(error.guard.is_held() && other.is_held(), "both read on");
}

#[tokio::test]
async fn a_store_without_a_queue_is_refused_before_sending() {
    let mut far = Far::new(MemoryStore::new());
    far.capabilities.queue = false;
    let locks = Locks::builder().store(far.clone()).build().unwrap();
    let error = locks.mutex("job").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().ends_with("this store has no queue"), "{error}");
    assert!(far.sent().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn bad_input_is_refused_before_sending() {
    let world = World::near();
    let (locks, me) = (world.locks(), Owner::new());
    let kept = locks.mutex("kept").owner(&me).reentrant().acquire().await.unwrap();
    let mut deep = Vec::new();
    for _ in 1..255 {
        deep.push(locks.mutex("kept").owner(&me).reentrant().acquire().await.unwrap());
    }
    let before = world.store.applied();
    let long = "x".repeat(1 << 20);
    let refused = [
        (locks.mutex("").acquire().await, "empty"),
        (locks.mutex(&long).acquire().await, "512"),
        (locks.mutex("a\u{7}b").acquire().await, "control"),
        (locks.mutex("a").lease(Duration::ZERO).acquire().await, "shortest is 10ms"),
        (locks.mutex("a").lease(Duration::MAX).acquire().await, "longest is 10m"),
        (locks.mutex("a").lease(secs(10)).renew_every(secs(10)).acquire().await, "shorter than the lease"),
        (locks.mutex("a").renew_at(3, 3).acquire().await, "less than 1"),
        (locks.mutex("a").max_hold(Duration::ZERO).acquire().await, "more than zero"),
        (locks.mutex("a").reentrant().acquire().await, "owner(..)"),
        (locks.mutex("kept").owner(&me).reentrant().acquire().await, "255"),
    ];
    let permits = [
        (locks.semaphore("gpu", 4).permits(0).acquire().await, "at least 1 permit"),
        (locks.semaphore("gpu", 4).permits(5).acquire().await, "only 4"),
        (locks.semaphore("gpu", 0).acquire().await, "capacity of at least 1"),
    ];
    let refused = refused.into_iter().map(|(result, says)| (result.unwrap_err(), says));
    let permits = permits.into_iter().map(|(result, says)| (result.unwrap_err(), says));
    let mut seen = Vec::new();
    for (error, says) in refused.chain(permits) {
        let message = error.to_string();
        assert!(message.contains(says), "should say {says:?}: {message}");
        assert!(message.len() < 300, "{} bytes of message", message.len());
        let expected = if says == "255" { ErrorKind::TooDeep } else { ErrorKind::Invalid };
        assert_eq!(error.kind(), expected, "{message}");
        assert!(!seen.contains(&message), "said before: {message}");
        seen.push(message);
    }
    assert_eq!(world.store.applied(), before, "nothing was sent");
    assert!(kept.is_held() && kept.depth() == 255, "what was held is held");

    let error = locks.semaphore("kept", 2).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongKind);
    assert!(kept.is_held() && world.holders("kept") == 1);
}

#[tokio::test]
async fn the_longest_wait_and_hold_are_no_overflow() {
    let world = World::near();
    let (a, b) = (world.locks(), world.locks());
    let guard = a.mutex("job").wait(Duration::MAX).max_hold(Duration::MAX).acquire().await.unwrap();
    let mut next = waiting(b.mutex("job").wait(Duration::MAX).acquire());
    world.pass(secs(60)).await;
    guard.release().await.unwrap();
    assert!(ready(&mut next).unwrap().is_held());
}

#[tokio::test]
async fn unreachable_store_is_unavailable_not_busy() {
    for (world, fault) in World::both().into_iter().zip([Fault::Refuse, Fault::LoseRequest]) {
        let locks = world.locks();
        world.store.inject(OpKind::Any, fault, u32::MAX);
        // How long each may wait, and between which seconds it must have its answer.
        let waits = [(None, 10..=10), (Some(ms(1)), 0..=1), (Some(secs(1)), 0..=1), (Some(secs(5)), 4..=5)];
        let mut asks = Vec::new();
        for (wait, answered) in waits {
            let request = locks.mutex("job");
            let request = if let Some(wait) = wait { request.wait(wait) } else { request };
            let patient: [Asking; 3] = [
                Box::pin(request.clone().acquire()),
                Box::pin(request.clone().fair().acquire()),
                Box::pin(async move { request.try_acquire().await.map(Option::unwrap) }),
            ];
            // Without a limit, somebody who tries does not wait at all.
            let count = if wait.is_some() { 3 } else { 2 };
            asks.extend(patient.into_iter().take(count).map(|ask| (waiting(ask), answered.clone())));
        }
        for second in 1..=14 {
            world.pass(secs(1)).await;
            asks.retain_mut(|(ask, answered)| match poll(ask) {
                Poll::Pending => true,
                Poll::Ready(result) => {
                    let error = result.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    assert!(answered.contains(&second), "{error} after {second} s instead of {answered:?}");
                    false
                }
            });
        }
        assert!(asks.is_empty(), "{} are still waiting", asks.len());
        world.store.heal();
        let mut again = locks.mutex("job").acquire();
        let early = poll(&mut again);
        world.pass(secs(3)).await;
        let guard = if let Poll::Ready(result) = early { result } else { ready(&mut again) };
        assert!(guard.unwrap().is_held(), "it recovers");
    }
}

type Asking = Pin<Box<dyn Future<Output = Result<Guard, AcquireError>>>>;

#[tokio::test]
async fn kinds_states_and_holders_are_told_in_words() {
    let locks = bandog::Locks::connect("memory:").await.unwrap();
    let held = locks.mutex("job").acquire().await.unwrap();
    assert!(held.state().to_string().starts_with("held, 2") && held.state().to_string().ends_with(" left"));
    let error = locks.mutex("job").wait(Duration::from_millis(5)).acquire().await.unwrap_err();
    assert_eq!(format!("{}|{:>9}", error.kind(), error.kind()), "timeout|  timeout");
    let bandog::AcquireError::Timeout { holder: Some(holder), .. } = &error else { panic!("{error}") };
    assert!(error.to_string().ends_with(&format!("; held by {holder}")), "{error}");
    locks.revoke("job", "deploying").await.unwrap();
    held.lost().await;
    assert_eq!(held.state().to_string(), "lost: revoked: deploying");
}

#[test]
fn every_page_that_the_documentation_links_to_is_there() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut links = 0;
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).unwrap();
            for link in text.split("bandog/blob/main/docs/").skip(1).filter_map(|rest| rest.split(')').next()) {
                assert!(docs.join(link).exists(), "{link} in {}", entry.path().display());
                links += 1;
            }
        }
    }
    assert!(links > 5, "the guide is linked to");
}
