//! Options: their defaults are the documented ones, each way of setting them works, and wrong ones say why.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::process::Command;
use std::task::Poll;
use std::time::Duration;

use bandog::ledger::Limits;
use bandog::{ConfigError, ErrorKind, Fault, GuardState, LockConfig, Locks, MemoryStore, OpKind, Owner};
use common::{World, ms, poll, ready, secs, waiting};

fn page() -> String {
    fs::read_to_string(root().join("docs/defaults.md")).expect("docs/defaults.md")
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The cells of a row of the page, by its first cell.
fn row(page: &str, option: &str) -> Vec<String> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let found = page.lines().filter(|line| line.starts_with('|')).map(cells).find(|row| row[0] == option);
    found.unwrap_or_else(|| panic!("docs/defaults.md has no row {option:?}"))
}

#[tokio::test]
async fn defaults_are_as_documented() {
    let page = page();
    let says = |option: &str, value: &str| {
        let row = row(&page, option);
        assert!(row[1].starts_with(value), "{option} is {value:?} in the code, but {:?} on the page", row[1]);
    };
    let world = World::near();
    let (a, b) = (world.locks(), world.locks());
    let guard = a.mutex("job").acquire().await.unwrap();
    assert_eq!(world.view("job").unwrap().holders[0].remaining, secs(30));
    says("lease", "30 s");
    assert_eq!(guard.remaining(), ms(29_698));
    says("drift ρ", "1 % + 2 ms");
    world.pass(ms(9_999)).await;
    assert!(guard.remaining() < secs(20));
    world.pass(ms(1)).await;
    assert_eq!(guard.remaining(), ms(29_698));
    says("renewal period", "lease / 3");
    world.pass(secs(3_600)).await;
    assert!(matches!(guard.state(), GuardState::Held { .. }));
    says("number of renewals", "no limit");
    says("longest hold", "no limit");
    drop(a.mutex("short").acquire().await.unwrap());
    assert!(world.is_free("short"));
    says("shortest hold", "none");
    let mut waits = waiting(b.mutex("job").acquire());
    world.pass(secs(3_600)).await;
    assert!(poll(&mut waits).is_pending());
    says("wait for a holder", "no limit");
    assert!(!world.view("job").unwrap().waiters[0].fair);
    says("fair", "no");
    guard.release().await.unwrap();
    // Granted by a push: for the claim window, until it is confirmed.
    assert_eq!(world.view("job").unwrap().holders[0].remaining, secs(2));
    says("claim window", "2 s");
    drop(ready(&mut waits).unwrap());
    assert_eq!(a.janitor().limit, 65_536);
    says("releases in the background", "65,536");
    let limits = Limits::default();
    assert_eq!((limits.waiters, limits.sharers, limits.work), (10_000, 1_024, 64));
    assert_eq!((limits.retention, limits.max_lease), (secs(10), secs(600)));
    assert_eq!(limits.audit, secs(72 * 3_600));
    says("audit: revocations on record", "72 h");
    says("waiters in one queue", "10,000");
    says("shared holders of one lock", "1,024");
    says("clean-up per operation", "64 entries");
    says("retention of tombstones", "10 s");
    says("longest lease", "10 min");
}

/// How long a future keeps its caller waiting, and what it gives then.
async fn awaited<F: Future + Unpin>(world: &World, mut future: F) -> (Duration, F::Output) {
    let mut waited = Duration::ZERO;
    loop {
        if let Poll::Ready(output) = poll(&mut future) {
            return (waited, output);
        }
        assert!(waited < secs(60), "it hangs");
        world.pass(ms(10)).await;
        waited += ms(10);
    }
}

/// How often a lock is passed on in one process while another waits, if each holds it for so long.
async fn passes(each: Duration) -> u32 {
    let world = World::far();
    let (a, b) = (world.locks(), world.locks());
    let mut guard = a.mutex("job").acquire().await.expect("free");
    let line: Vec<_> = (0..100).map(|_| waiting(a.mutex("job").acquire())).collect();
    let _other = waiting(b.mutex("job").acquire());
    world.settle().await;
    for (passed, mut next) in (0..).zip(line) {
        world.pass(each).await;
        guard.release().await.expect("released");
        world.settle().await;
        match poll(&mut next) {
            Poll::Ready(passed_on) => guard = passed_on.expect("granted"),
            Poll::Pending => return passed,
        }
    }
    panic!("it is passed on for ever")
}

