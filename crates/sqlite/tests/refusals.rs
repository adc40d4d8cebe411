//! What the system refuses, from its real causes: the file or directory at fault is named, with the reason.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "common/child.rs"]
mod child;
mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use bandog_sqlite::SqliteStore;
use child::Child;
use common::{Directory, binary_for_everybody, is_root};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const NOBODY: &str = "65534";

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

// Nothing is forbidden to root, so root starts the child as somebody else; everybody else is already somebody else.
fn ask_nobody(binary: &Path, path: &Path) -> String {
    let mut command = Command::new(binary);
    if is_root() {
        command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(binary);
    }
    Child::start_as(command, &["open", &path.to_string_lossy()]).must_hear()
}

fn owner(path: &Path) -> u32 {
    fs::metadata(path).unwrap().uid()
}

#[test]
fn a_closed_file_beside_the_database_is_named() {
    for ending in ["-wal", "-shm", "-bell"] {
        let directory = Directory::new();
        let store = SqliteStore::open(directory.file()).unwrap();
        let binary = binary_for_everybody(&directory);
        chmod(directory.path(), 0o777);
        let beside = |ending: &str| PathBuf::from(format!("{}{ending}", directory.file().display()));
        ["", "-wal", "-shm", "-bell"].iter().for_each(|ending| chmod(&beside(ending), 0o666));
        chmod(&beside(ending), 0o000);
        let answer = ask_nobody(&binary, &directory.file());
        let expected = format!("Denied no permission to read {}; it belongs to ", beside(ending).display());
        assert!(answer.starts_with(&expected), "{answer}");
        // Root's file, and nobody asks, where the tests run as root; otherwise both are ours.
        let (owner, we) = (owner(&beside(ending)), if is_root() { 65534 } else { owner(directory.path()) });
        let [before, after] = [owner, we].map(|uid| format!("uid {uid}"));
        let (whose, who) = answer.split_once(", mode 000; you are ").unwrap_or_else(|| panic!("{answer}"));
        assert!(
            whose.trim_end_matches(')').ends_with(&before) && who.trim_end_matches(')').ends_with(&after),
            "{answer}"
        );
        drop(store);
    }
}

#[test]
fn the_directory_that_refuses_is_named() {
    let directory = Directory::new();
    let (closed, path) = (directory.path().join("closed"), directory.path().join("closed/not/there/locks.db"));
    fs::create_dir(&closed).unwrap();
    let binary = binary_for_everybody(&directory);
    let reasons = [(0o555, "create directories in"), (0o000, "enter"), (0o666, "enter")];
    for (mode, reason) in reasons {
        chmod(&closed, mode);
        let answer = ask_nobody(&binary, &path);
        chmod(&closed, 0o755);
        let expected =
            format!("Denied cannot create {}: no permission to {reason} {}", path.display(), closed.display());
        assert!(answer.starts_with(&format!("{expected}; it belongs to ")), "{answer}");
        assert!(answer.contains(&format!(", mode {mode:03o}; you are ")), "{answer}");
    }
}

#[test]
fn too_many_open_files_are_told() {
    let directory = Directory::new();
    let mut child = Child::start(&["few-files", &directory.file().to_string_lossy()]);
    let mut answers: Vec<String> = std::iter::from_fn(|| child.hear()).collect();
    assert_eq!(answers.pop().as_deref(), Some("opened"), "{answers:?}");
    let named = |answer: &String| answer.contains("locks.db cannot be opened") && answer.contains("ulimit -n");
    assert!(answers.iter().any(named), "{answers:?}");
    // The first may concern the boot id, which is read before.
    let told = |answer: &String| answer.starts_with("Unavailable ") && answer.contains("oo many open files");
    assert!(answers.iter().all(told), "{answers:?}");
}

/// Opens a store with room for no, one, two, … more open files, until it works.
fn open_with_few_files(path: &Path) {
    let used = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let maximum = getrlimit(Resource::Nofile).maximum;
    for more in 0..30 {
        // One of those that were counted was for counting.
        setrlimit(Resource::Nofile, Rlimit { current: Some(used - 1 + more), maximum }).unwrap();
        if open(path) {
            return;
        }
    }
}

/// A small file system of its own for the child, if one may be mounted here.
fn in_small_system(disk: &Path) -> Option<Command> {
    let unshare: &[&str] = if is_root() { &["--mount"] } else { &["--map-root-user", "--mount"] };
    let mount = "mount -t tmpfs -o size=512k none \"$0\"";
    let tried = Command::new("unshare").args(unshare).args(["sh", "-c", mount]).arg(disk).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("no file system can be mounted here: not tested");
        return None;
    }
    let mut command = Command::new("unshare");
    let script = format!("{mount} && exec \"$@\"");
    command.args(unshare).args(["sh", "-c", &script]).arg(disk).arg(std::env::current_exe().unwrap());
    Some(command)
}

#[test]
fn a_full_disk_is_told_to_who_begins() {
    let directory = Directory::new();
    let Some(command) = in_small_system(directory.path()) else { return };
    let mut child = Child::start_as(command, &["full", &directory.file().to_string_lossy()]);
    let mut answers: Vec<String> = std::iter::from_fn(|| child.hear()).collect();
    assert_eq!(answers.pop().as_deref(), Some("opened"), "{answers:?}");
    assert!(answers.len() >= 3, "{answers:?}");
    let expected = format!("Unfit the disk with {} is full; make room and try again", directory.file().display());
    answers.iter().for_each(|answer| assert_eq!(*answer, expected));
}

#[test]
fn a_file_system_for_reading_only_is_told() {
    for role in ["read-only-new", "read-only-old"] {
        let directory = Directory::new();
        let Some(command) = in_small_system(directory.path()) else { return };
        let answer = Child::start_as(command, &[role, &directory.file().to_string_lossy()]).must_hear();
        let expected = format!("Denied {} is on a file system that is mounted read-only", directory.file().display());
        assert!(answer.starts_with(&expected), "{answer}");
    }
}

fn open(path: &Path) -> bool {
    match SqliteStore::open(path) {
        Ok(_) => child::say(format_args!("opened")),
        Err(error) => {
            child::say(format_args!("{:?} {error}", error.kind));
            return false;
        }
    }
    true
}

/// Opens a new store with room for no, one, two, … more pages, until it works.
fn open_with_little_room(path: &Path) {
    let mut ballast = fs::File::create(path.with_file_name("ballast")).unwrap();
    while std::io::Write::write_all(&mut ballast, &[0; 4096]).is_ok() {}
    while !open(path) {
        for ending in ["", "-wal", "-shm", "-bell"] {
            let _ = fs::remove_file(format!("{}{ending}", path.display()));
        }
        ballast.set_len(ballast.metadata().unwrap().len() - 4096).unwrap();
    }
}

fn make_read_only(path: &Path) {
    common::wait_until_closed(path);
    let mut mount = Command::new("mount");
    assert!(mount.args(["-o", "remount,bind,ro"]).arg(path.parent().unwrap()).status().unwrap().success());
}

#[test]
fn role_of_a_child() {
    let Some(words) = child::words() else { return };
    let path = Path::new(&words[1]);
    match words[0].as_str() {
        "open" => {}
        "few-files" => return open_with_few_files(path),
        "full" => return open_with_little_room(path),
        "read-only-new" => make_read_only(path),
        "read-only-old" => {
            drop(SqliteStore::open(path).unwrap());
            make_read_only(path);
        }
        other => panic!("no role {other}"),
    }
    open(path);
}
