//! What a file of each format has beside its records, and how those who wait in it are woken.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bandog_conformance::run::block_on;
use bandog_core::format::Format;
use bandog_core::holder::{Client, HolderId, InboxId};
use bandog_core::name::LockName;
use bandog_core::op::{Body, Heartbeat, News, Op, Patience, Reply, Standing};
use bandog_core::store::{Push, Receiver, Store, StoreError};
use bandog_sqlite::SqliteStore;

use crate::common::{Directory, Machine};
use crate::older::Older;
use crate::{apply, claim, client, look, put, release};

/// Longer than half a claim window, and shorter than a lease.
const ALIVE: Duration = Duration::from_secs(20);
/// Until somebody is woken whom nothing keeps from that but a busy machine.
const PROMPT: Duration = Duration::from_secs(30);

fn beat(client: &Client, id: HolderId) -> Op {
    Op::Heartbeat(Heartbeat { inbox: client.inbox(), ids: vec![id], alive: ALIVE })
}

fn is_queued(store: &SqliteStore, op: Op) -> bool {
    let body = apply(store, "job", op).unwrap().body;
    matches!(body, Body::Standings(standings) if matches!(standings[..], [Standing::Queued(_)]))
}

fn tables(path: &Path) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
    look(path, |file| file.prepare(sql)?.query_map([], |row| row.get(0))?.collect())
}

fn schema(path: &Path) -> Vec<String> {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let lines: Vec<String> = look(path, |file| file.prepare(sql)?.query_map([], |row| row.get(0))?.collect());
    lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn converted_file_has_the_tables_of_one_that_was_made_in_that_format() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let made = |name: &str, format: Format| {
        let path = directory.path().join(name);
        drop(put(&path, &machine, format));
        path
    };
    let (old, new) = (made("old.db", Format::OLDEST), made("new.db", Format::NEWEST));
    assert_eq!(tables(&old), ["lock", "lock_due", "push", "store"]);
    assert_eq!(tables(&new), ["beat", "lock", "lock_due", "push", "push_inbox", "store"]);
    let (schema_old, schema_new) = (schema(&old), schema(&new));
    drop((put(&old, &machine, Format::NEWEST), put(&new, &machine, Format::OLDEST)));
    assert_eq!((schema(&old), schema(&new)), (schema_new, schema_old));
}

#[test]
fn heartbeats_of_one_format_are_known_in_the_other() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    let [ann, bob] = [client(1), client(2)];
    let (first, second) = (claim(&ann, Patience::Queue), claim(&bob, Patience::Queue));
    let store = put(&path, &machine, Format::NEWEST);
    apply(&store, "job", Op::Acquire(first.clone())).unwrap();
    apply(&store, "job", Op::Acquire(second.clone())).unwrap();
    let record =
        |path: &Path| -> Vec<u8> { look(path, |file| file.query_row("SELECT record FROM lock", [], |row| row.get(0))) };
    for format in [Format::OLDEST, Format::NEWEST, Format::OLDEST] {
        let before = record(&path);
        assert!(is_queued(&store, beat(&bob, second.id)));
        assert_eq!(record(&path) == before, format == Format::OLDEST, "format 3 leaves the record as it is");
        drop(put(&path, &machine, format));
        // Longer than the claim window: without that heartbeat nobody would wait any more.
        machine.pass(Duration::from_secs(8));
    }
    let mut before = Older::open(&path, &machine).unwrap();
    before.apply("job", &release(first.id)).unwrap();
    let news = before.news();
    assert!(matches!(news.last(), Some((inbox, News::Granted { .. })) if *inbox == bob.inbox()), "{news:?}");
}

/// Somebody who hears what is pushed.
struct Hearing(Sender<News>);

impl Receiver for Hearing {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        // It fails only when the test is over.
        let _ = self.0.send(push.news);
    }

    fn connected(&self, _: bool) {}
}

fn mark(path: &Path, inbox: InboxId) -> Vec<u8> {
    let bell = std::fs::read(format!("{}-bell", path.display())).unwrap();
    let place = usize::try_from(inbox.to_bits() % 512 * 8).unwrap();
    bell.get(place..place + 8).unwrap_or_default().to_vec()
}

#[test]
fn waiter_of_the_build_before_is_rung_at_the_file_it_listens_to() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    let now = put(&path, &machine, Format::OLDEST);
    let mut before = Older::open(&path, &machine).unwrap();
    let [ann, bob] = [client(1), client(2)];
    let (first, second) = (claim(&ann, Patience::Queue), claim(&bob, Patience::Queue));
    apply(&now, "job", Op::Acquire(first.clone())).unwrap();
    before.apply("job", &Op::Acquire(second)).unwrap();
    let was = mark(&path, bob.inbox());
    apply(&now, "job", release(first.id)).unwrap();
    assert_ne!(mark(&path, bob.inbox()), was);
}

#[test]
fn waiter_is_woken_by_the_build_before_after_the_file_has_gone_back() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    let store = put(&path, &machine, Format::NEWEST);
    let [ann, bob] = [client(1), client(2)];
    let (sender, heard) = channel();
    let hearing: Arc<dyn Receiver> = Arc::new(Hearing(sender));
    let weak: Weak<dyn Receiver> = Arc::downgrade(&hearing);
    block_on(store.listen(bob.inbox(), weak)).unwrap();
    let (first, second) = (claim(&ann, Patience::Queue), claim(&bob, Patience::Queue));
    apply(&store, "job", Op::Acquire(first.clone())).unwrap();
    apply(&store, "job", Op::Acquire(second)).unwrap();
    let pipes = || std::fs::read_dir(directory.path().join("locks.db-pipes")).map_or(0, Iterator::count);
    while pipes() == 0 {
        std::thread::yield_now();
    }
    drop(put(&path, &machine, Format::OLDEST));
    // It listens at no pipe any more: the build before rings at none.
    while pipes() > 0 {
        std::thread::yield_now();
    }
    Older::open(&path, &machine).unwrap().apply("job", &release(first.id)).unwrap();
    assert!(matches!(heard.recv_timeout(PROMPT), Ok(News::Granted { .. })));
}
