//! Paths with symbolic links: they name the file that they lead to, and all four files are there.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;
#[path = "common/person.rs"]
mod person;

use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::Path;

use bandog_core::op::Verdict;
use bandog_core::store::StoreErrorKind;
use bandog_sqlite::SqliteStore;
use common::{Directory, is_root};
use person::Person;

const LONG: u64 = 600_000;

/// Who comes by the link and who comes by the file meet.
fn is_one_file(link: &Path, file: &Path) {
    let ann = Person::open(link);
    ann.take("baton", LONG);
    let bob = Person::open(file);
    assert!(matches!(bob.claim("baton", &bob.ask(LONG)), Verdict::Queued(_)), "{}", link.display());
    assert_eq!(ann.store.path(), file);
    for ending in ["-wal", "-shm", "-bell"] {
        assert!(!Path::new(&format!("{}{ending}", link.display())).exists(), "{} {ending}", link.display());
    }
}

#[test]
fn a_link_to_the_file_leads_to_it() {
    let directory = Directory::new();
    let there = directory.path().join("there");
    fs::create_dir(&there).unwrap();
    SqliteStore::open(there.join("locks.db")).unwrap();
    let relative = directory.path().join("relative.db");
    symlink("there/locks.db", &relative).unwrap();
    let absolute = directory.path().join("absolute.db");
    symlink(&relative, &absolute).unwrap();
    is_one_file(&absolute, &there.join("locks.db"));
}

#[test]
fn a_link_to_nothing_is_where_the_file_is_made() {
    let directory = Directory::new();
    symlink("not/yet/there.db", directory.file()).unwrap();
    is_one_file(&directory.file(), &directory.path().join("not/yet/there.db"));
}

#[test]
fn a_link_to_the_directory_is_followed() {
    let directory = Directory::new();
    fs::create_dir(directory.path().join("real")).unwrap();
    symlink("real", directory.path().join("link")).unwrap();
    let ann = Person::open(directory.path().join("link/new/locks.db"));
    assert_eq!(ann.store.path(), directory.path().join("real/new/locks.db"));
}

#[test]
fn a_link_to_itself_is_refused() {
    let directory = Directory::new();
    symlink("locks.db", directory.file()).unwrap();
    let error = SqliteStore::open(directory.file()).expect_err("a circle");
    assert_eq!(error.kind, StoreErrorKind::Unfit);
    assert!(error.message.contains("locks.db\" cannot be followed"), "{error}");
}

/// Only root can have links of two users; for others there is nothing to see here.
#[test]
fn a_link_of_another_user_is_not_followed() {
    let directory = Directory::new();
    let victim = directory.path().join("victim");
    symlink(&victim, directory.file()).unwrap();
    if is_root() {
        lchown(directory.file(), Some(65533), None).unwrap();
        let error = SqliteStore::open(directory.file()).expect_err("a trap");
        assert!(error.message.contains("locks.db is a symbolic link of another user"), "{error}");
        assert!(!victim.exists());
    }
}

/// The same for a directory on the way, and for a link that one of ours leads to.
#[test]
fn a_directory_that_is_a_link_of_another_user_is_not_followed() {
    let directory = Directory::new();
    let victim = directory.path().join("victim");
    fs::create_dir(&victim).unwrap();
    symlink(&victim, directory.path().join("theirs")).unwrap();
    symlink("theirs/deeper", directory.path().join("ours")).unwrap();
    if is_root() {
        lchown(directory.path().join("theirs"), Some(65533), None).unwrap();
        for path in ["theirs/locks.db", "theirs/new/locks.db", "ours/locks.db", "ours/../theirs/locks.db"] {
            let error = SqliteStore::open(directory.path().join(path)).expect_err("a trap");
            assert!(error.message.contains("theirs is a symbolic link of another user"), "{path}: {error}");
        }
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    }
}

#[test]
fn a_way_back_is_taken_from_where_a_link_leads() {
    let directory = Directory::new();
    fs::create_dir_all(directory.path().join("real/deep")).unwrap();
    symlink("real/deep", directory.path().join("link")).unwrap();
    let ann = Person::open(directory.path().join("link/../locks.db"));
    assert_eq!(ann.store.path(), directory.path().join("real/locks.db"));
}
