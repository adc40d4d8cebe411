//! What tells one boot from another: a reboot voids leases, and nothing else does, whatever a container pretends.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "common/child.rs"]
mod child;
mod common;
#[path = "common/person.rs"]
mod person;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bandog_conformance::run::block_on;
use bandog_conformance::{Bench, Terms};
use bandog_core::checkup::Pace;
use bandog_core::name::LockName;
use bandog_core::op::{Op, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::StoreErrorKind;
use bandog_sqlite::checkup;
use child::{Child, say};
use common::{ByHand, Directory, Machine, is_root};
use person::Person;

const LONG: u64 = 600_000;
const OTHER_ID: &str = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
const RANDOM_ID: &str = "mount --bind /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id && exec \"$@\"";

fn job() -> LockName {
    LockName::new("job").unwrap()
}

fn bench(machine: &Arc<Machine>, path: &Path) -> Bench {
    Bench::new(Arc::new(machine.open(path)), Arc::new(ByHand(Arc::clone(machine))), Terms::VIRTUAL)
}

/// This binary behind `unshare` with these words; nothing, and said so, where the system allows no such thing.
fn apart(words: &[&str]) -> Option<Command> {
    let apart = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(if is_root() { &[][..] } else { &["--map-root-user"][..] }).args(words).arg(program);
        command
    };
    let tried = apart("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("!!! SKIPPED: unshare {words:?} does not work here");
        return None;
    }
    Some(apart(std::env::current_exe().unwrap().to_str().unwrap()))
}

/// Somebody holds a lock; what a process behind this command finds, and whether the hold is as it was after that.
fn finds(command: Command) -> (String, bool) {
    let directory = Directory::new();
    let ann = Person::open(directory.file());
    let (id, _) = ann.take("job", LONG);
    let mut child = Child::start_as(command, &["job", &directory.file().to_string_lossy()]);
    let found = child.must_hear();
    child.end();
    (found, ann.renew("job", id, LONG))
}

#[test]
fn a_boot_id_that_a_container_made_up_voids_no_hold() {
    let directory = Directory::new();
    let id = directory.path().join("boot_id");
    fs::write(&id, "6ba7b810-9dad-11d1-80b4-00c04fd430c8\n").unwrap();
    for script in [OTHER_ID, RANDOM_ID] {
        let Some(command) = apart(&["--mount", "sh", "-c", script, id.to_str().unwrap()]) else { return };
        assert_eq!(finds(command), ("held".to_owned(), true), "{script}");
    }
}

#[test]
fn a_time_namespace_voids_no_hold() {
    for offset in ["100000", "-3"] {
        let Some(command) = apart(&["--time", "--boottime", offset, "--fork"]) else { return };
        assert_eq!(finds(command), ("held".to_owned(), true), "{offset}");
    }
}

#[test]
fn the_checkup_says_what_a_container_shows() {
    let directory = Directory::new();
    let says = |command: Command, about: &str| {
        Child::start_as(command, &[about, &directory.file().to_string_lossy()]).must_hear()
    };
    if let Some(command) = apart(&["--mount", "sh", "-c", RANDOM_ID, "sh"]) {
        let told = says(command, "boot");
        assert!(told.starts_with("Fine the boot id may be made up"), "{told}");
    }
    if let Some(command) = apart(&["--time", "--boottime", "100000", "--fork"]) {
        let told = says(command, "clock");
        assert!(told.starts_with("Fine ") && told.contains("; 100000 s are taken off"), "{told}");
    }
}

/// No clock has gone back, so it need not have been a reboot.
#[test]
fn another_boot_id_alone_voids_no_hold() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let bench = bench(&machine, &directory.file());
    block_on(async {
        let (ann, bob) = (bench.actor(&job()).await, bench.actor(&job()).await);
        let hold = ann.holds(ann.ask()).await;
        machine.rename_boot();
        bob.finds_busy(bob.ask_now()).await;
        assert_eq!(bench.store.list(Default::default()).await.unwrap().rows.len(), 1);
        assert!(ann.still_holds(hold.id()).await);
    });
}

