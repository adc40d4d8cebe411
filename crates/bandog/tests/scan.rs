//! A listing of a store that has no end.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use bandog::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store};
use bandog::{ErrorKind, Locks, MemoryStore};
use bandog_core::holder::InboxId;
use bandog_core::time::LeaseTime;

/// As the memory store, but that it always has one more page, on which there is nothing.
#[derive(Clone)]
struct Endless {
    inner: MemoryStore,
    pages: Arc<AtomicU32>,
}

impl Store for Endless {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn time(&self) -> LeaseTime {
        self.inner.time()
    }

    fn submit(&self, calls: Vec<Call>) {
        self.inner.submit(calls);
    }

    fn sends_at_once(&self) -> bool {
        self.inner.sends_at_once()
    }

    fn list(&self, _: Listing) -> Answer<Page> {
        let page = self.pages.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(Page { rows: Vec::new(), unread: Vec::new(), next: Some(page.to_string()) }) })
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.inner.listen(inbox, receiver)
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        self.inner.probe(connection)
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.inner.is_open(connection)
    }
}

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("endless")
    }
}

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[tokio::test]
async fn a_listing_without_a_lock_and_without_an_end_is_an_error() {
    let store = Endless { inner: MemoryStore::new(), pages: Arc::default() };
    let locks = Locks::builder().store(store.clone()).build().unwrap();
    let error = locks.list("*").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("no lock on 65536 pages in a row"), "{error}");
    assert_eq!(store.pages.load(Ordering::Relaxed), 65_536);
    // Whoever knows better asks on.
    let mut pages = locks.scan("*");
    assert!(pages.next().await.unwrap().unwrap().is_empty());
}
