//! The memory store keeps every promise of the store contract.

use std::sync::Arc;
use std::time::Duration;

use bandog::ledger::Limits;
use bandog::{MemoryStore, VirtualClock};
use bandog_conformance::bench::BoxFuture;
use bandog_conformance::{Bench, Passage, Terms};

#[derive(Debug)]
struct Virtual(VirtualClock);

impl Passage for Virtual {
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.0.advance(length))
    }

    fn patience(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

async fn bench() -> Bench {
    let clock = VirtualClock::new();
    let limits = Limits { waiters: 50, sharers: 20, ..Limits::default() };
    let terms = Terms { waiters: Some(limits.waiters), sharers: Some(limits.sharers), ..Terms::VIRTUAL };
    let store = MemoryStore::with_limits(clock.clock(), limits);
    Bench::new(Arc::new(store), Arc::new(Virtual(clock)), terms)
}

bandog_conformance::suite!(bench);
