//! A rolling upgrade from format 2 to 3 under load, and back, on one server: nobody is kept out, nobody is let in twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bandog::blocking::Locks;
use bandog_core::name::LockName;
use bandog_redis::Value;
use bandog_rig::{Raw, Server, is_missing};

use crate::older::Older;
use crate::support::ms;

const NAMES: [&str; 2] = ["rolling:a", "rolling:b"];
const WORKERS: usize = 4;
/// So many sections each worker makes before the next one is replaced.
const SECTIONS: u64 = 12;
const PATIENCE: Duration = Duration::from_secs(60);
/// Looks, 2 ms apart, before a worker counts as kept out.
const LOOKS: u32 = 30_000;

/// Which build a worker is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    /// It knows format 2 alone.
    Before,
    /// This one, told to write format 2.
    WritesTwo,
    /// This one.
    WritesThree,
}

/// What the lock is there to protect.
#[derive(Default)]
struct Resource {
    taken: AtomicBool,
    token: AtomicU64,
    doubles: AtomicU64,
    stale: AtomicU64,
}

impl Resource {
    fn enter(&self, token: u64) {
        let twice = self.taken.swap(true, Ordering::SeqCst);
        self.doubles.fetch_add(u64::from(twice), Ordering::SeqCst);
        let last = self.token.fetch_max(token, Ordering::SeqCst);
        self.stale.fetch_add(u64::from(last >= token), Ordering::SeqCst);
        std::thread::yield_now();
        self.taken.store(false, Ordering::SeqCst);
    }
}

struct Worker {
    build: Build,
    stop: Arc<AtomicBool>,
    sections: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

struct Site {
    server: Arc<Server>,
    resources: Arc<[Resource; NAMES.len()]>,
    started: u128,
}

impl Site {
    fn new() -> Self {
        Self { server: Arc::new(Server::start()), resources: Arc::default(), started: 0 }
    }

    fn start(&mut self, build: Build) -> Worker {
        self.started += 1;
        let (server, resources, bits) = (Arc::clone(&self.server), Arc::clone(&self.resources), self.started << 64);
        let (stop, sections, refused) = (Arc::default(), Arc::default(), Arc::default());
        let (stopped, made, turned_away) = (Arc::clone(&stop), Arc::clone(&sections), Arc::clone(&refused));
        let thread = std::thread::spawn(move || {
            let stopped = || AtomicBool::load(&stopped, Ordering::SeqCst);
            match build {
                Build::Before => work_before(&server, bits, &*resources, &made, &turned_away, stopped),
                Build::WritesTwo => work(&format!("{}?format=2", server.url()), &*resources, &made, stopped),
                Build::WritesThree => work(&server.url(), &*resources, &made, stopped),
            }
        });
        Worker { build, stop, sections, refused, thread }
    }

    /// Every worker makes some sections from now on.
    fn goes_on(&self, workers: &[Worker]) {
        let before: Vec<u64> = workers.iter().map(|worker| worker.sections.load(Ordering::SeqCst)).collect();
        let mut looks = 0;
        for (worker, before) in workers.iter().zip(before) {
            while worker.sections.load(Ordering::SeqCst) < before + SECTIONS {
                assert!(!worker.thread.is_finished(), "{:?} failed", worker.build);
                looks += 1;
                assert!(looks < LOOKS, "{:?} is kept out among {:?}", worker.build, builds(workers));
                std::thread::sleep(ms(2));
            }
        }
    }

