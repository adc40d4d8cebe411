//! What the tests of the Redis store share: servers of their own, ways to reach them, and benches on them.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every test uses everything, and helpers of tests fail as tests do"
)]

pub(crate) mod server;

use std::sync::Arc;
use std::time::Duration;

use bandog_conformance::bench::BoxFuture;
use bandog_conformance::{Passage, Terms};
use bandog_core::ledger::Limits;
use bandog_redis::{RedisConfig, RedisStore};

pub(crate) use server::Server;

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
