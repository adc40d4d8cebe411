//! What can be wrong with the file, from its real causes: each is told apart, names the file and says what to do.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "common/child.rs"]
mod child;
mod common;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use bandog_conformance::run::block_on;
use bandog_conformance::{Bench, Terms};
use bandog_core::name::LockName;
use bandog_core::op::{Op, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::{Listing, Outcome, Store, StoreError, StoreErrorKind, Unread, Unreadable};
use bandog_sqlite::SqliteStore;
use child::Child;
use common::{Asleep, Directory, binary_for_everybody, is_root};
use rustix::process::{Resource, Rlimit, setrlimit};

const NOBODY: &str = "65534";

fn refused(path: &Path) -> StoreError {
    let error = SqliteStore::open(path).expect_err("a file that cannot be used");
    assert_eq!(error.outcome, Outcome::NotExecuted);
    assert!(error.message.contains(&*path.to_string_lossy()), "names the file: {error}");
    error
}

fn fill(path: &Path, locks: usize) {
    let bench =
        Bench::new(std::sync::Arc::new(SqliteStore::open(path).unwrap()), std::sync::Arc::new(Asleep), Terms::REAL);
    block_on(async {
        for _ in 0..locks {
            let [ann] = bench.cast("filling").await;
            ann.holds(ann.ask()).await;
        }
    });
}

/// Everything into the database file, so that damage to it matters.
fn checkpoint(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let rest: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(rest, 0);
}

/// The names in a directory.
fn names(directory: &Directory) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn garbage_is_not_a_database() {
    let directory = Directory::new();
    fs::write(directory.file(), "these are no locks ".repeat(1000)).unwrap();
    let error = refused(&directory.file());
    assert_eq!(error.kind, StoreErrorKind::Unfit);
    assert!(error.message.contains("is not a database; give bandog another path"), "{error}");
    assert!(!error.message.contains("mv "), "the file is not ours to move: {error}");
    assert!(fs::read_to_string(directory.file()).unwrap().starts_with("these are no locks"), "left as it was");
    assert_eq!(names(&directory), ["locks.db"]);
}

#[test]
fn a_file_of_ours_that_became_garbage_is_damaged() {
    let directory = Directory::new();
    fill(&directory.file(), 1);
    checkpoint(&directory.file());
    fs::write(directory.file(), "these were locks ".repeat(1000)).unwrap();
    let error = refused(&directory.file());
    assert!(error.message.contains("locks.db is damaged") && error.message.contains("mv "), "{error}");
}

#[test]
fn a_truncated_file_is_damaged() {
    let directory = Directory::new();
    fill(&directory.file(), 40);
    checkpoint(&directory.file());
    let file = File::options().write(true).open(directory.file()).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2 + 100).unwrap();
    drop(file);
    let error = use_it(&directory.file()).expect_err("half a file");
    assert_eq!(error.kind, StoreErrorKind::Unfit, "{error}");
    assert!(error.message.contains("damaged"), "{error}");
}

#[test]
fn flipped_bytes_are_noticed() {
    let directory = Directory::new();
    fill(&directory.file(), 40);
    checkpoint(&directory.file());
    let file = File::options().read(true).write(true).open(directory.file()).unwrap();
    let (length, page) = (file.metadata().unwrap().len(), 4096);
    // In every page but the first, the bytes in the middle: where rows are.
    for start in (page..length).step_by(4096) {
        for at in (start + 1500..start + 3500).step_by(7) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x55], at).unwrap();
        }
    }
    drop(file);
    let error = use_it(&directory.file()).expect_err("records that changed by themselves");
    assert_eq!(error.kind, StoreErrorKind::Unfit, "{error}");
    assert!(error.message.contains("damaged"), "{error}");
}

/// Opens the file and reads all of it.
fn use_it(path: &Path) -> Result<(), StoreError> {
    let store = SqliteStore::open(path)?;
    let page = block_on(store.list(Listing { limit: 1000, ..Listing::default() }))?;
    match page.unread.first() {
        Some(odd) => Err(StoreError::not_executed(StoreErrorKind::Unfit, format!("{} is {}", odd.name, odd.why))),
        None => Ok(()),
    }
}

