//! What happens to the machine and to the files under a store: reboots, clock steps, power cuts, removed files.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bandog_conformance::actor::Actor;
use bandog_conformance::run::block_on;
use bandog_conformance::{Bench, Terms};
use bandog_core::name::LockName;
use bandog_core::op::{Op, Parted, Renewal};
use bandog_core::store::Ask;
use bandog_core::store::{Outcome, StoreErrorKind};
use bandog_core::time::{LeaseTime, RunId, WallTime};
use bandog_sqlite::{BootId, Host, Settings, SqliteStore};
use common::{Asleep, ByHand, Directory, Machine, wait_until_closed};

const HOUR: i64 = 3_600_000_000;

fn bench(machine: &Arc<Machine>, path: &Path) -> Bench {
    Bench::new(Arc::new(machine.open(path)), Arc::new(ByHand(Arc::clone(machine))), Terms::VIRTUAL)
}

fn job() -> LockName {
    LockName::new("job").unwrap()
}

async fn run_of(actor: &Actor) -> RunId {
    actor.send(Op::Inspect).await.run
}

fn file_beside(path: &Path, ending: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[test]
fn a_reboot_voids_leases_and_places() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let bench = bench(&machine, &directory.file());
    block_on(async {
        let (ann, bob) = (bench.actor(&job()).await, bench.actor(&job()).await);
        let hold = ann.holds(ann.ask()).await;
        let place = bob.waits(bob.ask()).await;
        let run = run_of(&ann).await;
        machine.reboot();
        assert_eq!(ann.renew(hold.id(), bench.long()).await, Renewal::NotHolder);
        assert_eq!(bob.releases(place.id()).await, Parted::Nothing);
        assert_ne!(run_of(&ann).await, run, "another run");
        assert!(bob.holds(bob.ask()).await.stamp() > hold.stamp());
        assert_eq!(run_of(&bob).await, run_of(&ann).await, "voided once");
        assert_eq!(bob.sees().await.holders.len(), 1);
    });
}

#[test]
fn a_listing_after_a_reboot_shows_nothing_old() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let bench = bench(&machine, &directory.file());
    block_on(async {
        let ann = bench.actor(&job()).await;
        ann.holds(ann.ask()).await;
        assert_eq!(bench.store.list(Default::default()).await.unwrap().rows.len(), 1);
        machine.reboot();
        assert_eq!(bench.store.list(Default::default()).await.unwrap().rows.len(), 0);
    });
}

#[test]
fn a_step_of_the_wall_clock_touches_no_lease() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let bench = bench(&machine, &directory.file());
    block_on(async {
        let (ann, bob) = (bench.actor(&job()).await, bench.actor(&job()).await);
        let mut last = ann.holds(ann.ask_briefly()).await;
        for step in [HOUR, -48 * HOUR, 7 * HOUR, -HOUR] {
            machine.step_wall(step);
            let end = last.end();
            assert_eq!(ann.now() + bob.finds_busy(bob.ask_now()).await.unwrap().remaining, end, "after {step}");
            machine.pass(bench.terms.lease);
            let next = ann.holds(ann.ask_briefly()).await;
            assert!(next.stamp() > last.stamp(), "{next:?} after {last:?}, when the clock stepped by {step}");
            last = next;
        }
    });
}

#[test]
fn stamps_grow_over_forgotten_records_and_clocks_set_back() {
    let (directory, machine) = (Directory::new(), Machine::new());
    block_on(async {
        let mut last = None;
        for round in 0..4 {
            // Another process each time: nothing but the file remembers.
            let bench = bench(&machine, &directory.file());
            let ann = bench.actor(&job()).await;
            let hold = ann.holds(ann.ask()).await;
            assert!(Some(hold.stamp()) > last, "round {round}");
            last = Some(hold.stamp());
            ann.releases(hold.id()).await;
            machine.pass(Duration::from_secs(2000));
            machine.step_wall(-2 * HOUR);
            let other = bench.actor(&bench.name("sweeper")).await;
            assert_eq!(other.looks().await, None);
            assert_eq!(ann.looks().await, None, "forgotten");
        }
    });
}

