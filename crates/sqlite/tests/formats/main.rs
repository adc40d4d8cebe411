//! Format 2 and format 3 of a file: builds of both work side by side on one of format 2, it goes from one to the other and back, and
//! nobody is let in twice.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "../common/mod.rs"]
mod common;
mod older;
mod rolling;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bandog_conformance::run::block_on;
use bandog_core::format::Format;
use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, News, Op, Parted, Patience, Release, Renew, Reply, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::{Listing, Store, StoreError, StoreErrorKind, Unreadable};
use bandog_core::time::LeaseTime;
use bandog_core::token::Stamp;
use bandog_sqlite::{Settings, SqliteStore};
use common::{Directory, Machine};
use older::{IsDamaged, Older};
use rusqlite::Connection;

const LEASE: Duration = Duration::from_secs(30);

fn put(path: &Path, machine: &Arc<Machine>, format: Format) -> SqliteStore {
    SqliteStore::with(path, Settings { format: Some(format), ..machine.settings() }).unwrap()
}

fn client(seed: u128) -> Client {
    Client::new(ClientId::from_random(seed), Who::default())
}

fn claim(client: &Client, patience: Patience) -> Claim {
    Claim {
        id: client.fresh(),
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode: Mode::Exclusive,
        lease: Lease::new(LEASE).unwrap(),
        window: Duration::from_secs(2),
        fair: false,
        patience,
        not_after: LeaseTime::from_millis(2_000_000),
        ballot: None,
        after: None,
    }
}

fn release(id: HolderId) -> Op {
    Op::Release(Release { id, not_after: None, again: None })
}

fn apply(store: &SqliteStore, name: &str, op: Op) -> Result<Reply, StoreError> {
    block_on(store.apply(LockName::new(name).unwrap(), op))
}

fn granted(reply: &Reply) -> Option<Stamp> {
    match &reply.body {
        Body::Verdict(Verdict::Granted(grant)) => Some(grant.stamp),
        _ => None,
    }
}

/// What stands in the file: the number in its header, and what its records and its news begin with and are.
fn look<T>(path: &Path, with: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> T {
    with(&Connection::open(path).unwrap()).unwrap()
}

fn header(path: &Path) -> i32 {
    look(path, |file| file.pragma_query_value(None, "user_version", |row| row.get(0)))
}

fn blobs(path: &Path) -> Vec<Vec<u8>> {
    let sql = "SELECT record FROM lock UNION ALL SELECT news FROM push";
    look(path, |file| file.prepare(sql)?.query_map([], |row| row.get(0))?.collect())
}

#[test]
fn new_file_is_of_the_newest_format_and_each_record_and_push_says_so() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let store = machine.open(directory.file());
    let [ann, bob] = [client(1), client(2)];
    apply(&store, "job", Op::Acquire(claim(&ann, Patience::Queue))).unwrap();
    apply(&store, "job", Op::Acquire(claim(&bob, Patience::Queue))).unwrap();
    assert_eq!(header(&directory.file()), 3);
    let blobs = blobs(&directory.file());
    assert_eq!(blobs.len(), 2, "a record, and a notice that somebody waits");
    assert!(blobs.iter().all(|blob| blob[0] == 3), "{blobs:?}");
}

#[test]
fn record_in_the_bytes_of_format_2_is_gone_on_with() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    let store = put(&path, &machine, Format::OLDEST);
    let kept = include_bytes!("../../../record/tests/formats/format-2/revoked.record");
    look(&path, |file| file.execute("INSERT INTO lock VALUES ('order:1001', 120000, ?1)", [&kept[..]]));
    let Body::Record(Some(view)) = apply(&store, "order:1001", Op::Inspect).unwrap().body else { panic!("a record") };
    assert_eq!((view.holders.len(), view.revocations.len()), (0, 2), "its lease is over, and its revocations are kept");
}

#[test]
fn builds_of_both_formats_share_a_file_of_format_2() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    drop(put(&path, &machine, Format::OLDEST));
    let (mut before, now) = (Older::open(&path, &machine).unwrap(), machine.open(&path));
    let [ann, bob] = [client(1), client(2)];
    let (first, second) = (claim(&ann, Patience::Queue), claim(&bob, Patience::Queue));
    let held = granted(&before.apply("job", &Op::Acquire(first.clone())).unwrap()).unwrap();
    assert_eq!(granted(&apply(&now, "job", Op::Acquire(second.clone())).unwrap()), None);
    assert_eq!(before.news(), [(ann.inbox(), News::Waiting { fair: false })], "from this build to the one before");
    before.apply("job", &release(first.id)).unwrap();
    let news = before.news();
    let Some((inbox, News::Granted { stamp, .. })) = news.last() else { panic!("{news:?}") };
    assert!(*inbox == bob.inbox() && *stamp > held);
    let renewed = apply(&now, "job", Op::Renew(Renew::new(second.id, Lease::new(LEASE).unwrap()))).unwrap();
    assert!(matches!(renewed.body, Body::Renewal(bandog_core::op::Renewal::Renewed { .. })), "{renewed:?}");
    assert_eq!(granted(&before.apply("job", &Op::Acquire(claim(&ann, Patience::Try))).unwrap()), None);
    assert_eq!(header(&path), 2);
}

