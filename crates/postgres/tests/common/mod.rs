//! What the tests of the store share: a server for all, a schema for each, time that is slept through.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::time::Duration;

use bandog_conformance::bench::BoxFuture;
use bandog_conformance::{Passage, Terms};
use bandog_core::ledger::Limits;
use bandog_postgres::{PostgresConfig, PostgresStore};
use bandog_rig::is_postgres_missing;

/// Runs a test that needs a server, or says loudly why not.
pub(crate) fn if_possible<F: Future<Output = ()>>(test: F) {
    if !is_postgres_missing() {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
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

pub(crate) async fn store(url: &str) -> PostgresStore {
    let (config, _) = PostgresConfig::from_url(url).unwrap();
    PostgresStore::connect(config.limits(limits())).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Time that is slept through.
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
