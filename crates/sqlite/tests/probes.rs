//! Probes: whether the file is there, and whether somebody hears the news. What is not is opened again.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bandog_conformance::run::block_on;
use bandog_conformance::{Bench, Terms};
use bandog_core::holder::InboxId;
use bandog_core::name::LockName;
use bandog_core::op::Reply;
use bandog_core::store::StoreError;
use bandog_core::store::{Connection, Outcome, Pulse, Push, Receiver, Store, StoreErrorKind};
use bandog_sqlite::SqliteStore;
use common::{Asleep, Directory};

fn bench(path: &Path) -> Bench {
    Bench::new(Arc::new(SqliteStore::open(path).unwrap()), Arc::new(Asleep), Terms::REAL)
}

#[test]
fn a_file_that_was_removed_is_opened_anew() {
    let directory = Directory::new();
    let store = SqliteStore::open(directory.file()).unwrap();
    let lane = store.connection();
    for opened in [1, 1, 2] {
        if opened == 2 {
            fs::read_dir(directory.path()).unwrap().for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
        }
        assert_eq!(block_on(store.probe(Connection::Calls)).unwrap(), Pulse { opened });
        assert_eq!(block_on(lane.probe(Connection::Calls)).unwrap(), Pulse { opened }, "each lane has its own");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_told() {
    let directory = Directory::new();
    let store = SqliteStore::open(directory.file()).unwrap();
    block_on(store.probe(Connection::Calls)).unwrap();
    fs::read_dir(directory.path()).unwrap().for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
    fs::create_dir(directory.file()).unwrap();
    let error = block_on(store.probe(Connection::Calls)).unwrap_err();
    assert_eq!(error.outcome, Outcome::NotExecuted, "{error}");
    assert!(error.message.contains("locks.db"), "{error}");
    fs::remove_dir(directory.file()).unwrap();
    assert_eq!(block_on(store.probe(Connection::Calls)).unwrap(), Pulse { opened: 2 });
}

#[test]
fn without_an_inbox_nobody_hears() {
    let directory = Directory::new();
    let store = SqliteStore::open(directory.file()).unwrap();
    let error = block_on(store.probe(Connection::News)).unwrap_err();
    assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::NotExecuted), "{error}");
}

/// Fails at what it hears, and takes the thread that brought it along.
#[derive(Default)]
struct Fragile {
    told: AtomicBool,
}

impl Receiver for Fragile {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        panic!("as it should: {push:?}");
    }
    fn connected(&self, up: bool) {
        self.told.store(up, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_watcher_that_died_is_followed_by_another() {
    let directory = Directory::new();
    let (one, two) = (bench(&directory.file()), bench(&directory.file()));
    let job = LockName::new("job").unwrap();
    let (ann, bob, cat) = (one.actor(&job).await, two.deaf_actor(&job).await, two.actor(&job).await);
    let fragile = Arc::new(Fragile::default());
    let inbox: Arc<dyn Receiver> = Arc::clone(&fragile) as Arc<dyn Receiver>;
    let id: InboxId = bob.client.inbox();
    two.store.listen(id, Arc::downgrade(&inbox)).await.unwrap();
    assert_eq!(two.store.probe(Connection::News).await.unwrap(), Pulse { opened: 1 });

    let hold = bob.holds(bob.ask()).await;
    let first = ann.waits(ann.ask()).await;
    let another = async {
        while two.store.probe(Connection::News).await.unwrap() == (Pulse { opened: 1 }) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), another).await.expect("another watcher");
    assert_eq!(two.store.probe(Connection::News).await.unwrap(), Pulse { opened: 2 });
    assert!(fragile.told.load(Ordering::SeqCst), "it is told that it may have missed something");

    let second = cat.waits(cat.ask()).await;
    bob.releases(hold.id()).await;
    let hold = ann.picks_up(&first).await;
    ann.releases(hold.id()).await;
    cat.picks_up(&second).await;
}