#[test]
fn a_damaged_record_spoils_no_other() {
    let directory = Directory::new();
    fill(&directory.file(), 2);
    let connection = rusqlite::Connection::open(directory.file()).unwrap();
    let spoil = "UPDATE lock SET record = zeroblob(length(record)) WHERE name = (SELECT min(name) FROM lock)";
    connection.execute(spoil, []).unwrap();
    let mut names = connection.prepare("SELECT name FROM lock ORDER BY name").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let store = SqliteStore::open(directory.file()).unwrap();
    let look = |name: &str| (LockName::new(name).unwrap(), Op::Inspect);
    let replies = block_on(store.batch(vec![look(&names[0]), look(&names[1])]));
    let error = replies[0].as_ref().expect_err("a seal that does not fit");
    assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unfit, Outcome::NotExecuted));
    assert!(error.message.contains(&names[0]), "{error}");
    assert!(replies[1].is_ok(), "{replies:?}");
    let list = |limit, after| block_on(store.list(Listing { limit, after, ..Listing::default() })).unwrap();
    let page = list(0, None);
    assert_eq!(page.rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [&names[1]]);
    let odd = Unread { name: LockName::new(&*names[0]).unwrap(), why: Unreadable::Damaged };
    assert_eq!(page.unread, std::slice::from_ref(&odd), "it is told, and not left out");
    // It has a place in a page, and is told once.
    let first = list(1, None);
    assert_eq!((first.rows.len(), first.unread, first.next.as_ref()), (0, vec![odd], Some(&names[0])));
    let second = list(1, first.next);
    assert_eq!((second.rows.len(), second.unread.len(), second.next), (1, 0, None));
}

#[test]
fn a_database_of_others_is_left_alone() {
    // With characters that mean something where SQLite is given more than a path.
    for mode in ["delete", "wal"] {
        let directory = Directory::new();
        let path = directory.path().join("50% ?mode=rw#1 ä.db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", mode).unwrap();
        connection.execute_batch("CREATE TABLE bread (price); INSERT INTO bread VALUES (3)").unwrap();
        let used = names(&directory);
        let in_use = refused(&path);
        assert_eq!(names(&directory), used);
        drop(connection);
        let closed = refused(&path);
        assert_eq!(names(&directory), ["50% ?mode=rw#1 ä.db"]);
        for error in [in_use, closed] {
            assert_eq!(error.kind, StoreErrorKind::Unfit);
            assert!(error.message.contains("another program"), "{error}");
        }
        let connection = rusqlite::Connection::open(&path).unwrap();
        let price: i64 = connection.query_row("SELECT price FROM bread", [], |row| row.get(0)).unwrap();
        assert_eq!(price, 3);
    }
}

#[test]
fn a_newer_format_is_refused() {
    let directory = Directory::new();
    drop(SqliteStore::open(directory.file()).unwrap());
    rusqlite::Connection::open(directory.file()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = refused(&directory.file());
    assert_eq!(error.kind, StoreErrorKind::Unfit);
    assert!(error.message.contains("format 99"), "{error}");
}

// Its records are written in another way: they would be taken for damaged one by one.
#[test]
fn an_older_format_is_refused_with_a_way_out() {
    let directory = Directory::new();
    drop(SqliteStore::open(directory.file()).unwrap());
    rusqlite::Connection::open(directory.file()).unwrap().pragma_update(None, "user_version", 1).unwrap();
    let error = refused(&directory.file());
    assert_eq!(error.kind, StoreErrorKind::Unfit);
    let words = "locks in format 1, and this bandog reads formats 2 and 3; upgrade whoever still uses it and then remove it, or give bandog";
    assert!(error.message.contains(words), "{error}");
}

#[test]
fn a_directory_is_not_a_file() {
    let directory = Directory::new();
    fs::create_dir(directory.file()).unwrap();
    let error = refused(&directory.file());
    assert_eq!(error.kind, StoreErrorKind::Unfit);
    assert!(error.message.contains("is a directory, not a file"), "{error}");
}

#[test]
fn a_file_is_not_a_directory() {
    let directory = Directory::new();
    fs::write(directory.path().join("file"), "").unwrap();
    let error = refused(&directory.path().join("file/locks.db"));
    assert_eq!(error.kind, StoreErrorKind::Unfit);
    assert!(error.message.contains("no directory"), "{error}");
}

#[test]
fn a_file_for_reading_only_is_denied() {
    let answer = open_as_nobody(0o444, 0o777);
    assert!(
        answer.starts_with("Denied NotExecuted no permission to write to ") && answer.contains("locks.db"),
        "{answer}"
    );
}

#[test]
fn a_file_of_others_is_denied() {
    let answer = open_as_nobody(0o000, 0o777);
    assert!(answer.starts_with("Denied NotExecuted no permission to read "), "{answer}");
}

#[test]
fn a_directory_of_others_is_denied() {
    let directory = Directory::new();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let binary = binary_for_everybody(&directory);
    fs::set_permissions(&closed, Permissions::from_mode(0o555)).unwrap();
    let answer = ask_nobody(&binary, &closed.join("locks.db"));
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    assert!(answer.starts_with("Denied NotExecuted cannot create "), "{answer}");
    assert!(answer.contains("no permission to create files in"), "{answer}");
}

/// Lets somebody without rights open a store whose file and directory have these modes.
fn open_as_nobody(file: u32, place: u32) -> String {
    let directory = Directory::new();
    fill(&directory.file(), 1);
    let binary = binary_for_everybody(&directory);
    fs::set_permissions(directory.path(), Permissions::from_mode(place)).unwrap();
    fs::set_permissions(directory.file(), Permissions::from_mode(file)).unwrap();
    ask_nobody(&binary, &directory.file())
}

// Nothing is forbidden to root, so root starts the child as somebody else; everybody else is already somebody else.
fn ask_nobody(binary: &Path, path: &Path) -> String {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(binary);
    } else {
        command = Command::new(binary);
    }
    Child::start_as(command, &["open", &path.to_string_lossy()]).must_hear()
}

