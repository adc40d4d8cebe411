//! What others may put where our files belong: none of it is followed, waited for or written to.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "common/child.rs"]
mod child;
mod common;
#[path = "common/person.rs"]
mod person;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bandog_core::op::Verdict;
use bandog_core::store::StoreErrorKind;
use bandog_sqlite::SqliteStore;
use child::{Child, listen, say};
use common::Directory;
use person::Person;

const LONG: u64 = 600_000;
const SECRET: &str = "what nobody may write to";

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Puts something in the place of a file, which then is refused by its name.
fn is_refused(ending: &str, plant: impl Fn(&Path, &Path), words: &str) {
    let directory = Directory::new();
    let secret = directory.path().join("secret");
    fs::write(&secret, SECRET).unwrap();
    SqliteStore::open(directory.file()).unwrap();
    common::wait_until_closed(&directory.file());
    let place = beside(&directory.file(), ending);
    fs::remove_file(&place).unwrap();
    plant(&secret, &place);
    let error = SqliteStore::open(directory.file()).expect_err("something that is no file");
    assert_eq!(error.kind, StoreErrorKind::Unfit, "{error}");
    assert!(error.message.contains(&format!("{} {words}", place.display())), "{error}");
    assert_eq!(error.message.contains("remove that"), !ending.is_empty(), "only what has our name: {error}");
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
}

#[test]
fn what_is_no_file_is_refused() {
    for ending in ["-bell", "-wal", "-shm"] {
        is_refused(ending, |secret, place| symlink(secret, place).unwrap(), "is a symbolic link");
    }
    for ending in ["", "-bell", "-wal", "-shm"] {
        is_refused(ending, |secret, place| fs::hard_link(secret, place).unwrap(), "has a second name");
        is_refused(ending, |_, place| pipe(place), "is a pipe");
        is_refused(ending, |_, place| fs::create_dir(place).unwrap(), "is a directory");
        is_refused(ending, |_, place| drop(UnixListener::bind(place).unwrap()), "is a socket");
    }
}

/// Somebody swaps the bell while a lock is held and waited for: the release, which rings, writes to no other file and does not hang.
#[test]
fn a_ring_goes_nowhere_else() {
    let plants: [fn(&Path, &Path); 3] = [
        |secret, bell| symlink(secret, bell).unwrap(),
        |secret, bell| fs::hard_link(secret, bell).unwrap(),
        |_, bell| pipe(bell),
    ];
    for plant in plants {
        let directory = Directory::new();
        let secret = directory.path().join("secret");
        fs::write(&secret, SECRET).unwrap();
        let ann = Person::open(directory.file());
        let (id, _) = ann.take("baton", LONG);
        let mut bob = Child::start(&[&directory.file().to_string_lossy()]);
        assert_eq!(bob.must_hear(), "queued");
        // In one step: a bell that is missing is soon made again.
        let planted = directory.path().join("planted");
        plant(&secret, &planted);
        fs::rename(&planted, beside(&directory.file(), "-bell")).unwrap();
        ann.release("baton", id);
        // Without a bell it looks from time to time.
        assert_eq!(bob.must_hear(), "granted");
        assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
    }
}

/// A link in the place of the directory of pipes: nothing is made where it leads, and waiters are served all the same.
#[test]
fn pipes_are_made_nowhere_else() {
    let directory = Directory::new();
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, beside(&directory.file(), "-pipes")).unwrap();
    let ann = Person::open(directory.file());
    let (id, _) = ann.take("baton", LONG);
    let mut bob = Child::start(&[&directory.file().to_string_lossy()]);
    assert_eq!(bob.must_hear(), "queued");
    ann.release("baton", id);
    assert_eq!(bob.must_hear(), "granted");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

/// A file in the place of a pipe is not written to, and its waiter is served all the same.
#[test]
fn a_ring_is_written_to_no_file() {
    let directory = Directory::new();
    let ann = Person::open(directory.file());
    let (id, _) = ann.take("baton", LONG);
    let mut bob = Child::start(&[&directory.file().to_string_lossy()]);
    assert_eq!(bob.must_hear(), "queued");
    let pipes = beside(&directory.file(), "-pipes");
    let planted = directory.path().join("planted");
    // Both listen: the holder after its first second.
    let names = || fs::read_dir(&pipes).map_or(0, |names| names.count());
    while names() < 2 {
        std::thread::yield_now();
    }
    for entry in fs::read_dir(&pipes).unwrap() {
        fs::write(&planted, SECRET).unwrap();
        fs::rename(&planted, entry.unwrap().path()).unwrap();
    }
    ann.release("baton", id);
    for entry in fs::read_dir(&pipes).unwrap().map(|entry| entry.unwrap().path()) {
        // It may have been replaced by a pipe again, which is not to be read.
        if entry.is_file() {
            assert_eq!(fs::read_to_string(&entry).unwrap(), SECRET, "{}", entry.display());
        }
    }
    assert_eq!(bob.must_hear(), "granted");
}

/// Whoever follows the link has a log beside the file that it leads to, and who does not has another one.
#[test]
fn a_file_that_became_a_link_is_not_gone_on_with() {
    let directory = Directory::new();
    let ann = Person::open(directory.file());
    ann.take("baton", LONG);
    let elsewhere = directory.path().join("elsewhere.db");
    fs::rename(directory.file(), &elsewhere).unwrap();
    symlink(&elsewhere, directory.file()).unwrap();
    let listed = bandog_core::store::Store::list(&ann.store, Default::default());
    let error = bandog_conformance::run::block_on(listed).expect_err("a link");
    assert!(error.message.contains("locks.db is a symbolic link"), "{error}");
}

#[test]
fn role_of_a_child() {
    let Some(words) = child::words() else { return };
    let me = Person::open(&words[0]);
    let claim = me.ask(LONG);
    assert!(matches!(me.claim("baton", &claim), Verdict::Queued(_)));
    say(format_args!("queued"));
    me.wait(claim.id, Duration::from_secs(10)).expect("a grant");
    say(format_args!("granted"));
    listen();
}
