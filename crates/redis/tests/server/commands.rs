//! How many commands a client sends for a lock, counted where they arrive. Run with `--nocapture` to see the numbers.
//!
//! A call that a script makes is no command of the client: only what goes over the connection counts. What opens a
//! connection is sent before the count begins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bandog::Locks;
use bandog_redis::Script;
use bandog_rig::Proxy;
use tokio::time::Instant;

use crate::support::{Server, calls, ms, on_a_server, soon, until};

const PAIRS: usize = 2_000;
const CLIENTS: usize = 4;
/// While so many are granted, whoever leaves goes back to the end of the line; then the line runs empty.
const GRANTS: usize = 3_000;
/// A waiting client tells that it is there once in half a claim window, which is 2 s unless told otherwise.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// For so many of its tasks that wait in the store's queue.
const ASKED_AFTER: usize = 128;

/// Counts what arrives from now on: at the proxy by name, and at the server, which must have seen the same scripts.
struct Count {
    before: BTreeMap<String, usize>,
    scripts: usize,
    began: Instant,
}

impl Count {
    fn begin(server: &Server, proxy: &Proxy) -> Self {
        Self { before: proxy.all_seen(), scripts: scripts(server), began: Instant::now() }
    }

    async fn end(self, server: &Server, proxy: &Proxy) -> (BTreeMap<String, usize>, Duration) {
        let took = self.began.elapsed();
        let ran = || scripts(server) - self.scripts;
        // The last heartbeat may still be on its way.
        until("the server ran all that was sent, and all are scripts", || ran() == sum(&self.since(proxy))).await;
        (self.since(proxy), took)
    }

    fn since(&self, proxy: &Proxy) -> BTreeMap<String, usize> {
        let mut seen = proxy.all_seen();
        for (name, before) in &self.before {
            seen.entry(name.clone()).and_modify(|count| *count -= before);
        }
        // The connection that listens is asked now and then whether it is there.
        seen.retain(|name, count| *count > 0 && name != "ping");
        seen
    }
}

fn sum(counts: &BTreeMap<String, usize>) -> usize {
    counts.values().sum()
}

/// Scripts that the server was asked to run. No script can ask for another, so none is counted twice.
fn scripts(server: &Server) -> usize {
    calls(server, "evalsha")
}

/// A client with all its connections open: the second is opened by the first renewal.
async fn ready(proxy: &Proxy, name: &str) -> Locks {
    let locks = Locks::connect(&proxy.url()).await.unwrap();
    let guard = locks.mutex(name).acquire().await.unwrap();
    guard.renew().await.unwrap();
    guard.release().await.unwrap();
    locks
}

#[test]
fn a_server_is_taught_the_scripts_once_in_a_life() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let locks = ready(&proxy, "first").await;
        let (every, taught) = (Script::ALL.len(), || proxy.seen("script"));
        assert_eq!(taught(), every, "two connections call scripts");
        let again = async |name: &str| locks.mutex(name).acquire().await.unwrap().release().await.unwrap();
        assert!(server.cut("bandog") > 0);
        again("after a cut").await;
        assert_eq!(taught(), every);
        server.restart();
        again("after a restart").await;
        // Whoever comes while it is being taught teaches as well.
        assert!(taught() >= 2 * every, "the next life knows none");
        assert_eq!(calls(&server, "eval"), 0, "nothing had to be sent whole");
        let _: String = server.run("SCRIPT FLUSH");
        again("after it forgot").await;
        let before = taught();
        assert!(server.cut("bandog") > 0);
        again("after that").await;
        assert!(taught() >= before + every, "whoever is next teaches it again");
    });
}