#[tokio::test]
async fn default_bounds_are_measured_as_documented() {
    let page = page();
    let says = |option: &str, value: &str| {
        let row = row(&page, option);
        assert!(row[1].starts_with(value), "{option} is {value:?} in the code, but {:?} on the page", row[1]);
    };
    let words = |length: Duration| match length.subsec_millis() {
        0 => format!("{} s", length.as_secs()),
        _ => format!("{} ms", length.as_millis()),
    };

    let world = World::far();
    world.store.inject(OpKind::Any, Fault::Refuse, u32::MAX);
    let (waited, unreachable) = awaited(&world, world.locks().mutex("job").acquire()).await;
    assert_eq!(unreachable.unwrap_err().kind(), ErrorKind::Unavailable);
    says("store unreachable", &format!("error after {}", words(waited)));

    let world = World::far();
    let guard = world.locks().mutex("job").acquire().await.unwrap();
    world.store.inject(OpKind::Release, Fault::LoseRequest, 1);
    let (waited, unanswered) = awaited(&world, Box::pin(guard.release())).await;
    assert_eq!(unanswered.unwrap_err().kind(), ErrorKind::Unavailable);
    says("response timeout", &words(waited));

    let world = World::far();
    let locks = world.locks();
    let _held = locks.mutex("job").acquire().await.unwrap();
    world.store.inject(OpKind::Any, Fault::LoseRequest, u32::MAX);
    let (waited, drained) = awaited(&world, Box::pin(locks.shutdown())).await;
    assert_eq!(drained.unwrap_err().pending, 1);
    says("drain at the end", &words(waited));

    let (locks, me) = (World::near().locks(), Owner::new());
    let (enter, mut guards) = (locks.mutex("job").owner(&me).reentrant(), Vec::new());
    let too_deep = loop {
        match enter.acquire().await {
            Ok(guard) => guards.push(guard),
            Err(error) => break error,
        }
    };
    assert_eq!(too_deep.kind(), ErrorKind::TooDeep);
    says("depth of re-entry", &guards.len().to_string());

    says("local passes while somebody else waits", &passes(Duration::ZERO).await.to_string());
    // The one that would begin at the end of that time is the first that is not.
    says("time of local passing while somebody else waits", &words(ms(1) * (passes(ms(1)).await + 1)));

    let (world, minute) = (World::near(), 60);
    let locks = world.locks();
    world.pass(secs(minute)).await;
    says("watchdog period", &words(secs(minute / locks.health().rounds)));
}

#[test]
fn the_page_names_only_what_exists() {
    let (page, source) = (page(), sources());
    let code = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut keys = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && line.matches('|').count() == 6) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        for setter in code(cells[2]).iter().filter_map(|text| text.strip_prefix('.')?.split_once('(')) {
            assert!(source.contains(&format!("fn {}(", setter.0)), "there is no setter {:?}: {line}", setter.0);
        }
        for key in code(cells[3]) {
            let unknown = matches!(Locks::builder().set(&key, "?"), Err(ConfigError::UnknownOption { .. }));
            assert!(!unknown, "there is no option {key:?}: {line}");
            assert!(cells[4].contains(&format!("BANDOG_{}", key.to_uppercase())), "{line}");
            keys.insert(key);
        }
    }
    let error = Locks::builder().set("?", "?").unwrap_err();
    let ConfigError::UnknownOption { known, .. } = error else { panic!("{error}") };
    assert_eq!(keys, known.iter().map(|key| (*key).to_owned()).collect(), "the page names every option");
}

fn sources() -> String {
    ["request/options.rs", "config/builder.rs", "locks/builder.rs", "locks/mod.rs", "memory/mod.rs"]
        .map(|file| fs::read_to_string(root().join("crates/bandog/src").join(file)).expect(file))
        .concat()
}