#[test]
fn a_full_disk_is_told_and_survived() {
    let directory = Directory::new();
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let (command, expected) = with_little_room(&disk);
    let mut child = Child::start_as(command, &["fill", &disk.join("locks.db").to_string_lossy()]);
    let answer = child.must_hear();
    assert!(expected.iter().all(|part| answer.contains(part)), "{answer}");
    // Room was made: it goes on, with all its records in order.
    assert_eq!(child.must_hear(), "goes on");
    assert_eq!(child.must_hear(), "ok");
    assert!(child.end().success());
}

/// A command that runs the rest of its line with little room for files, and what a full disk is called there: a small file system at
/// `disk` where we may mount one, a bound on the size of files where not.
fn with_little_room(disk: &Path) -> (Command, &'static [&'static str]) {
    let unshare: &[&str] = if is_root() { &["--mount"] } else { &["--map-root-user", "--mount"] };
    let mount = "mount -t tmpfs -o size=512k none \"$0\"";
    let tried = Command::new("unshare").args(unshare).args(["sh", "-c", mount]).arg(disk).status();
    if tried.is_ok_and(|status| status.success()) {
        let mut command = Command::new("unshare");
        let script = format!("{mount} && exec \"$@\"");
        command.args(unshare).args(["sh", "-c", &script]).arg(disk).arg(std::env::current_exe().unwrap());
        return (command, &["Unfit Unknown the disk with ", " is full; make room"]);
    }
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -S -f 600 && exec \"$0\" \"$@\"";
    command.args(["-c", script]).arg(std::env::current_exe().unwrap());
    (command, &["Unavailable Unknown ", "locks.db failed: "])
}

#[test]
fn role_of_a_child() {
    let Some(words) = child::words() else { return };
    let path = Path::new(&words[1]);
    match words[0].as_str() {
        "open" => match SqliteStore::open(path) {
            Ok(_) => child::say(format_args!("opened")),
            Err(error) => child::say(format_args!("{:?} {:?} {error}", error.kind, error.outcome)),
        },
        "fill" => block_on(fill_the_disk(path)),
        other => panic!("no role {other}"),
    }
}

async fn fill_the_disk(path: &Path) {
    let ballast = path.with_file_name("ballast");
    fs::write(&ballast, vec![0; 200_000]).unwrap();
    let store = std::sync::Arc::new(SqliteStore::open(path).unwrap());
    let bench = Bench::new(store.clone(), std::sync::Arc::new(Asleep), Terms::REAL);
    let actor = bench.deaf_actor(&bench.name("first")).await;
    let error = loop {
        let claim = actor.ask();
        if let Err(error) = store.apply(bench.name("more"), Op::Acquire(claim)).await {
            break error;
        }
    };
    child::say(format_args!("{:?} {:?} {error}", error.kind, error.outcome));
    fs::remove_file(ballast).unwrap();
    let unbound = Rlimit { current: None, maximum: None };
    let _ = setrlimit(Resource::Fsize, unbound);
    let (verdict, _) = actor.claim(&actor.ask()).await;
    assert!(matches!(verdict, Verdict::Granted(_)), "{verdict:?}");
    child::say(format_args!("goes on"));
    drop((actor, bench, store));
    let connection = rusqlite::Connection::open(path).unwrap();
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    child::say(format_args!("{check}"));
}