/// Where the boot has no name that can be trusted, a lease from before a reboot is waited out.
#[test]
fn a_reboot_that_cannot_be_proven_is_waited_out() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let bench = bench(&machine, &directory.file());
    machine.hide_boot();
    block_on(async {
        let (ann, bob) = (bench.actor(&job()).await, bench.actor(&job()).await);
        let hold = ann.holds(ann.ask()).await;
        machine.reboot();
        let left = bob.finds_busy(bob.ask_now()).await.unwrap().remaining;
        assert!(left <= bench.long().length(), "{left:?}");
        assert_eq!(bench.store.list(Default::default()).await.unwrap().rows.len(), 1);
        machine.pass(left);
        assert!(bob.holds(bob.ask()).await.stamp() > hold.stamp());
    });
}

#[test]
fn news_from_before_a_reboot_is_swept() {
    let (directory, machine) = (Directory::new(), Machine::new());
    let bench = bench(&machine, &directory.file());
    machine.hide_boot();
    block_on(async {
        for _ in 0..9 {
            // To be told that somebody waits, a holder who is not here.
            let (ann, bob) = (bench.deaf_actor(&job()).await, bench.actor(&job()).await);
            let hold = ann.holds(ann.ask()).await;
            let place = bob.waits(bob.ask()).await;
            bob.releases(place.id()).await;
            ann.releases(hold.id()).await;
        }
        machine.reboot();
        let ann = bench.actor(&job()).await;
        for _ in 0..40 {
            ann.looks().await;
            machine.pass(Duration::from_secs(1));
        }
    });
    let connection = rusqlite::Connection::open(directory.file()).unwrap();
    let left: i64 = connection.query_row("SELECT count(*) FROM push", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

/// Each process without a boot id may be the first after a power cut, and takes the reserve. Stamps do not run away for that.
#[test]
fn stamps_stay_near_the_clock_however_many_processes_come() {
    let (directory, machine) = (Directory::new(), Machine::new());
    machine.hide_boot();
    let (mut last, mut first) = (None, None);
    for _ in 0..100 {
        let bench = bench(&machine, &directory.file());
        let stamp = block_on(async {
            let ann = bench.actor(&job()).await;
            let hold = ann.holds(ann.ask()).await;
            ann.releases(hold.id()).await;
            hold.stamp()
        });
        assert!(Some(stamp) > last);
        (first, last) = (first.or(Some(stamp)), Some(stamp));
    }
    let ran = last.unwrap().micros() - first.unwrap().micros();
    assert!(ran < 65_000_000, "{ran} µs ahead");
}

/// Two machines that reach one file on a file system that is not known to be shared.
#[test]
fn a_second_kernel_at_one_file_is_told_and_changes_nothing() {
    let (directory, here, there) = (Directory::new(), Machine::new(), Machine::new());
    there.rename_boot();
    let one = bench(&here, &directory.file());
    let two = bench(&there, &directory.file());
    block_on(async {
        let ann = one.actor(&job()).await;
        ann.holds(ann.ask()).await;
        let bob = two.actor(&job()).await;
        bob.finds_busy(bob.ask_now()).await;
        let error = ann.store.apply(job(), Op::Inspect).await.expect_err("another kernel came");
        assert_eq!(error.kind, StoreErrorKind::Unfit);
        assert!(error.message.contains("another machine"), "{error}");
        bob.finds_busy(bob.ask_now()).await;
    });
}

#[test]
fn role_of_a_child() {
    let Some(words) = child::words() else { return };
    let [lock, path] = &words[..] else { panic!("{words:?}") };
    if let Some(remark) = checkup(path, &Pace::default()).about(lock) {
        return say(format_args!("{:?} {}", remark.fitness, remark.saw));
    }
    let bob = Person::open(path);
    match bob.claim(lock, &bob.ask(LONG)) {
        Verdict::Queued(_) => say(format_args!("held")),
        other => say(format_args!("{other:?}")),
    }
}
