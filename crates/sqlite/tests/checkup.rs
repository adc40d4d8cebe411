//! The examination of files: a good one is fine, each bad one is told what is bad about it, and nothing is made or changed.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "common/child.rs"]
mod child;
mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use bandog_core::checkup::{Checkup, Fitness, Pace};
use bandog_sqlite::{SqliteStore, checkup};
use child::Child;
use common::{Directory, binary_for_everybody, is_root, wait_until_closed};
use rusqlite::Connection;

fn examine(path: &Path) -> Checkup {
    let found = checkup(path, &Pace::default());
    let unadvised = found.remarks.iter().find(|remark| remark.fitness > Fitness::Fine && remark.change.is_none());
    assert_eq!(unadvised, None, "what is not fine has a line to change");
    found
}

fn told(found: &Checkup, about: &str, fitness: Fitness, word: &str) {
    let remark = found.about(about).unwrap_or_else(|| panic!("nothing about {about}: {found:#?}"));
    assert_eq!(remark.fitness, fitness, "{found:#?}");
    assert!(remark.saw.contains(word), "{word:?} is not in {remark:#?}");
}

/// Those that are not fine. What the machine itself is like is not the tests' choice.
fn ailing(found: &Checkup) -> Vec<&'static str> {
    let chosen = ["file", "permissions", "database", "wal", "writing", "boot"];
    let ailing = found.remarks.iter().filter(|remark| remark.fitness > Fitness::Fine && chosen.contains(&remark.about));
    ailing.map(|remark| remark.about).collect()
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A private directory with a file of locks that nobody has open.
fn made() -> Directory {
    let directory = Directory::new();
    chmod(directory.path(), 0o700);
    drop(SqliteStore::open(directory.file()).unwrap());
    wait_until_closed(&directory.file());
    directory
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_good_file_is_fine() {
    let directory = made();
    let before = names(directory.path());
    let found = examine(&directory.file());
    assert_eq!(ailing(&found), Vec::<&str>::new(), "{found:#?}");
    assert_eq!(found.remarks.len(), 11, "{found:#?}");
    assert_eq!(found.store, format!("sqlite:{}", directory.file().display()));
    told(&found, "database", Fitness::Fine, "whole; 0 locks in it, in format 3");
    told(&found, "wal", Fitness::Fine, "write-ahead log");
    told(&found, "writing", Fitness::Fine, "20 turns");
    assert_eq!(names(directory.path()), before, "nothing is left");
}

#[test]
fn a_file_in_use_is_fine_and_stays_usable() {
    let directory = Directory::new();
    chmod(directory.path(), 0o700);
    let store = SqliteStore::open(directory.file()).unwrap();
    assert_eq!(ailing(&examine(&directory.file())), Vec::<&str>::new());
    assert_eq!(ailing(&examine(store.path())), Vec::<&str>::new());
}

#[test]
fn a_file_that_is_not_there_is_not_made() {
    let directory = Directory::new();
    chmod(directory.path(), 0o700);
    let found = examine(&directory.path().join("a/b/locks.db"));
    assert_eq!(ailing(&found), Vec::<&str>::new(), "{found:#?}");
    told(&found, "file", Fitness::Fine, "not there yet");
    assert!(found.about("database").is_none());
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn a_file_for_everybody_is_risky() {
    let directory = made();
    for (mode, word) in [(0o666, "may change"), (0o604, "may read")] {
        chmod(&directory.file(), mode);
        let found = examine(&directory.file());
        told(&found, "permissions", Fitness::Risky, word);
        assert_eq!(ailing(&found), ["permissions"]);
        let change = found.about("permissions").unwrap().change.clone().unwrap();
        let words: Vec<&str> = change.split(' ').collect();
        assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{change}");
        assert_eq!(ailing(&examine(&directory.file())), Vec::<&str>::new());
    }
    chmod(directory.path(), 0o777);
    told(&examine(&directory.file()), "permissions", Fitness::Risky, "put files into");
    chmod(directory.path(), 0o1777);
    assert_eq!(ailing(&examine(&directory.file())), Vec::<&str>::new(), "there it cannot be replaced");
}

/// Only root can open what belongs to another user and to nobody else.
#[test]
fn a_database_of_another_user_is_risky() {
    let directory = made();
    if !is_root() {
        return;
    }
    for ending in ["", "-wal", "-shm", "-bell"] {
        let file = directory.path().join(format!("locks.db{ending}"));
        if file.exists() {
            chown(file, Some(65533), Some(65533)).unwrap();
        }
    }
    let found = examine(&directory.file());
    told(&found, "permissions", Fitness::Risky, "locks.db belongs to uid 65533, who may release any lock in it");
    assert_eq!(ailing(&found), ["permissions"]);
    assert_eq!(advises_a_command(&found), None);
    chown(directory.file(), Some(0), Some(0)).unwrap();
    chown(directory.path(), Some(65533), None).unwrap();
    told(&examine(&directory.file()), "permissions", Fitness::Risky, "who may replace the files in it");
    // Whoever shares with a group means it.
    chmod(directory.path(), 0o2770);
    assert_eq!(ailing(&examine(&directory.file())), Vec::<&str>::new());
}

#[test]
fn files_of_others_are_told_and_left_alone() {
    let directory = Directory::new();
    chmod(directory.path(), 0o700);
    fs::write(directory.file(), "a letter that is long enough to be no database".repeat(40)).unwrap();
    chmod(&directory.file(), 0o600);
    told(&examine(&directory.file()), "database", Fitness::Wrong, "is not a database");
    fs::remove_file(directory.file()).unwrap();
    let other = Connection::open(directory.file()).unwrap();
    other.execute_batch("CREATE TABLE invoices (id INTEGER); PRAGMA journal_mode = WAL").unwrap();
    drop(other);
    let before = names(directory.path());
    told(&examine(&directory.file()), "database", Fitness::Wrong, "another program");
    assert_eq!(names(directory.path()), before);
}

#[test]
fn a_file_of_a_newer_bandog_is_told() {
    let directory = made();
    let newer = Connection::open(directory.file()).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    told(&examine(&directory.file()), "database", Fitness::Wrong, "format 99");
}

#[test]
fn a_damaged_file_is_told() {
    let directory = made();
    let whole = Connection::open(directory.file()).unwrap();
    whole.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(whole);
    let mut bytes = fs::read(directory.file()).unwrap();
    let pages = bytes.len() / 4096;
    assert!(pages > 2, "{pages}");
    // A count in the head that is not so: nobody would notice before the space is used.
    bytes[36..40].copy_from_slice(&[0, 0, 0, 5]);
    fs::write(directory.file(), &bytes).unwrap();
    told(&examine(&directory.file()), "database", Fitness::Wrong, "it is damaged: ");
    // The roots of the tables, and not the schema: it still looks like a file of locks.
    bytes[4096..8192].fill(0x5a);
    fs::write(directory.file(), bytes).unwrap();
    told(&examine(&directory.file()), "database", Fitness::Wrong, "damaged");
}

#[test]
fn what_is_no_file_is_told() {
    let directory = Directory::new();
    fs::create_dir(directory.file()).unwrap();
    told(&examine(&directory.file()), "file", Fitness::Wrong, "is a directory");
}

/// Words that a shell would obey.
fn advises_a_command(found: &Checkup) -> Option<&str> {
    let changes = found.remarks.iter().filter_map(|remark| remark.change.as_deref());
    changes.into_iter().find(|change| ["chmod", "chgrp", "install", "mv "].iter().any(|word| change.contains(word)))
}

#[test]
fn no_command_is_advised_for_what_is_not_ours() {
    let directory = Directory::new();
    let [letter, empty, folder] = ["letter", "empty", "folder"].map(|name| directory.path().join(name));
    fs::write(&letter, "a letter that is long enough to be no database".repeat(40)).unwrap();
    fs::write(&empty, "").unwrap();
    fs::create_dir(&folder).unwrap();
    for path in [&letter, &empty, &folder] {
        chmod(path, 0o777);
    }
    for (path, about) in [(&letter, "database"), (&folder, "file"), (&PathBuf::from("/etc"), "file")] {
        let found = examine(path);
        assert_eq!(found.about(about).unwrap().fitness, Fitness::Wrong, "{found:#?}");
        assert!(found.about("syncing").is_none() && found.about("permissions").is_none(), "{found:#?}");
        assert_eq!(advises_a_command(&found), None, "{found:#?}");
    }
    let found = examine(&empty);
    told(&found, "permissions", Fitness::Risky, "may change");
    assert_eq!(advises_a_command(&found), None, "an empty file may be anybody's");
    chmod(directory.path(), 0o777);
    let found = examine(&directory.file());
    told(&found, "permissions", Fitness::Risky, "put files into");
    assert_eq!(advises_a_command(&found), None, "so may a directory");
}

#[test]
fn where_no_file_can_be_made_it_is_told() {
    for path in ["/proc/locks.db", "/sys/locks.db", "/proc/nowhere/locks.db"] {
        let found = examine(Path::new(path));
        told(&found, "file", Fitness::Wrong, "cannot be made: ");
        told(&found, "file-system", Fitness::Wrong, "");
        assert_eq!(advises_a_command(&found), None, "{found:#?}");
        for about in ["permissions", "space", "syncing"] {
            assert!(found.about(about).is_none(), "{found:#?}");
        }
    }
}

#[test]
fn a_path_in_a_command_is_quoted() {
    let directory = Directory::new();
    chmod(directory.path(), 0o700);
    let path = directory.path().join("my locks; it's.db");
    drop(SqliteStore::open(&path).unwrap());
    wait_until_closed(&path);
    chmod(&path, 0o604);
    let found = examine(&path);
    let change = found.about("permissions").unwrap().change.clone().unwrap();
    assert!(Command::new("sh").args(["-c", &change]).status().unwrap().success(), "{change}");
    assert_eq!(ailing(&examine(&path)), Vec::<&str>::new(), "{change}");
}

#[test]
fn somebody_who_keeps_it_busy_is_told() {
    let directory = made();
    let writer = Connection::open(directory.file()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let found = examine(&directory.file());
    told(&found, "writing", Fitness::Wrong, "kept busy");
    assert_eq!(ailing(&found), ["writing"]);
}

// Nothing is forbidden to root, so root starts the child as somebody else; everybody else is already somebody else.
fn ask_nobody(binary: &Path, path: &Path, about: &str) -> String {
    let mut command = Command::new(binary);
    if is_root() {
        command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary);
    }
    Child::start_as(command, &[about, &path.to_string_lossy()]).must_hear()
}

#[test]
fn what_is_forbidden_is_told() {
    let directory = made();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    chmod(&closed, 0o555);
    let binary = binary_for_everybody(&directory);
    let answer = ask_nobody(&binary, &closed.join("locks.db"), "file");
    let expected = format!(
        "Wrong {} is not there and cannot be made: no permission to create files in",
        closed.join("locks.db").display()
    );
    assert!(answer.starts_with(&expected), "{answer}");
    chmod(&directory.file(), 0o000);
    let answer = ask_nobody(&binary, &directory.file(), "permissions");
    let expected = format!("Wrong no permission to read {}; it belongs to ", directory.file().display());
    assert!(answer.starts_with(&expected) && answer.contains(", mode 000; you are "), "{answer}");
}

#[test]
fn role_of_a_child() {
    let Some(words) = child::words() else { return };
    let [about, path] = &words[..] else { panic!("{words:?}") };
    let found = examine(Path::new(path));
    let remark = found.about(about).unwrap();
    child::say(format_args!("{:?} {}", remark.fitness, remark.saw));
}