#[test]
fn many_locks_need_three_connections() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let locks = ready(&proxy, "first").await;
        let other = ready(&Proxy::of(&server).await, "other").await;
        let subscribed = proxy.seen("subscribe");
        let held = async |locks: &Locks, number: usize| locks.mutex(format!("job:{number}")).acquire().await.unwrap();
        let mut tasks = Vec::new();
        for number in 0..200 {
            // Half of them wait first.
            let guard = if number % 2 == 0 { Some(held(&other, number).await) } else { None };
            let locks = locks.clone();
            tasks.push((guard, tokio::spawn(async move { held(&locks, number).await })));
        }
        for (guard, task) in tasks {
            drop(guard);
            soon("a hold", task).await.unwrap().renew().await.unwrap();
        }
        assert_eq!((proxy.connections(), proxy.seen("subscribe")), (3, subscribed));
    });
}

#[test]
fn an_uncontended_pair_is_two_commands() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let locks = ready(&proxy, "first").await;
        let count = Count::begin(&server, &proxy);
        for number in 0..PAIRS {
            // Half of them on locks that were held before.
            let name = format!("order:{}", number % (PAIRS / 2));
            locks.mutex(name).acquire().await.unwrap().release().await.unwrap();
        }
        let (seen, _) = count.end(&server, &proxy).await;
        println!("{PAIRS} uncontended pairs: {seen:?}");
        assert_eq!(seen, BTreeMap::from([("acquire".to_owned(), PAIRS), ("release".to_owned(), PAIRS)]));
    });
}

#[test]
fn a_fair_acquisition_is_at_most_three_commands_with_two_waiters() {
    on_a_server(async |server| fair(&server, 2).await);
}

#[test]
fn a_fair_acquisition_is_at_most_three_commands_with_a_thousand_waiters() {
    on_a_server(async |server| fair(&server, 1_000).await);
}

/// Lets one hold and `waiters` wait, hand over, and queue again; counts what that takes.
async fn fair(server: &Server, waiters: usize) {
    let proxy = Proxy::of(server).await;
    let mut clients = Vec::new();
    for number in 0..CLIENTS.min(waiters + 1) {
        clients.push(ready(&proxy, &format!("first:{number}")).await);
    }
    let keeper = clients[0].clone();
    let kept = keeper.mutex("job").fair().acquire().await.unwrap();
    let (grants, count) = (Arc::new(AtomicUsize::new(0)), Count::begin(server, &proxy));
    let take_turns = |locks: &Locks| {
        let (job, grants) = (locks.mutex("job").fair(), Arc::clone(&grants));
        tokio::spawn(async move {
            while grants.load(Ordering::Relaxed) < GRANTS {
                let guard = job.clone().acquire().await.unwrap();
                grants.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(ms(1)).await;
                guard.release().await.unwrap();
            }
        })
    };
    let tasks: Vec<_> = clients.iter().cycle().take(waiters + 1).map(take_turns).collect();
    let in_line = async || keeper.inspect("job").await.unwrap().unwrap().record.waiters.len();
    soon("everybody waits", async { while in_line().await < tasks.len() {} }).await;
    kept.release().await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    let (mut seen, took) = count.end(server, &proxy).await;
    let (grants, told) = (grants.load(Ordering::Relaxed), format!("{seen:?}"));
    // The looks at the line are ours, and so is the release that began it all.
    seen.remove("inspect");
    seen.entry("release".to_owned()).and_modify(|count| *count -= 1);
    let heartbeats = seen.remove("heartbeat").unwrap_or_default();
    let each = sum(&seen) as f64 / grants as f64;
    let a_second = heartbeats as f64 / took.as_secs_f64();
    println!(
        "{waiters} waiters, {grants} grants in {took:.1?}: {each:.3} commands each, {a_second:.1} heartbeats per second {told}"
    );
    assert!(grants >= GRANTS && each <= 3.0, "{each} commands for each of {grants}: {told}");
    // Twice as often as planned is too often on any machine.
    let planned = clients.len() * waiters.div_ceil(clients.len()).div_ceil(ASKED_AFTER);
    let most = 2.0 * planned as f64 * (took.as_secs_f64() / HEARTBEAT.as_secs_f64() + 1.0);
    assert!(heartbeats as f64 <= most, "{heartbeats} heartbeats of {} clients in {took:.1?}", clients.len());
}