/// After a power cut the last transactions may be gone, and the clock may be anywhere.
#[test]
fn stamps_grow_over_a_power_cut() {
    let (directory, machine) = (Directory::new(), Machine::new());
    block_on(async {
        let mut last = None;
        for cut in 0..5 {
            let bench = bench(&machine, &directory.file());
            let ann = bench.actor(&job()).await;
            ann.releases(ann.holds(ann.ask()).await.id()).await;
            let synced = fs::read(directory.file()).unwrap();
            let mut hold = None;
            for _ in 0..50 {
                let next = ann.holds(ann.ask()).await;
                ann.releases(next.id()).await;
                assert!(Some(next.stamp()) > last, "cut {cut}");
                (last, hold) = (Some(next.stamp()), Some(next));
                machine.pass(Duration::from_secs(1));
            }
            drop((ann, bench));
            // The log is lost, and the file is as the first synced write of this boot left it.
            wait_until_closed(&directory.file());
            fs::write(directory.file(), synced).unwrap();
            for ending in ["-wal", "-shm"] {
                fs::remove_file(file_beside(&directory.file(), ending)).unwrap();
            }
            machine.reboot();
            machine.step_wall(-i64::from(cut) * HOUR);
            assert!(hold.is_some());
        }
    });
}

#[test]
fn holders_are_told_when_the_file_is_removed() {
    for endings in [&["", "-wal", "-shm", "-bell"][..], &[""], &["-wal"], &["-wal", "-shm"], &["-shm"]] {
        let (directory, machine) = (Directory::new(), Machine::new());
        let (one, two) = (bench(&machine, &directory.file()), bench(&machine, &directory.file()));
        block_on(async {
            let (ann, bob) = (one.actor(&job()).await, two.actor(&job()).await);
            let first = ann.holds(ann.ask()).await;
            assert!(bob.finds_busy(bob.ask_now()).await.is_some());
            for ending in endings {
                fs::remove_file(file_beside(&directory.file(), ending)).unwrap();
            }
            assert_eq!(ann.renew(first.id(), one.long()).await, Renewal::NotHolder, "{endings:?}");
            machine.step_wall(-HOUR);
            let second = bob.holds(bob.ask()).await;
            assert!(second.stamp() > first.stamp(), "{endings:?}");
            assert!(ann.finds_busy(ann.ask_now()).await.is_some(), "{endings:?}");
            assert_eq!(run_of(&ann).await, run_of(&bob).await, "{endings:?}");
        });
    }
}

#[test]
fn who_only_waits_makes_no_files() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let bench = bench(&machine, &directory.path().join("own/locks.db"));
    let _ann = block_on(bench.actor(&job()));
    fs::remove_dir_all(directory.path().join("own")).unwrap();
    fs::create_dir(directory.path().join("own")).unwrap();
    // Longer than a watcher waits before it looks for the bell again.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::read_dir(directory.path().join("own")).unwrap().count(), 0);
}

#[test]
fn what_a_removed_file_leaves_behind_is_not_used() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let (one, two) = (bench(&machine, &directory.file()), bench(&machine, &directory.file()));
    let beside = || ["-wal", "-shm"].map(|ending| fs::metadata(file_beside(&directory.file(), ending)).unwrap().ino());
    block_on(async {
        let (ann, bob) = (one.actor(&job()).await, two.actor(&job()).await);
        bob.holds(bob.ask()).await;
        let before = beside();
        fs::remove_file(directory.file()).unwrap();
        ann.holds(ann.ask()).await;
        // The old ones are still open in the other store, so their numbers are not given out again.
        assert!(before.iter().zip(beside()).all(|(before, after)| *before != after), "{before:?} and {:?}", beside());
    });
}

#[test]
fn stamps_of_others_are_known_when_the_file_is_removed() {
    for ending in ["", "-wal", "-shm"] {
        let (directory, machine) = (Directory::new(), Machine::new());
        let (one, two) = (bench(&machine, &directory.file()), bench(&machine, &directory.file()));
        block_on(async {
            let (ann, bob) = (one.actor(&job()).await, two.actor(&job()).await);
            let hold = bob.holds(bob.ask()).await;
            fs::remove_file(file_beside(&directory.file(), ending)).unwrap();
            machine.step_wall(-HOUR);
            assert!(ann.holds(ann.ask()).await.stamp() > hold.stamp(), "{ending:?}");
        });
    }
}

/// Removes a file while a transaction is under way: the store looks at the clock inside of it.
#[derive(Debug)]
struct Remover(Arc<Machine>, PathBuf);

impl Host for Remover {
    fn lease(&self) -> LeaseTime {
        drop(fs::remove_file(&self.1));
        self.0.lease()
    }
    fn wall(&self) -> WallTime {
        self.0.wall()
    }
    fn boot(&self) -> io::Result<Option<BootId>> {
        self.0.boot()
    }
}