#[test]
fn build_before_that_has_a_file_of_format_3_open_is_refused_and_nobody_holds_twice() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    drop(put(&path, &machine, Format::OLDEST));
    let mut before = Older::open(&path, &machine).unwrap();
    let [ann, bob] = [client(1), client(2)];
    let (first, second) = (claim(&ann, Patience::Queue), claim(&bob, Patience::Try));
    let held = granted(&before.apply("job", &Op::Acquire(first.clone())).unwrap()).unwrap();
    // Somebody forgets it.
    let now = put(&path, &machine, Format::NEWEST);
    let refused = Older::open(&path, &machine).unwrap_err();
    assert_eq!(refused, "locks in format 3, and this bandog knows format 2");
    assert_eq!(granted(&apply(&now, "job", Op::Acquire(second)).unwrap()), None, "it holds on");
    assert_eq!(before.apply("job", &Op::Renew(Renew::new(first.id, first.lease))), Err(IsDamaged));
    machine.pass(LEASE);
    let next = granted(&apply(&now, "job", Op::Acquire(claim(&bob, Patience::Try))).unwrap()).unwrap();
    assert!(next > held);
    assert_eq!(before.apply("job", &Op::Acquire(claim(&ann, Patience::Try))), Err(IsDamaged));
    // Where there is no record it goes on in its own format, which is read here.
    let other = granted(&before.apply("other", &Op::Acquire(claim(&ann, Patience::Try))).unwrap());
    assert!(other.is_some_and(|other| other > next));
    assert_eq!(granted(&apply(&now, "other", Op::Acquire(claim(&bob, Patience::Try))).unwrap()), None);
}

#[test]
fn file_goes_from_one_format_to_the_other_and_back_with_all_that_is_in_it() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    let ann = client(1);
    let (first, next) = (claim(&ann, Patience::Queue), claim(&client(2), Patience::Queue));
    let store = put(&path, &machine, Format::OLDEST);
    apply(&store, "job", Op::Acquire(first.clone())).unwrap();
    apply(&store, "job", Op::Acquire(next)).unwrap();
    let written = blobs(&path);
    for (format, number) in [(Format::NEWEST, 3), (Format::OLDEST, 2)] {
        // Who has it open already goes on.
        drop(put(&path, &machine, format));
        assert_eq!(header(&path), number);
        let Body::Standings(standings) = apply(&store, "job", beat(&ann, first.id)).unwrap().body else { panic!() };
        assert!(matches!(standings[0], bandog_core::op::Standing::Granted(_)), "{standings:?}");
    }
    let back = blobs(&path);
    assert_eq!(back.len(), written.len() + 2, "two notices more");
    let parted = Older::open(&path, &machine).unwrap().apply("job", &release(first.id)).unwrap();
    let Body::Release(release) = parted.body else { panic!("{parted:?}") };
    assert_eq!(release.parted, Parted::Hold);
}

fn beat(client: &Client, id: HolderId) -> Op {
    Op::Heartbeat(bandog_core::op::Heartbeat { inbox: client.inbox(), ids: vec![id], alive: LEASE })
}

#[test]
fn file_that_a_newer_build_takes_over_while_it_is_open_is_refused_untouched() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    let store = machine.open(&path);
    let first = claim(&client(1), Patience::Queue);
    apply(&store, "job", Op::Acquire(first.clone())).unwrap();
    look(&path, |file| file.pragma_update(None, "user_version", 4));
    let before = blobs(&path);
    machine.reboot();
    let refused = [
        apply(&store, "job", release(first.id)).unwrap_err(),
        block_on(store.list(Listing::default())).unwrap_err(),
        SqliteStore::with(&path, machine.settings()).unwrap_err(),
        SqliteStore::with(&path, Settings { format: Some(Format::OLDEST), ..machine.settings() }).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind, StoreErrorKind::Unfit, "{error}");
        let words = "locks in format 4, and this bandog reads formats 2 and 3; upgrade this one, or have a newer one put the file back (?format=3)";
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(blobs(&path), before);
}

#[test]
fn record_of_a_newer_build_is_refused_untouched_and_listed_as_such() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let path = directory.file();
    let store = machine.open(&path);
    let newer = bandog_record::sealed("job", Some(4), b"whatever it is");
    look(&path, |file| file.execute("INSERT INTO lock VALUES ('job', 9000000, ?1)", [&newer]));
    let error = apply(&store, "job", Op::Acquire(claim(&client(1), Patience::Queue))).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unfit);
    let words = "the record of lock \"job\" is in format 4, and this bandog reads formats 2 and 3; upgrade this one";
    assert!(error.message.contains(words), "{error}");
    let page = block_on(store.list(Listing::default())).unwrap();
    assert_eq!(page.unread[0].why, Unreadable::Layout);
    assert_eq!(blobs(&path), [newer]);
}
