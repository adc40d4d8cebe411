//! What the tests of the Redis store share: servers of their own, ways to reach them, and benches on them.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every test uses everything, and helpers of tests fail as tests do"
)]

pub(crate) mod log;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bandog::{Locks, LocksBuilder};

use bandog_conformance::bench::BoxFuture;
use bandog_conformance::{Passage, Terms};
use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Op, Patience};
use bandog_core::store::Store;
use bandog_redis::{RedisConfig, RedisStore};

pub(crate) use bandog_rig::{Server, is_missing};

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Runs a test on a server of its own, or says loudly why not.
pub(crate) fn on_a_server<F: Future<Output = ()>>(test: impl FnOnce(Arc<Server>) -> F) {
    if_possible(async { test(Arc::new(Server::start())).await });
}

/// The same on one thread: connections are served only while the test waits.
pub(crate) fn on_one_thread<F: Future<Output = ()>>(test: impl FnOnce(Arc<Server>) -> F) {
    if !is_missing() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { test(Arc::new(Server::start())).await });
    }
}

/// Runs a test that starts servers, or says loudly why not. For [`bandog_conformance::suite!`], too.
pub(crate) fn if_possible<F: Future<Output = ()>>(test: F) {
    if !is_missing() {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
    }
}

/// A client with short times: what goes wrong is noticed within a second or two.
pub(crate) fn hasty() -> LocksBuilder {
    let options = [("lease", "3s"), ("claim_window", "1s"), ("response_timeout", "500ms")];
    options.into_iter().fold(Locks::builder(), |builder, (option, value)| builder.set(option, value).unwrap())
}

/// A client of a server.
pub(crate) async fn locks(url: &str) -> Locks {
    hasty().connect(url).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Starts the server again with so much data that loading it takes half a second.
pub(crate) fn load_slowly(server: &Server) {
    let _: String = server.run("CONFIG SET rdbcompression no");
    let _: String = server.run("DEBUG POPULATE 3000 filler 4096");
    let _: String = server.run("SAVE");
    // Every two megabytes it looks at its connections.
    server.restart_with(&["--key-load-delay", "200"]);
}

/// Calls of a command so far, those of scripts included.
pub(crate) fn calls(server: &Server, command: &str) -> usize {
    let stats: String = server.run("INFO commandstats");
    let calls = stats.split(&format!("cmdstat_{command}:calls=")).nth(1).and_then(|rest| rest.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// Waits for what must come soon.
pub(crate) async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), coming).await.unwrap_or_else(|_| panic!("{what}: did not come"))
}

/// Looks again and again until it is so: for what no message tells.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(ms(5)).await;
        }
    };
    soon(what, looking).await;
}

/// Time that has to be slept through.
#[derive(Debug)]
pub(crate) struct Asleep;

impl Passage for Asleep {
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(length))
    }

    fn patience(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_secs(2)))
    }
}

pub(crate) fn limits() -> Limits {
    Limits {
        waiters: 50,
        sharers: 20,
        max_lease: Duration::from_secs(120),
        retention: Duration::from_millis(400),
        ..Limits::default()
    }
}

pub(crate) fn terms() -> Terms {
    Terms {
        waiters: Some(limits().waiters),
        sharers: Some(limits().sharers),
        max_lease: Some(limits().max_lease),
        retention: Some(limits().retention),
        ..Terms::REAL
    }
}

/// A store of a URL, with limits that can be reached.
pub(crate) async fn store(url: &str) -> RedisStore {
    let (config, rest) = RedisConfig::from_url(url).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    RedisStore::connect(config.limits(limits())).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// A server's store on a bench.
pub(crate) async fn bench(server: Server, url: String) -> bandog_conformance::Bench {
    let store = store(&url).await;
    bandog_conformance::Bench::new(Arc::new(store), Arc::new(Asleep), terms()).keeping(server)
}

/// The ACL rule as users read it.
pub(crate) fn documented_rule() -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis.md")).unwrap();
    let rule = page.lines().find(|line| line.starts_with("ACL SETUSER locker ")).expect("a rule in docs/redis.md");
    rule.to_owned()
}

/// A client with a secret of its own.
pub(crate) fn client(bits: u128) -> Client {
    let who = Who { host: "here".to_owned(), pid: 1, label: String::new() };
    Client::new(ClientId::from_random(bits << 64 | bits), who)
}

/// An exclusive claim that waits, and stays alive and granted for `window`.
pub(crate) fn claim(store: &RedisStore, client: &Client, window: Duration) -> Op {
    Op::Acquire(Claim {
        id: client.fresh(),
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode: Mode::Exclusive,
        lease: Lease::new(ms(60_000)).unwrap(),
        window,
        fair: true,
        patience: Patience::Queue,
        not_after: store.time() + ms(60_000),
        ballot: None,
        after: None,
    })
}