#[test]
fn a_grant_in_a_file_that_is_removed_meanwhile_is_not_told() {
    for ending in ["", "-wal", "-shm"] {
        let (directory, machine) = (Directory::new(), Machine::new());
        let bench = bench(&machine, &directory.file());
        let host = Arc::new(Remover(Arc::clone(&machine), file_beside(&directory.file(), ending)));
        let remover = SqliteStore::with(directory.file(), Settings { host, ..Settings::default() }).unwrap();
        block_on(async {
            let (ann, bob) = (bench.actor(&job()).await, bench.actor(&job()).await);
            let error = remover.apply(job(), Op::Acquire(ann.ask())).await.expect_err("removed meanwhile");
            assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unavailable, Outcome::Unknown), "{ending:?}");
            bob.holds(bob.ask_now()).await;
        });
    }
}

#[test]
fn news_arrives_through_a_file_that_was_made_anew() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let open = || Bench::new(Arc::new(machine.open(directory.file())), Arc::new(Asleep), Terms::VIRTUAL);
    let (one, two) = (open(), open());
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
        let (ann, bob) = (one.actor(&job()).await, two.actor(&job()).await);
        for ending in ["", "-bell", "-shm", "-wal"] {
            fs::remove_file(file_beside(&directory.file(), ending)).unwrap();
        }
        let hold = ann.holds(ann.ask()).await;
        let place = bob.waits(bob.ask()).await;
        ann.releases(hold.id()).await;
        bob.picks_up(&place).await;
    });
}

#[test]
fn two_stores_in_one_process_share_a_file() {
    let directory = Directory::new();
    let open = || Bench::new(Arc::new(SqliteStore::open(directory.file()).unwrap()), Arc::new(Asleep), Terms::REAL);
    let (one, two) = (open(), open());
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
        let (ann, bob) = (one.actor(&job()).await, two.actor(&job()).await);
        for _ in 0..20 {
            let hold = ann.holds(ann.ask()).await;
            let place = bob.waits(bob.ask()).await;
            ann.releases(hold.id()).await;
            let next = bob.picks_up(&place).await;
            assert!(next.stamp() > hold.stamp());
            bob.releases(next.id()).await;
        }
    });
}

#[test]
fn one_handle_closing_leaves_the_others_their_locks() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let one = bench(&machine, &directory.file());
    block_on(async {
        let ann = one.actor(&job()).await;
        let hold = ann.holds(ann.ask()).await;
        for _ in 0..10 {
            let two = bench(&machine, &directory.file());
            let bob = two.actor(&job()).await;
            bob.finds_busy(bob.ask_now()).await;
        }
        assert!(ann.still_holds(hold.id()).await);
    });
}

#[test]
fn nothing_is_left_after_the_retention() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let (one, two) = (bench(&machine, &directory.file()), bench(&machine, &directory.file()));
    block_on(async {
        for _ in 0..40 {
            let (ann, bob) = (one.actor(&one.name("many")).await, two.deaf_actor(&job()).await);
            ann.holds(ann.ask_briefly()).await;
            // To be told of it, somebody who is not here.
            let hold = bob.holds(bob.ask_briefly()).await;
            ann.store.apply(job(), Op::Acquire(ann.ask_now())).await.unwrap();
            ann.store.apply(job(), Op::Acquire(ann.ask_briefly())).await.unwrap();
            bob.releases(hold.id()).await;
            machine.pass(one.terms.lease * 3);
        }
        machine.pass(Duration::from_secs(2000));
        let ann = one.actor(&job()).await;
        for _ in 0..40 {
            ann.looks().await;
        }
    });
    drop((one, two));
    wait_until_closed(&directory.file());
    let connection = rusqlite::Connection::open(directory.file()).unwrap();
    let count =
        |table: &str| connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
    assert_eq!((count("lock").unwrap(), count("push").unwrap()), (0, 0));
}

#[test]
fn threads_end_with_the_last_handle() {
    let directory = Directory::new();
    let store = SqliteStore::with(directory.file(), Settings::default()).unwrap();
    let bench = Bench::new(Arc::new(store), Arc::new(Asleep), Terms::REAL);
    block_on(async {
        let ann = bench.actor(&job()).await;
        let lane = bench.store.connection();
        lane.apply(job(), Op::Inspect).await.unwrap();
        ann.holds(ann.ask()).await;
    });
    drop(bench);
    // All have ended when nothing is open any more, inotify and pipes included.
    wait_until_closed(&directory.file());
}