#[test]
fn the_client_knows_every_option_of_a_lock() {
    let error = LockConfig::default().set("?", "?").unwrap_err();
    let ConfigError::UnknownOption { known, .. } = error else { panic!("{error}") };
    for option in known {
        assert!(!matches!(Locks::builder().set(option, "?"), Err(ConfigError::UnknownOption { .. })), "{option}");
    }
}

#[test]
fn config_inequalities_name_both_values() {
    let config = LockConfig::builder;
    let wrong = [
        (config().lease(ms(1)).build(), &["1ms", "10ms"][..]),
        (config().lease(secs(601)).build(), &["10m1s", "10m."]),
        (config().lease(secs(5)).renew_every(secs(6)).build(), &["renew_every", "6s", "5s"]),
        (config().renew_at(5, 4).build(), &["5/4", "less than 1"]),
        (config().retry(secs(3), secs(2)).build(), &["3s", "2s"]),
        (config().max_hold(Duration::ZERO).build(), &["max_hold", "0s", "more than zero"]),
    ];
    for (result, says) in wrong {
        let message = result.unwrap_err().to_string();
        assert!(says.iter().all(|part| message.contains(part)), "{message:?} should name {says:?}");
    }
    let builder = Locks::builder;
    let wrong = [
        (builder().claim_window(Duration::ZERO).build(), &["claim_window", "0s", "1ms"][..]),
        (builder().response_timeout(Duration::ZERO).build(), &["response_timeout", "0s", "1ms"]),
        (builder().unavailable_after(Duration::ZERO).build(), &["unavailable_after", "0s", "1ms"]),
        (builder().drift(500, ms(2)).build(), &["drift", "500ms", "half"]),
    ];
    for (result, says) in wrong {
        let message = result.unwrap_err().to_string();
        assert!(says.iter().all(|part| message.contains(part)), "{message:?} should name {says:?}");
    }
}

/// How long a fresh hold's lease is.
async fn lease(locks: &Locks, request: bandog::Mutex) -> Duration {
    let _guard = request.acquire().await.expect("free");
    let info = locks.inspect("job").await.expect("the store answers").expect("held");
    let left = info.record.holders[0].remaining;
    Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0))
}

#[tokio::test]
async fn defaults_are_set_by_code_url_and_environment() {
    if std::env::var("BANDOG_LEASE").is_ok() {
        // The child: the environment sets what the URL leaves open.
        let locks = Locks::connect("memory:").await.unwrap();
        assert_eq!(lease(&locks, locks.mutex("job")).await, secs(7));
        let locks = Locks::connect("memory:?lease=8s").await.unwrap();
        assert_eq!(lease(&locks, locks.mutex("job")).await, secs(8), "the URL wins");
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "defaults_are_set_by_code_url_and_environment"])
        .env("BANDOG_LEASE", "7s")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "defaults_are_set_by_code_url_and_environment"])
        .env("BANDOG_LEASE", "soon")
        .output()
        .unwrap();
    assert!(!child.status.success(), "a value that cannot be read is not passed over");

    let locks = Locks::connect("memory:").await.unwrap();
    assert_eq!(lease(&locks, locks.mutex("job")).await, secs(30), "the default");
    let nine = LockConfig::builder().name("job").lease(secs(9)).build().unwrap();
    let locks = Locks::builder().store(MemoryStore::new()).defaults(nine.clone()).build().unwrap();
    assert_eq!(lease(&locks, locks.mutex("job")).await, secs(9), "the client's");
    assert_eq!(lease(&locks, locks.mutex("job").lease(secs(11))).await, secs(11), "the request's own");
    let locks = Locks::connect("memory:").await.unwrap();
    assert_eq!(lease(&locks, locks.configured(&nine).unwrap()).await, secs(9), "a configuration's");

    for (url, says) in [
        ("memory:?leese=9s", "leese"),
        ("memory:?lease=soon", "soon"),
        ("memory:?lease", "lease=\"\""),
        ("memory:?lease=1s&renew_every=2s", "renew_every"),
        ("redis+wrong://me:secret@host", "names no store"),
    ] {
        let message = Locks::connect(url).await.unwrap_err().to_string();
        assert!(message.contains(says) && !message.contains("secret"), "{url}: {message}");
    }
}
