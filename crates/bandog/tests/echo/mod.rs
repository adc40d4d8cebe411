//! A store whose pushed grants can be told once more, as a slow network would.

#![expect(clippy::unwrap_used, reason = "a part of tests")]

use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use bandog::op::{News, Reply};
use bandog::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Push, Receiver, Store};
use bandog::{LockName, Locks, MemoryStore};
use bandog_core::holder::InboxId;
use bandog_core::store::StoreError;
use bandog_core::time::LeaseTime;

#[derive(Clone, Default)]
pub(crate) struct Echo {
    store: MemoryStore,
    ears: Arc<Mutex<Vec<Arc<Ear>>>>,
}

/// Stands between the store and an inbox, and remembers the grants.
struct Ear {
    inbox: Weak<dyn Receiver>,
    grants: Mutex<Vec<Push>>,
}

impl Echo {
    pub(crate) fn locks(&self) -> Locks {
        Locks::builder().store(self.clone()).build().unwrap()
    }

    /// Delivers every grant once more, and says how many there were.
    pub(crate) fn repeat_grants(&self) -> usize {
        let ears = self.ears.lock().unwrap().clone();
        let repeat = |ear: &Arc<Ear>| {
            let grants = ear.grants.lock().unwrap().clone();
            let inbox = ear.inbox.upgrade().expect("its client lives");
            grants.into_iter().map(|push| inbox.deliver(push)).count()
        };
        ears.iter().map(repeat).sum()
    }
}

impl Receiver for Ear {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        if matches!(push.news, News::Granted { .. }) {
            self.grants.lock().unwrap().push(push.clone());
        }
        self.inbox.upgrade().into_iter().for_each(|inbox| inbox.deliver(push.clone()));
    }

    fn connected(&self, up: bool) {
        self.inbox.upgrade().into_iter().for_each(|inbox| inbox.connected(up));
    }
}

impl Store for Echo {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn time(&self) -> LeaseTime {
        self.store.time()
    }

    fn submit(&self, calls: Vec<Call>) {
        self.store.submit(calls);
    }

    fn sends_at_once(&self) -> bool {
        self.store.sends_at_once()
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.store.list(query)
    }

    fn listen(&self, id: InboxId, inbox: Weak<dyn Receiver>) -> Answer<()> {
        let ear = Arc::new(Ear { inbox, grants: Mutex::default() });
        self.ears.lock().unwrap().push(Arc::clone(&ear));
        let ear: Weak<dyn Receiver> = Arc::downgrade(&(ear as Arc<dyn Receiver>));
        self.store.listen(id, ear)
    }

    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        self.store.probe(connection)
    }

    fn is_open(&self, connection: Connection) -> bool {
        self.store.is_open(connection)
    }
}

impl fmt::Display for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl fmt::Debug for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Echo")
    }
}
