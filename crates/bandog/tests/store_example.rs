//! The store of `examples/store.rs` keeps every promise of the store contract.

use std::sync::Arc;
use std::time::Duration;

use bandog_conformance::bench::BoxFuture;
use bandog_conformance::{Bench, Passage, Terms};

#[path = "../examples/store.rs"]
#[expect(dead_code, reason = "the example has a main function")]
mod example;

#[derive(Debug)]
struct Asleep;

impl Passage for Asleep {
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(length))
    }

    fn patience(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_secs(5)))
    }
}

async fn bench() -> Bench {
    Bench::new(Arc::new(example::MyStore::new(example::Client::default())), Arc::new(Asleep), Terms::REAL)
}

bandog_conformance::suite!(bench);