    fn judge(&self) {
        for resource in self.resources.iter() {
            assert_eq!(resource.doubles.load(Ordering::SeqCst), 0, "two at once");
            assert_eq!(resource.stale.load(Ordering::SeqCst), 0, "a token that did not grow");
        }
    }
}

fn builds(workers: &[Worker]) -> Vec<Build> {
    workers.iter().map(|worker| worker.build).collect()
}

fn stop(worker: Worker) -> u64 {
    worker.stop.store(true, Ordering::SeqCst);
    worker.thread.join().unwrap();
    worker.refused.load(Ordering::SeqCst)
}

fn work(url: &str, resources: &[Resource], made: &AtomicU64, stopped: impl Fn() -> bool) {
    let locks = Locks::connect(url).unwrap();
    for turn in 0.. {
        if stopped() {
            break;
        }
        let guard = locks.mutex(NAMES[turn % NAMES.len()]).wait(PATIENCE).acquire().unwrap();
        resources[turn % NAMES.len()].enter(guard.token().into());
        guard.release().unwrap();
        made.fetch_add(1, Ordering::SeqCst);
    }
    locks.shutdown().unwrap();
}

fn work_before(
    server: &Server,
    bits: u128,
    resources: &[Resource],
    made: &AtomicU64,
    refused: &AtomicU64,
    stopped: impl Fn() -> bool,
) {
    let mut client = Older::connect(server, bits);
    let names = NAMES.map(|name| LockName::new(name).unwrap());
    for turn in 0.. {
        if stopped() {
            break;
        }
        let name = &names[turn % NAMES.len()];
        let section = client.acquire(name).and_then(|(id, stamp)| {
            resources[turn % NAMES.len()].enter(stamp.token(0).into());
            client.release(name, id)
        });
        match section {
            Ok(()) => _ = made.fetch_add(1, Ordering::SeqCst),
            Err(wrong) => {
                assert_eq!(wrong.word(), Some("WRONGTYPE"), "{wrong}");
                refused.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(ms(2));
            }
        }
    }
}

#[test]
fn rolling_upgrade_and_rollback_under_load_let_nobody_in_twice_and_keep_nobody_out() {
    if is_missing() {
        return;
    }
    let mut site = Site::new();
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| site.start(Build::Before)).collect();
    site.goes_on(&workers);
    for build in [Build::WritesTwo, Build::WritesThree, Build::WritesTwo, Build::Before] {
        for place in 0..WORKERS {
            let next = site.start(build);
            let replaced = std::mem::replace(&mut workers[place], next);
            assert_eq!(stop(replaced), 0, "refused among {:?}", builds(&workers));
            site.goes_on(&workers);
        }
    }
    workers.into_iter().for_each(|worker| assert_eq!(stop(worker), 0));
    site.judge();
}

#[test]
fn upgrade_that_skips_format_2_refuses_the_old_ones_and_lets_nobody_in_twice() {
    if is_missing() {
        return;
    }
    let mut site = Site::new();
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| site.start(Build::Before)).collect();
    site.goes_on(&workers);
    workers.drain(..2).for_each(|worker| assert_eq!(stop(worker), 0));
    let newer: Vec<Worker> = (0..2).map(|_| site.start(Build::WritesThree)).collect();
    site.goes_on(&newer);
    newer.into_iter().for_each(|worker| assert_eq!(stop(worker), 0));
    assert!(workers.into_iter().map(stop).sum::<u64>() > 0, "the old ones were refused");
    site.judge();
}

#[test]
fn every_client_hears_pushes_in_the_format_that_it_reads() {
    if is_missing() {
        return;
    }
    let mut site = Site::new();
    let mut monitor = Raw::unix(&site.server);
    monitor.ask(&["PSUBSCRIBE", "lock:inbox:*"]);
    let older: Vec<Vec<u8>> = (1..=2_u128).map(|number| Older::connect(&site.server, number << 64).channel()).collect();
    let mut workers: Vec<Worker> =
        [Build::Before, Build::Before, Build::WritesTwo].into_iter().map(|build| site.start(build)).collect();
    site.goes_on(&workers);
    assert_eq!(stop(workers.swap_remove(1)), 0);
    workers.push(site.start(Build::WritesTwo));
    site.goes_on(&workers);
    workers.into_iter().for_each(|worker| assert_eq!(stop(worker), 0));
    site.server.tell("PUBLISH lock:inbox:end x");
    let mut first_bytes: BTreeMap<(bool, u8), u32> = BTreeMap::new();
    loop {
        let Value::Array(parts) = monitor.read() else { panic!("a message") };
        let [_, _, Value::Bytes(channel), Value::Bytes(payload)] = &parts[..] else { panic!("{parts:?}") };
        if channel.ends_with(b":end") {
            break;
        }
        if let Some(first) = payload.first() {
            *first_bytes.entry((older.contains(channel), *first)).or_default() += 1;
        }
    }
    let to_older: Vec<u8> = first_bytes.keys().filter(|(older, _)| *older).map(|(_, first)| *first).collect();
    assert!(!to_older.is_empty() && to_older.iter().all(u8::is_ascii_uppercase), "{first_bytes:?}");
}
