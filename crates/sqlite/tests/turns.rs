//! How calls take their turns: those that wait together share one, those that were sent are finished, and nobody waits for ever.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bandog_conformance::run::block_on;
use bandog_conformance::{Bench, Terms};
use bandog_core::name::LockName;
use bandog_core::op::{Op, Parted};
use bandog_core::store::Ask;
use bandog_core::store::{Answer, Outcome, StoreErrorKind};
use bandog_sqlite::SqliteStore;
use common::{Asleep, Directory, wait_until_closed};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

fn bench(path: &Path) -> Bench {
    Bench::new(Arc::new(SqliteStore::open(path).unwrap()), Arc::new(Asleep), Terms::REAL)
}

fn job() -> LockName {
    LockName::new("job").unwrap()
}

/// Keeps everybody else from writing until it is dropped.
fn keep_busy(connection: &mut Connection) -> Transaction<'_> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap()
}

fn poll<T>(answer: &mut Answer<T>) {
    let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "answered while nobody could write");
}

#[test]
fn a_file_that_is_kept_busy_is_not_ready() {
    let directory = Directory::new();
    let bench = bench(&directory.file());
    let mut other = Connection::open(directory.file()).unwrap();
    block_on(async {
        let ann = bench.actor(&job()).await;
        let busy = keep_busy(&mut other);
        let error = bench.store.apply(job(), Op::Acquire(ann.ask())).await.expect_err("kept busy");
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unready, Outcome::NotExecuted), "{error}");
        assert!(error.message.contains("busy"), "{error}");
        drop(busy);
        ann.holds(ann.ask_now()).await;
    });
}

#[test]
fn calls_that_wait_together_share_a_transaction() {
    let directory = Directory::new();
    let bench = bench(&directory.file());
    let mut other = Connection::open(directory.file()).unwrap();
    block_on(async {
        let ann = bench.actor(&job()).await;
        ann.holds(ann.ask()).await;
        other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let busy = keep_busy(&mut other);
        let name = |n: u32| LockName::new(format!("lock {n}")).unwrap();
        let mut answers: Vec<_> = (0..100).map(|n| bench.store.apply(name(n), Op::Acquire(ann.ask()))).collect();
        answers.iter_mut().for_each(poll);
        drop(busy);
        for answer in answers {
            answer.await.unwrap();
        }
        // A page in the log is 4096 bytes and 24 of header; a hundred transactions write two hundred at least.
        let log = std::fs::metadata(format!("{}-wal", directory.file().display())).unwrap().len();
        assert!(log < 60 * 4120, "{} pages", log / 4120);
    });
}

#[test]
fn what_was_sent_is_finished_after_the_last_handle_has_gone() {
    let directory = Directory::new();
    let bench = bench(&directory.file());
    let mut other = Connection::open(directory.file()).unwrap();
    let ann = block_on(bench.actor(&job()));
    let hold = block_on(ann.holds(ann.ask()));
    let busy = keep_busy(&mut other);
    let release = bandog_core::op::Release { id: hold.id(), not_after: None, again: None };
    let mut answer = bench.store.apply(job(), Op::Release(release));
    poll(&mut answer);
    drop((answer, ann, bench));
    drop(busy);
    drop(other);
    wait_until_closed(&directory.file());
    let bench = self::bench(&directory.file());
    block_on(async {
        let bob = bench.actor(&job()).await;
        let hold = bob.holds(bob.ask_now()).await;
        assert_eq!(bob.releases(hold.id()).await, Parted::Hold);
    });
}

#[test]
fn only_what_is_new_rings() {
    let directory = Directory::new();
    let (one, two) = (bench(&directory.file()), bench(&directory.file()));
    let inotify = inotify::init(CreateFlags::NONBLOCK).unwrap();
    let rings = || {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&inotify, &mut buffer);
        std::iter::from_fn(|| events.next().ok().map(|_| ())).count()
    };
    block_on(async {
        let (ann, bob) = (one.actor(&job()).await, two.actor(&job()).await);
        let bell = format!("{}-bell", directory.file().display());
        inotify::add_watch(&inotify, bell, WatchFlags::CLOSE_WRITE).unwrap();
        let hold = ann.holds(ann.ask()).await;
        assert!(ann.still_holds(hold.id()).await);
        assert_eq!(rings(), 0, "a lock that nobody waits for");
        let place = bob.waits(bob.ask()).await;
        assert_eq!(rings(), 1, "a waiter");
        assert!(ann.still_holds(hold.id()).await);
        bob.beats(&[place.id()]).await;
        ann.looks().await;
        assert_eq!(rings(), 0, "renewals, heartbeats, looks");
        ann.releases(hold.id()).await;
        assert_eq!(rings(), 1, "a hand-off");
        bob.releases(place.id()).await;
        assert_eq!(rings(), 0, "a release that nobody waits for");
    });
}

/// Whoever is killed after a commit has not rung; the next round of the watcher finds it.
#[tokio::test]
async fn news_without_a_ring_is_found() {
    let directory = Directory::new();
    let (one, two) = (bench(&directory.file()), bench(&directory.file()));
    let (ann, bob) = (one.actor(&job()).await, two.actor(&job()).await);
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    ann.hears("the waiter", |_| true).await;
    // A bell that nobody can ring.
    let bell = format!("{}-bell", directory.file().display());
    std::fs::remove_file(&bell).unwrap();
    std::fs::create_dir(&bell).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    ann.releases(hold.id()).await;
    bob.picks_up(&place).await;
}
